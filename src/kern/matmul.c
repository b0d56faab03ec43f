/* matmul.c: the matrix product in blocks that fit the caches, on one thread. op/product.c shares blocks among threads.
 *
 * products.h fixes the order in which an element of c is summed. The ways below keep it, and differ in speed alone:
 *   blocked    both operands packed (after Goto and van de Geijn 2008): large products
 *   streamed   c^T = b^T a^T, the few rows of a packed as columns, b read as it lies: few rows, b stored (n,k) as weights are
 *   direct     nothing packed: few rows and b stored (k,n), or a short k
 *   dots       a handful of rows and b stored (n,k) */
#include "tile.h"

#if QKV_VECTOR_BYTES > 16
#include <immintrin.h>
#endif

enum {
    CHAIN = QKV__CHAIN, /* CHAIN x NR floats of b sit in half the level-1 cache */
    CHAINS = QKV__CHAINS,
    MC = 192, /* rows of a packed block of a: MC x CHAIN floats sit in level 2; a multiple of every MR */
    NC = 512  /* columns of a packed block of b */
};

/* How many steps chain c of `chains` has in k. */
static inline int64_t steps(int64_t k, int chains, int c) { return (k - c + chains - 1) / chains; }

/* ---- tiles ---- */

TILE(tile_columns, NV, A_BY_COLUMN) /* a packed, or stored (k,m) */
TILE(tile_by_row, NV, A_BY_ROW)     /* a stored (m,k) */
TILE(tile_by_chain, NV, A_BY_CHAIN) /* a stored (m,k), every fourth k */

/* ---- packing ---- */

/* One panel, column by column: out[p*width + j] = x[j*x_j + p*x_p], j < n, p < k; the rest of the width is zero. */
static void pack_slowly(const float *x, int64_t x_j, int64_t x_p, int64_t n, int64_t k, int64_t width, float *out)
{
    for (int64_t p = 0; p < k; p++, out += width) {
        for (int64_t j = 0; j < n; j++) out[j] = x[j * x_j + p * x_p];
        for (int64_t j = n; j < width; j++) out[j] = 0;
    }
}

/* Full panels packed fast, as far as whole vectors go. Each gives the steps of every chain that are done. */
static int64_t pack_columns(const float *b, int64_t b_row, int64_t k, float *out)
{
    for (int64_t p = 0; p < k; p++)
        EACH (v, NV) store(out + p * NR + v * W, load(b + p * b_row + v * W));
    return k;
}

/* Four columns at a time are one step of each of the four chains. A cache line of every row is used up before the next rows are
 * touched: rows that lie a power of two apart share places in the cache. */
ALWAYS int64_t pack_rows(const float *x, int64_t stride, int64_t k, const int vectors, int64_t width, float *out,
                         int64_t next_chain)
{
    enum { LINE = 16 };
    for (int64_t from = 0; from < k / CHAINS * CHAINS; from += LINE)
        for (int v = 0; v < vectors; v++)
            for (int64_t p = from; p < from + LINE && p + CHAINS <= k; p += CHAINS) {
                vf column[CHAINS];
                columns_of_rows(x + v * W * stride + p, stride, column);
                EACH (c, CHAINS) store(out + c * next_chain + p / CHAINS * width + v * W, column[c]);
            }
    return k / CHAINS;
}

/* b (k,n) as panels of NR columns, each [steps][NR], the last one filled up with zeros; chain by chain, next_chain apart. */
static void pack_b(const float *b, int64_t b_row, int64_t b_col, int64_t k, int64_t n, int chains, float *out,
                   int64_t next_chain)
{
    for (int64_t j = 0; j < n; j += NR, b += NR * b_col, out += NR * steps(k, chains, 0)) {
        int64_t nr = qkv__min(NR, n - j), done = 0;
        if (nr == NR && chains == 1 && b_col == 1) done = pack_columns(b, b_row, k, out);
        if (nr == NR && chains == CHAINS && b_row == 1) done = pack_rows(b, b_col, k, NV, NR, out, next_chain);
        for (int c = 0; c < chains; c++)
            pack_slowly(b + (done * chains + c) * b_row, b_col, b_row * chains, nr, steps(k, chains, c) - done, NR,
                        out + c * next_chain + done * NR);
    }
}

