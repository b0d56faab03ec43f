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
enum { FOUR = QKV__DOTS_ROWS, SIDE = W / CHAINS, DOT_ROWS = FOUR * SIDE, AT_ONCE = 3, BATCH = 8 };

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

/* ---- a handful of rows ---- */

/* rows of a as [step][group][W]; zero past the last row and past k */
static void pack_groups(const float *a, int64_t a_row, int64_t m, int64_t k, float *out)
{
    int64_t room = steps(k, CHAINS, 0);
    memset(out, 0, sizeof(float) * (size_t)(FOUR * room * W));
    for (int64_t i = 0; i < m; i++) {
        float *to = out + i % FOUR * W + i / FOUR * CHAINS;
        for (int64_t p = 0; p < k; p += CHAINS, to += FOUR * W)
            memcpy(to, a + i * a_row + p, sizeof(float) * (size_t)qkv__min(CHAINS, k - p));
    }
}

/* The first n of every four chains have one step more. Not inlined, so that the sums stay in registers. */
static __attribute__((noinline)) vf last_step(vf sum, const float *a, const float *b, int64_t n)
{
    float lane[W];
    memcpy(lane, &sum, sizeof lane);
    for (int64_t i = 0; i < W; i++)
        if (i % CHAINS < n) lane[i] = add_product(lane[i], a[i], b[i % CHAINS]);
    return load(lane);
}

/* t[j*t_col + i] (+)= row i times row j of b over a block of k, for n rows of b */
ALWAYS void dot_groups(const int n, const float *a, const float *b, int64_t b_col, float *t, int64_t t_col, int64_t k, bool add)
{
    vf sum[AT_ONCE][FOUR];
    int64_t whole = k / CHAINS;
    EACH (j, n)
        EACH (g, FOUR) sum[j][g] = (vf){ 0 };
    for (int64_t step = 0; step < whole; step++) {
        vf row[AT_ONCE];
        EACH (j, n) row[j] = load_four(b + j * b_col + step * CHAINS);
        EACH (g, FOUR) {
            vf group = load(a + (step * FOUR + g) * W);
            EACH (j, n) sum[j][g] += group * row[j];
        }
    }
    EACH (j, n) {
        vf *s = sum[j];
        if (k % CHAINS)
            EACH (g, FOUR) s[g] = last_step(s[g], a + (whole * FOUR + g) * W, b + j * b_col + whole * CHAINS, k % CHAINS);
        add_chains(s, t + j * t_col, add);
    }
}

/* Columns j .. j+columns-1 and those of the `runs` - 1 others that lie `apart`, over a block of k from p on. */
ALWAYS void handful_of_columns(const int runs, const qkv__product *x, const float *a, int64_t j, int64_t apart, int64_t columns,
                               int64_t p)
{
    float t[AT_ONCE * BATCH * W];
    int64_t k = qkv__min(CHAIN * CHAINS, x->k - p);
    bool add = x->add || p > 0;
    for (int64_t r = 0; add && r < runs; r++) transpose(x->c + j + r * apart, x->c_row, t + r * BATCH * W, W, x->m, columns);
    for (int64_t q = 0; q < columns; q++)
        dot_groups(runs, a, x->b + (j + q) * x->b_col + p, apart * x->b_col, t + q * W, BATCH * W, k, add);
    for (int64_t r = 0; r < runs; r++) transpose(t + r * BATCH * W, W, x->c + j + r * apart, x->c_row, columns, x->m);
}

/* Three rows of b at a time, a third of all apart: few long runs, see dots.c. */
static void dot_handful(const qkv__product *x, float *scratch)
{
    int64_t third = x->n / AT_ONCE;
    for (int64_t p = 0; p < x->k; p += CHAIN * CHAINS) {
        pack_groups(x->a + p, x->a_row, x->m, qkv__min(CHAIN * CHAINS, x->k - p), scratch);
        for (int64_t j = 0; j < third; j += BATCH)
            handful_of_columns(AT_ONCE, x, scratch, j, third, qkv__min(BATCH, third - j), p);
        if (AT_ONCE * third < x->n) handful_of_columns(1, x, scratch, AT_ONCE * third, 0, x->n - AT_ONCE * third, p);
    }
    if (x->bias) add_bias(x->c, x->c_row, x->m, x->n, x->bias);
}

/* ---- few rows, in dots.c: at most 8, with vectors of at most 32 bytes; b_row and a_col 1, k above 0 ---- */
void NAME(dots)(const qkv__product *x, float *scratch);

#endif
