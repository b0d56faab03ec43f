/* norm.c: layer norm and RMS norm along the last dimension.
 *   layer norm  v = (x - mean) / sqrt(var + eps),   y = v gain + bias
 *   RMS norm    v = x / sqrt(mean(x^2) + eps),      y = v gain
 * Forward keeps the numbers of each row that give v (see kernels.def). */
#include "parallel_for.h"

enum { X, GAIN, BIAS };

typedef void norm_grad_kernel(float *dx, const float *x, const float *dy, const float *gain, const float *stats, int64_t rows,
                              int64_t n);

typedef struct work {
    norm_grad_kernel *grad;
    const float *x, *gain, *bias, *dy;
    float *y, *stats, *dx, *dgain, *dbias;
    bool add, centred;
    float eps;
    int64_t rows, n;
} work;

static void norm_forward_rows(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    int64_t at = from * w->n, rows = to - from;
    if (w->centred) kern->layernorm(w->y + at, w->stats + 3 * from, w->x + at, w->gain, w->bias, w->eps, rows, w->n);
    else kern->rmsnorm(w->y + at, w->stats + 3 * from, w->x + at, w->gain, w->eps, rows, w->n);
}

static void norm_backward_rows(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    int64_t at = from * w->n, rows = to - from;
    float *dx = qkv__piece(w->dx + at, w->add, rows * w->n);
    w->grad(dx, w->x + at, w->dy + at, w->gain, w->stats + 3 * from, rows, w->n);
}

/* y = v gain + bias:   dgain += sum over rows of dy v,   dbias += sum over rows of dy */
static void norm_backward_columns(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    kern->norm_grad_gain(w->dgain ? w->dgain + from : NULL, w->dbias ? w->dbias + from : NULL, w->x + from, w->dy + from,
                         w->stats, w->rows, w->n, to - from);
}

static void norm_backward_of(qkv_tensor *y, norm_grad_kernel *grad)
{
    work w = { .grad = grad,
               .x = qkv_tensor_data(y->in[X]),
               .gain = qkv_tensor_data(y->in[GAIN]),
               .dy = y->grad,
               .stats = y->saved,
               .rows = qkv__rows(y),
               .n = qkv__last(y) };
    if ((w.dx = qkv__grad_to(y->in[X], &w.add))) qkv__parallel_for(y->tape, w.rows, qkv__grain(w.n), norm_backward_rows, &w);
    w.dgain = qkv__grad(y->in[GAIN]);
    w.dbias = y->n_in > BIAS ? qkv__grad(y->in[BIAS]) : NULL;
    if (w.dgain || w.dbias) qkv__parallel_for(y->tape, w.n, qkv__columns(w.rows), norm_backward_columns, &w);
}

static qkv_tensor *check_vector(qkv_tape *t, const char *name, const char *what, const qkv_tensor *v, qkv_tensor *x)
{
    if (v->ndim == 1 && v->shape[0] == qkv__last(x)) return x;
    return qkv__error(t, QKV_USAGE, "%s: x is %s, so the %s must be (%lld), not %s", name, QKV_TEXT(x), what,
                      (long long)qkv__last(x), QKV_TEXT(v));
}

static qkv_tensor *norm_forward(const char *name, int n_in, qkv_tensor *const *in, float eps, qkv__backward *backward,
                                bool centred)
{
    qkv_tape *t = qkv__operands(name, n_in, in);
    if (!t) return NULL;
    qkv_tensor *x = in[X];
    if (!(eps >= 0)) return qkv__error(t, QKV_USAGE, "%s: eps is %g, it must not be negative", name, (double)eps);
    if (!check_vector(t, name, "gain", in[GAIN], x) || (n_in > BIAS && !check_vector(t, name, "bias", in[BIAS], x)))
        return NULL;
    qkv_tensor *y = qkv__result(t, x->ndim, x->shape, backward, n_in, in);
    float *stats = qkv__save(t, sizeof *stats * 3 * (size_t)qkv__rows(x));
    if (!y || !stats) return NULL;
    y->saved = stats;
    work w = { .x = qkv_tensor_data(x),
               .gain = qkv_tensor_data(in[GAIN]),
               .bias = n_in > BIAS ? qkv_tensor_data(in[BIAS]) : NULL,
               .y = y->data,
               .stats = stats,
               .centred = centred,
               .eps = eps,
               .n = qkv__last(x) };
    return qkv__parallel_for(t, qkv__rows(x), qkv__grain(w.n), norm_forward_rows, &w) ? y : NULL;
}

static void layernorm_backward(qkv_tensor *y) { norm_backward_of(y, kern->layernorm_grad); }

qkv_tensor *qkv_layer_norm(qkv_tensor *x, qkv_tensor *gain, qkv_tensor *bias, float eps)
{
    qkv_tensor *in[] = { x, gain, bias };
    return norm_forward("layernorm", bias ? 3 : 2, in, eps, layernorm_backward, true);
}

static void rmsnorm_backward(qkv_tensor *y) { norm_backward_of(y, kern->rmsnorm_grad); }

qkv_tensor *qkv_rms_norm(qkv_tensor *x, qkv_tensor *gain, float eps)
{
    qkv_tensor *in[] = { x, gain };
    return norm_forward("rmsnorm", 2, in, eps, rmsnorm_backward, false);
}