/* a (m,k) as panels of MR rows, each [steps][MR]; the last one [steps][what is left]. Writes up to W floats past the end. */
static void pack_a(const float *a, int64_t a_row, int64_t a_col, int64_t m, int64_t k, int chains, float *out,
                   int64_t next_chain)
{
    for (int64_t i = 0; i < m; i += MR, a += MR * a_row, out += MR * steps(k, chains, 0)) {
        int64_t mr = qkv__min(MR, m - i), done = 0;
        if (mr == MR && chains == 1 && a_row == 1)
            for (; done < k; done++) memcpy(out + done * MR, a + done * a_col, sizeof(float) * MR);
        /* each store spills into the place of the next, which is stored later */
        if ((int)MR <= (int)W && m - i >= W && chains == CHAINS && a_col == 1)
            done = pack_rows(a, a_row, k, 1, MR, out, next_chain);
        for (int c = 0; c < chains; c++)
            pack_slowly(a + (done * chains + c) * a_col, a_row, a_col * chains, mr, steps(k, chains, c) - done, mr,
                        out + c * next_chain + done * mr);
    }
}

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

/* ---- blocked ---- */

/* A tile of packed panels: every step of a has its rows side by side. */
#define PACKED_CASE(rows) \
    case rows: tile_with_bias(rows, NV, a, 1, rows, b, NR, c, c_row, k, add, bias); break;

static __attribute__((noinline)) void packed_tile(int64_t mr, const float *a, const float *b, float *c, int64_t c_row,
                                                  int64_t k, bool add, const float *bias)
{
    switch (mr) {
        PACKED_CASE(1)
        PACKED_CASE(2)
        PACKED_CASE(3)
        PACKED_CASE(4)
        PACKED_CASE(5)
        PACKED_CASE(6)
#if QKV_VECTOR_BYTES == 64
        PACKED_CASE(7) PACKED_CASE(8) PACKED_CASE(9) PACKED_CASE(10) PACKED_CASE(11) PACKED_CASE(12)
#endif
    }
}

/* ---- weights packed whole: for every block of k, chain by chain, all panels of NR columns, each [steps][NR] ---- */

static inline int64_t packed_block(int64_t n, int64_t p) { return qkv__round_up(n, NR) * p; }

/* Floats from a chain to the next in a block of k. */
static inline int64_t packed_chain(int64_t n, int64_t k) { return qkv__round_up(n, NR) * steps(k, CHAINS, 0); }

int64_t NAME(packed_floats)(int64_t n, int64_t k) { return qkv__round_up(n, NR) * qkv__round_up(k, CHAINS); }

void NAME(pack_weight)(float *out, const float *w, int64_t n, int64_t k, int64_t from, int64_t to)
{
    for (int64_t p = 0; p < k; p += CHAIN * CHAINS) {
        int64_t some = qkv__min(CHAIN * CHAINS, k - p);
        pack_b(w + p, 1, k, some, to - from, CHAINS, out + packed_block(n, p) + from * steps(some, CHAINS, 0),
               packed_chain(n, some));
    }
}

/* A block of rows of a, of columns of b and of k. */
typedef struct span {
    int64_t from, n;
} span;

static inline span span_at(int64_t from, int64_t most, int64_t end) { return (span){ from, qkv__min(most, end - from) }; }

enum { A_CHAIN = MC * CHAIN + W, B_CHAIN = NC * CHAIN };

/* Both operands, packed chain by chain, of a block of k; add: c has sums of earlier blocks. */
typedef struct packed_operands {
    const float *a, *b;
    int64_t b_chain, k;
    int chains;
    bool add;
} packed_operands;

/* Some chains of a tile, one after the other, and the bias behind the last of all. */
static void add_chains_of_tile(const packed_operands *w, span chains, const float *a, const float *b, int64_t mr, float *c,
                               int64_t c_row, const float *bias)
{
    for (int64_t q = chains.from; q < chains.from + chains.n; q++)
        packed_tile(mr, a + q * A_CHAIN, b + q * w->b_chain, c, c_row, steps(w->k, w->chains, (int)q), w->add || q > 0,
                    q == w->chains - 1 ? bias : NULL);
}

/* The same where fewer than NR columns are left: through a full tile. */
static void add_chains_at_edge(const packed_operands *w, span chains, const float *a, const float *b, int64_t mr, int64_t nr,
                               float *c, int64_t c_row, const float *bias)
{
    float whole[MR * NR] = { 0 };
    if (w->add || chains.from > 0) copy_tile(whole, NR, c, c_row, mr, nr);
    add_chains_of_tile(w, chains, a, b, mr, whole, NR, NULL);
    copy_tile(c, c_row, whole, NR, mr, nr);
    if (bias && chains.from + chains.n == w->chains) add_bias(c, c_row, mr, nr, bias);
}

