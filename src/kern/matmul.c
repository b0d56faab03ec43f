/* matmul.c: the matrix product in blocks that fit the caches, on one thread. op/product.c shares blocks among threads.
 *
 * products.h fixes the order in which an element of c is summed. The ways below keep it, and differ in speed alone:
 *   blocked    both operands packed (after Goto and van de Geijn 2008): large products
 *   streamed   c^T = b^T a^T, the few rows of a packed as columns, b read as it lies: few rows, b stored (n,k) as weights are
 *   direct     nothing packed: few rows and b stored (k,n), or a short k
 *   dots       a few rows and b stored (n,k): dots.c, and dot_chains.h for more of them with vectors of 64 bytes */
#include "dot_chains.h"

/* Tiles of packed panels are PANEL_ROWS by PANEL_VECTORS. MC rows of a are a block, whose chains sit in level 2; NC columns of b are
 * one; and of b, GROUP_BYTES in whole panels, at least one, stay in level 1 while the rows go by. With vectors of 64 bytes a tile
 * is one vector wide: each multiply-add then reads its number of a from memory by itself, where two vectors need a load more for
 * every number. That counts where another thread shares the core, as each can issue half as much (docs/decisions.md). */
#if QKV_VECTOR_BYTES == 64
enum { PANEL_ROWS = 16, PANEL_VECTORS = 1, MC = 96, GROUP_BYTES = 24 << 10 };
#else
enum { PANEL_ROWS = MR, PANEL_VECTORS = NV, MC = 192, GROUP_BYTES = 16 << 10 };
#endif
enum { PANEL_COLUMNS = PANEL_VECTORS * W, NC = 512 };

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
static int64_t pack_columns(const int vectors, const float *b, int64_t b_row, int64_t k, float *out)
{
    for (int64_t p = 0; p < k; p++)
        EACH (v, vectors) store(out + (p * vectors + v) * W, load(b + p * b_row + v * W));
    return k;
}

/* Four columns at a time, which are one step of each of four chains, or four of one. A cache line of every row is used up before
 * the next rows are touched: rows that lie a power of two apart share places in the cache. */
ALWAYS int64_t pack_rows(const float *x, int64_t stride, int64_t rows, int64_t k, const int vectors, int64_t width,
                         const int chains, float *out, int64_t next_chain)
{
    enum { LINE = 16, SOME = 4 };
    for (int64_t from = 0; from < k / SOME * SOME; from += LINE)
        for (int v = 0; v < vectors; v++)
            for (int64_t p = from; p < from + LINE && p + SOME <= k; p += SOME) {
                vf column[SOME];
                columns_of_first_rows(x + v * W * stride + p, stride, rows, column);
                EACH (c, SOME) store(out + c % chains * next_chain + (p + c) / chains * width + v * W, column[c]);
            }
    return k / SOME * SOME / chains;
}

/* Up to W rows of a, which is stored (m,k). Each store spills into the place of the next, which is stored later. For W rows their
 * number is a constant, which is faster. */
ALWAYS int64_t pack_rows_of_a(const float *a, int64_t a_row, int64_t left, int64_t k, int64_t width, const int chains,
                              float *out, int64_t next_chain)
{
    if (left >= W) return pack_rows(a, a_row, W, k, 1, width, chains, out, next_chain);
    return pack_rows(a, a_row, left, k, 1, width, chains, out, next_chain);
}

/* b (k,n) as panels of so many vectors of columns, each [steps][width], the last one filled up with zeros; chain by chain,
 * next_chain apart. */
