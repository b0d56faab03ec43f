/* ffn.c: the feed-forward layer, max(0, x W1 + b1) W2 + b2 in the paper (equation 2). */
#include "layer.h"

#include "../base/options.h"
#include "../tensor/inplace.h"
#include "../tensor/tape.h"

bool qkv__is_gated(qkv_activation f) { return f >= QKV_ACTIVATION_SWIGLU; }

qkv_ffn qkv_ffn_new(qkv_params *p, const char *name, const qkv_ffn_opts *opts)
{
    const qkv_ffn failed = { 0 };
    qkv_ffn_opts own, *o = &own;
    if (QKV__READ_OPTIONS(o, dropout, opts, "feed-forward")) return qkv__params_error_below(p), failed;
    bool gated = qkv__is_gated(o->activation);
    if ((unsigned)o->activation > QKV_ACTIVATION_GEGLU_TANH || !(o->dropout >= 0 && o->dropout < 1)) {
        qkv__params_fail(p, QKV_USAGE,
                         "feed-forward \"%.200s\": activation %d, dropout %g: there is no such activation, or the dropout is "
                         "not in 0 <= p < 1",
                         QKV_SHOWN(name), (int)o->activation, (double)o->dropout);
        return failed;
    }
    qkv_ffn f = { .activation = o->activation, .dropout = o->dropout };
    f.in = qkv__linear_part(p, name, "in", o->dim, o->d_ff, o->no_bias);
    if (gated) f.gate = qkv__linear_part(p, name, "gate", o->dim, o->d_ff, o->no_bias);
    f.out = qkv__linear_part(p, name, "out", o->d_ff, o->dim, o->no_bias);
    return f.in.weight && f.out.weight && (f.gate.weight || !gated) ? f : failed;
}

qkv_tensor *qkv__activate(qkv_activation f, qkv_tensor *x)
{
    switch (f) {
    case QKV_ACTIVATION_GELU:
    case QKV_ACTIVATION_GEGLU: return qkv__gelu_inplace(x);
    case QKV_ACTIVATION_GELU_TANH:
    case QKV_ACTIVATION_GEGLU_TANH: return qkv__gelu_tanh_inplace(x);
    case QKV_ACTIVATION_SILU:
    case QKV_ACTIVATION_SWIGLU: return qkv__silu_inplace(x);
    default: return qkv__relu_inplace(x);
    }
}

static qkv_tensor *activate_gate(qkv_activation f, qkv_tensor *gate, qkv_tensor *x)
{
    if (f == QKV_ACTIVATION_GEGLU_TANH) return qkv_mul(qkv__gelu_tanh_inplace(gate), x);
    return f == QKV_ACTIVATION_GEGLU ? qkv__gelu_gated(gate, x) : qkv__silu_gated(gate, x);
}

qkv_tensor *qkv__ffn_hidden(const qkv_ffn *f, qkv_tensor *x)
{
    bool gated = qkv__is_gated(f->activation);
    qkv_tensor *h[2] = { NULL, NULL };
    if (!qkv__linear_together((const qkv_linear *const[]){ &f->in, &f->gate }, gated ? 2 : 1, x, h)) return NULL;
    return gated ? activate_gate(f->activation, h[1], h[0]) : qkv__activate(f->activation, h[0]);
}

qkv_tensor *qkv_ffn_forward(const qkv_ffn *f, qkv_tensor *x)
{
    if (!x) return NULL;
    if (!f || !f->in.weight) return qkv__no_weights(x->tape, "feed-forward");
    qkv_tensor *hidden = qkv__ffn_hidden(f, x);
    return qkv_linear_forward(&f->out,
                              qkv__dropout_inplace(hidden, f->dropout)); /* no activation's backward reads its result */
}
