/* attention.c: y = softmax(q k^T scale + bias) v, per head. docs/math/attention.md derives the backward; src/kern/attention.c
 * computes. */
#include "mask.h"

static void forward_task(void *work, int64_t task, void *scratch)
{
    const qkv__attention *x = work;
    int64_t blocks = qkv__ceil_div(x->tq, QKV__QUERY_BLOCK), from = task % blocks * QKV__QUERY_BLOCK, head = task / blocks;
    kern->attend(x, head / x->heads, head % x->heads, from, qkv__min(from + QKV__QUERY_BLOCK, x->tq), scratch);
}

static void show_task(void *work, int64_t task, void *scratch)
{
    const qkv__attention *x = work;
    int64_t blocks = qkv__ceil_div(x->tq, QKV__QUERY_BLOCK), from = task % blocks * QKV__QUERY_BLOCK, head = task / blocks;
    kern->attend_show(x, head / x->heads, head % x->heads, from, qkv__min(from + QKV__QUERY_BLOCK, x->tq), scratch);
}

/* All query heads that read one key head: only one task adds to a row of dk and dv, always in the same order. */
static void backward_task(void *work, int64_t task, void *scratch)
{
    const qkv__attention *x = work;
    kern->attend_grad(x, task / x->kv_heads, task % x->kv_heads, scratch);
}

static void run_attention(qkv_tape *t, qkv__attention *x, int64_t tasks, qkv__task *task)
{
    if (x->tq && qkv__parallel(tasks, qkv__attention_scratch(x->dk, x->dv), task, x)) qkv__error_below(t);
}

static void attention_backward(qkv_tensor *y)
{
    qkv__attention *x = y->saved;
    x->q = qkv_data(y->in[0]);
    x->k = qkv_data(y->in[1]);
    x->v = qkv_data(y->in[2]);
    x->dy = y->grad;
    x->grad_q = qkv__grad(y->in[0]);
    x->grad_k = qkv__grad(y->in[1]);
    x->grad_v = qkv__grad(y->in[2]);
    if (!qkv_tape_status(y->tape)) run_attention(y->tape, x, x->batch * x->kv_heads, backward_task);
}

/* The maps that were asked for: computed after y, from what y left, so that asking changes nothing. */
static void give_maps(qkv_tape *t, qkv__attention *x, const qkv_attention_opts *opts)
{
    qkv_tensor *weights = opts->weights || qkv__keeps_attention(t) ? qkv__attention_map(t, x) : NULL;
    qkv_tensor *scaled = opts->scaled ? qkv__attention_map(t, x) : NULL;
    qkv_tensor *scores = opts->scores ? qkv__attention_map(t, x) : NULL;
    x->weights = qkv_data(weights);
    x->scaled = qkv_data(scaled);
    x->scores = qkv_data(scores);
    if ((weights || scaled || scores) && !qkv_tape_status(t))
        run_attention(t, x, x->batch * x->heads * qkv__ceil_div(x->tq, QKV__QUERY_BLOCK), show_task);
    if (weights && qkv__keeps_attention(t)) qkv__keep_attention(t, weights);
    if (opts->weights) *opts->weights = weights;
    if (opts->scaled) *opts->scaled = scaled;
    if (opts->scores) *opts->scores = scores;
}

qkv_tensor *qkv_attention_with(qkv_tensor *q, qkv_tensor *k, qkv_tensor *v, qkv_mask mask, const qkv_attention_opts *given)
{
    qkv_tensor *in[3] = { q, k, v };
    int ndim;
    int64_t shape[4];
    qkv_attention_opts own, *opts = &own;
    qkv_status status = qkv__attention_options(opts, given, "attention");
    qkv_tape *t = qkv__operands("attention", 3, in);
    if (t && status) return qkv__error_below(t);
    qkv__attention *x = t ? qkv__save(t, sizeof *x) : NULL;
    bool keeps = q && k && v && (q->wants_grad || k->wants_grad || v->wants_grad);
    if (!x || !qkv__attention_setup(t, "attention", in, &mask, opts, keeps, x, &ndim, shape)) return NULL;
    if (x->scale == 0) x->scale = qkv__default_scale(x->dk);
    qkv_tensor *y = qkv__result(t, ndim, shape, attention_backward, 3, in);
    size_t rows = (size_t)(x->batch * x->heads * x->tq);
    x->largest = qkv__save(t, sizeof(float) * rows);
    x->inverse = qkv__save(t, sizeof(float) * rows);
    if (!y || !x->largest || !x->inverse) return NULL;
    y->saved = x;
    x->q = qkv_data(q);
    x->k = qkv_data(k);
    x->v = qkv_data(v);
    x->y = y->data;
    run_attention(t, x, x->batch * x->heads * qkv__ceil_div(x->tq, QKV__QUERY_BLOCK), forward_task);
    if (!qkv_tape_status(t)) give_maps(t, x, opts);
    return qkv_tape_status(t) ? NULL : y;
}

qkv_tensor *qkv_attention(qkv_tensor *q, qkv_tensor *k, qkv_tensor *v, qkv_mask mask)
{
    return qkv_attention_with(q, k, v, mask, NULL);
}
