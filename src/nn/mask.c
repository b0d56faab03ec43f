/* mask.c: masks made of ids and positions. */
#include "params.h"
#include <qkv/nn.h>

#include <math.h>

qkv_tensor *qkv_causal_mask(qkv_tape *t, int64_t n)
{
    qkv_tensor *mask = qkv_constant(t, 2, (int64_t[]){ n, n }, NULL);
    float *at = qkv__tensor_data(mask);
    for (int64_t i = 0; mask && i < n; i++)
        for (int64_t j = i + 1; j < n; j++) at[i * n + j] = -INFINITY;
    return mask;
}

void qkv_padding_keep(const int32_t *ids, int64_t batch, int64_t length, int32_t pad, uint8_t *keep)
{
    for (int64_t i = 0; ids && keep && i < batch * length; i++) keep[i] = ids[i] != pad;
}

void qkv_padding_lengths(const int32_t *ids, int64_t batch, int64_t length, int32_t pad, int32_t *lengths)
{
    for (int64_t b = 0; ids && lengths && b < batch; b++) {
        int64_t n = length;
        while (n > 0 && ids[b * length + n - 1] == pad) n--;
        lengths[b] = (int32_t)n;
    }
}
