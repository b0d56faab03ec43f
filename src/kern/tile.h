/* tile.h: the innermost product, a tile of c kept in registers while k runs. The matrix product and attention are built of it.
 * Included only by per-instruction-set sources, after vec.h.
 *
 * Registers: MR rows by NV vectors of accumulators, NV vectors of b and one of a must fit (16 on x86-64, 32 on AVX-512 and
 * ARM). */
#ifndef QKV_SRC_TILE_H
#define QKV_SRC_TILE_H

#include "../base/size.h"
#include "vec.h"

#if QKV_VECTOR_BYTES == 64
enum { MR = 12, NV = 2 };
#elif defined(__aarch64__)
enum { MR = 6, NV = 4 };
#else
enum { MR = 6, NV = 2 };
#endif
enum { NR = NV * W };

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif
#define EACH(i, n) UNROLL for (int i = 0; i < (n); i++) /* n a constant: no loop is left */
#define UNROLL_K _Pragma("GCC unroll 4")                /* gcc steps fewer pointers then; clang unrolls by itself */
#define ALWAYS static inline __attribute__((always_inline))

/* One k: sum[i][v] += a[i*a_i] * b[v*W ..]. */
ALWAYS void tile_step(const int mr, const int nv, const float *a, int64_t a_i, const float *b, vf sum[2 * MR][8])
{
    vf row[8];
    EACH (v, nv) row[v] = load(b + v * W);
    EACH (i, mr) {
        vf value = set1(a[i * a_i]);
        EACH (v, nv) sum[i][v] += value * row[v];
    }
}

/* c[i][j] (+)= sum over p of a[i*a_i + p*a_k] * b[p*b_k + j],   i < mr, j < nv*W; mr and nv are constants where it is called.
 * The sum is one chain from 0 in the order of p, added to c at the end, and the bias, if there is one, after that. Meanwhile what
 * comes `next`, unless that is NULL, is asked for, some bytes for every step, to the second cache: the first has no room for it.
 * Every loop over accumulators is unrolled, the stores too: otherwise gcc keeps them in memory. */
ALWAYS void tile_with_bias(const int mr, const int nv, const float *a, int64_t a_i, int64_t a_k, const float *b, int64_t b_k,
                           float *c, int64_t c_i, int64_t k, bool add, const float *bias, const char *next, int64_t next_step)
{
    enum { STEPS = 4, LINE = 64 };
    vf sum[2 * MR][8];
    int64_t p = 0;
    EACH (i, mr)
        EACH (v, nv) sum[i][v] = (vf){ 0 };
    for (; next && p + STEPS <= k; p += STEPS, a += STEPS * a_k, b += STEPS * b_k, next += STEPS * next_step) {
        __builtin_prefetch(next, 0, 2);
        if (next_step > LINE / STEPS) /* they lie in several lines */
            EACH (u, STEPS - 1) __builtin_prefetch(next + (u + 1) * next_step, 0, 2);
        EACH (u, STEPS) tile_step(mr, nv, a + u * a_k, a_i, b + u * b_k, sum);
    }
    UNROLL_K for (; p < k; p++, a += a_k, b += b_k) tile_step(mr, nv, a, a_i, b, sum);
    if (add) {
        EACH (i, mr)
            EACH (v, nv) sum[i][v] = load(c + i * c_i + v * W) + sum[i][v];
    }
    if (bias) {
        EACH (v, nv) {
            vf more = load(bias + v * W);
            EACH (i, mr) sum[i][v] += more;
        }
    }
    EACH (i, mr)
        EACH (v, nv) store(c + i * c_i + v * W, sum[i][v]);
}

ALWAYS void tile(const int mr, const int nv, const float *a, int64_t a_i, int64_t a_k, const float *b, int64_t b_k, float *c,
                 int64_t c_i, int64_t k, bool add)
{
    tile_with_bias(mr, nv, a, a_i, a_k, b, b_k, c, c_i, k, add, NULL, NULL, 0);
}

