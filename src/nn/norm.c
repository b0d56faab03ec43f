/* norm.c: layer norm and RMS norm with their gain and bias. */
#include "params.h"

#include "../tensor/tape.h"

qkv_norm qkv_norm_new(qkv_params *p, const char *name, int64_t dim, qkv_norm_kind kind)
{
    const qkv_norm failed = { 0 };
    if (dim < 1 || (unsigned)kind > QKV_NORM_LAYER_NO_BIAS) {
        qkv__params_fail(p, QKV_USAGE, "norm \"%.200s\": of %lld numbers and kind %d, expected at least 1 and a known kind",
                         QKV_SHOWN(name), (long long)dim, (int)kind);
        return failed;
    }
    qkv_norm n = { .kind = kind, .gain = qkv__add_part(p, name, "weight", 1, &dim, QKV_INIT_ONE, 0), .eps = 1e-5f };
    if (n.gain && kind == QKV_NORM_LAYER) n.bias = qkv__add_part(p, name, "bias", 1, &dim, QKV_INIT_ZERO, 0);
    return n.bias || (n.gain && kind != QKV_NORM_LAYER) ? n : failed;
}

qkv_tensor *qkv_norm_forward(const qkv_norm *n, qkv_tensor *x)
{
    if (!x) return NULL;
    if (!n || !n->gain) return qkv__no_weights(x->tape, "norm");
    return n->kind == QKV_NORM_RMS ? qkv_rms_norm(x, n->gain, n->eps) : qkv_layer_norm(x, n->gain, n->bias, n->eps);
}
