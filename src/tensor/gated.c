/* gated.c: y = f(gate) x, the gated units of feed-forward layers: Llama's silu, ModernBERT's gelu. */
#include "parallel_for.h"

typedef void gated_kernel(float *y, const float *gate, const float *x, int64_t n);
typedef void gated_grad_kernel(float *dgate, float *dx, const float *gate, const float *x, const float *dy, int64_t n);

typedef struct work {
    gated_kernel *f;
    gated_grad_kernel *grad;
    float *y, *dgate, *dx;
    bool add_gate, add_x;
    const float *gate, *x, *dy;
} work;

static void gated_forward_range(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    w->f(w->y + from, w->gate + from, w->x + from, to - from);
}

/* y = f(gate) x:   dgate += dy x f'(gate),   dx += dy f(gate) */
static void gated_backward_range(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    float *dgate = w->dgate ? qkv__piece(w->dgate + from, w->add_gate, to - from) : NULL;
    float *dx = w->dx ? qkv__piece(w->dx + from, w->add_x, to - from) : NULL;
    w->grad(dgate, dx, w->gate + from, w->x + from, w->dy + from, to - from);
}

static void gated_backward(qkv_tensor *y, gated_grad_kernel *grad)
{
    work w = { .grad = grad, .gate = qkv_tensor_data(y->in[0]), .x = qkv_tensor_data(y->in[1]), .dy = y->grad };
    w.dgate = qkv__grad_to(y->in[0], &w.add_gate);
    w.dx = qkv__grad_to(y->in[1], &w.add_x);
    qkv__parallel_for(y->tape, y->count, QKV_TASK_ELEMENTS, gated_backward_range, &w);
}

/* Their tape; NULL with the error on it. */
static qkv_tape *gated_operands(const char *name, qkv_tensor *gate, qkv_tensor *x)
{
    qkv_tensor *in[] = { gate, x };
    qkv_tape *t = qkv__operands(name, 2, in);
    if (!t || qkv__same_shape(gate, x)) return t;
    qkv__error(t, QKV_USAGE, "%s: the gate is %s, x is %s: they must be equal", name, QKV_TEXT(gate), QKV_TEXT(x));
    return NULL;
}

static qkv_tensor *gated_forward(qkv_tape *t, qkv_tensor *gate, qkv_tensor *x, gated_kernel *f, qkv__backward *backward)
{
    qkv_tensor *in[] = { gate, x }, *y = qkv__result(t, x->ndim, x->shape, backward, 2, in);
    if (!y) return NULL;
    work w = { .f = f, .y = y->data, .gate = qkv_tensor_data(gate), .x = qkv_tensor_data(x) };
    return qkv__parallel_for(t, y->count, QKV_TASK_ELEMENTS, gated_forward_range, &w) ? y : NULL;
}

#define GATED(name)                                                                      \
    static void name##_backward(qkv_tensor *y) { gated_backward(y, kern->name##_grad); } \
    qkv_tensor *qkv__##name(qkv_tensor *gate, qkv_tensor *x)                             \
    {                                                                                    \
        qkv_tape *t = gated_operands(#name, gate, x);                                    \
        return t ? gated_forward(t, gate, x, kern->name, name##_backward) : NULL;        \
    }

GATED(silu_gated) /* y = silu(gate) x */
GATED(gelu_gated) /* y = gelu(gate) x, the erf form */