/* ---- tiles whose number of rows is known only when they run ---- */

/* Which of a's strides is a constant, and which, is a constant too: then a's addresses need one register, or one a row. */
typedef enum order { A_BY_COLUMN, A_BY_ROW, A_BY_CHAIN } order;

ALWAYS void tile_of(const int mr, const int nv, const order a_order, const float *a, int64_t a_step, const float *b,
                    int64_t b_k, float *c, int64_t c_i, int64_t k, bool add)
{
    if (a_order == A_BY_COLUMN) tile(mr, nv, a, 1, a_step, b, b_k, c, c_i, k, add);
    else tile(mr, nv, a, a_step, a_order == A_BY_ROW ? 1 : QKV__CHAINS, b, b_k, c, c_i, k, add);
}

#define CASE(rows) \
    case rows: tile_of(rows, nv, a_order, a, a_step, b, b_k, c, c_i, k, add); break;

ALWAYS void tile_rows(int64_t mr, const int nv, const order a_order, const float *a, int64_t a_step, const float *b,
                      int64_t b_k, float *c, int64_t c_i, int64_t k, bool add)
{
    switch (mr) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
#if QKV_VECTOR_BYTES == 64
        CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
#endif
    }
#if QKV_VECTOR_BYTES == 64
    if (nv > 1 || a_order != A_BY_COLUMN) return; /* only these have up to 16: see attend.h */
    switch (mr) {
        CASE(13)
        CASE(14)
        CASE(15)
        CASE(16)
    }
#endif
}

/* name(mr, ...) is a tile of mr rows, 1 <= mr <= MR; one vector by column on AVX-512: 1 <= mr <= 16 */
#define TILE(name, vectors, a_order)                                                                                    \
    static __attribute__((noinline)) void name(int64_t mr, const float *a, int64_t a_step, const float *b, int64_t b_k, \
                                               float *c, int64_t c_i, int64_t k, bool add)                              \
    {                                                                                                                   \
        tile_rows(mr, vectors, a_order, a, a_step, b, b_k, c, c_i, k, add);                                             \
    }

/* ---- the edge of c ---- */

/* A tile narrower than NR goes through a full one. */
static void copy_tile(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < m; i++) memcpy(to + i * to_row, from + i * from_row, sizeof(float) * (size_t)n);
}

typedef void tile_function(int64_t mr, const float *a, int64_t a_step, const float *b, int64_t b_k, float *c, int64_t c_i,
                           int64_t k, bool add);

ALWAYS void tile_edge(tile_function *run, int64_t mr, int64_t nr, const float *a, int64_t a_step, const float *b, int64_t b_k,
                      float *c, int64_t c_i, int64_t k, bool add)
{
    if (nr >= NR) {
        run(mr, a, a_step, b, b_k, c, c_i, k, add);
        return;
    }
    float whole[MR * NR] = { 0 };
    if (add) copy_tile(whole, NR, c, c_i, mr, nr);
    run(mr, a, a_step, b, b_k, whole, NR, k, add);
    copy_tile(c, c_i, whole, NR, mr, nr);
}

/* ---- rows into columns ---- */

typedef float v4 __attribute__((vector_size(16)));
typedef float v4_any __attribute__((vector_size(16), aligned(4), may_alias));

