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

/* ---- a bias by distance ---- */

/* A map whose rows are the one array, each a place further to the left. */
static void see_relative(qkv__attention *x, const qkv_tensor *relative)
{
    x->seen.bias = qkv_tensor_data(relative) + x->tq - 1;
    memcpy(x->seen.bias_step, (int64_t[]){ 0, x->tq + x->tk - 1, -1, 1 }, sizeof x->seen.bias_step);
}

static bool read_relative(qkv_tape *t, const qkv_tensor *relative, qkv__attention *x)
{
    const char *problem = NULL;
    int64_t width = x->tq + x->tk - 1;
    if (relative->ndim != 2 || relative->shape[0] != x->heads || relative->shape[1] != width)
        problem = "expected (heads, queries + keys - 1)";
    else if (x->seen.bias) problem = "the mask has a bias already";
    else if (x->cap > 0) problem = "scores have a cap or a bias, not both";
    if (problem) return qkv__error(t, QKV_USAGE, "attention: relative %s: %s", QKV_TEXT(relative), problem);
    see_relative(x, relative);
    return true;
}

/* Each sequence has its own sums, which tasks make; together they are the gradient, always in the same order. */
static bool start_relative(qkv_tensor *y, qkv__attention *x)
{
    if (y->n_in < 4) return true;
    see_relative(x, y->in[3]);
    if (!y->in[3]->wants_grad) return true;
    size_t bytes = sizeof(float) * (size_t)(x->batch * y->in[3]->count);
    x->grad_relative = qkv__save(y->tape, bytes);
    if (x->grad_relative) memset(x->grad_relative, 0, bytes);
    return x->grad_relative;
}

static void end_relative(qkv_tensor *y, const qkv__attention *x)
{
    float *grad = x->grad_relative ? qkv__grad(y->in[3]) : NULL;
    for (int64_t b = 0; grad && b < x->batch; b++)
        kern->axpy(grad, x->grad_relative + b * y->in[3]->count, 1.0f, y->in[3]->count);
}

static void attention_backward(qkv_tensor *y)
{
    qkv__attention *x = y->saved;
    x->q = qkv_tensor_data(y->in[0]);
    x->k = qkv_tensor_data(y->in[1]);
    x->v = qkv_tensor_data(y->in[2]);
    x->dy = y->grad;
    x->grad_q = qkv__grad(y->in[0]);
    x->grad_k = qkv__grad(y->in[1]);
    x->grad_v = qkv__grad(y->in[2]);
    if (!start_relative(y, x) || qkv_tape_status(y->tape)) return;
    run_attention(y->tape, x, x->batch * x->kv_heads, backward_task);
    end_relative(y, x);
}

/* The maps that were asked for: computed after y, from what y left, so that asking changes nothing. */
static void give_maps(qkv_tape *t, qkv__attention *x, const qkv_attention_opts *opts)
{
    qkv_tensor *weights = opts->weights || qkv__keeps_attention(t) ? qkv__attention_map(t, x) : NULL;
    qkv_tensor *scaled = opts->scaled ? qkv__attention_map(t, x) : NULL;
    qkv_tensor *scores = opts->scores ? qkv__attention_map(t, x) : NULL;
    x->weights = qkv__tensor_data(weights);
    x->scaled = qkv__tensor_data(scaled);
    x->scores = qkv__tensor_data(scores);
    if ((weights || scaled || scores) && !qkv_tape_status(t))
        run_attention(t, x, x->batch * x->heads * qkv__ceil_div(x->tq, QKV__QUERY_BLOCK), show_task);
    if (weights && qkv__keeps_attention(t)) qkv__keep_attention(t, weights);
    if (opts->weights) *opts->weights = weights;
    if (opts->scaled) *opts->scaled = scaled;
    if (opts->scores) *opts->scores = scores;
}

qkv_tensor *qkv_attention(qkv_tensor *q, qkv_tensor *k, qkv_tensor *v, const qkv_mask *mask, const qkv_attention_opts *given)
{
    int ndim;
    int64_t shape[4];
    qkv_attention_opts own, *opts = &own;
    qkv_status status = qkv__attention_options(opts, given, "attention");
    if (!status && opts->additive) return qkv__additive_attention(q, k, v, mask, opts);
    qkv_tensor *relative = opts->relative_bias, *in[4] = { q, k, v, relative };
    qkv_tape *t = qkv__operands("attention", relative ? 4 : 3, in);
    if (t && status) return qkv__error_below(t);
    qkv__attention *x = t ? qkv__save(t, sizeof *x) : NULL;
    bool keeps = q && k && v && (q->wants_grad || k->wants_grad || v->wants_grad || (relative && relative->wants_grad));
    if (!x || !qkv__attention_setup(t, "attention", in, mask, opts, keeps, x, &ndim, shape)) return NULL;
    if (relative && !read_relative(t, relative, x)) return NULL;
    if (x->scale == 0) x->scale = qkv__default_scale(x->dk);
    qkv_tensor *y = qkv__result(t, ndim, shape, attention_backward, relative ? 4 : 3, in);
    size_t rows = (size_t)(x->batch * x->heads * x->tq);
    x->largest = qkv__save(t, sizeof(float) * rows);
    x->inverse = qkv__save(t, sizeof(float) * rows);
    if (!y || !x->largest || !x->inverse) return NULL;
    y->saved = x;
    x->q = qkv_tensor_data(q);
    x->k = qkv_tensor_data(k);
    x->v = qkv_tensor_data(v);
    x->y = y->data;
    run_attention(t, x, x->batch * x->heads * qkv__ceil_div(x->tq, QKV__QUERY_BLOCK), forward_task);
    if (!qkv_tape_status(t)) give_maps(t, x, opts);
    return qkv_tape_status(t) ? NULL : y;
}
