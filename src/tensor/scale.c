/* scale.c: y = factor x. */
#include "parallel_for.h"

typedef struct work {
    float *y;
    bool add;
    const float *x;
    float factor;
} work;

static void scale_forward_range(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    kern->scale(w->y + from, w->x + from, w->factor, to - from);
}

static void scale_backward_range(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    if (w->add) kern->axpy(w->y + from, w->x + from, w->factor, to - from);
    else kern->scale(w->y + from, w->x + from, w->factor, to - from);
}

/* y = factor x:   dx += factor dy */
static void scale_backward(qkv_tensor *y)
{
    work w = { .x = y->grad, .factor = *(const float *)y->saved };
    if ((w.y = qkv__grad_to(y->in[0], &w.add)))
        qkv__parallel_for(y->tape, y->count, QKV_TASK_ELEMENTS, scale_backward_range, &w);
}

qkv_tensor *qkv_scale(qkv_tensor *x, float factor)
{
    qkv_tape *t = qkv__operands("scale", 1, &x);
    if (!t) return NULL;
    qkv_tensor *y = qkv__result(t, x->ndim, x->shape, scale_backward, 1, &x);
    float *saved = qkv__save(t, sizeof *saved);
    if (!y || !saved) return NULL;
    *saved = factor;
    y->saved = saved;
    work w = { .y = y->data, .x = qkv_tensor_data(x), .factor = factor };
    return qkv__parallel_for(t, y->count, QKV_TASK_ELEMENTS, scale_forward_range, &w) ? y : NULL;
}
