/* micro_batches.c: the gradient of an update, summed in a tree. A node's left part waits in a partial sum while its right part is
 * computed where all gradients are: of a share that is a node itself there are as many partial sums as the tree is high. */
#include "micro_batches.h"

#include "../base/memory.h"
#include "../dist/tree.h"

#include <stdbool.h>
#include <string.h>

typedef struct summation {
    qkv_params *params;
    float *grad;
    int64_t block;
    qkv__micro_batch *run;
    void *data;
    qkv__partial_sums *sums;
} summation;

void qkv__partial_sums_free(qkv__partial_sums *s)
{
    for (int i = 0; i < QKV__MAX_PARTIAL; i++) qkv__release(s->at[i], s->bytes);
    *s = (qkv__partial_sums){ 0 };
}

/* Moves the gradients to the i-th partial sum, and leaves zeros. */
static qkv_status set_aside(const summation *s, int i)
{
    if (!s->sums->at[i] && !(s->sums->at[i] = qkv__alloc(s->sums->bytes))) return QKV_MEMORY;
    memcpy(s->sums->at[i], s->grad, s->sums->bytes);
    qkv_params_zero_grad(s->params);
    return QKV_OK;
}

/* The sum of a node in the gradients; the partial sums from `free` on are free. */
static qkv_status sum_node(const summation *s, qkv__node n, int free)
{
    if (n.to - n.from == 1) return s->run(s->data, n.from);
    int64_t middle = qkv__tree_middle(n);
    qkv_status status = sum_node(s, (qkv__node){ n.from, middle }, free);
    if (!status) status = set_aside(s, free);
    if (!status) status = sum_node(s, (qkv__node){ middle, n.to }, free + 1);
    return status ? status : qkv__add_floats(s->grad, s->sums->at[free], s->block);
}

qkv_status qkv__sum_micro_batches(qkv_params *p, int64_t n, qkv__micro_batch *run, void *data, qkv__partial_sums *sums)
{
    qkv__node nodes[QKV__MAX_NODES];
    float *values[QKV__MAX_NODES];
    summation s = { p, qkv_params_grad(p), qkv_params_block(p), run, data, sums };
    int own = qkv__tree_nodes(n, qkv__tree_share(n, qkv_dist_rank(), qkv_dist_ranks()), nodes);
    qkv_status status = QKV_OK;
    sums->bytes = sizeof(float) * (size_t)s.block;
    for (int k = 0; k < own && !status; k++) {
        status = sum_node(&s, nodes[k], k);
        bool is_last = k == own - 1;
        if (!status && !is_last) status = set_aside(&s, k);
        values[k] = is_last ? s.grad : sums->at[k];
    }
    return status || qkv_dist_ranks() == 1 ? status : qkv__dist_tree_sum(n, values, s.block, s.grad);
}

qkv_status qkv__sum_micro_batches_fast(qkv_params *p, int64_t n, qkv__micro_batch *run, void *data)
{
    qkv__node share = qkv__tree_share(n, qkv_dist_rank(), qkv_dist_ranks());
    qkv_status status = QKV_OK;
    for (int64_t i = share.from; i < share.to && !status; i++) status = run(data, i);
    return status ? status : qkv__dist_fast_sum(qkv_params_grad(p), (size_t)qkv_params_block(p));
}
