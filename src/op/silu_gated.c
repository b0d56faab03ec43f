/* silu_gated.c: y = silu(gate) x, the gated unit of Llama's feed-forward. */
#include "parallel_for.h"

typedef struct work {
    float *y, *dgate, *dx;
    bool add_gate, add_x;
    const float *gate, *x, *dy;
} work;

static void silu_gated_forward_range(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    kern->silu_gated(w->y + from, w->gate + from, w->x + from, to - from);
}

/* y = silu(gate) x:   dgate += dy x silu'(gate),   dx += dy silu(gate) */
static void silu_gated_backward_range(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    float *dgate = w->dgate ? qkv__piece(w->dgate + from, w->add_gate, to - from) : NULL;
    float *dx = w->dx ? qkv__piece(w->dx + from, w->add_x, to - from) : NULL;
    kern->silu_gated_grad(dgate, dx, w->gate + from, w->x + from, w->dy + from, to - from);
}

static void silu_gated_backward(qkv_tensor *y)
{
    work w = { .gate = qkv_data(y->in[0]), .x = qkv_data(y->in[1]), .dy = y->grad };
    w.dgate = qkv__grad_to(y->in[0], &w.add_gate);
    w.dx = qkv__grad_to(y->in[1], &w.add_x);
    qkv__parallel_for(y->tape, y->count, QKV_TASK_ELEMENTS, silu_gated_backward_range, &w);
}

qkv_tensor *qkv_silu_gated(qkv_tensor *gate, qkv_tensor *x)
{
    qkv_tensor *in[] = { gate, x };
    qkv_tape *t = qkv__operands("silu_gated", 2, in);
    if (!t) return NULL;
    if (!qkv__same_shape(gate, x))
        return qkv__error(t, QKV_USAGE, "silu_gated: the gate is %s, x is %s: they must be equal", QKV_TEXT(gate), QKV_TEXT(x));
    qkv_tensor *y = qkv__result(t, x->ndim, x->shape, silu_gated_backward, 2, in);
    if (!y) return NULL;
    work w = { .y = y->data, .gate = qkv_data(gate), .x = qkv_data(x) };
    return qkv__parallel_for(t, y->count, QKV_TASK_ELEMENTS, silu_gated_forward_range, &w) ? y : NULL;
}
