/* norm.c: layer norm with its gain and bias. */
#include "params.h"

#include "../tensor/tape.h"

qkv_norm qkv_norm_new(qkv_params *p, const char *name, int64_t dim)
{
    const qkv_norm failed = { 0 };
    if (dim < 1) {
        qkv__params_fail(p, QKV_USAGE, "norm \"%.200s\": of %lld numbers, expected at least 1", QKV_SHOWN(name),
                         (long long)dim);
        return failed;
    }
    qkv_norm n = { .gain = qkv__add_part(p, name, "weight", 1, &dim, QKV_INIT_ONE, 0), .eps = 1e-5f };
    if (n.gain) n.bias = qkv__add_part(p, name, "bias", 1, &dim, QKV_INIT_ZERO, 0);
    return n.bias ? n : failed;
}

qkv_tensor *qkv_norm_forward(const qkv_norm *n, qkv_tensor *x)
{
    if (!x) return NULL;
    return n->gain ? qkv_layernorm(x, n->gain, n->bias, n->eps) : qkv__no_weights(x->tape, "norm");
}