/* c (m,n): all rows with a panel of b, which stays in the cache. */
static void blocks(const packed_operands *w, span chains, int64_t m, int64_t n, float *c, int64_t c_row, const float *bias)
{
    int64_t room = steps(w->k, w->chains, 0);
    for (int64_t j = 0; j < n; j += NR)
        for (int64_t i = 0; i < m; i += MR) {
            const float *a = w->a + i * room, *b = w->b + j * room, *more = bias ? bias + j : NULL;
            float *to = c + i * c_row + j;
            if (n - j >= NR) add_chains_of_tile(w, chains, a, b, qkv__min(MR, m - i), to, c_row, more);
            else add_chains_at_edge(w, chains, a, b, qkv__min(MR, m - i), n - j, to, c_row, more);
        }
}

/* The panels of b of all chains stay in level 1 while they are short: then a tile of c is read once. */
static void multiply_block(const qkv__product *x, int chains, span i, span j, span p, const float *a, const float *b,
                           int64_t b_chain)
{
    enum { SHORT = 24 * 1024 / (NR * (int)sizeof(float)) };
    const packed_operands w = { a, b, b_chain, p.n, chains, x->add || p.from > 0 };
    const float *bias = x->bias && p.from + p.n == x->k ? x->bias + j.from : NULL;
    int64_t together = p.n <= SHORT ? chains : 1;
    for (int64_t q = 0; q < chains; q += together)
        blocks(&w, (span){ q, together }, i.n, j.n, x->c + i.from * x->c_row + j.from, x->c_row, bias);
}

static void pack_block_of_a(const qkv__product *x, int chains, span i, span p, float *a)
{
    pack_a(x->a + i.from * x->a_row + p.from * x->a_col, x->a_row, x->a_col, i.n, p.n, chains, a, A_CHAIN);
}

static void blocked(const qkv__product *x, int chains, float *scratch)
{
    const int64_t columns = NC * CHAINS / chains; /* one chain leaves room for more columns */
    float *a = scratch, *b = scratch + A_CHAIN * CHAINS;
    for (span j = span_at(0, columns, x->n); j.n > 0; j = span_at(j.from + columns, columns, x->n))
        for (span p = span_at(0, CHAIN * chains, x->k); p.n > 0; p = span_at(p.from + p.n, CHAIN * chains, x->k)) {
            pack_b(x->b + p.from * x->b_row + j.from * x->b_col, x->b_row, x->b_col, p.n, j.n, chains, b, B_CHAIN);
            for (span i = span_at(0, MC, x->m); i.n > 0; i = span_at(i.from + MC, MC, x->m)) {
                pack_block_of_a(x, chains, i, p, a);
                multiply_block(x, chains, i, j, p, a, b, B_CHAIN);
            }
        }
}

/* With b packed before, rows of a are packed once and not for every block of columns. */
static void blocked_by_rows(const qkv__product *x, float *scratch)
{
    for (span i = span_at(0, MC, x->m); i.n > 0; i = span_at(i.from + MC, MC, x->m))
        for (span p = span_at(0, CHAIN * CHAINS, x->k); p.n > 0; p = span_at(p.from + p.n, CHAIN * CHAINS, x->k)) {
            const float *b = x->packed + packed_block(x->packed_n, p.from) + x->packed_at * steps(p.n, CHAINS, 0);
            pack_block_of_a(x, CHAINS, i, p, scratch);
            for (span j = span_at(0, NC, x->n); j.n > 0; j = span_at(j.from + NC, NC, x->n))
                multiply_block(x, CHAINS, i, j, p, scratch, b + j.from * steps(p.n, CHAINS, 0), packed_chain(x->packed_n, p.n));
        }
}

/* ---- streamed ---- */

enum { STREAM_ROWS = 48, STREAM_CHAIN = (STREAM_ROWS + NR) * CHAIN };

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