/* In each quarter of four lanes: a0 b0 a1 b1, a2 b2 a3 b3, a0 a1 b0 b1, a2 a3 b2 b3. */
#if QKV_VECTOR_BYTES == 16
#define MIX(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#define LOW_ONES(a, b) MIX(a, b, 0, 4, 1, 5)
#define HIGH_ONES(a, b) MIX(a, b, 2, 6, 3, 7)
#define LOW_PAIRS(a, b) MIX(a, b, 0, 1, 4, 5)
#define HIGH_PAIRS(a, b) MIX(a, b, 2, 3, 6, 7)
#elif QKV_VECTOR_BYTES == 32
#define MIX(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l, i + 4, j + 4, k + 4, l + 4)
#define LOW_ONES(a, b) MIX(a, b, 0, 8, 1, 9)
#define HIGH_ONES(a, b) MIX(a, b, 2, 10, 3, 11)
#define LOW_PAIRS(a, b) MIX(a, b, 0, 1, 8, 9)
#define HIGH_PAIRS(a, b) MIX(a, b, 2, 3, 10, 11)
#else
#define MIX(a, b, i, j, k, l)                                                                                                 \
    __builtin_shufflevector(a, b, i, j, k, l, i + 4, j + 4, k + 4, l + 4, i + 8, j + 8, k + 8, l + 8, i + 12, j + 12, k + 12, \
                            l + 12)
#define LOW_ONES(a, b) MIX(a, b, 0, 16, 1, 17)
#define HIGH_ONES(a, b) MIX(a, b, 2, 18, 3, 19)
#define LOW_PAIRS(a, b) MIX(a, b, 0, 1, 16, 17)
#define HIGH_PAIRS(a, b) MIX(a, b, 2, 3, 18, 19)
#endif

/* Four floats each of rows 0, 4, 8, ...: one row a quarter. */
ALWAYS vf load_quarters(const float *p, int64_t stride)
{
#define QUARTER(q) (*(const v4_any *)(p + 4 * (q)*stride))
#if QKV_VECTOR_BYTES == 16
    (void)stride;
    return (vf)QUARTER(0);
#else
    typedef float v8 __attribute__((vector_size(32)));
    v8 low = __builtin_shufflevector((v4)QUARTER(0), (v4)QUARTER(1), 0, 1, 2, 3, 4, 5, 6, 7);
#if QKV_VECTOR_BYTES == 32
    return (vf)low;
#else
    v8 high = __builtin_shufflevector((v4)QUARTER(2), (v4)QUARTER(3), 0, 1, 2, 3, 4, 5, 6, 7);
    return (vf)__builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#endif
#endif
#undef QUARTER
}

/* out[c] lane r = p[r*stride + c], r < W, c < 4: a 4 x 4 transposition within each quarter does it, as rows r, r+4, r+8, ...
 * share a vector. */
ALWAYS void columns_of_rows(const float *p, int64_t stride, vf out[4])
{
    vf r0 = load_quarters(p, stride), r1 = load_quarters(p + stride, stride);
    vf r2 = load_quarters(p + 2 * stride, stride), r3 = load_quarters(p + 3 * stride, stride);
    vf t0 = LOW_ONES(r0, r1), t1 = HIGH_ONES(r0, r1), t2 = LOW_ONES(r2, r3), t3 = HIGH_ONES(r2, r3);
    out[0] = LOW_PAIRS(t0, t2);
    out[1] = HIGH_PAIRS(t0, t2);
    out[2] = LOW_PAIRS(t1, t3);
    out[3] = HIGH_PAIRS(t1, t3);
}

/* The same of the first rows alone, zeros for the others. */
ALWAYS void columns_of_first_rows(const float *p, int64_t stride, int64_t rows, vf out[4])
{
    float some[4 * W] = { 0 };
    if (rows >= W) {
        columns_of_rows(p, stride, out);
        return;
    }
    for (int64_t r = 0; r < rows; r++) memcpy(some + 4 * r, p + r * stride, 4 * sizeof *some);
    columns_of_rows(some, 4, out);
}

/* The same for all columns, a multiple of 4, of up to W rows: out[c*width + r]; zero where there is no row. What moves need
 * not be floats: the bits are not looked at. */
ALWAYS void columns_of_some_rows(const float *p, int64_t stride, int64_t rows, int64_t columns, float *out, int64_t width)
{
    for (int64_t c = 0; c < columns; c += 4) {
        vf column[4];
        columns_of_first_rows(p + c, stride, rows, column);
        EACH (i, 4) store(out + (c + i) * width, column[i]);
    }
}

#endif
