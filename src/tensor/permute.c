/* permute.c: dimensions in another order; the values move. */
#include "parallel_for.h"

typedef struct work {
    int ndim;
    int64_t size[QKV_MAX_DIMS]; /* of y */
    int64_t step[QKV_MAX_DIMS]; /* in x, for one step in y */
    float *to;
    bool add;
    const float *from;
} work;

/* Where in x a row of y begins. */
static int64_t row_begin(const work *w, int64_t row)
{
    int64_t at = 0;
    for (int d = w->ndim - 2; d >= 0; d--) {
        at += row % w->size[d] * w->step[d];
        row /= w->size[d];
    }
    return at;
}

static void permute_forward_rows(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    int64_t n = w->size[w->ndim - 1], step = w->step[w->ndim - 1];
    for (int64_t row = from; row < to; row++) {
        const float *x = w->from + row_begin(w, row);
        float *y = w->to + row * n;
        if (step == 1) memcpy(y, x, sizeof(float) * (size_t)n);
        else
            for (int64_t i = 0; i < n; i++) y[i] = x[i * step];
    }
}

/* y[i] = x[at(i)], every place once:   dx[at(i)] += dy[i] */
static void permute_backward_rows(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    int64_t n = w->size[w->ndim - 1], step = w->step[w->ndim - 1];
    for (int64_t row = from; row < to; row++) {
        const float *dy = w->from + row * n;
        float *dx = w->to + row_begin(w, row);
        for (int64_t i = 0; i < n; i++) dx[i * step] = (w->add ? dx[i * step] : 0) + dy[i];
    }
}

/* order[i] is the dimension of x that becomes y's i-th; a tensor without dimensions is one row of one. */
static work work_for(const qkv_tensor *x, const int *order)
{
    int64_t step[QKV_MAX_DIMS], run = 1;
    for (int d = x->ndim - 1; d >= 0; d--) {
        step[d] = run;
        run *= x->shape[d];
    }
    work w = { .ndim = x->ndim };
    for (int d = 0; d < x->ndim; d++) {
        w.size[d] = x->shape[order[d]];
        w.step[d] = step[order[d]];
    }
    if (!x->ndim) w.ndim = 1, w.size[0] = w.step[0] = 1;
    return w;
}

static void permute_backward(qkv_tensor *y)
{
    work w = work_for(y->in[0], y->saved);
    w.from = y->grad;
    if ((w.to = qkv__grad_to(y->in[0], &w.add)))
        qkv__parallel_for(y->tape, qkv__rows(y), qkv__grain(qkv__last(y)), permute_backward_rows, &w);
}

static bool is_order(int ndim, const int *order)
{
    unsigned seen = 0;
    for (int i = 0; i < ndim; i++) {
        if (order[i] < 0 || order[i] >= ndim || seen >> order[i] & 1) return false;
        seen |= 1u << order[i];
    }
    return true;
}

qkv_tensor *qkv_permute(qkv_tensor *x, const int *order)
{
    qkv_tape *t = qkv__operands("permute", 1, &x);
    if (!t) return NULL;
    if ((x->ndim && !order) || !is_order(x->ndim, order))
        return qkv__error(t, QKV_USAGE, "permute: the order must name each of the %d dimensions of %s once", x->ndim,
                          QKV_TEXT(x));
    work w = work_for(x, order);
    qkv_tensor *y = qkv__result(t, x->ndim, w.size, permute_backward, 1, &x);
    int *saved = qkv__save(t, sizeof *order * QKV_MAX_DIMS);
    if (!y || !saved) return NULL;
    if (x->ndim) memcpy(saved, order, sizeof *order * (size_t)x->ndim);
    y->saved = saved;
    w.to = y->data;
    w.from = qkv_tensor_data(x);
    return qkv__parallel_for(t, qkv__rows(y), qkv__grain(qkv__last(y)), permute_forward_rows, &w) ? y : NULL;
}

qkv_tensor *qkv_transpose(qkv_tensor *x, int i, int j)
{
    int order[QKV_MAX_DIMS];
    qkv_tape *t = qkv__operands("swap", 1, &x);
    if (!t) return NULL;
    int a = i < 0 ? i + x->ndim : i, b = j < 0 ? j + x->ndim : j;
    if (a < 0 || a >= x->ndim || b < 0 || b >= x->ndim)
        return qkv__error(t, QKV_USAGE, "swap: %s has no dimensions %d and %d", QKV_TEXT(x), i, j);
    for (int d = 0; d < x->ndim; d++) order[d] = d == a ? b : d == b ? a : d;
    return qkv_permute(x, order);
}
