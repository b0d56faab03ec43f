/* dot_chains.h: products with b stored (n,k) in which the four chains of an element sit side by side in four lanes, so that rows
 * in memory are read as they lie. Included only by per-instruction-set sources. */
#ifndef QKV_SRC_DOT_CHAINS_H
#define QKV_SRC_DOT_CHAINS_H

#include "tile.h"

#if QKV_VECTOR_BYTES > 16
#include <immintrin.h>
#endif

enum { CHAIN = QKV__CHAIN, CHAINS = QKV__CHAINS };

/* How many steps chain c of `chains` has in k. */
static inline int64_t steps(int64_t k, int chains, int c) { return (k - c + chains - 1) / chains; }

/* ---- the ends of a block ---- */

static void add_bias(float *c, int64_t c_row, int64_t m, int64_t n, const float *bias)
{
    for (int64_t i = 0; i < m; i++, c += c_row)
        for (int64_t j = 0; j < n; j += W) put(c + j, get(c + j, n - j, 0) + get(bias + j, n - j, 0), n - j);
}

/* A product without a k. */
static void no_steps(const qkv__product *x)
{
    for (int64_t i = 0; i < x->m && !x->add; i++) memset(x->c + i * x->c_row, 0, sizeof(float) * (size_t)x->n);
    if (x->bias) add_bias(x->c, x->c_row, x->m, x->n, x->bias);
}

/* to (n,m) = from (m,n)^T, in blocks of 4 x 4 as far as they go */
static void transpose(const float *from, int64_t from_row, float *to, int64_t to_row, int64_t m, int64_t n)
{
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
    for (int64_t i = 0; i < m; i += 4)
        for (int64_t j = 0; j < n; j += 4) {
            const float *f = from + i * from_row + j;
            float *t = to + j * to_row + i;
            if (i + 4 > m || j + 4 > n) {
                for (int64_t r = 0; r < qkv__min(4, m - i); r++)
                    for (int64_t c = 0; c < qkv__min(4, n - j); c++) t[c * to_row + r] = f[r * from_row + c];
                continue;
            }
            v4 r0 = *(const v4_any *)f, r1 = *(const v4_any *)(f + from_row);
            v4 r2 = *(const v4_any *)(f + 2 * from_row), r3 = *(const v4_any *)(f + 3 * from_row);
            v4 a = LOW(r0, r2), b = HIGH(r0, r2), c = LOW(r1, r3), d = HIGH(r1, r3);
            *(v4_any *)t = LOW(a, c);
            *(v4_any *)(t + to_row) = HIGH(a, c);
            *(v4_any *)(t + 2 * to_row) = LOW(b, d);
            *(v4_any *)(t + 3 * to_row) = HIGH(b, d);
        }
#undef LOW
#undef HIGH
}

/* ---- chains in lanes ---- */

/* A vector has the chains of SIDE elements: lane 4*s + chain of vector g belongs to row g + 4*s, of b for one to four rows of a, else of a. */
enum { FOUR = QKV__DOTS_ROWS, SIDE = W / CHAINS, DOT_ROWS = FOUR * SIDE, AT_ONCE = 3, BATCH = 8 * AT_ONCE };

/* sum + a b, rounded once where the vectors do so: said outright, as a compiler that may fuse a scalar need not. */
static inline float add_product(float sum, float a, float b)
{
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fmaf(a, b, sum);
#else
    return sum + a * b;
#endif
}

/* Four floats, in every quarter of a vector. gcc turns a shuffle that says so into a load and a slow permutation, so the
 * instruction is named: 8 x 2048 x 512 went from 67 to 90 GFLOP/s by it. */
ALWAYS vf load_four(const float *p)
{
#if QKV_VECTOR_BYTES == 16
    return (vf) * (const v4_any *)p;
#elif QKV_VECTOR_BYTES == 32
    return (vf)_mm256_broadcast_ps((const __m128 *)(const void *)p);
#else
    return (vf)_mm512_broadcast_f32x4(_mm_loadu_ps(p));
#endif
}

/* to[r] (+)= the chains of row r, added one after the other; s[g] has those of rows g, g+4, ... */
ALWAYS void add_chains(const vf s[FOUR], float *to, bool add)
{
    vf t0 = LOW_ONES(s[0], s[1]), t1 = HIGH_ONES(s[0], s[1]), t2 = LOW_ONES(s[2], s[3]), t3 = HIGH_ONES(s[2], s[3]);
    vf first = LOW_PAIRS(t0, t2);
    if (add) first = load(to) + first;
    store(to, first + HIGH_PAIRS(t0, t2) + LOW_PAIRS(t1, t3) + HIGH_PAIRS(t1, t3));
}

/* ---- few rows, in dots.c: at most DOT_ROWS; b_row and a_col 1, k above 0 ---- */
void NAME(dots)(const qkv__product *x, float *scratch);

#endif
