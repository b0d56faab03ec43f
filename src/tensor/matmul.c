/* matmul.c: y = op(a) op(b), in every matrix of a batch.   d op(a) = dy op(b)^T,   d op(b) = op(a)^T dy */
#include "product.h"

/* The last two dimensions of a tensor as a matrix, transposed or not, and how far the next matrix of the batch is. */
typedef struct matrix {
    int64_t rows, columns, row_step, column_step, next;
} matrix;

static matrix matrix_of(const qkv_tensor *x, bool transposed)
{
    int64_t m = x->shape[x->ndim - 2], n = x->shape[x->ndim - 1];
    return transposed ? (matrix){ n, m, 1, n, x->ndim > 2 ? m * n : 0 } : (matrix){ m, n, n, 1, x->ndim > 2 ? m * n : 0 };
}

static matrix turned(matrix m) { return (matrix){ m.columns, m.rows, m.column_step, m.row_step, m.next }; }

static int64_t batch_of(const qkv_tensor *x)
{
    int64_t batch = 1;
    for (int i = 0; i + 2 < x->ndim; i++) batch *= x->shape[i];
    return batch;
}

/* c (+)= a b for every matrix of the batch. c_matrix may be a transposed one: then c^T (+)= b^T a^T is computed instead. */
static qkv_status multiply(const float *a, matrix am, const float *b, matrix bm, float *c, matrix cm, int64_t batch, bool add)
{
    if (cm.column_step != 1) {
        matrix t = turned(am);
        const float *left = b;
        am = turned(bm), bm = t, cm = turned(cm);
        b = a, a = left;
    }
    qkv__product p = { .a = a,
                       .b = b,
                       .c = c,
                       .m = cm.rows,
                       .n = cm.columns,
                       .k = am.columns,
                       .a_row = am.row_step,
                       .a_col = am.column_step,
                       .b_row = bm.row_step,
                       .b_col = bm.column_step,
                       .c_row = cm.row_step,
                       .add = add };
    if (cm.next || batch == 1) return qkv__multiply_many(&p, batch, am.next, bm.next, cm.next);
    qkv_status status = QKV_OK; /* one result for the whole batch: the matrices are added one after the other */
    for (int64_t i = 0; i < batch && !status; i++, p.a += am.next, p.b += bm.next, p.add = true) status = qkv__multiply(&p);
    return status;
}

static void matmul_backward(qkv_tensor *y)
{
    qkv_tensor *a = y->in[0], *b = y->in[1];
    const unsigned flags = *(const unsigned *)y->saved;
    matrix am = matrix_of(a, flags & QKV_TRANSPOSE_A), bm = matrix_of(b, flags & QKV_TRANSPOSE_B), ym = matrix_of(y, false);
    int64_t batch = batch_of(y);
    bool add;
    float *da = qkv__grad_to(a, &add);
    if (da && multiply(y->grad, ym, qkv_tensor_data(b), turned(bm), da, am, batch, add)) qkv__error_below(y->tape);
    float *db = qkv__grad(b);
    if (db && multiply(qkv_tensor_data(a), turned(am), y->grad, ym, db, bm, batch, true)) qkv__error_below(y->tape);
}

static bool batches_fit(const qkv_tensor *a, const qkv_tensor *b)
{
    if (a->ndim < 2 || b->ndim < 2) return false;
    if (b->ndim == 2) return true;
    for (int i = 0; i + 2 < b->ndim; i++)
        if (a->ndim != b->ndim || a->shape[i] != b->shape[i]) return false;
    return true;
}

qkv_tensor *qkv_matmul(qkv_tensor *a, qkv_tensor *b, unsigned flags)
{
    qkv_tensor *in[2] = { a, b };
    qkv_tape *t = qkv__operands("matmul", 2, in);
    if (!t) return NULL;
    if (flags > (QKV_TRANSPOSE_A | QKV_TRANSPOSE_B)) return qkv__error(t, QKV_USAGE, "matmul: unknown flags %u", flags);
    if (!batches_fit(a, b))
        return qkv__error(t, QKV_USAGE,
                          "matmul: %s times %s: expected matrices with equal leading dimensions, or none in the second",
                          QKV_TEXT(a), QKV_TEXT(b));
    matrix am = matrix_of(a, flags & QKV_TRANSPOSE_A), bm = matrix_of(b, flags & QKV_TRANSPOSE_B);
    if (am.columns != bm.rows)
        return qkv__error(t, QKV_USAGE, "matmul: %s%s times %s%s: %lld columns meet %lld rows", QKV_TEXT(a),
                          flags & QKV_TRANSPOSE_A ? " transposed" : "", QKV_TEXT(b),
                          flags & QKV_TRANSPOSE_B ? " transposed" : "", (long long)am.columns, (long long)bm.rows);
    int64_t shape[QKV_MAX_DIMS];
    memcpy(shape, a->shape, sizeof shape);
    shape[a->ndim - 2] = am.rows;
    shape[a->ndim - 1] = bm.columns;
    qkv_tensor *y = qkv__result(t, a->ndim, shape, matmul_backward, 2, in);
    unsigned *saved = qkv__save(t, sizeof flags);
    if (!y || !saved) return NULL;
    *saved = flags;
    y->saved = saved;
    if (multiply(qkv_tensor_data(a), am, qkv_tensor_data(b), bm, y->data, matrix_of(y, false), batch_of(y), false))
        return qkv__error_below(t);
    return y;
}
