/* lens.c: what the states between the layers would say: the logit lens. */
#include "inside.h"

#include "../base/memory.h"
#include "../base/options.h"
#include "../nn/transformer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_K = 5, AT_ONCE = 64 }; /* places whose logits are computed together */

/* Where the numbers go. */
typedef struct lens_job {
    qkv__inside in;
    qkv_tape *tape; /* of some logits */
    int64_t vocabulary;
    int32_t *ids, *next;
    double *p, *next_p, *surprise;
    qkv_logit_lens_result *out;
} lens_job;

static bool take_room(lens_job *j)
{
    size_t cells = (size_t)((j->out->layers + 1) * j->out->places), k = (size_t)j->out->k, places = (size_t)j->out->places;
    j->ids = qkv__result_alloc(j->out, sizeof *j->ids * cells * k);
    j->p = qkv__result_alloc(j->out, sizeof *j->p * cells * k);
    j->next_p = qkv__result_alloc(j->out, sizeof *j->next_p * cells);
    j->next = qkv__result_alloc(j->out, sizeof *j->next * places);
    j->surprise = qkv__result_alloc(j->out, sizeof *j->surprise * places);
    return j->ids && j->p && j->next_p && j->next && j->surprise;
}

/* exp(logits[i]) / sum exp(logits) */
static double probability_of(const float *logits, int64_t n, int64_t i)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t v = 0; v < n; v++) largest = fmax(largest, (double)logits[v]);
    for (int64_t v = 0; v < n; v++) sum += exp((double)logits[v] - largest);
    return exp((double)logits[i] - largest) / sum;
}

static qkv_status read_cell(lens_job *j, int64_t cell, const float *logits, int32_t next)
{
    int k = j->out->k;
    for (int64_t v = 0; v < j->vocabulary; v++)
        if (!isfinite(logits[v])) return qkv__fail(QKV_NUMERIC, "lens: the model's logits are not finite");
    qkv_status status = qkv_top_k(logits, j->vocabulary, k, j->ids + cell * k, j->p + cell * k);
    j->next_p[cell] = next < 0 ? 0 : probability_of(logits, j->vocabulary, next);
    return status;
}

/* The states of one layer, some places at a time: their logits would take much memory. */
static qkv_status read_layer(lens_job *j, int layer)
{
    const qkv__inside *in = &j->in;
    const qkv_tensor *states = qkv__inside_hidden(in, in->stack, layer);
    int64_t dim = in->x->o.dim, n = j->out->places;
    qkv_status status = QKV_OK;
    for (int64_t from = 0, rows; from < n && !status; from += rows) {
        rows = qkv__min(AT_ONCE, n - from);
        qkv_tape_reset(j->tape);
        qkv_tensor *x = qkv__borrow(j->tape, 2, (int64_t[]){ rows, dim }, qkv__tensor_data(states) + from * dim);
        if (layer < j->out->layers) x = qkv__final_norm(in->x, in->stack, x); /* the last one has it already */
        qkv_tensor *logits = qkv__transformer_logits(in->x, x);
        status = logits ? QKV_OK : qkv_tape_status(j->tape);
        for (int64_t i = 0; i < rows && !status; i++)
            status = read_cell(j, layer * n + from + i, qkv_tensor_data(logits) + i * j->vocabulary, j->next[from + i]);
    }
    return status;
}

static qkv_status read_layers(lens_job *j)
{
    qkv_logit_lens_result *out = j->out;
    for (int64_t i = 0; i < out->places; i++) j->next[i] = i < j->in.n_next ? j->in.next[i] : -1;
    qkv_status status = qkv__inside_run(&j->in, &(qkv_tape_opts){ .inference = 1, .keep_hidden = 1 });
    for (int layer = 0; layer <= out->layers && !status; layer++) status = read_layer(j, layer);
    for (int64_t i = 0; i < out->places && !status; i++)
        j->surprise[i] = j->next[i] < 0 ? 0 : -log2(j->next_p[out->layers * out->places + i]);
    out->ids = j->ids;
    out->p = j->p;
    out->next = j->next;
    out->next_p = j->next_p;
    out->surprise = j->surprise;
    return status;
}

static qkv_status project_layers(const qkv_model *m, const qkv_attention_capture *a, const qkv_logit_lens_opts *o,
                                 qkv_logit_lens_result *out)
{
    lens_job j = { .out = out };
    qkv_status status = qkv__inside_read("lens", m, a, &j.in);
    if (status) return status;
    if (!qkv__inside_speaks(m, &j.in))
        return qkv__fail(QKV_UNSUPPORTED, "lens: the model says no tokens: it has no decoder and cannot fill words in");
    const qkv_config *t = qkv__transformer_config(j.in.x);
    j.vocabulary = j.in.stack == QKV__DECODER && t->target_vocab_size ? t->target_vocab_size : t->vocab_size;
    out->k = o->k ? o->k : (int)qkv__min(DEFAULT_K, j.vocabulary);
    out->layers = j.in.x->stacks[j.in.stack].n;
    out->places = j.in.stack == QKV__DECODER ? j.in.n_read : j.in.n_source;
    if (out->k < 1 || out->k > j.vocabulary)
        return qkv__fail(QKV_USAGE, "lens: k is %d, expected 1 to %lld", out->k, (long long)j.vocabulary);
    if (!take_room(&j)) return QKV_MEMORY;
    j.tape = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    status = j.tape ? read_layers(&j) : qkv_error_status();
    qkv_tape_free(j.tape);
    qkv__inside_free(&j.in);
    return status;
}

qkv_status qkv_logit_lens(const qkv_model *m, const qkv_attention_capture *a, const qkv_logit_lens_opts *opts,
                          qkv_logit_lens_result **out)
{
    static const qkv__result_kind kind = { sizeof(qkv_logit_lens_result), NULL };
    qkv_logit_lens_opts o;
    if (!m || !a || !out) return qkv__fail(QKV_USAGE, "lens: a model, a capture and a place for the result are needed");
    qkv_logit_lens_result *lens = qkv__result_begin(*out, &kind);
    if (!lens) return qkv_error_status();
    *out = lens;
    qkv_status status = QKV__READ_OPTIONS(&o, k, opts, "lens");
    if (!status) status = project_layers(m, a, &o, lens);
    if (status) qkv__result_clear(lens);
    return status;
}