static void stream_columns(const qkv__product *x, const float *rows, int64_t p, int64_t k, int64_t i, int64_t j, int64_t mr)
{
    float t[MR * NR]; /* a tile of c^T */
    int64_t m = qkv__min(NR, x->m - i);
    float *c = x->c + i * x->c_row + j;
    const float *b = x->b + j * x->b_col + p, *panel = rows + i * steps(k, CHAINS, 0);
    bool add = x->add || p > 0;
    if (add) transpose(c, x->c_row, t, NR, m, mr);
    for (int chain = 0; chain < CHAINS; chain++, add = true, panel += STREAM_CHAIN)
        tile_by_chain(mr, b + chain, x->b_col, panel, NR, t, NR, steps(k, CHAINS, chain), add);
    for (int64_t r = 0; x->bias && p + k == x->k && r < mr; r++)
        EACH (v, NV) store(t + r * NR + v * W, load(t + r * NR + v * W) + set1(x->bias[j + r]));
    transpose(t, NR, c, x->c_row, mr, m);
}

static void streamed(const qkv__product *x, float *scratch)
{
    for (int64_t p = 0; p < x->k; p += CHAIN * CHAINS) {
        int64_t k = qkv__min(CHAIN * CHAINS, x->k - p);
        pack_b(x->a + p * x->a_col, x->a_col, x->a_row, k, x->m, CHAINS, scratch, STREAM_CHAIN);
        for (int64_t j = 0; j < x->n; j += MR)
            for (int64_t i = 0; i < x->m; i += NR) stream_columns(x, scratch, p, k, i, j, qkv__min(MR, x->n - j));
    }
}

/* ---- direct ---- */

enum { DIRECT_ROWS = 48, DIRECT_K = 64 };

/* One to three rows: more vectors a row, again to keep the adders busy. Gives the columns done. */
static int64_t direct_wide(const qkv__product *x, int64_t p, int64_t k, int64_t m)
{
#define WIDE(rows, vectors)                                                                                                    \
    for (; j + (vectors)*W <= x->n; j += (vectors)*W)                                                                          \
        tile(rows, vectors, x->a + p * x->a_col, x->a_row, x->a_col, x->b + p * x->b_row + j, x->b_row, x->c + j, x->c_row, k, \
             x->add || p > 0);
    int64_t j = 0;
    if (m == 1) WIDE(1, 8)
    if (m == 2) WIDE(2, 4)
    if (m == 3) WIDE(3, 4)
    return j;
#undef WIDE
}

static void direct_tile(const qkv__product *x, int64_t p, int64_t k, int64_t i, int64_t mr, int64_t j, const float *b,
                        int64_t b_k)
{
    const float *a = x->a + i * x->a_row + p * x->a_col;
    float *c = x->c + i * x->c_row + j;
    bool add = x->add || p > 0;
    if (x->a_col == 1) tile_edge(tile_by_row, mr, x->n - j, a, x->a_row, b, b_k, c, x->c_row, k, add);
    else tile_edge(tile_columns, mr, x->n - j, a, x->a_col, b, b_k, c, x->c_row, k, add);
}

/* A block of k, all rows and columns. The rows are cut evenly: 8 as 4 + 4. */
static void direct_block(const qkv__product *x, int64_t p, int64_t k, float *scratch)
{
    int64_t step = qkv__ceil_div(x->m, qkv__ceil_div(x->m, MR));
    int64_t done = x->m <= 3 ? direct_wide(x, p, k, x->m) : 0;
    int64_t full = done + (x->n - done) / NR * NR;
    const float *b = x->b + p * x->b_row;
    if (full < x->n) pack_slowly(b + full, 1, x->b_row, x->n - full, k, NR, scratch); /* no reading past the end of a row */
    for (int64_t i = 0; done < x->n && i < x->m; i += step) {
        int64_t mr = qkv__min(step, x->m - i);
        for (int64_t j = done; j < full; j += NR) direct_tile(x, p, k, i, mr, j, b + j, x->b_row);
        if (full < x->n) direct_tile(x, p, k, i, mr, full, scratch, NR);
    }
}

static void direct(const qkv__product *x, float *scratch)
{
    for (int64_t p = 0; p < x->k; p += CHAIN) direct_block(x, p, qkv__min(CHAIN, x->k - p), scratch);
    if (x->bias) add_bias(x->c, x->c_row, x->m, x->n, x->bias);
}

/* ---- dots ---- */

/* The four chains of an element sit side by side in four lanes, so that rows in memory are read as they lie. A vector has the
 * chains of SIDE elements: lane 4*s + chain of vector g belongs to row g + 4*s, of b for one to four rows of a, else of a. */
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

