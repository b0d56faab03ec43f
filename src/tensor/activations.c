/* activations.c: y = f(x), element by element: relu, gelu (two forms), silu, tanh, sigmoid. */
#include "inplace.h"
#include "parallel_for.h"

typedef void map_kernel(float *y, const float *x, int64_t n);
typedef void slope_kernel(float *dx, const float *x, const float *dy, int64_t n);

typedef struct map_work {
    map_kernel *f;
    float *y;
    const float *x;
} map_work;

static void map_range(void *work, int64_t from, int64_t to)
{
    const map_work *w = work;
    w->f(w->y + from, w->x + from, to - from);
}

static qkv_tensor *map(qkv_tape *t, qkv_tensor *x, map_kernel *f, qkv__backward *backward, bool in_place)
{
    qkv_tensor *y = in_place && !x->wants_grad ? qkv__result_inplace(t, x, backward, 1, &x)
                                               : qkv__result(t, x->ndim, x->shape, backward, 1, &x);
    if (!y) return NULL;
    map_work w = { f, y->data, qkv_tensor_data(x) };
    return qkv__parallel_for(t, y->count, QKV_TASK_ELEMENTS, map_range, &w) ? y : NULL;
}

typedef struct slope_work {
    slope_kernel *f;
    float *dx;
    bool add;
    const float *at, *dy;
} slope_work;

static void slope_range(void *work, int64_t from, int64_t to)
{
    const slope_work *w = work;
    w->f(qkv__piece(w->dx + from, w->add, to - from), w->at + from, w->dy + from, to - from);
}

/* dx += dy f'(x), the slope told from `at`: x, or y where that is cheaper */
static void map_backward(qkv_tensor *y, const qkv_tensor *at, slope_kernel *f)
{
    slope_work w = { .f = f, .at = qkv_tensor_data(at), .dy = y->grad };
    if ((w.dx = qkv__grad_to(y->in[0], &w.add))) qkv__parallel_for(y->tape, y->count, QKV_TASK_ELEMENTS, slope_range, &w);
}

#define CALL(name, call, in_place)                                          \
    qkv_tensor *call(qkv_tensor *x)                                         \
    {                                                                       \
        qkv_tape *t = qkv__operands(#name, 1, &x);                          \
        return t ? map(t, x, kern->name, name##_backward, in_place) : NULL; \
    }

#define ACTIVATION(name, at)                                                               \
    static void name##_backward(qkv_tensor *y) { map_backward(y, at, kern->name##_grad); } \
    CALL(name, qkv_##name, false)

ACTIVATION(relu, y->in[0])      /* y = max(0, x)                    y' = [x > 0] */
ACTIVATION(gelu, y->in[0])      /* y = x Phi(x)                     y' = Phi(x) + x phi(x) */
ACTIVATION(gelu_tanh, y->in[0]) /* y = x s,  s = sigmoid(2 u(x))    y' = s + 2 x s (1 - s) u'(x) */
ACTIVATION(silu, y->in[0])      /* y = x s,  s = sigmoid(x)         y' = s (1 + x (1 - s)) */
ACTIVATION(tanh, y)             /*                                  y' = 1 - y^2 */
ACTIVATION(sigmoid, y)          /*                                  y' = y (1 - y) */

CALL(gelu, qkv__gelu_inplace, true)
CALL(gelu_tanh, qkv__gelu_tanh_inplace, true)
CALL(silu, qkv__silu_inplace, true)