ALWAYS void pack_b(const int vectors, const float *b, int64_t b_row, int64_t b_col, int64_t k, int64_t n, int chains,
                   float *out, int64_t next_chain)
{
    const int64_t width = vectors * (int64_t)W;
    for (int64_t j = 0; j < n; j += width, b += width * b_col, out += width * steps(k, chains, 0)) {
        int64_t nr = qkv__min(width, n - j), done = 0;
        if (nr == width && chains == 1 && b_col == 1) done = pack_columns(vectors, b, b_row, k, out);
        if (nr == width && chains == CHAINS && b_row == 1)
            done = pack_rows(b, b_col, W, k, vectors, width, CHAINS, out, next_chain);
        for (int c = 0; c < chains; c++)
            pack_slowly(b + (done * chains + c) * b_row, b_col, b_row * chains, nr, steps(k, chains, c) - done, width,
                        out + c * next_chain + done * width);
    }
}

/* Rows of the next tile where so many are left. A tile of less than ENOUGH takes as long as one of that many, as a sum waits for
 * itself: so the last two are made alike. */
static inline int64_t next_rows(int64_t left)
{
    enum { ENOUGH = PANEL_VECTORS == 1 ? 8 : 4 };
    return left <= PANEL_ROWS ? left : left < (int)PANEL_ROWS + (int)ENOUGH ? qkv__ceil_div(left, 2) : PANEL_ROWS;
}

/* a (m,k) as panels of next_rows(), each [steps][rows]. */
static void pack_a(const float *a, int64_t a_row, int64_t a_col, int64_t m, int64_t k, int chains, float *out,
                   int64_t next_chain)
{
    for (int64_t i = 0, mr; i < m; i += mr, a += mr * a_row, out += mr * steps(k, chains, 0)) {
        int64_t done = 0;
        mr = next_rows(m - i);
        if (mr == PANEL_ROWS && chains == 1 && a_row == 1)
            for (; done < k; done++) memcpy(out + done * PANEL_ROWS, a + done * a_col, sizeof(float) * PANEL_ROWS);
        else if ((int)PANEL_ROWS <= (int)W && a_col == 1)
            done = chains == 1 ? pack_rows_of_a(a, a_row, m - i, k, mr, 1, out, next_chain)
                               : pack_rows_of_a(a, a_row, m - i, k, mr, CHAINS, out, next_chain);
        for (int c = 0; c < chains; c++)
            pack_slowly(a + (done * chains + c) * a_col, a_row, a_col * chains, mr, steps(k, chains, c) - done, mr,
                        out + c * next_chain + done * mr);
    }
}

/* ---- blocked ---- */

/* A tile of packed panels: every step of a has its rows side by side. */
#define PACKED_CASE(rows)                                                                                           \
    case rows:                                                                                                      \
        tile_with_bias(rows, PANEL_VECTORS, a, 1, rows, b, PANEL_COLUMNS, c, c_row, k, add, bias, next, next_step); \
        break;

static __attribute__((noinline)) void packed_tile(int64_t mr, const float *a, const float *b, float *c, int64_t c_row,
                                                  int64_t k, bool add, const float *bias, const char *next, int64_t next_step)
{
    switch (mr) {
        PACKED_CASE(1)
        PACKED_CASE(2)
        PACKED_CASE(3)
        PACKED_CASE(4)
        PACKED_CASE(5)
        PACKED_CASE(6)
#if QKV_VECTOR_BYTES == 64
        PACKED_CASE(7)
        PACKED_CASE(8)
        PACKED_CASE(9)
        PACKED_CASE(10) PACKED_CASE(11) PACKED_CASE(12) PACKED_CASE(13) PACKED_CASE(14) PACKED_CASE(15) PACKED_CASE(16)
#endif
    }
}

/* ---- weights packed whole: for every block of k, chain by chain, all panels, each [steps][PANEL_COLUMNS] ---- */

static inline int64_t packed_block(int64_t n, int64_t p) { return qkv__round_up(n, PANEL_COLUMNS) * p; }

/* Floats from a chain to the next in a block of k. */
static inline int64_t packed_chain(int64_t n, int64_t k) { return qkv__round_up(n, PANEL_COLUMNS) * steps(k, CHAINS, 0); }

int64_t NAME(packed_floats)(int64_t n, int64_t k) { return qkv__round_up(n, PANEL_COLUMNS) * qkv__round_up(k, CHAINS); }