/* How the numbers of b are kept; a constant wherever it is asked. */
typedef enum kept { FLOATS, HALVES, BFLOATS } kept;

/* Four numbers of 16 bits as floats, exactly. Zeros are put before or behind each: gcc makes several instructions of a
 * conversion of half a vector. */
ALWAYS v4 widen_four(const uint16_t *p, const kept as)
{
    typedef uint16_t n8 __attribute__((vector_size(16)));
    typedef uint64_t two __attribute__((vector_size(16)));
    uint64_t low;
    memcpy(&low, p, sizeof low);
    n8 narrow = (n8)(two){ low }, zero = { 0 };
    if (as == BFLOATS) return (v4)__builtin_shufflevector(zero, narrow, 0, 8, 1, 9, 2, 10, 3, 11);
#if QKV_VECTOR_BYTES > 16
    return (v4)_mm_cvtph_ps((__m128i)narrow);
#else
    return widen_halves((vu)__builtin_shufflevector(narrow, zero, 0, 8, 1, 9, 2, 10, 3, 11));
#endif
}

ALWAYS const void *number_at(const void *b, int64_t i, const kept as)
{
    return (const char *)b + i * (as == FLOATS ? (int64_t)sizeof(float) : (int64_t)sizeof(uint16_t));
}

/* One number. */
ALWAYS float one_of(const void *b, int64_t i, const kept as)
{
    uint16_t narrow[4] = { 0 };
    if (as == FLOATS) return *(const float *)number_at(b, i, as);
    memcpy(narrow, number_at(b, i, as), sizeof *narrow);
    return widen_four(narrow, as)[0];
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

#if QKV_VECTOR_BYTES > 16
ALWAYS __m128i eight_of(const uint16_t *p) { return _mm_loadu_si128((const __m128i *)(const void *)p); }
#endif

/* Numbers of 16 bits, eight each of rows 0, 4, 8, ... of b: out[0] has the first four of every row, a row a quarter, out[1] the
 * other four. The instructions are named, as gcc widens a row at a time: see docs/decisions.md. */
ALWAYS void widen_two_steps(const uint16_t *b, int64_t b_col, const kept as, vf out[2])
{
#if QKV_VECTOR_BYTES == 16
    (void)b_col;
    EACH (s, 2) out[s] = (vf)widen_four(b + s * CHAINS, as);
#elif QKV_VECTOR_BYTES == 32
    __m128i r0 = eight_of(b), r1 = eight_of(b + 4 * b_col);
    __m256i rows = _mm256_set_m128i(r1, r0), zero = _mm256_setzero_si256();
    out[0] = as == HALVES ? (vf)_mm256_cvtph_ps(_mm_unpacklo_epi64(r0, r1)) : (vf)_mm256_unpacklo_epi16(zero, rows);
    out[1] = as == HALVES ? (vf)_mm256_cvtph_ps(_mm_unpackhi_epi64(r0, r1)) : (vf)_mm256_unpackhi_epi16(zero, rows);
#else
    __m128i r0 = eight_of(b), r1 = eight_of(b + 4 * b_col), r2 = eight_of(b + 8 * b_col), r3 = eight_of(b + 12 * b_col);
    __m256i low = _mm256_set_m128i(_mm_unpacklo_epi64(r2, r3), _mm_unpacklo_epi64(r0, r1));
    __m256i high = _mm256_set_m128i(_mm_unpackhi_epi64(r2, r3), _mm_unpackhi_epi64(r0, r1));
    out[0] = as == HALVES ? (vf)_mm512_cvtph_ps(low) : (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(low), 16);
    out[1] = as == HALVES ? (vf)_mm512_cvtph_ps(high) : (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16);
#endif
}

/* The next two steps of every chain of m rows of a with DOT_ROWS rows of b. */
ALWAYS void dot_two_steps(const int m, const kept as, const float *a, int64_t a_row, const void *b, int64_t b_col,
                          vf sum[2][FOUR])
{
    EACH (g, FOUR) {
        vf rows[2];
        if (as == FLOATS)
            EACH (s, 2) rows[s] = load_quarters((const float *)b + g * b_col + s * CHAINS, b_col);
        else widen_two_steps((const uint16_t *)b + g * b_col, b_col, as, rows);
        EACH (i, m)
            EACH (s, 2) sum[i][g] += load_four(a + i * a_row + s * CHAINS) * rows[s];
    }
}

/* The last n numbers of rows 0, 4, 8, ... of b, fewer than eight. Not inlined, so that the sums stay in registers. */
static __attribute__((noinline)) vf dot_last(vf sum, const float *a, const void *b, int64_t b_col, int64_t n, kept as)
{
    float lane[W];
    memcpy(lane, &sum, sizeof lane);
    for (int s = 0; s < SIDE; s++)
        for (int64_t p = 0; p < n; p++) {
            float *chain = lane + s * CHAINS + p % CHAINS;
            *chain = add_product(*chain, a[p], one_of(b, 4 * s * b_col + p, as));
        }
    return load(lane);
}

/* to[r] (+)= the chains of row r, added one after the other; s[g] has those of rows g, g+4, ... */
ALWAYS void add_chains(const vf s[FOUR], float *to, bool add)
{
    vf t0 = LOW_ONES(s[0], s[1]), t1 = HIGH_ONES(s[0], s[1]), t2 = LOW_ONES(s[2], s[3]), t3 = HIGH_ONES(s[2], s[3]);
    vf first = LOW_PAIRS(t0, t2);
    if (add) first = load(to) + first;
    store(to, first + HIGH_PAIRS(t0, t2) + LOW_PAIRS(t1, t3) + HIGH_PAIRS(t1, t3));
}

/* c[r*c_col] (+)= the chains of row r: see add_chains() */
ALWAYS void put_chains(const vf s[FOUR], float *c, int64_t c_col, bool add)
{
    float t[DOT_ROWS];
    for (int r = 0; add && r < DOT_ROWS; r++) t[r] = c[r * c_col];
    add_chains(s, t, add);
    for (int r = 0; r < DOT_ROWS; r++) c[r * c_col] = t[r];
}

/* One or two rows of a, DOT_ROWS rows of b over a block of k, and columns of c, b_col and c_col apart. */
ALWAYS void dot_panel(const int m, const kept as, const float *a, int64_t a_row, const void *b, int64_t b_col, float *c,
                      int64_t c_row, int64_t c_col, int64_t k, bool add)
{
    enum { STEP = 2 * CHAINS };
    vf sum[2][FOUR];
    int64_t p = 0;
    EACH (i, m)
        EACH (g, FOUR) sum[i][g] = (vf){ 0 };
    for (; p + STEP <= k; p += STEP) dot_two_steps(m, as, a + p, a_row, number_at(b, p, as), b_col, sum);
    EACH (i, m) {
        if (p < k)
            EACH (g, FOUR)
                sum[i][g] = dot_last(sum[i][g], a + i * a_row + p, number_at(b, g * b_col + p, as), b_col, k - p, as);
        put_chains(sum[i], c + i * c_row, c_col, add);
    }
}

/* One element: what is left of the columns. */
static void dot_one(const float *a, const void *b, float *c, int64_t k, bool add, kept as)
{
    float chain[CHAINS] = { 0 };
    for (int64_t p = 0; p < k; p++) chain[p % CHAINS] = add_product(chain[p % CHAINS], a[p], one_of(b, p, as));
    *c = (add ? *c + chain[0] : chain[0]) + chain[1] + chain[2] + chain[3];
}

/* A block of k of DOT_ROWS rows of b, from row j on and `apart` from each other. What is in the cache is read a second time for
 * the third and fourth row of a. */
ALWAYS void dot_block(const qkv__product *x, const void *b, const int m, const kept as, int64_t j, int64_t apart, int64_t p)
{
    int64_t k = qkv__min(CHAIN * CHAINS, x->k - p), two = 2 * x->a_row, b_col = apart * x->b_col;
    const void *rows = number_at(b, j * x->b_col + p, as);
    const float *a = x->a + p;
    float *c = x->c + j;
    bool add = x->add || p > 0;
    dot_panel(m < 2 ? m : 2, as, a, x->a_row, rows, b_col, c, x->c_row, apart, k, add);
    if (m > 2) dot_panel(m - 2, as, a + two, x->a_row, rows, b_col, c + 2 * x->c_row, x->c_row, apart, k, add);
}

/* The rows of b of a panel lie far apart, each followed by that of the next panel: a few long runs are what a processor reads
 * ahead in by itself, even where a page of memory is small (see docs/decisions.md). */
ALWAYS void dot_few(const qkv__product *x, const void *b, const int m, const kept as)
{
    int64_t j = 0, block = CHAIN * CHAINS, apart = x->n / DOT_ROWS;
    for (; j < apart; j++)
        for (int64_t p = 0; p < x->k; p += block) dot_block(x, b, m, as, j, apart, p);
    for (j = apart * DOT_ROWS; j < x->n; j++)
        for (int64_t p = 0; p < x->k; p += block)
            EACH (i, m)
                dot_one(x->a + p + i * x->a_row, number_at(b, j * x->b_col + p, as), x->c + i * x->c_row + j,
                        qkv__min(block, x->k - p), x->add || p > 0, as);
}

/* One to four rows. */
ALWAYS void dot_rows(const qkv__product *x, const void *b, const kept as)
{
    switch (x->m) {
    case 1: dot_few(x, b, 1, as); break;
    case 2: dot_few(x, b, 2, as); break;
    case 3: dot_few(x, b, 3, as); break;
    case 4: dot_few(x, b, 4, as); break;
    }
    if (x->k <= 0) no_steps(x);
    else if (x->bias) add_bias(x->c, x->c_row, x->m, x->n, x->bias);
}

void NAME(dots_half)(const qkv__product *x, const uint16_t *b) { dot_rows(x, b, HALVES); }
void NAME(dots_bfloat)(const qkv__product *x, const uint16_t *b) { dot_rows(x, b, BFLOATS); }

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

/* t[j*W + i] (+)= row i times row j of b over a block of k, for n rows of b */
ALWAYS void dot_groups(const int n, const float *a, const float *b, int64_t b_col, float *t, int64_t k, bool add)
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
        add_chains(s, t + j * W, add);
    }
}

