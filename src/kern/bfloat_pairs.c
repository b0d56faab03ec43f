/* bfloat_pairs.c: products of bfloats with bfloats where one instruction adds two products to every lane: AVX512_BF16. Plain C
 * stands in for it in tests.
 *
 * products.h fixes the bits: an element has a chain for each lane of a vector. A few rows of a meet rows of b as they lie, the
 * chains of an element side by side. For more of them 32 rows of b at a time are turned into columns, chain after chain, and a
 * tile of c in registers takes one chain of each of its elements at a time. */
#include "tile.h"

#if defined(__AVX512BF16__)
#include <immintrin.h>
#else
#include "flushed.h"
#endif

typedef uint32_t pair; /* the even number of k is the lower half */

enum { CHAINS = QKV__PAIR_CHAINS, STEP = 2 * CHAINS };
enum {
    FEW = 4,       /* rows of a whose sums fit the registers, */
    RUNS = 4,      /* with so many rows of b */
    MOST_FEW = 32, /* from more rows on turning b pays */
    AHEAD = 1024,  /* bytes by which b is fetched ahead, to the second cache: see dots.c */
    GROUP = 4      /* rows of a that are packed together; a tile has up to three */
};
_Static_assert((int)CHAINS == (int)W && QKV_VECTOR_BYTES == 64, "a vector has a number of every chain");
_Static_assert((int)QKV__PAIR_COLUMNS == (int)NR && QKV__PAIR_ROWS % GROUP == 0, "the scratch is enough");
_Static_assert(MR == 3 * GROUP, "some_tile has every case");

static inline vu load_pairs(const void *p)
{
    vu x;
    memcpy(&x, p, sizeof x);
    return x;
}

#if defined(__AVX512BF16__)
static inline vf add_pairs(vf sum, vu a, vu b) { return (vf)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b); }

/* 2 W floats as the nearest bfloats, in their order. */
static inline vu narrow(vf low, vf high) { return (vu)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low); }
#else
static inline float half_of(pair x, int half)
{
    float y;
    x = half ? x & 0xffff0000 : x << 16;
    if (!(x & 0x7f800000)) x &= 0x80000000;
    memcpy(&y, &x, sizeof y);
    return y;
}

static inline vf add_pairs(vf sum, vu a, vu b)
{
    for (int i = 0; i < W; i++)
        for (int half = 1; half >= 0; half--) sum[i] = qkv__add_flushed(sum[i], half_of(a[i], half), half_of(b[i], half));
    return sum;
}

