/* micro_batches.c: the gradient of an update, summed in a tree. A node's left part waits in a partial sum while its right part is
 * computed where all gradients are: of a share that is a node itself there are as many partial sums as the tree is high. The
 * last micro-batch of a rank is the last one that adds to its gradients: what it makes final goes to the others at once. */
#include "micro_batches.h"

#include "../base/memory.h"
#include "../dist/reduction.h"
#include "../nn/params.h"
#include "../tensor/tape.h"

#include <stdio.h>
#include <string.h>

typedef struct summation {
    const qkv__micro_batches *m;
    float *grad, **values; /* of the nodes of this rank */
    int64_t block;
    int first; /* partial sum of the node that is summed */
} summation;

void qkv__partial_sums_free(qkv__partial_sums *s)
{
    for (int i = 0; i < QKV__MAX_PARTIAL; i++) qkv__release(s->at[i], s->bytes);
    *s = (qkv__partial_sums){ 0 };
}

/* ---- the last micro-batch of a rank ---- */

/* Weights lie in the block in the order they were made, which is about that of the forward: the last ones are final first. */
typedef struct following {
    const qkv_params *params;
    qkv__reduction *reduction;
    bool *is_final; /* of each weight */
    int open;       /* the weights from here on are final */
} following;

static int index_of_weight(const qkv_params *p, const qkv_tensor *w)
{
    int low = 0, high = qkv_params_size(p) - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (qkv_params_at(p, middle)->grad <= w->grad) low = middle;
        else high = middle - 1;
    }
    return low;
}

static void follow_weight(void *data, const qkv_tensor *w)
{
    following *f = data;
    int before = f->open, i = index_of_weight(f->params, w);
    if (qkv_params_at(f->params, i) != w) return; /* of another model */
    f->is_final[i] = true;
    while (f->open > 0 && f->is_final[f->open - 1]) f->open--;
    if (f->open == before) return;
    const float *first = qkv_params_at(f->params, 0)->grad;
    qkv__reduction_ready(f->reduction, qkv_params_at(f->params, f->open)->grad - first);
}

static qkv_status run_followed(const summation *s, int64_t i, qkv__reduction *r, bool *is_final)
{
    int n = qkv_params_size(s->m->params);
    following f = { .params = s->m->params, .reduction = r, .open = n, .is_final = is_final };
    for (int k = 0; k < n; k++) qkv_params_at(f.params, k)->first_user = NULL;
    qkv__tell_final(s->m->tape, follow_weight, &f);
    qkv_status status = s->m->run(s->m->data, i);
    qkv__tell_final(s->m->tape, NULL, NULL);
    return status;
}

/* The other ranks wait for this one's gradients: they get them, whatever they are, also after an error, which is told them
 * later. */
static qkv_status run_last(const summation *s, int64_t i, int free)
{
    float *late[QKV__MAX_PARTIAL];
    qkv__reduction_opts o = { .leaves = s->m->n, .values = s->values, .sum = s->grad, .count = s->block, .late = late };
    while (free > s->first) late[o.n_late++] = s->m->sums->at[--free];
    size_t weights = (size_t)qkv_params_size(s->m->params);
    bool *is_final = qkv__alloc_zero(weights); /* before: weights may still be on their way, which run() waits for */
    qkv__reduction *r = is_final ? qkv__reduction_begin(&o) : NULL;
    if (!r) return qkv__release(is_final, weights), QKV_MEMORY;
    char sentence[QKV_SENTENCE_MAX];
    qkv_status status = run_followed(s, i, r, is_final);
    if (status) snprintf(sentence, sizeof sentence, "%s", qkv_error());
    qkv_status reduced = qkv__reduction_end(r);
    qkv__release(is_final, weights);
    return status ? qkv__fail_again(status, sentence) : reduced;
}

/* ---- a node ---- */

/* Moves the gradients to the i-th partial sum, and leaves zeros. */
static qkv_status set_aside(const summation *s, int i)
{
    qkv__partial_sums *sums = s->m->sums;
    if (!sums->at[i] && !(sums->at[i] = qkv__alloc(sums->bytes))) return QKV_MEMORY;
    memcpy(sums->at[i], s->grad, sums->bytes);
    qkv_params_zero_grad(s->m->params);
    return QKV_OK;
}

/* The sum of a node in the gradients; the partial sums from `free` on are free. With the last leaf of several ranks: that of
 * all ranks. */
static qkv_status sum_node(const summation *s, qkv__node n, int free, bool is_last)
{
    if (n.to - n.from == 1) return is_last ? run_last(s, n.from, free) : s->m->run(s->m->data, n.from);
    int64_t middle = qkv__tree_middle(n);
    qkv_status status = sum_node(s, (qkv__node){ n.from, middle }, free, false);
    if (!status) status = set_aside(s, free);
    if (!status) status = sum_node(s, (qkv__node){ middle, n.to }, free + 1, is_last);
    return status || is_last ? status : qkv__add_floats(s->grad, s->m->sums->at[free], s->block);
}

qkv_status qkv__sum_micro_batches(const qkv__micro_batches *m)
{
    qkv__node nodes[QKV__MAX_NODES];
    float *values[QKV__MAX_NODES];
    int rank = qkv_dist_rank(), ranks = qkv_dist_size(), own = qkv__tree_nodes(m->n, qkv__tree_share(m->n, rank, ranks), nodes);
    summation s = { .m = m, .grad = qkv__params_grad(m->params), .values = values, .block = qkv__params_block(m->params) };
    qkv_status status = QKV_OK;
    m->sums->bytes = sizeof(float) * (size_t)s.block;
    for (s.first = 0; s.first < own && !status; s.first++) {
        int k = s.first;
        bool is_last = k == own - 1;
        values[k] = s.grad;
        status = sum_node(&s, nodes[k], k, is_last && ranks > 1);
        if (!status && !is_last) status = set_aside(&s, k);
        if (!is_last) values[k] = m->sums->at[k];
    }
    return status;
}