static void dot_handful(const qkv__product *x, float *scratch)
{
    float t[BATCH * W];
    for (int64_t p = 0; p < x->k; p += CHAIN * CHAINS) {
        int64_t k = qkv__min(CHAIN * CHAINS, x->k - p);
        pack_groups(x->a + p, x->a_row, x->m, k, scratch);
        for (int64_t j = 0; j < x->n; j += BATCH) {
            int64_t n = qkv__min(BATCH, x->n - j), done = 0;
            const float *b = x->b + j * x->b_col + p;
            if (x->add || p > 0) transpose(x->c + j, x->c_row, t, W, x->m, n);
            for (; done + AT_ONCE <= n; done += AT_ONCE)
                dot_groups(AT_ONCE, scratch, b + done * x->b_col, x->b_col, t + done * W, k, x->add || p > 0);
            for (; done < n; done++) dot_groups(1, scratch, b + done * x->b_col, x->b_col, t + done * W, k, x->add || p > 0);
            transpose(t, W, x->c + j, x->c_row, n, x->m);
        }
    }
    if (x->bias) add_bias(x->c, x->c_row, x->m, x->n, x->bias);
}

static void dots(const qkv__product *x, float *scratch)
{
    if (x->m <= FOUR) dot_rows(x, x->b, FLOATS);
    else dot_handful(x, scratch);
}