static inline vu narrow(vf low, vf high)
{
    uint16_t y[2 * W];
    for (int i = 0; i < 2 * W; i++) {
        uint32_t bits;
        float x = i < W ? low[i] : high[i - W];
        memcpy(&bits, &x, sizeof bits);
        if (!(bits & 0x7f800000)) bits &= 0x80000000;
        y[i] = (uint16_t)(x != x ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
    return load_pairs(y);
}
#endif

static inline int64_t steps_of(int64_t k) { return qkv__ceil_div(k, STEP); }

/* Step s of a row of a; zeros behind its end. */
static inline vu pairs_of(const float *a, int64_t k, int64_t s)
{
    int64_t p = s * STEP, left = k - p;
    return narrow(get(a + p, left, 0), left > W ? get(a + p + W, left - W, 0) : (vf){ 0 });
}

/* The same of b. */
static inline vu step_of(const uint16_t *b, int64_t k, int64_t s)
{
    uint16_t some[STEP] = { 0 };
    if ((s + 1) * STEP <= k) return load_pairs(b + s * STEP);
    memcpy(some, b + s * STEP, sizeof *some * (size_t)(k - s * STEP));
    return load_pairs(some);
}

/* ---- a few rows ---- */

static void put_element(float *c, float sum, const float *bias, bool add)
{
    float y = add ? *c + sum : sum;
    *c = bias ? y + *bias : y;
}

/* One chain after the other. */
static inline float sum_of_lanes(vf x)
{
    float sum = x[0];
    for (int i = 1; i < CHAINS; i++) sum += x[i];
    return sum;
}

/* m rows of a, from row i on, with `runs` rows of b that lie `apart`: columns j, j + apart, ... of c. */
ALWAYS void dot_runs(const int m, const int runs, const qkv__product *x, const uint16_t *b, const pair *a, int64_t i, int64_t j,
                     int64_t apart)
{
    int64_t steps = steps_of(x->k), whole = x->k / STEP;
    const uint16_t *row = b + j * x->b_col;
    vf sum[FEW][RUNS];
    a += i * steps * CHAINS;
    EACH (f, m)
        EACH (r, runs) sum[f][r] = (vf){ 0 };
    for (int64_t s = 0; s < whole; s++)
        EACH (r, runs) {
            const uint16_t *at = row + r * apart * x->b_col + s * STEP;
            vu pairs = load_pairs(at);
            __builtin_prefetch((const char *)at + AHEAD, 0, 2);
            EACH (f, m) sum[f][r] = add_pairs(sum[f][r], load_pairs(a + (f * steps + s) * CHAINS), pairs);
        }
    if (whole < steps)
        EACH (r, runs) {
            vu pairs = step_of(row + r * apart * x->b_col, x->k, whole);
            EACH (f, m) sum[f][r] = add_pairs(sum[f][r], load_pairs(a + (f * steps + whole) * CHAINS), pairs);
        }
    EACH (f, m)
        EACH (r, runs) {
            int64_t at = j + r * apart;
            put_element(x->c + (i + f) * x->c_row + at, sum_of_lanes(sum[f][r]), x->bias ? x->bias + at : NULL, x->add);
        }
}

/* All rows of a, some at a time: what is read of b stays in the cache for the others. */
ALWAYS void dot_columns(const int runs, const qkv__product *x, const uint16_t *b, const pair *a, int64_t j, int64_t apart)
{
    for (int64_t i = 0; i < x->m; i += FEW) switch (qkv__min(FEW, x->m - i)) {
        case 1: dot_runs(1, runs, x, b, a, i, j, apart); break;
        case 2: dot_runs(2, runs, x, b, a, i, j, apart); break;
        case 3: dot_runs(3, runs, x, b, a, i, j, apart); break;
        case 4: dot_runs(4, runs, x, b, a, i, j, apart); break;
        }
}

/* Rows of b are read in few long runs: see dots.c. */
static void few_rows(const qkv__product *x, const uint16_t *b, pair *scratch)
{
    int64_t steps = steps_of(x->k), apart = x->n / RUNS;
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t s = 0; s < steps; s++) {
            vu pairs = pairs_of(x->a + i * x->a_row, x->k, s);
            memcpy(scratch + (i * steps + s) * CHAINS, &pairs, sizeof pairs);
        }
    for (int64_t j = 0; j < apart; j++) dot_columns(RUNS, x, b, scratch, j, apart);
    for (int64_t j = apart * RUNS; j < x->n; j++) dot_columns(1, x, b, scratch, j, 1);
}

/* ---- tiles ---- */

/* Four rows of a, or those that there are, as [chain][step][row]. */
static void pack_group(const float *a, int64_t a_row, int64_t rows, int64_t k, pair *out)
{
    int64_t steps = steps_of(k);
    for (int64_t s = 0; s < steps; s++) {
        float four[4][W]; /* [chain % 4][chain / 4][row]; bits, that are no floats */
        vf r[GROUP];
        EACH (i, GROUP) r[i] = i < rows ? (vf)pairs_of(a + i * a_row, k, s) : (vf){ 0 };
        vf t0 = LOW_ONES(r[0], r[1]), t1 = HIGH_ONES(r[0], r[1]), t2 = LOW_ONES(r[2], r[3]), t3 = HIGH_ONES(r[2], r[3]);
        store(four[0], LOW_PAIRS(t0, t2));
        store(four[1], HIGH_PAIRS(t0, t2));
        store(four[2], LOW_PAIRS(t1, t3));
        store(four[3], HIGH_PAIRS(t1, t3));
        EACH (c, CHAINS) memcpy(out + (c * steps + s) * GROUP, four[c % 4] + c / 4 * GROUP, GROUP * sizeof *out);
    }
}

/* Rows of b, NR or those that there are, as [chain][step][row]. */
static void pack_columns(const uint16_t *b, int64_t b_col, int64_t columns, int64_t k, pair *panel)
{
    int64_t steps = steps_of(k);
    for (int64_t v = 0; v < NR; v += W)
        for (int64_t s = 0; s < steps; s++) {
            pair some[W][CHAINS] = { 0 };
            for (int64_t r = 0; r < qkv__min(W, columns - v); r++) {
                vu pairs = step_of(b + (v + r) * b_col, k, s);
                memcpy(some[r], &pairs, sizeof pairs);
            }
            columns_of_some_rows((const float *)(const void *)some, CHAINS, W, CHAINS, (float *)(void *)(panel + s * NR + v),
                                 steps * NR);
        }
}

/* t[i][j] = all of some groups of a with a panel: a chain of each, added to those before it. */
ALWAYS void tile_of_pairs(const int groups, const pair *a, const pair *panel, int64_t steps, float *t)
{
    const int m = groups * GROUP;
    const int64_t next = CHAINS * steps * GROUP; /* group */
    for (int chain = 0; chain < CHAINS; chain++) {
        vf sum[MR][NV];
        EACH (i, m)
            EACH (v, NV) sum[i][v] = (vf){ 0 };
        for (int64_t s = 0; s < steps; s++, a += GROUP, panel += NR) {
            vu row[NV];
            EACH (v, NV) row[v] = load_pairs(panel + v * W);
            EACH (i, m) {
                vu both = a[i / GROUP * next + i % GROUP] - (vu){ 0 };
                EACH (v, NV) sum[i][v] = add_pairs(sum[i][v], both, row[v]);
            }
        }
        EACH (i, m)
            EACH (v, NV) store(t + i * NR + v * W, chain ? load(t + i * NR + v * W) + sum[i][v] : sum[i][v]);
    }
}

/* Rows i .. of c from column j on. */
static void put_rows(const qkv__product *x, int64_t i, int64_t rows, int64_t j, const float *t)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t v = 0; v < NR && j + v < x->n; v += W) {
            int64_t left = x->n - j - v;
            float *c = x->c + (i + r) * x->c_row + j + v;
            vf y = load(t + r * NR + v);
            if (x->add) y = get(c, left, 0) + y;
            put(c, x->bias ? y + get(x->bias + j + v, left, 0) : y, left);
        }
}

