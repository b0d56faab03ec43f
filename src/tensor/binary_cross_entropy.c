/* binary_cross_entropy.c: the mean of -(y log s + (1-y) log(1-s)), s = sigmoid(x); the target y is a constant. */
#include "parallel_for.h"

#include <math.h>

typedef struct work {
    float *dx;
    bool add;
    const float *x, *target;
    float by;
} work;

/* y = sum (softplus(x) - x target) / n:   dx += dy/n (sigmoid(x) - target) */
static void binary_cross_entropy_backward_range(void *data, int64_t from, int64_t to)
{
    enum { PIECE = 256 };
    const work *w = data;
    float s[PIECE];
    for (int64_t i = from, n; i < to; i += n) {
        n = qkv__min(PIECE, to - i);
        kern->sigmoid(s, w->x + i, n);
        kern->add_difference(qkv__piece(w->dx + i, w->add, n), s, w->target + i, w->by, n);
    }
}

static void binary_cross_entropy_backward(qkv_tensor *y)
{
    qkv_tensor *x = y->in[0];
    work w = { .x = qkv_tensor_data(x), .target = qkv_tensor_data(y->in[1]), .by = y->grad[0] / (float)x->count };
    if ((w.dx = qkv__grad_to(x, &w.add)))
        qkv__parallel_for(y->tape, x->count, QKV_TASK_ELEMENTS, binary_cross_entropy_backward_range, &w);
}

/* softplus(x) = max(x, 0) + log(1 + e^-|x|), which no x overflows. */
static float add_binary_losses(const float *x, const float *target, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = (double)x[i];
        sum += fmax(v, 0) + log1p(exp(-fabs(v))) - v * (double)target[i];
    }
    return (float)sum;
}

qkv_tensor *qkv_binary_cross_entropy(qkv_tensor *logits, qkv_tensor *target)
{
    qkv_tensor *in[] = { logits, target };
    qkv_tape *t = qkv__operands("binary_cross_entropy", 2, in);
    double sum;
    if (!t) return NULL;
    if (!qkv__same_shape(logits, target))
        return qkv__error(t, QKV_USAGE, "binary_cross_entropy: the logits are %s, the target is %s: they must be equal",
                          QKV_TEXT(logits), QKV_TEXT(target));
    qkv_tensor *y = qkv__result(t, 0, NULL, binary_cross_entropy_backward, 2, in);
    if (!y || !qkv__sum_blocks(t, add_binary_losses, qkv_tensor_data(logits), qkv_tensor_data(target), logits->count, &sum))
        return NULL;
    y->data[0] = (float)(sum / (double)logits->count);
    return y;
}
