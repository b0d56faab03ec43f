/* vec.h: vectors of floats for the per-instruction-set sources, in GNU C. Included only by files that meson compiles once per
 * instruction set with QKV_ISA (a name) and QKV_VECTOR_BYTES (16, 32 or 64). Everything here is static inline. */
#ifndef QKV_SRC_VEC_H
#define QKV_SRC_VEC_H

#include "isa.h"

#include <math.h>
#include <string.h>

typedef float vf __attribute__((vector_size(QKV_VECTOR_BYTES)));
typedef int32_t vi __attribute__((vector_size(QKV_VECTOR_BYTES)));
typedef uint32_t vu __attribute__((vector_size(QKV_VECTOR_BYTES)));
typedef float vf_any __attribute__((vector_size(QKV_VECTOR_BYTES), aligned(4), may_alias)); /* at any address */

enum { W = QKV_VECTOR_BYTES / 4 }; /* floats in a vector */

static inline vf load(const float *p) { return *(const vf_any *)p; }
static inline void store(float *p, vf x) { *(vf_any *)p = x; }
static inline vf set1(float x) { return x - (vf){ 0 }; }

/* The first n of W floats; the others read as `rest` and are not written. */
static inline vf load_part(const float *p, int64_t n, float rest)
{
    vf x = set1(rest);
    memcpy(&x, p, sizeof(float) * (size_t)n);
    return x;
}
static inline void store_part(float *p, vf x, int64_t n) { memcpy(p, &x, sizeof(float) * (size_t)n); }

/* The next vector of a row that has `left` more floats; loops that step by W through these have one body for every place. */
static inline vf get(const float *p, int64_t left, float rest) { return left >= W ? load(p) : load_part(p, left, rest); }
static inline void put(float *p, vf x, int64_t left)
{
    if (left >= W) store(p, x);
    else store_part(p, x, left);
}

/* mask (all ones or zero per lane) ? a : b */
static inline vf pick(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }
static inline vf vmax(vf a, vf b) { return pick(a > b, a, b); }
static inline vf vmin(vf a, vf b) { return pick(a < b, a, b); }
static inline vf vabs(vf x) { return (vf)((vi)x & 0x7fffffff); }

/* IEEE halves as floats. A half's exponent is 112 less than a float's: a product adds that, also to numbers too small to be
 * normal. Infinity and NaN have the largest exponent of both. */
static inline vf widen_halves(vu bits)
{
    vu largest = (vu)((bits & 0x7c00) == 0x7c00);
    vf size = (vf)((bits & 0x7fff) << 13) * 0x1p112f;
    return (vf)((vu)size | (largest & 0x7f800000) | (bits & 0x8000) << 16);
}

/* Sums and maxima over the lanes, in a fixed order: halves first. */
static inline float lane_sum(vf x)
{
    float v[W];
    memcpy(v, &x, sizeof v);
    for (int half = W / 2; half; half /= 2)
        for (int i = 0; i < half; i++) v[i] += v[i + half];
    return v[0];
}
static inline float lane_max(vf x)
{
    float v[W];
    memcpy(v, &x, sizeof v);
    for (int half = W / 2; half; half /= 2)
        for (int i = 0; i < half; i++) v[i] = v[i] > v[i + half] ? v[i] : v[i + half];
    return v[0];
}

/* exp(x) to about 1 unit in the last place, for numbers up to 88.7; 0 below -87.3, of -inf too. Of any other x nothing is said.
 * x = n ln 2 + r, |r| <= ln 2 / 2; exp(r) by a polynomial; 2^n by adding to the exponent. */
static inline vf vexp_below_88(vf x)
{
    const float log2e = 1.44269504f, ln2_high = 0.693145752f, ln2_low = 1.42860677e-6f, round_magic = 12582912.0f;
    vf n = x * log2e + round_magic; /* the sum's low bits are the nearest whole number */
    vi whole = (vi)n;
    n -= round_magic;
    vf r = x - n * ln2_high - n * ln2_low;
    vf p = set1(1.98756910e-4f);
    p = p * r + 1.39819994e-3f;
    p = p * r + 8.33345205e-3f;
    p = p * r + 4.16657962e-2f;
    p = p * r + 1.66666657e-1f;
    p = p * r + 5.0e-1f;
    p = p * (r * r) + r + 1.0f;
    vf y = (vf)((vu)p + ((vu)whole << 23)); /* the magic number's own bits leave the exponent by the shift */
    return (vf)((vi)y & (vi)(x >= -87.3365479f));
}

