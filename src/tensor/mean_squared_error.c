/* mean_squared_error.c: the mean of (a - b)^2. */
#include "parallel_for.h"

typedef struct work {
    float *grad;
    bool add;
    const float *x, *other;
    float by;
} work;

static void mean_squared_error_backward_range(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    kern->add_difference(qkv__piece(w->grad + from, w->add, to - from), w->x + from, w->other + from, w->by, to - from);
}

/* y = sum (a - b)^2 / n:   da += dy 2/n (a - b),   db += dy 2/n (b - a) */
static void mean_squared_error_backward(qkv_tensor *y)
{
    for (int i = 0; i < 2; i++) {
        qkv_tensor *x = y->in[i];
        work w = { .x = qkv_tensor_data(x), .other = qkv_tensor_data(y->in[!i]), .by = 2.0f * y->grad[0] / (float)x->count };
        if ((w.grad = qkv__grad_to(x, &w.add)))
            qkv__parallel_for(y->tape, x->count, QKV_TASK_ELEMENTS, mean_squared_error_backward_range, &w);
    }
}

qkv_tensor *qkv_mse(qkv_tensor *a, qkv_tensor *b)
{
    qkv_tensor *in[] = { a, b };
    qkv_tape *t = qkv__operands("mean_squared_error", 2, in);
    double sum;
    if (!t) return NULL;
    if (!qkv__same_shape(a, b))
        return qkv__error(t, QKV_USAGE, "mean_squared_error: a is %s, b is %s: they must be equal", QKV_TEXT(a), QKV_TEXT(b));
    qkv_tensor *y = qkv__result(t, 0, NULL, mean_squared_error_backward, 2, in);
    if (!y || !qkv__sum_blocks(t, kern->squared_distance, qkv_tensor_data(a), qkv_tensor_data(b), a->count, &sum)) return NULL;
    y->data[0] = (float)(sum / (double)a->count);
    return y;
}
