/* softmax.c: softmax and its logarithm along the last dimension. */
#include "softmax.h"
#include "parallel_for.h"

typedef void rows_kernel(float *y, const float *x, int64_t rows, int64_t n);
typedef void rows_grad_kernel(float *dx, const float *y, const float *dy, int64_t rows, int64_t n);

typedef struct work {
    rows_kernel *f;
    rows_grad_kernel *grad;
    float *to;
    bool add;
    const float *from, *dy;
    int64_t n;
} work;

static void softmax_forward_rows(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    w->f(w->to + from * w->n, w->from + from * w->n, to - from, w->n);
}

static void softmax_backward_rows(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    int64_t at = from * w->n;
    w->grad(qkv__piece(w->to + at, w->add, (to - from) * w->n), w->from + at, w->dy + at, to - from, w->n);
}

static void softmax_backward_of(qkv_tensor *y, rows_grad_kernel *grad)
{
    work w = { .grad = grad, .from = y->data, .dy = y->grad, .n = qkv__last(y) };
    if ((w.to = qkv__grad_to(y->in[0], &w.add)))
        qkv__parallel_for(y->tape, qkv__rows(y), qkv__grain(w.n), softmax_backward_rows, &w);
}

static qkv_tensor *softmax_forward(qkv_tape *t, qkv_tensor *x, rows_kernel *f, qkv__backward *backward)
{
    qkv_tensor *y = qkv__result(t, x->ndim, x->shape, backward, 1, &x);
    if (!y) return NULL;
    work w = { .f = f, .to = y->data, .from = qkv_tensor_data(x), .n = qkv__last(x) };
    return qkv__parallel_for(t, qkv__rows(x), qkv__grain(w.n), softmax_forward_rows, &w) ? y : NULL;
}

/* y = exp(x) / sum exp(x):   dx += y (dy - sum_j y_j dy_j) */
static void softmax_backward(qkv_tensor *y) { softmax_backward_of(y, kern->softmax_grad); }

qkv_tensor *qkv_softmax(qkv_tensor *x)
{
    qkv_tape *t = qkv__operands("softmax", 1, &x);
    return t ? softmax_forward(t, x, kern->softmax, softmax_backward) : NULL;
}

/* y = x - log sum exp(x):   dx += dy - exp(y) sum_j dy_j */
static void log_softmax_backward(qkv_tensor *y) { softmax_backward_of(y, kern->log_softmax_grad); }

qkv_tensor *qkv_log_softmax(qkv_tensor *x)
{
    qkv_tape *t = qkv__operands("log_softmax", 1, &x);
    return t ? softmax_forward(t, x, kern->log_softmax, log_softmax_backward) : NULL;
}

typedef struct log_sums {
    const float *x;
    int64_t n;
    qkv__log_sum *to;
} log_sums;

static void sum_rows(void *data, int64_t from, int64_t to)
{
    const log_sums *w = data;
    for (int64_t i = from; i < to; i++) {
        float row[3];
        kern->log_sum(row, w->x + i * w->n, w->n);
        w->to[i] = (qkv__log_sum){ row[0], row[1] };
    }
}

qkv__log_sum *qkv__log_sums(qkv_tensor *x)
{
    qkv_tape *t = qkv__operands("log_softmax", 1, &x);
    if (!t) return NULL;
    log_sums w = { qkv_tensor_data(x), qkv__last(x), qkv__save(t, sizeof *w.to * (size_t)qkv__rows(x)) };
    return w.to && qkv__parallel_for(t, qkv__rows(x), qkv__grain(w.n), sum_rows, &w) ? w.to : NULL;
}
