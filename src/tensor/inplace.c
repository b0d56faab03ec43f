/* inplace.c: relu and addition in place (dropout.c has its own). Less memory, and fewer passes through it: the gradient of the
 * result becomes that of the operand in place too. */
#include "inplace.h"

#include "parallel_for.h"

typedef struct work {
    float *to;
    const float *from, *at;
    bool add;
} work;

static void copy_range(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    memcpy(w->to + from, w->from + from, sizeof(float) * (size_t)(to - from));
}

/* ---- relu ---- */

static void relu_range(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    kern->relu(w->to + from, w->to + from, to - from);
}

/* y = max(0, x): y > 0 just where x > 0, so the result tells the slope. What comes after may have overwritten y with y times a
 * number above 0, or with 0 where its own gradient is 0 (dropout): that tells the same. */
static void relu_slope(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    if (w->add) return kern->relu_grad(w->to + from, w->at + from, w->from + from, to - from);
    if (w->to != w->from) copy_range(data, from, to);
    float *restrict dx = w->to;
    const float *restrict y = w->at;
    for (int64_t i = from; i < to; i++) { /* read in any case: a branch would be guessed wrong half of the time */
        float dy = dx[i];
        dx[i] = y[i] > 0 ? dy : 0;
    }
}

static void relu_backward(qkv_tensor *y)
{
    work w = { .from = y->grad, .at = y->data };
    if ((w.to = qkv__grad_from(y->in[0], y, &w.add))) qkv__parallel_for(y->tape, y->count, QKV_TASK_ELEMENTS, relu_slope, &w);
}

qkv_tensor *qkv__relu_inplace(qkv_tensor *x)
{
    qkv_tape *t = qkv__operands("relu", 1, &x);
    qkv_tensor *y = t ? qkv__result_inplace(t, x, relu_backward, 1, &x) : NULL;
    if (!y) return NULL;
    return qkv__parallel_for(t, y->count, QKV_TASK_ELEMENTS, relu_range, &(work){ .to = y->data }) ? y : NULL;
}

/* ---- addition ---- */

static void add_range(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    kern->add(w->to + from, w->to + from, w->from + from, to - from);
}

/* dx += dy, where dx may be dy itself */
static void pass_on(qkv_tensor *y, const float *dy, float *dx, bool add)
{
    work w = { .to = dx, .from = dy };
    if (dx && dx != dy) qkv__parallel_for(y->tape, y->count, QKV_TASK_ELEMENTS, add ? add_range : copy_range, &w);
}

/* y = x + other:   dx += dy,   dother += dy. other first: x's may take dy's memory over. */
static void add_backward(qkv_tensor *y)
{
    const float *dy = y->grad;
    bool add;
    float *to = qkv__grad_to(y->in[1], &add);
    pass_on(y, dy, to, add);
    to = qkv__grad_from(y->in[0], y, &add);
    pass_on(y, dy, to, add);
}

qkv_tensor *qkv__add_inplace(qkv_tensor *x, qkv_tensor *other)
{
    qkv_tensor *in[] = { x, other };
    qkv_tape *t = qkv__operands("add", 2, in);
    if (!t) return NULL;
    if (!qkv__same_shape(x, other)) return qkv_add(x, other);
    qkv_tensor *y = qkv__result_inplace(t, x, add_backward, 2, in);
    if (!y) return NULL;
    return qkv__parallel_for(t, y->count, QKV_TASK_ELEMENTS, add_range,
                             &(work){ .to = y->data, .from = qkv_tensor_data(other) })
               ? y
               : NULL;
}