/* ---- which way ---- */

void NAME(multiply)(const qkv__product *x, float *scratch)
{
    if (x->m <= 0 || x->n <= 0) return;
    if (x->k <= 0) no_steps(x);
    else if (x->b_row == 1) {
        if (x->m <= DOT_ROWS && x->a_col == 1) dots(x, scratch);
        else if (x->packed) blocked_by_rows(x, scratch);
        else if (x->m <= STREAM_ROWS) streamed(x, scratch);
        else blocked(x, CHAINS, scratch);
    } else {
        bool unpacked = x->b_col == 1 && (x->a_col == 1 || x->a_row == 1);
        if (unpacked && (x->m <= DIRECT_ROWS || x->k <= DIRECT_K)) direct(x, scratch);
        else blocked(x, 1, scratch);
    }
}

#define FITS(floats) _Static_assert((floats) * sizeof(float) <= QKV__PRODUCT_SCRATCH, "the scratch is too small")
FITS((MC * CHAIN + W + NC * CHAIN) * CHAINS);
FITS(STREAM_CHAIN *CHAINS);
FITS(CHAIN *NR);
FITS(CHAIN *CHAINS *DOT_ROWS);
_Static_assert((int)DOT_ROWS <= (int)QKV__PACK_ROWS, "a packed weight of 16 bits has nothing else to be read");
_Static_assert(MC % MR == 0 && NC % NR == 0 && QKV__PACK_COLUMNS % NR == 0, "blocks are whole panels");