/* The same of any x: +inf above 88.7, NaN stays NaN. */
static inline vf vexp(vf x)
{
    vf y = pick(x > 88.7228394f, set1(INFINITY), vexp_below_88(x));
    return pick(x == x, y, x);
}

/* log(x) to about 2 units in the last place; -inf at 0, NaN below; numbers too small to be normal read as the smallest normal.
 * x = 2^e m, sqrt(1/2) <= m < sqrt(2), f = m - 1: log m = f - f^2/2 + f^3 P(f), P fitted to the smallest largest relative error
 * (least squares at 2000 Chebyshev points, reweighted by the error until it is level: 6e-9). */
static inline vf vlog(vf x)
{
    const int32_t root_half = 0x3f3504f3;
    vi bits = (vi)vmax(set1(1.17549435e-38f), x);
    vi e = (bits - root_half) >> 23;
    vf f = (vf)((vu)bits - ((vu)e << 23)) - 1.0f, n = __builtin_convertvector(e, vf);
    vf p = set1(-7.634499081e-2f);
    p = p * f + 1.276157806e-1f;
    p = p * f - 1.316018191e-1f;
    p = p * f + 1.420175783e-1f;
    p = p * f - 1.662335738e-1f;
    p = p * f + 2.000122688e-1f;
    p = p * f - 2.500082103e-1f;
    p = p * f + 3.333333171e-1f;
    vf y = n * 1.42860677e-6f + (f * f * (p * f - 0.5f) + f) + n * 0.693145752f;
    y = pick(x == 0, set1(-INFINITY), y);
    return pick((x >= 0) & (x < INFINITY), y, pick(x > 0, x, set1(NAN)));
}

/* tanh(x), relative error about 2e-7. Small: x + x^3 P(x^2), P fitted as in vlog (4e-9); else by exp, for which the small ones
 * would cancel. */
static inline vf vtanh(vf x)
{
    vf z = x * x, p = set1(-5.704987066e-3f);
    p = p * z + 2.063908729e-2f;
    p = p * z - 5.373971510e-2f;
    p = p * z + 1.333144220e-1f;
    p = p * z - 3.333328194e-1f;
    vf near = x + x * z * p, size = vabs(x);
    vf far = 1.0f - 2.0f / (vexp(2.0f * size) + 1.0f);
    far = (vf)((vi)far | ((vi)x & (int32_t)0x80000000));
    return pick(size < 0.625f, near, far);
}

static inline vf vsigmoid(vf x) { return 1.0f / (1.0f + vexp(-x)); }

/* The two words of random.h's qkv__threefry for the counters (c0, c1) and their neighbours c0+1, c0+2, ... */
static inline void threefry(qkv__key key, uint32_t c0, uint32_t c1, vu *word0, vu *word1)
{
    static const uint32_t steps[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    const uint32_t k0 = key.word[0], k1 = key.word[1], k2 = 0x1BD11BDAu ^ k0 ^ k1;
    vu a, b = (vu){ 0 } + (c1 + k1);
    memcpy(&a, steps, sizeof a);
    a += c0 + k0;
#define MIX(turn) a += b, b = (b << turn | b >> (32 - turn)) ^ a
#define ROUNDS(t0, t1, t2, t3, key_a, key_b, inject) MIX(t0), MIX(t1), MIX(t2), MIX(t3), a += key_a, b += key_b + inject
    ROUNDS(13, 15, 26, 6, k1, k2, 1u);
    ROUNDS(17, 29, 16, 24, k2, k0, 2u);
    ROUNDS(13, 15, 26, 6, k0, k1, 3u);
    ROUNDS(17, 29, 16, 24, k1, k2, 4u);
    ROUNDS(13, 15, 26, 6, k2, k0, 5u);
#undef ROUNDS
#undef MIX
    *word0 = a;
    *word1 = b;
}

#endif
