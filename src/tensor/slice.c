/* slice.c: a part of one dimension, and parts put together along one. */
#include "parallel_for.h"

/* Copies `outer` runs of `run` values; or adds them. */
typedef struct work {
    float *to;
    const float *from;
    int64_t run, to_step, from_step;
} work;

static void copy_runs(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    for (int64_t i = from; i < to; i++)
        memcpy(w->to + i * w->to_step, w->from + i * w->from_step, sizeof(float) * (size_t)w->run);
}

static void add_runs(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    for (int64_t i = from; i < to; i++) kern->axpy(w->to + i * w->to_step, w->from + i * w->from_step, 1.0f, w->run);
}

/* The products of the dimensions before and after dim. */
static int64_t outer_count(const qkv_tensor *x, int dim)
{
    int64_t n = 1;
    for (int i = 0; i < dim; i++) n *= x->shape[i];
    return n;
}

static int64_t inner_count(const qkv_tensor *x, int dim)
{
    int64_t n = 1;
    for (int i = dim + 1; i < x->ndim; i++) n *= x->shape[i];
    return n;
}

/* ---- slice ---- */

typedef struct sliced {
    int dim;
    int64_t from;
} sliced;

/* y = x[.., from:to, ..]:   dx[.., from:to, ..] += dy */
static void slice_backward(qkv_tensor *y)
{
    const sliced *s = y->saved;
    qkv_tensor *x = y->in[0];
    float *dx = qkv__grad(x);
    if (!dx || !y->count) return;
    int64_t inner = inner_count(x, s->dim), run = y->shape[s->dim] * inner;
    work w = { dx + s->from * inner, y->grad, run, x->shape[s->dim] * inner, run };
    qkv__parallel_for(y->tape, outer_count(x, s->dim), qkv__grain(run), add_runs, &w);
}

qkv_tensor *qkv_slice(qkv_tensor *x, int dim, int64_t from, int64_t to)
{
    qkv_tape *t = qkv__operands("slice", 1, &x);
    if (!t) return NULL;
    int d = dim < 0 ? dim + x->ndim : dim;
    if (d < 0 || d >= x->ndim) return qkv__error(t, QKV_USAGE, "slice: %s has no dimension %d", QKV_TEXT(x), dim);
    if (from < 0 || from > to || to > x->shape[d])
        return qkv__error(t, QKV_USAGE, "slice: %lld to %lld is not inside dimension %d of %s", (long long)from, (long long)to,
                          dim, QKV_TEXT(x));
    int64_t shape[QKV_MAX_DIMS], inner = inner_count(x, d), run = (to - from) * inner;
    memcpy(shape, x->shape, sizeof shape);
    shape[d] = to - from;
    qkv_tensor *y = qkv__result(t, x->ndim, shape, slice_backward, 1, &x);
    sliced *s = qkv__save(t, sizeof *s);
    if (!y || !s) return NULL;
    *s = (sliced){ d, from };
    y->saved = s;
    if (!y->count) return y;
    work w = { y->data, qkv_tensor_data(x) + from * inner, run, run, x->shape[d] * inner };
    return qkv__parallel_for(t, outer_count(x, d), qkv__grain(run), copy_runs, &w) ? y : NULL;
}

/* ---- concat ---- */

/* y = [x_1, x_2, ..]:   dx_i += its part of dy */
static void concat_backward(qkv_tensor *y)
{
    int dim = *(const int *)y->saved;
    int64_t inner = inner_count(y, dim), row = y->shape[dim] * inner, at = 0;
    for (int i = 0; i < y->n_in; i++) {
        int64_t run = y->in[i]->shape[dim] * inner;
        work w = { qkv__grad(y->in[i]), y->grad + at, run, run, row };
        at += run;
        if (w.to) qkv__parallel_for(y->tape, run ? outer_count(y, dim) : 0, qkv__grain(run), add_runs, &w);
    }
}

static bool fits(const qkv_tensor *a, const qkv_tensor *b, int dim)
{
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (i != dim && a->shape[i] != b->shape[i]) return false;
    return true;
}

static bool copy_parts(qkv_tape *t, qkv_tensor *y, int dim)
{
    int64_t inner = inner_count(y, dim), row = y->shape[dim] * inner, at = 0;
    for (int i = 0; i < y->n_in; i++) {
        int64_t run = y->in[i]->shape[dim] * inner;
        work w = { y->data + at, qkv_tensor_data(y->in[i]), run, row, run };
        at += run;
        if (!qkv__parallel_for(t, run ? outer_count(y, dim) : 0, qkv__grain(run), copy_runs, &w)) return false;
    }
    return true;
}

qkv_tensor *qkv_concat(int n, qkv_tensor *const *parts, int dim)
{
    if (n < 1 || !parts) {
        qkv__fail(QKV_USAGE, "concat: there are no parts");
        return NULL;
    }
    qkv_tape *t = qkv__operands("concat", n, parts);
    if (!t) return NULL;
    int d = dim < 0 ? dim + parts[0]->ndim : dim;
    if (d < 0 || d >= parts[0]->ndim)
        return qkv__error(t, QKV_USAGE, "concat: %s has no dimension %d", QKV_TEXT(parts[0]), dim);
    int64_t shape[QKV_MAX_DIMS];
    memcpy(shape, parts[0]->shape, sizeof shape);
    for (int i = 1; i < n; i++) {
        if (!fits(parts[0], parts[i], d))
            return qkv__error(t, QKV_USAGE, "concat: part 0 is %s, part %d is %s: only dimension %d may differ",
                              QKV_TEXT(parts[0]), i, QKV_TEXT(parts[i]), d);
        if (__builtin_add_overflow(shape[d], parts[i]->shape[d], &shape[d]))
            return qkv__error(t, QKV_LIMIT, "concat: dimension %d is larger than memory can be", d);
    }
    qkv_tensor *y = qkv__result(t, parts[0]->ndim, shape, concat_backward, n, parts);
    int *saved = qkv__save(t, sizeof *saved);
    if (!y || !saved) return NULL;
    *saved = d;
    y->saved = saved;
    return copy_parts(t, y, d) ? y : NULL;
}