static __attribute__((noinline)) void some_tile(int64_t rows, const pair *a, const pair *panel, int64_t steps, float *t)
{
    if (rows > 2 * GROUP) tile_of_pairs(3, a, panel, steps, t);
    else if (rows > GROUP) tile_of_pairs(2, a, panel, steps, t);
    else tile_of_pairs(1, a, panel, steps, t);
}

/* Before each tile a part of the rows of b that come next is fetched. */
static void tiles_of_panel(const qkv__product *x, int64_t first, int64_t rows, const pair *a, const pair *panel, int64_t j,
                           const uint16_t *next)
{
    int64_t steps = steps_of(x->k), lines = qkv__ceil_div(NR * steps, qkv__ceil_div(rows, MR));
    for (int64_t i = 0; i < rows; i += MR) {
        float t[MR * NR];
        int64_t some = qkv__min(MR, rows - i);
        for (int64_t line = 0; line < lines; line++, next += STEP) __builtin_prefetch(next, 0, 2);
        some_tile(some, a + i * CHAINS * steps, panel, steps, t);
        put_rows(x, first + i, some, j, t);
    }
}

static void many_rows(const qkv__product *x, const uint16_t *b, pair *scratch)
{
    int64_t row = CHAINS * steps_of(x->k);
    pair *panel = scratch + QKV__PAIR_ROWS * row;
    for (int64_t first = 0; first < x->m; first += QKV__PAIR_ROWS) {
        int64_t rows = qkv__min(QKV__PAIR_ROWS, x->m - first);
        for (int64_t i = 0; i < rows; i += GROUP)
            pack_group(x->a + (first + i) * x->a_row, x->a_row, rows - i, x->k, scratch + i * row);
        for (int64_t j = 0; j < x->n; j += NR) {
            pack_columns(b + j * x->b_col, x->b_col, qkv__min(NR, x->n - j), x->k, panel);
            tiles_of_panel(x, first, rows, scratch, panel, j, b + (j + NR) * x->b_col);
        }
    }
}

void NAME(multiply_pairs)(const qkv__product *x, const uint16_t *b, void *scratch)
{
    if (x->m > MOST_FEW) many_rows(x, b, scratch);
    else few_rows(x, b, scratch);
}

const qkv__kernels NAME(kernels) = { .isa = ISA_NAME, .multiply_pairs = NAME(multiply_pairs) };
