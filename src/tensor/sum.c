/* sum.c: sums and means of everything, or over one dimension. */
#include "parallel_for.h"

/* ---- of everything ---- */

typedef struct fill_work {
    float *dx, value;
    bool add;
} fill_work;

static void fill_range(void *data, int64_t from, int64_t to)
{
    const fill_work *w = data;
    for (int64_t i = from; i < to; i++) w->dx[i] = (w->add ? w->dx[i] : 0) + w->value;
}

/* y = factor sum x:   dx_i += factor dy */
static void sum_backward(qkv_tensor *y)
{
    qkv_tensor *x = y->in[0];
    fill_work w = { .value = *(const float *)y->saved * y->grad[0] };
    if ((w.dx = qkv__grad_to(x, &w.add))) qkv__parallel_for(y->tape, x->count, QKV_TASK_ELEMENTS, fill_range, &w);
}

static float block_sum(const float *x, const float *unused, int64_t n)
{
    (void)unused;
    return kern->sum(x, n);
}

static qkv_tensor *sum_all(qkv_tape *t, qkv_tensor *x, double factor)
{
    double sum;
    qkv_tensor *y = qkv__result(t, 0, NULL, sum_backward, 1, &x);
    float *saved = qkv__save(t, sizeof *saved);
    if (!y || !saved || !qkv__sum_blocks(t, block_sum, qkv_tensor_data(x), qkv_tensor_data(x), x->count, &sum)) return NULL;
    *saved = (float)factor;
    y->saved = saved;
    y->data[0] = (float)(sum * factor);
    return y;
}

/* ---- over one dimension: x (outer, n, inner) -> y (outer, inner) ---- */

typedef struct over {
    int64_t outer, n, inner;
    float factor;
} over;

typedef struct over_work {
    over o;
    int64_t columns, pieces; /* a row of y is cut in pieces of so many columns */
    float *y;
    bool add;
    const float *x;
} over_work;

static void sum_range(void *data, int64_t from, int64_t to)
{
    const over_work *w = data;
    const over *o = &w->o;
    for (int64_t unit = from; unit < to; unit++) {
        int64_t row = unit / w->pieces, i = unit % w->pieces * w->columns, columns = qkv__min(w->columns, o->inner - i);
        const float *x = w->x + row * o->n * o->inner + i;
        float *y = w->y + row * o->inner + i;
        if (o->inner == 1) {
            *y = (float)(o->factor * qkv__sum(x, o->n));
            continue;
        }
        memset(y, 0, sizeof(float) * (size_t)columns);
        kern->add_rows(y, x, o->n, o->inner, columns);
        if (o->factor != 1) kern->scale(y, y, o->factor, columns);
    }
}

/* y[o,i] = factor sum_k x[o,k,i]:   dx[o,k,i] += factor dy[o,i] */
static void spread_range(void *data, int64_t from, int64_t to)
{
    const over_work *w = data;
    const over *o = &w->o;
    for (int64_t row = from; row < to; row++) {
        if (o->inner == 1) {
            fill_work fill = { w->y, o->factor * w->x[row], w->add };
            fill_range(&fill, row * o->n, (row + 1) * o->n);
            continue;
        }
        for (int64_t k = 0; k < o->n; k++)
            kern->axpy(qkv__piece(w->y + (row * o->n + k) * o->inner, w->add, o->inner), w->x + row * o->inner, o->factor,
                       o->inner);
    }
}

static void over_backward(qkv_tensor *y)
{
    over_work w = { .o = *(const over *)y->saved, .x = y->grad };
    if ((w.y = qkv__grad_to(y->in[0], &w.add)))
        qkv__parallel_for(y->tape, w.o.outer, qkv__grain(w.o.n * w.o.inner), spread_range, &w);
}

static qkv_tensor *sum_over(const char *name, qkv_tensor *x, int dim, bool mean)
{
    qkv_tape *t = qkv__operands(name, 1, &x);
    int64_t shape[QKV_MAX_DIMS];
    if (!t) return NULL;
    if (dim == QKV_ALL_DIMS) return sum_all(t, x, mean ? 1.0 / (double)x->count : 1);
    int d = dim < 0 ? dim + x->ndim : dim, ndim = 0;
    if (d < 0 || d >= x->ndim) return qkv__error(t, QKV_USAGE, "%s: %s has no dimension %d", name, QKV_TEXT(x), dim);
    over_work w = { .o = { 1, x->shape[d], 1, mean ? (float)(1.0 / (double)x->shape[d]) : 1.0f }, .x = qkv_tensor_data(x) };
    for (int i = 0; i < x->ndim; i++) {
        if (i == d) continue;
        shape[ndim++] = x->shape[i];
        if (i < d) w.o.outer *= x->shape[i];
        else w.o.inner *= x->shape[i];
    }
    qkv_tensor *y = qkv__result(t, ndim, shape, over_backward, 1, &x);
    over *saved = qkv__save(t, sizeof *saved);
    if (!y || !saved) return NULL;
    *saved = w.o;
    y->saved = saved;
    w.y = y->data;
    w.columns = qkv__max(1, qkv__min(w.o.inner, qkv__columns(w.o.n)));
    w.pieces = qkv__ceil_div(w.o.inner, w.columns);
    return qkv__parallel_for(t, w.o.outer * w.pieces, qkv__grain(w.o.n * w.columns), sum_range, &w) ? y : NULL;
}

qkv_tensor *qkv_sum(qkv_tensor *x, int dim) { return sum_over("sum", x, dim, false); }

qkv_tensor *qkv_mean(qkv_tensor *x, int dim) { return sum_over("mean", x, dim, true); }
