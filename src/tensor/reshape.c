/* reshape.c: the same values and gradient under another shape, or on a tape. */
#include "op.h"

qkv_tensor *qkv_on(qkv_tape *t, qkv_tensor *x)
{
    if (!x || qkv_tape_status(t)) return NULL;
    if (x->tape == t) return x;
    if (x->tape) return qkv__error(t, QKV_USAGE, "on: the tensor of shape %s lives on another tape", QKV_TEXT(x));
    if (x->type) return qkv__error(t, QKV_USAGE, "on: the weight is not kept as float32: load the model with QKV_DTYPE_F32");
    return qkv__alias(t, x, x->ndim, x->shape);
}

/* Puts what is left of x's count in place of the one -1. */
static bool fill_in(const qkv_tensor *x, int ndim, const int64_t *wish, int64_t *shape)
{
    int open = -1;
    int64_t count;
    for (int i = 0; i < ndim; i++) {
        shape[i] = wish[i];
        if (wish[i] >= 0) continue;
        if (wish[i] != -1 || open >= 0) return false;
        open = i;
        shape[i] = 1;
    }
    if (!qkv__shape_count(ndim, shape, &count)) return false;
    if (open < 0) return count == x->count;
    if (count == 0 || x->count % count) return false;
    shape[open] = x->count / count;
    return true;
}

qkv_tensor *qkv_reshape(qkv_tensor *x, int ndim, const int64_t *shape)
{
    qkv_tape *t = qkv__operands("reshape", 1, &x);
    int64_t full[QKV_MAX_DIMS];
    if (!t) return NULL;
    if (ndim < 0 || ndim > QKV_MAX_DIMS)
        return qkv__error(t, QKV_USAGE, "reshape: a tensor has 0 to %d dimensions, not %d", QKV_MAX_DIMS, ndim);
    if ((ndim && !shape) || !fill_in(x, ndim, shape, full))
        return qkv__error(t, QKV_USAGE, "reshape: %s cannot become %s", QKV_TEXT(x),
                          qkv__shape_text((char[QKV_SHAPE_TEXT]){ 0 }, ndim, shape));
    return qkv__alias(t, x, ndim, full);
}
