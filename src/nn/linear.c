/* linear.c: y = x W^T + b */
#include "params.h"

#include "../tensor/affine.h"

qkv_linear qkv_linear_new(qkv_params *p, const char *name, int64_t in, int64_t out, int has_bias)
{
    const qkv_linear failed = { 0 };
    if (in < 1 || out < 1) {
        qkv__params_fail(p, QKV_USAGE, "linear \"%.200s\": from %lld to %lld numbers, expected at least 1 of each",
                         QKV_SHOWN(name), (long long)in, (long long)out);
        return failed;
    }
    qkv_linear l = { .weight = qkv__add_part(p, name, "weight", 2, (int64_t[]){ out, in }, QKV_INIT_XAVIER, 0) };
    if (l.weight && has_bias) l.bias = qkv__add_part(p, name, "bias", 1, &out, QKV_INIT_ZERO, 0);
    return l.weight && !l.bias == !has_bias ? l : failed; /* half a layer would compute something else */
}

qkv_linear qkv__linear_part(qkv_params *p, const char *layer, const char *part, int64_t in, int64_t out, bool no_bias)
{
    char name[QKV_NAME_MAX];
    return qkv__join_name(p, name, layer, part) ? qkv_linear_new(p, name, in, out, !no_bias) : (qkv_linear){ 0 };
}

qkv_tensor *qkv_linear_forward(const qkv_linear *l, qkv_tensor *x)
{
    if (!x) return NULL;
    return l && l->weight ? qkv_affine(x, l->weight, l->bias) : qkv__no_weights(x->tape, "linear");
}

bool qkv__linear_together(const qkv_linear *const *l, int n, qkv_tensor *x, qkv_tensor **y)
{
    qkv_tensor *w[QKV__TOGETHER], *b[QKV__TOGETHER];
    if (!x) return false;
    for (int i = 0; i < n; i++) {
        if (!l[i]->weight) return qkv__no_weights(x->tape, "linear");
        w[i] = l[i]->weight;
        b[i] = l[i]->bias;
    }
    return qkv__affine_together(x, w, b, n, y);
}