void NAME(pack_weight)(float *out, const float *w, int64_t n, int64_t k, int64_t from, int64_t to)
{
    for (int64_t p = 0; p < k; p += CHAIN * CHAINS) {
        int64_t some = qkv__min(CHAIN * CHAINS, k - p);
        pack_b(PANEL_VECTORS, w + p, 1, k, some, to - from, CHAINS, out + packed_block(n, p) + from * steps(some, CHAINS, 0),
               packed_chain(n, some));
    }
}

/* A block of rows of a, of columns of b and of k. */
typedef struct span {
    int64_t from, n;
} span;

static inline span span_at(int64_t from, int64_t most, int64_t end) { return (span){ from, qkv__min(most, end - from) }; }

enum { A_CHAIN = MC * CHAIN + W, B_CHAIN = NC * CHAIN };

/* One chain of a block: panels of a and of b, so many floats for each of their rows and columns (the longest chain has them all),
 * and what the sums are added to, or become. */
typedef struct packed_chain_block {
    const float *a, *b, *bias; /* bias: NULL, but behind the last chain of all */
    float *c;
    int64_t c_row, steps, room;
    bool add;
    int64_t ahead; /* bytes from a panel of b to what is asked for meanwhile */
} packed_chain_block;

/* A tile with fewer than PANEL_COLUMNS, through a full one. By itself: the others need no memory for it. */
static __attribute__((noinline)) void add_tile_at_edge(const packed_chain_block *w, int64_t i, int64_t mr, int64_t j,
                                                       int64_t nr)
{
    float *c = w->c + i * w->c_row + j, whole[PANEL_ROWS * PANEL_COLUMNS] = { 0 };
    const float *b = w->b + j * w->room;
    if (w->add) copy_tile(whole, PANEL_COLUMNS, c, w->c_row, mr, nr);
    packed_tile(mr, w->a + i * w->room, b, whole, PANEL_COLUMNS, w->steps, w->add, NULL, (const char *)b, 0);
    copy_tile(c, w->c_row, whole, PANEL_COLUMNS, mr, nr);
    if (w->bias) add_bias(c, w->c_row, mr, nr, w->bias + j);
}

/* c (m,n): all rows with a group of panels of b, which stays in the cache. Each tile asks for its part of what comes next: where
 * the last one asked for all of it, a line in every step, that came slower than the tile could go. */
static void add_chain(const packed_chain_block *w, int64_t m, int64_t n)
{
    enum { STEP = PANEL_COLUMNS * (int)sizeof(float) }; /* bytes */
    const int64_t tiles = qkv__ceil_div(m, PANEL_ROWS), part = STEP * w->room / tiles, next_step = qkv__ceil_div(STEP, tiles);
    const int64_t whole = n / PANEL_COLUMNS * PANEL_COLUMNS;
    for (int64_t i = 0, ahead = w->ahead, mr; i < m; i += mr, ahead += part) {
        mr = next_rows(m - i);
        for (int64_t j = 0; j < whole; j += PANEL_COLUMNS) {
            const float *b = w->b + j * w->room;
            packed_tile(mr, w->a + i * w->room, b, w->c + i * w->c_row + j, w->c_row, w->steps, w->add,
                        w->bias ? w->bias + j : NULL, (const char *)b + ahead, next_step);
        }
        if (whole < n) add_tile_at_edge(w, i, mr, whole, n - whole);
    }
}

/* All chains of a group of panels before the next group: what they are added to has not gone far then. Each asks for the next
 * chain, the last for the first one of the next group. */
