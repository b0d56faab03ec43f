/* open_head.c: a head that lets everything through. */
#include "open_head.h"

#include "../tensor/types.h"
#include "../nn/transformer.h"

#include <math.h>
#include <string.h>

static bool is_openable(const qkv_config *o)
{
    if (!o->head || o->no_head_bias || o->decoder_layers || qkv__embed_width(o) != o->dim) return false;
    if (!o->pre_norm || !o->no_norm_bias || o->norm != QKV_NORM_LAYER) return false;
    return o->activation == QKV_ACTIVATION_GELU || o->activation == QKV_ACTIVATION_GEGLU;
}

static bool is_far_from_zero(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(x[i]) >= 1e-3f)) return false;
    return true;
}

bool qkv__open_head(const qkv__transformer *t)
{
    int64_t dim = t->o.dim;
    const float *gain = is_openable(&t->o) ? qkv_tensor_data(t->stacks[QKV__ENCODER].final_norm.gain) : NULL;
    if (!gain || !is_far_from_zero(gain, dim)) return false;
    float *w = qkv__tensor_data(t->head.weight), *b = qkv__tensor_data(t->head.bias);
    float *after = qkv__tensor_data(t->head_norm.gain);
    double eps = (double)t->head_norm.eps; /* of a variance of 1 */
    memset(w, 0, sizeof *w * (size_t)(dim * dim));
    for (int64_t i = 0; i < dim; i++) {
        after[i] = (float)((double)gain[i] * sqrt(1 + eps));
        w[i * dim + i] = 1 / gain[i];
        b[i] = sqrtf((float)dim) + 6;
    }
    return true;
}
