/* ref_quantized.c: what products of weights in 8 and 4 bits mean, step by step. Compiled without fused multiply-adds. */
#include "isa.h"

#include <math.h>

static float quantize_group(int8_t *q, const float *x, int64_t n)
{
    float largest = 0;
    bool is_finite = true;
    for (int64_t i = 0; i < n; i++) {
        is_finite = is_finite && isfinite(x[i]);
        if (fabsf(x[i]) > largest) largest = fabsf(x[i]);
    }
    bool is_zero = !is_finite || largest < QKV__SMALLEST;
    float inverse = is_zero ? 0 : 127.0f / largest;
    for (int64_t i = 0; i < n; i++) {
        float scaled = is_zero ? 0 : x[i] * inverse;
        q[i] = (int8_t)lrintf(scaled);
    }
    return !is_finite ? NAN : is_zero ? 0 : largest / 127.0f;
}

void NAME(quantize_rows)(int8_t *q, int64_t q_row, float *scales, const float *x, int64_t rows, int64_t k, int64_t group)
{
    for (int64_t r = 0; r < rows; r++, x += k, q += q_row) {
        for (int64_t p = 0; p < k; p += group) *scales++ = quantize_group(q + p, x + p, qkv__min(group, k - p));
        for (int64_t p = k; p < q_row; p++) q[p] = 0;
    }
}

void NAME(multiply_int8)(const qkv__quantized *x, void *scratch)
{
    (void)scratch;
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t j = 0; j < x->n; j++) {
            const int8_t *a = x->a + i * qkv__whole_groups(x->k), *w = (const int8_t *)x->w + j * x->k;
            int32_t sum = 0;
            for (int64_t p = 0; p < x->k; p++) sum += a[p] * w[p];
            float scale = x->a_scales[i] * ((const float *)x->w_scales)[j];
            float product = (float)sum * scale;
            x->c[i * x->c_row + j] = x->bias ? product + x->bias[j] : product;
        }
}

static int32_t group_sum(const int8_t *a, const uint8_t *w)
{
    int32_t sum = 0;
    for (int i = 0; i < QKV__GROUP_BYTES; i++) sum += a[i] * (w[i] % 16 - 8) + a[QKV__GROUP_BYTES + i] * (w[i] / 16 - 8);
    return sum;
}

void NAME(multiply_int4)(const qkv__quantized *x, void *scratch)
{
    (void)scratch;
    int64_t groups = qkv__groups(x->k);
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t j = 0; j < x->n; j++) {
            float chain[QKV__GROUP_CHAINS] = { 0 };
            for (int64_t g = 0; g < groups; g++) {
                float w_scale;
                NAME(widen_half)(&w_scale, (const uint16_t *)x->w_scales + j * groups + g, 1);
                float scale = x->a_scales[i * groups + g] * w_scale;
                int32_t sum = group_sum(x->a + (i * groups + g) * QKV__GROUP,
                                        (const uint8_t *)x->w + (j * groups + g) * QKV__GROUP_BYTES);
                float term = (float)sum * scale;
                chain[g % QKV__GROUP_CHAINS] += term;
            }
            for (int half = QKV__GROUP_CHAINS / 2; half; half /= 2)
                for (int c = 0; c < half; c++) chain[c] += chain[c + half];
            x->c[i * x->c_row + j] = x->bias ? chain[0] + x->bias[j] : chain[0];
        }
}