static void multiply_block(const qkv__product *x, int chains, span i, span j, span p, const float *a, const float *b,
                           int64_t b_chain)
{
    const int64_t room = steps(p.n, chains, 0), panel = PANEL_COLUMNS * (int64_t)sizeof(float) * room;
    const int64_t columns = qkv__max(1, GROUP_BYTES / panel) * PANEL_COLUMNS;
    for (span g = span_at(0, columns, j.n); g.n > 0; g = span_at(g.from + columns, columns, j.n))
        for (int q = 0; q < chains; q++) {
            const bool last = q == chains - 1;
            const packed_chain_block w = { .a = a + q * A_CHAIN,
                                           .b = b + q * b_chain + g.from * room,
                                           .bias = x->bias && last && p.from + p.n == x->k ? x->bias + j.from + g.from : NULL,
                                           .c = x->c + i.from * x->c_row + j.from + g.from,
                                           .c_row = x->c_row,
                                           .steps = steps(p.n, chains, q),
                                           .room = room,
                                           .add = x->add || p.from > 0 || q > 0,
                                           .ahead = (int64_t)sizeof(float) * (last ? columns * room - q * b_chain : b_chain) };
            add_chain(&w, i.n, g.n);
        }
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
            pack_b(PANEL_VECTORS, x->b + p.from * x->b_row + j.from * x->b_col, x->b_row, x->b_col, p.n, j.n, chains, b,
                   B_CHAIN);
            for (span i = span_at(0, MC, x->m); i.n > 0; i = span_at(i.from + MC, MC, x->m)) {
                pack_block_of_a(x, chains, i, p, a);
                multiply_block(x, chains, i, j, p, a, b, B_CHAIN);
            }
        }
}

static void multiply_rows(const qkv__product *x, span i, span p, const float *a)
{
    const float *b = x->packed + packed_block(x->packed_n, p.from) + x->packed_at * steps(p.n, CHAINS, 0);
    for (span j = span_at(0, NC, x->n); j.n > 0; j = span_at(j.from + NC, NC, x->n))
        multiply_block(x, CHAINS, i, j, p, a, b + j.from * steps(p.n, CHAINS, 0), packed_chain(x->packed_n, p.n));
}

/* With b packed before, rows of a are packed once and not for every block of columns, nor for every product that reads them. */
static void blocked_by_rows(const qkv__product *x, float *scratch)
{
    for (span i = span_at(0, MC, x->m); i.n > 0; i = span_at(i.from + MC, MC, x->m))
        for (span p = span_at(0, CHAIN * CHAINS, x->k); p.n > 0; p = span_at(p.from + p.n, CHAIN * CHAINS, x->k)) {
            pack_block_of_a(x, CHAINS, i, p, scratch);
            for (const qkv__product *each = x; each; each = each->also) multiply_rows(each, i, p, scratch);
        }
}

/* ---- streamed ---- */

enum { STREAM_ROWS = 48, STREAM_CHAIN = (STREAM_ROWS + NR) * CHAIN };

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
        pack_b(NV, x->a + p * x->a_col, x->a_col, x->a_row, k, x->m, CHAINS, scratch, STREAM_CHAIN);
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

/* ---- which way ---- */

enum { NARROW_ROWS = (int)W < 8 ? (int)W : 8 }; /* what dots.c has lanes for */

void NAME(multiply)(const qkv__product *x, float *scratch)
{
    if (x->m <= 0 || x->n <= 0) return;
    if (x->k <= 0) no_steps(x);
    else if (x->b_row == 1) {
        if (x->m <= NARROW_ROWS && x->a_col == 1) NAME(dots)(x, scratch);
        else if (x->m <= DOT_ROWS && x->a_col == 1) dot_handful(x, scratch);
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
FITS((A_CHAIN + B_CHAIN) * CHAINS);
FITS(STREAM_CHAIN *CHAINS);
FITS(CHAIN *NR);
FITS(CHAIN *CHAINS *DOT_ROWS);
_Static_assert((int)DOT_ROWS <= (int)QKV__PACK_ROWS, "a packed weight of 16 bits has nothing else to be read");
_Static_assert(MC % PANEL_ROWS == 0 && ROW_TILE % PANEL_ROWS == 0 && NC % PANEL_COLUMNS == 0 &&
                   QKV__PACK_COLUMNS % PANEL_COLUMNS == 0,
               "blocks are whole panels");
