/* affine.c: y = x w^T + b.   dx = dy w,   dw = dy^T x,   db = the sum of dy's rows */
#include "affine.h"
#include "parallel_for.h"
#include "types.h"

#include "../base/memory.h"

typedef struct columns {
    const qkv_tensor *y;
    float *to;
} columns;

static void add_up_columns(void *work, int64_t from, int64_t to)
{
    const columns *c = work;
    kern->add_rows(c->to + from, c->y->grad + from, qkv__rows(c->y), qkv__last(c->y), to - from);
}

/* dx += dy w; a weight that is not kept as float32 is widened for it. */
static qkv_status multiply_gradient(const qkv_tensor *y, const qkv_tensor *w, float *dx, bool add)
{
    int64_t rows = qkv__rows(y), out = w->shape[0], in = w->shape[1];
    size_t bytes = w->type ? sizeof(float) * (size_t)w->count : 0;
    float *widened = bytes ? qkv__alloc(bytes) : NULL;
    if (bytes && !widened) return QKV_MEMORY;
    if (widened) qkv__widen(w, 0, w->count, widened);
    qkv_status status = qkv__multiply(&(qkv__product){ .a = y->grad,
                                                       .b = widened ? widened : qkv_tensor_data(w),
                                                       .c = dx,
                                                       .m = rows,
                                                       .n = in,
                                                       .k = out,
                                                       .a_row = out,
                                                       .a_col = 1,
                                                       .b_row = in,
                                                       .b_col = 1,
                                                       .c_row = in,
                                                       .add = add });
    qkv__release(widened, bytes);
    return status;
}

static void affine_backward(qkv_tensor *y)
{
    qkv_tensor *x = y->in[0], *w = y->in[1], *b = y->n_in > 2 ? y->in[2] : NULL;
    int64_t rows = qkv__rows(y), out = w->shape[0], in = w->shape[1];
    bool add;
    float *dx = qkv__grad_to(x, &add);
    if (dx && multiply_gradient(y, w, dx, add)) qkv__error_below(y->tape);
    float *dw = qkv__grad_to(w, &add);
    if (dw && qkv__multiply(&(qkv__product){ .a = y->grad,
                                             .b = qkv_tensor_data(x),
                                             .c = dw,
                                             .m = out,
                                             .n = in,
                                             .k = rows,
                                             .a_row = 1,
                                             .a_col = out,
                                             .b_row = in,
                                             .b_col = 1,
                                             .c_row = in,
                                             .add = add }))
        qkv__error_below(y->tape);
    float *db = b ? qkv__grad(b) : NULL;
    if (db) qkv__parallel_for(y->tape, out, qkv__columns(rows), add_up_columns, &(columns){ y, db });
}

/* The result, its values not set, and the product that gives them. */
static qkv_tensor *affine_result(qkv_tensor *x, qkv_tensor *w, qkv_tensor *b, qkv__product *p)
{
    qkv_tensor *in[3] = { x, w, b };
    int n_in = b ? 3 : 2;
    qkv_tape *t = qkv__operands_of_any_type("affine", n_in, in);
    if (!t) return NULL;
    if (x->ndim < 1 || w->ndim != 2 || qkv__last(x) != w->shape[1])
        return qkv__error(t, QKV_USAGE, "affine: x %s times a weight %s: expected (..., in) and (out, in)", QKV_TEXT(x),
                          QKV_TEXT(w));
    if (x->type || (b && b->type)) return qkv__error(t, QKV_USAGE, "affine: all but the matrix must be float32");
    if (b && (b->ndim != 1 || b->shape[0] != w->shape[0]))
        return qkv__error(t, QKV_USAGE, "affine: a bias %s for a weight %s: expected (out)", QKV_TEXT(b), QKV_TEXT(w));
    int64_t shape[QKV_MAX_DIMS], out = w->shape[0], width = w->shape[1];
    memcpy(shape, x->shape, sizeof shape);
    shape[x->ndim - 1] = out;
    qkv_tensor *y = qkv__result(t, x->ndim, shape, affine_backward, n_in, in);
    if (!y) return NULL;
    *p = (qkv__product){ .a = qkv_tensor_data(x),
                         .b = qkv_tensor_data(w),
                         .bias = qkv_tensor_data(b),
                         .c = y->data,
                         .m = qkv__rows(y),
                         .n = out,
                         .k = width,
                         .a_row = width,
                         .a_col = 1,
                         .b_row = 1,
                         .b_col = width,
                         .c_row = out };
    return y;
}

qkv_tensor *qkv_affine(qkv_tensor *x, qkv_tensor *w, qkv_tensor *b)
{
    qkv__product p;
    qkv_tensor *y = affine_result(x, w, b, &p);
    return !y ? NULL : qkv__multiply_weight(&p, w) ? qkv__error_below(y->tape) : y;
}

bool qkv__affine_together(qkv_tensor *x, qkv_tensor *const *w, qkv_tensor *const *b, int n, qkv_tensor **y)
{
    qkv__product p[QKV__TOGETHER];
    for (int i = 0; i < n; i++)
        if (!(y[i] = affine_result(x, w[i], b[i], &p[i]))) return false;
    if (!qkv__multiply_weights(p, w, n)) return true;
    qkv__error_below(y[0]->tape);
    return false;
}
