/* norm.c: layer norm and RMS norm with their gain and bias. */
#include "params.h"

#include "../tensor/tape.h"

qkv_norm qkv__norm_make(qkv_params *p, const char *name, int64_t dim, qkv_norm_kind kind, bool no_bias)
{
    const qkv_norm failed = { 0 };
    if (dim < 1) {
        qkv__params_fail(p, QKV_USAGE, "norm \"%.200s\": of %lld numbers, expected at least 1", QKV_SHOWN(name),
                         (long long)dim);
        return failed;
    }
    qkv_norm n = { .kind = kind, .gain = qkv__add_part(p, name, "weight", 1, &dim, QKV_INIT_ONE, 0), .eps = 1e-5f };
    no_bias = no_bias || kind == QKV_NORM_RMS;
    if (n.gain && !no_bias) n.bias = qkv__add_part(p, name, "bias", 1, &dim, QKV_INIT_ZERO, 0);
    return n.bias || (n.gain && no_bias) ? n : failed;
}

qkv_norm qkv_norm_new(qkv_params *p, const char *name, int64_t dim)
{
    return qkv__norm_make(p, name, dim, QKV_NORM_LAYER, false);
}

qkv_norm qkv_rms_norm_new(qkv_params *p, const char *name, int64_t dim)
{
    return qkv__norm_make(p, name, dim, QKV_NORM_RMS, true);
}

qkv_tensor *qkv_norm_forward(const qkv_norm *n, qkv_tensor *x)
{
    if (!x) return NULL;
    if (!n || !n->gain) return qkv__no_weights(x->tape, "norm");
    return n->kind == QKV_NORM_RMS ? qkv_rms_norm(x, n->gain, n->eps) : qkv_layer_norm(x, n->gain, n->bias, n->eps);
}
