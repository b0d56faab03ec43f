/* amx.c: products of weights in 8 and 4 bits and in bfloats, in the tiles of AMX.
 *
 * c^T = w a^T: rows of w are the left factor as they lie, so that weights need no order of their own; a's rows are the
 * right one, in panels of 16, [quad of k][row] (of bfloats: pair of k). Two tiles of w and two panels fill four of sums. */
#include "tiles.h"
#include "tile.h"

enum { GROUP = QKV__GROUP, BYTES = QKV__GROUP_BYTES, CHAINS = QKV__GROUP_CHAINS };
enum {
    PANEL = TILE_ROWS,       /* rows of a */
    COLUMNS = 2 * TILE_ROWS, /* rows of w at a time */
    SUMS = COLUMNS * PANEL   /* of one panel with them: [row of w][row of a] */
};
_Static_assert((int)W == (int)TILE_ROWS, "a row of sums is a vector");
_Static_assert((int)QKV__BFLOAT_COLUMNS == (int)COLUMNS, "the scratch is enough");

/* The set before this one: for few rows reading w is all that counts. */
void QKV_KERNEL(QKV_FEW_ROWS, multiply_int8)(const qkv__quantized *x, void *scratch);
void QKV_KERNEL(QKV_FEW_ROWS, multiply_int4)(const qkv__quantized *x, void *scratch);

/* Rows of a from which on the tiles are used: with 8, half of what they compute is kept, and that is more than a vector
 * unit does (by what both can do at most). */
enum { LEAST_ROWS = 8 };

/* ---- what all have ---- */

/* Memory of a call: rows of a in panels, COLUMNS rows of w, sums of two panels. */
typedef struct amx_room {
    char *a, *w;
    float *sums; /* int32_t for whole numbers; turn_sums() moves both */
    int64_t row_bytes;
    char *rest;
} amx_room;

static amx_room cut_room(char *scratch, int64_t rows, int64_t row_bytes)
{
    amx_room r = { .sums = (float *)(void *)scratch, .row_bytes = row_bytes };
    r.a = scratch + 2 * SUMS * sizeof(float);
    r.w = r.a + rows * row_bytes;
    r.rest = r.w + COLUMNS * row_bytes;
    return r;
}

/* Rows of w where they are, if all of them are whole tiles, else a copy with zeros behind them. */
static const char *whole_rows(const char *w, int64_t bytes, int64_t stride, int64_t rows, const amx_room *room, int64_t *step)
{
    *step = stride;
    if (rows == COLUMNS && bytes == room->row_bytes) return w;
    *step = room->row_bytes;
    memset(room->w, 0, (size_t)(COLUMNS * room->row_bytes));
    for (int64_t r = 0; r < rows; r++) memcpy(room->w + r * room->row_bytes, w + r * stride, (size_t)bytes);
    return room->w;
}

#define ADD_TILES(c, a, b)                  \
    if (bfloats) add_tile_bfloats(c, a, b); \
    else add_tile_bytes(c, a, b);

/* sums = COLUMNS rows of w times one panel of a, or two. With one the next rows of w are asked for: w is read for it alone. */
ALWAYS void sum_tiles(const amx_room *r, const char *w, int64_t w_step, const char *a, const bool two, const bool bfloats)
{
    tile_zero(0);
    tile_zero(1);
    tile_zero(2);
    tile_zero(3);
    memory_is_written();
    for (int64_t p = 0; p < r->row_bytes; p += TILE_BYTES) {
        tile_load(4, w + p, w_step);
        tile_load(5, w + TILE_ROWS * w_step + p, w_step);
        tile_load(6, a + p * PANEL, TILE_BYTES);
        ADD_TILES(0, 4, 6)
        ADD_TILES(1, 5, 6)
        if (two) {
            tile_load(7, a + (r->row_bytes + p) * PANEL, TILE_BYTES);
            ADD_TILES(2, 4, 7)
            ADD_TILES(3, 5, 7)
        } else
            for (int i = 0; i < COLUMNS; i++) __builtin_prefetch(w + (COLUMNS + i) * w_step + p);
    }
    tile_store(0, r->sums, TILE_BYTES);
    tile_store(1, r->sums + SUMS / 2, TILE_BYTES);
    if (two) {
        tile_store(2, r->sums + SUMS, TILE_BYTES);
        tile_store(3, r->sums + SUMS * 3 / 2, TILE_BYTES);
    }
    memory_is_written();
}

/* ---- squares ---- */

#define LOW_HALVES(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define HIGH_HALVES(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)

/* columns[c] lane r = lane c of rows[r]: quarters of four lanes first, then these in each other's place. */
ALWAYS void turn_square(const vf rows[W], vf columns[W])
{
    vf ones[W], twos[W], fours[W];
    EACH (i, W / 2)
        ones[2 * i] = LOW_ONES(rows[2 * i], rows[2 * i + 1]), ones[2 * i + 1] = HIGH_ONES(rows[2 * i], rows[2 * i + 1]);
    EACH (i, W / 4)
        EACH (c, 2) {
            twos[4 * i + 2 * c] = LOW_PAIRS(ones[4 * i + c], ones[4 * i + 2 + c]);
            twos[4 * i + 2 * c + 1] = HIGH_PAIRS(ones[4 * i + c], ones[4 * i + 2 + c]);
        }
    EACH (c, 4)
        EACH (i, 2) {
            fours[8 * i + c] = LOW_HALVES(twos[8 * i + c], twos[8 * i + 4 + c]);
            fours[8 * i + 4 + c] = HIGH_HALVES(twos[8 * i + c], twos[8 * i + 4 + c]);
        }
    EACH (i, W / 2) columns[i] = LOW_HALVES(fours[i], fours[8 + i]), columns[8 + i] = HIGH_HALVES(fours[i], fours[8 + i]);
}

/* The same of a tile's sums. */
ALWAYS void turn_sums(const float *sums, vf columns[W])
{
    vf rows[W];
    EACH (r, W) rows[r] = load(sums + r * PANEL);
    turn_square(rows, columns);
}

/* ---- 8 bits ---- */

static inline vf floats(vi x) { return __builtin_convertvector(x, vf); }

static void pack_int8_panels(const qkv__quantized *x, int64_t first, int64_t rows, const amx_room *r)
{
    int64_t whole = qkv__whole_groups(x->k);
    memset(r->a, 0, (size_t)(qkv__round_up(rows, PANEL) * r->row_bytes));
    for (int64_t i = 0; i < rows; i += PANEL)
        columns_of_some_rows((const float *)(const void *)(x->a + (first + i) * whole), whole / 4, qkv__min(PANEL, rows - i),
                             whole / 4, (float *)(void *)(r->a + i * r->row_bytes), PANEL);
}

/* Rows i .. of c, from column j on. */
static void put_sums_int8(const qkv__quantized *x, int64_t i, int64_t rows, int64_t j, const float *sums)
{
    for (int64_t end = qkv__min(j + COLUMNS, x->n); j < end; j += W, sums += W * PANEL) {
        int64_t left = x->n - j;
        vf turned[W], w_scales = get((const float *)x->w_scales + j, left, 0), bias = { 0 };
        if (x->bias) bias = get(x->bias + j, left, 0);
        turn_sums(sums, turned);
        for (int64_t r = 0; r < rows; r++) {
            vf y = floats((vi)turned[r]) * (x->a_scales[i + r] * w_scales);
            put(x->c + (i + r) * x->c_row + j, x->bias ? y + bias : y, left);
        }
    }
}

static void tiles_of_int8(const qkv__quantized *x, int64_t first, int64_t rows, const amx_room *r)
{
    for (int64_t i = 0; i < rows; i += 2 * PANEL)
        for (int64_t j = 0; j < x->n; j += COLUMNS) {
            int64_t step;
            const char *w = whole_rows((const char *)x->w + j * x->k, x->k, x->k, qkv__min(COLUMNS, x->n - j), r, &step);
            if (rows - i > PANEL) sum_tiles(r, w, step, r->a + i * r->row_bytes, true, false);
            else sum_tiles(r, w, step, r->a + i * r->row_bytes, false, false);
            put_sums_int8(x, first + i, qkv__min(PANEL, rows - i), j, r->sums);
            if (rows - i > PANEL) put_sums_int8(x, first + i + PANEL, qkv__min(PANEL, rows - i - PANEL), j, r->sums + SUMS);
        }
}

void NAME(multiply_int8)(const qkv__quantized *x, void *scratch)
{
    if (x->m < LEAST_ROWS) {
        QKV_KERNEL(QKV_FEW_ROWS, multiply_int8)(x, scratch);
        return;
    }
    const amx_room r = cut_room(scratch, QKV__QUANTIZED_ROWS, qkv__round_up(x->k, TILE_BYTES));
    begin_tiles(TILE_BYTES);
    for (int64_t i = 0; i < x->m; i += QKV__QUANTIZED_ROWS) {
        int64_t rows = qkv__min(QKV__QUANTIZED_ROWS, x->m - i);
        pack_int8_panels(x, i, rows, &r);
        tiles_of_int8(x, i, rows, &r);
    }
    end_tiles();
}

/* ---- 4 bits: a tile has one group ---- */

/* Behind the room: scales of a, [panel][group][row], and of w, [row][group]; a panel's chains. */
typedef struct amx_scales {
    float *a, *w, *chains;
    int64_t groups;
} amx_scales;

static void pack_int4_panels(const qkv__quantized *x, int64_t first, int64_t rows, const amx_room *r, const amx_scales *s)
{
    pack_int8_panels(x, first, rows, r);
    for (int64_t i = 0; i < qkv__round_up(rows, PANEL); i++)
        for (int64_t g = 0; g < s->groups; g++)
            s->a[i / PANEL * s->groups * PANEL + g * PANEL + i % PANEL] = i < rows ? x->a_scales[(first + i) * s->groups + g]
                                                                                   : 0;
}

static void unpack_int4_rows(const qkv__quantized *x, int64_t j, const amx_room *r, const amx_scales *s)
{
    typedef uint8_t v16 __attribute__((vector_size(QKV__GROUP_BYTES)));
    int64_t rows = qkv__min(COLUMNS, x->n - j);
    for (int64_t i = 0; i < rows; i++) {
        const uint8_t *from = (const uint8_t *)x->w + (j + i) * s->groups * BYTES;
        for (int64_t g = 0; g < s->groups; g++) {
            v16 bytes, low, high;
            memcpy(&bytes, from + g * BYTES, sizeof bytes);
            low = (bytes & 15) - 8, high = (bytes >> 4) - 8;
            memcpy(r->w + i * r->row_bytes + g * GROUP, &low, sizeof low);
            memcpy(r->w + i * r->row_bytes + g * GROUP + BYTES, &high, sizeof high);
        }
        QKV_KERNEL(QKV_BASE, widen_half)(s->w + i * s->groups, (const uint16_t *)x->w_scales + (j + i) * s->groups, s->groups);
    }
    memset(r->w + rows * r->row_bytes, 0, (size_t)((COLUMNS - rows) * r->row_bytes));
    memset(s->w + rows * s->groups, 0, sizeof *s->w * (size_t)((COLUMNS - rows) * s->groups));
}

/* sums = group g of COLUMNS rows of w and one panel of a */
ALWAYS void sum_group(float *sums, const amx_room *r, const char *a, int64_t g)
{
    tile_zero(0);
    tile_zero(1);
    tile_load(6, a + g * GROUP * PANEL, TILE_BYTES);
    tile_load(4, r->w + g * GROUP, r->row_bytes);
    tile_load(5, r->w + TILE_ROWS * r->row_bytes + g * GROUP, r->row_bytes);
    add_tile_bytes(0, 4, 6);
    add_tile_bytes(1, 5, 6);
    tile_store(0, sums, TILE_BYTES);
    tile_store(1, sums + SUMS / 2, TILE_BYTES);
    memory_is_written();
}

/* chain += those, scaled */
ALWAYS void add_group(float *chain, const float *sums, const amx_scales *s, const float *a_scales, int64_t g)
{
    vf scales = load(a_scales + g * PANEL);
    for (int i = 0; i < COLUMNS; i++)
        store(chain + i * PANEL,
              load(chain + i * PANEL) + floats((vi)load(sums + i * PANEL)) * (scales * s->w[i * s->groups + g]));
}

/* All chains of a panel with COLUMNS rows of w, and what they add up to, in the first one. A group is summed while the one before
 * it is scaled: what a tile has stored cannot be read at once. */
static void sum_chains(const amx_room *r, const amx_scales *s, const char *a, const float *a_scales)
{
    memset(s->chains, 0, sizeof(float) * (size_t)(CHAINS * SUMS));
    memory_is_written();
    sum_group(r->sums, r, a, 0);
    for (int64_t g = 0, next, turn = 0; g < s->groups; g = next, turn ^= 1) {
        next = g + CHAINS < s->groups ? g + CHAINS : g % CHAINS + 1 < qkv__min(CHAINS, s->groups) ? g % CHAINS + 1 : s->groups;
        if (next < s->groups) sum_group(r->sums + (turn ^ 1) * SUMS, r, a, next);
        add_group(s->chains + g % CHAINS * SUMS, r->sums + turn * SUMS, s, a_scales, g);
    }
    for (int half = CHAINS / 2; half; half /= 2)
        for (int i = 0; i < half * SUMS; i += W) store(s->chains + i, load(s->chains + i) + load(s->chains + half * SUMS + i));
}

static void put_sums(float *c, int64_t c_row, int64_t rows, int64_t columns, const float *sums, const float *bias, bool add)
{
    for (int64_t j = 0; j < columns; j += W) {
        vf turned[W];
        turn_sums(sums + j * PANEL, turned);
        for (int64_t r = 0; r < rows; r++) {
            vf y = add ? get(c + r * c_row + j, columns - j, 0) + turned[r] : turned[r];
            put(c + r * c_row + j, bias ? y + get(bias + j, columns - j, 0) : y, columns - j);
        }
    }
}

void NAME(multiply_int4)(const qkv__quantized *x, void *scratch)
{
    if (x->m < LEAST_ROWS) {
        QKV_KERNEL(QKV_FEW_ROWS, multiply_int4)(x, scratch);
        return;
    }
    const amx_room r = cut_room(scratch, QKV__QUANTIZED_ROWS, qkv__whole_groups(x->k));
    amx_scales s = { .chains = (float *)(void *)r.rest, .groups = qkv__groups(x->k) };
    s.a = s.chains + CHAINS * SUMS;
    s.w = s.a + QKV__QUANTIZED_ROWS * s.groups;
    begin_tiles(GROUP);
    for (int64_t first = 0; first < x->m; first += QKV__QUANTIZED_ROWS) {
        int64_t rows = qkv__min(QKV__QUANTIZED_ROWS, x->m - first);
        pack_int4_panels(x, first, rows, &r, &s);
        for (int64_t j = 0; j < x->n; j += COLUMNS) {
            unpack_int4_rows(x, j, &r, &s);
            for (int64_t i = 0; i < rows; i += PANEL) {
                sum_chains(&r, &s, r.a + i * r.row_bytes, s.a + i * s.groups);
                put_sums(x->c + (first + i) * x->c_row + j, x->c_row, qkv__min(PANEL, rows - i), qkv__min(COLUMNS, x->n - j),
                         s.chains, x->bias ? x->bias + j : NULL, false);
            }
        }
    }
    end_tiles();
}

/* ---- bfloats ---- */

/* The nearest, ties to even, still as a float; a NaN stays one. */
static inline vu nearest_bfloats(vf x)
{
    vu bits = (vu)x, nearest = bits + 0x7fff + (bits >> 16 & 1), is_nan = (vu)(x != x);
    return (is_nan & (bits | 0x400000)) | (~is_nan & nearest);
}

/* The next four numbers of each row, as far as there are. */
static void next_columns(const float *a, int64_t a_row, int64_t rows, int64_t left, vf column[4])
{
    float part[4][PANEL] = { 0 };
    if (rows >= PANEL && left >= 4) {
        columns_of_rows(a, a_row, column);
        return;
    }
    for (int64_t c = 0; c < qkv__min(4, left); c++)
        for (int64_t i = 0; i < rows; i++) part[c][i] = a[i * a_row + c];
    EACH (c, 4) column[c] = load(part[c]);
}

static void pack_bfloat_panel(const float *a, int64_t a_row, int64_t rows, int64_t k, const amx_room *r, char *to)
{
    for (int64_t p = 0; p < r->row_bytes / 2; p += 4) {
        vf column[4];
        next_columns(a + p, a_row, rows, k - p, column);
        EACH (c, 2) {
            vu pairs = nearest_bfloats(column[2 * c]) >> 16 | (nearest_bfloats(column[2 * c + 1]) & 0xffff0000);
            memcpy(to + (p / 2 + c) * TILE_BYTES, &pairs, sizeof pairs);
        }
    }
}

/* ---- bfloats, few rows ----
 * Tiles of a few rows take longer to load than memory takes to give them (0.65 of its speed on two cores). So vectors do what a
 * tile does: 16 rows of w a block of k at a time, turned so that a vector has one pair of each, and two chains in every lane. The
 * rows lie far apart, each followed by that of the next 16: long runs, as in dots.c. */

enum { FEW_BFLOATS = 2, BLOCK = QKV__BFLOAT_BLOCK, PAIRS = BLOCK / 2, AHEAD = 1024 };
_Static_assert((int)PAIRS == (int)W, "a block of 16 rows is a square of pairs");

/* Steps that take numbers too small to be normal for zero, as a tile does: those between begin and end, by memory. */
#ifdef HAS_TILES
enum { AS_TILES = 0x9fc0 }; /* to the nearest, no exceptions, small results and operands are zero */
static inline unsigned begin_flushing(void)
{
    unsigned mode = _mm_getcsr();
    _mm_setcsr(AS_TILES);
    memory_is_written();
    return mode;
}
static inline void end_flushing(unsigned mode)
{
    memory_is_written();
    _mm_setcsr(mode);
}
static inline vf add_product(vf sum, vf a, vf b) { return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum); }
static inline vf add_sums(vf a, vf b) { return a + b; }
#else
static inline unsigned begin_flushing(void) { return 0; }
static inline void end_flushing(unsigned mode) { (void)mode; }
static inline vf add_product(vf sum, vf a, vf b)
{
    for (int i = 0; i < W; i++) sum[i] = qkv__add_flushed(sum[i], qkv__flushed(a[i]), qkv__flushed(b[i]));
    return sum;
}
static inline vf add_sums(vf a, vf b)
{
    for (int i = 0; i < W; i++) a[i] = qkv__flushed(a[i] + b[i]);
    return a;
}
#endif

/* sums[i] = rows a[i*k ..] of bfloats, as floats, with 16 rows of w that lie `apart`: k is a whole number of blocks. */
ALWAYS void sum_few(const int m, const float *a, const uint16_t *w, int64_t apart, int64_t k, vf sums[FEW_BFLOATS])
{
    const uint16_t *volatile rows[W]; /* in memory: gcc keeps addresses in vectors otherwise, at 0.7 of the speed */
    for (int r = 0; r < W; r++) rows[r] = w + r * apart;
    EACH (i, m) sums[i] = (vf){ 0 };
    for (int64_t from = 0; from < k; from += BLOCK) {
        vf square[W], pairs[W], even[FEW_BFLOATS], odd[FEW_BFLOATS];
        EACH (r, W) {
            const uint16_t *row = rows[r] + from;
            __builtin_prefetch((const char *)row + AHEAD, 0, 2);
            memcpy(&square[r], row, sizeof square[r]); /* a file may have them at any even address */
        }
        turn_square(square, pairs);
        EACH (i, m) even[i] = odd[i] = (vf){ 0 };
        EACH (p, PAIRS)
            EACH (i, m) {
                even[i] = add_product(even[i], (vf)((vu)pairs[p] << 16), set1(a[i * k + from + 2 * p]));
                odd[i] = add_product(odd[i], (vf)((vu)pairs[p] & 0xffff0000), set1(a[i * k + from + 2 * p + 1]));
            }
        EACH (i, m) sums[i] = add_sums(sums[i], add_sums(even[i], odd[i]));
    }
}

/* Columns j, j + apart, ... of c, as far as there are; the rows of w for them lie w_apart numbers from each other. */
static __attribute__((noinline)) void few_columns(const qkv__product *x, const float *a, int64_t k, const uint16_t *w,
                                                  int64_t w_apart, int64_t j, int64_t apart)
{
    vf sums[FEW_BFLOATS] = { 0 };
    unsigned mode = begin_flushing();
    if (x->m == 1) sum_few(1, a, w, w_apart, k, sums);
    else sum_few(2, a, w, w_apart, k, sums);
    __asm__ volatile("" : "+m"(sums)); /* they are all there before the mode changes */
    end_flushing(mode);
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t r = 0, at = j; r < W && at < x->n; r++, at += apart) {
            float *c = x->c + i * x->c_row + at, y = x->add ? *c + sums[i][r] : sums[i][r];
            *c = x->bias ? y + x->bias[at] : y;
        }
}

static void few_rows_bfloats(const qkv__product *x, const uint16_t *b, char *scratch)
{
    int64_t k = qkv__round_up(x->k, BLOCK), j = 0, apart = x->k == k ? x->n / W : 0;
    float *a = (float *)(void *)scratch;
    uint16_t *copy = (uint16_t *)(void *)(a + x->m * k);
    memset(a, 0, sizeof *a * (size_t)(x->m * k));
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t p = 0; p < x->k; p += W)
            put(a + i * k + p, (vf)(nearest_bfloats(get(x->a + i * x->a_row + p, x->k - p, 0)) & 0xffff0000), x->k - p);
    for (; j < apart; j++) few_columns(x, a, k, b + j * x->b_col, apart * x->b_col, j, apart);
    for (j = apart * W; j < x->n; j += W) { /* the others through copies, zeros where there is nothing */
        memset(copy, 0, sizeof *copy * (size_t)(W * k));
        for (int64_t r = 0; r < qkv__min(W, x->n - j); r++)
            memcpy(copy + r * k, b + (j + r) * x->b_col, sizeof *copy * (size_t)x->k);
        few_columns(x, a, k, copy, k, j, 1);
    }
}

/* ---- bfloats, tiles ---- */

static void tiles_of_bfloats(const qkv__product *x, const uint16_t *b, int64_t first, int64_t rows, const amx_room *r)
{
    for (int64_t j = 0; j < x->n; j += COLUMNS) {
        int64_t step, columns = qkv__min(COLUMNS, x->n - j);
        const char *w = whole_rows((const char *)(b + j * x->b_col), 2 * x->k, 2 * x->b_col, columns, r, &step);
        for (int64_t i = 0; i < rows; i += 2 * PANEL) {
            float *c = x->c + (first + i) * x->c_row + j;
            const float *bias = x->bias ? x->bias + j : NULL;
            if (rows - i > PANEL) sum_tiles(r, w, step, r->a + i * r->row_bytes, true, true);
            else sum_tiles(r, w, step, r->a + i * r->row_bytes, false, true);
            put_sums(c, x->c_row, qkv__min(PANEL, rows - i), columns, r->sums, bias, x->add);
            if (rows - i > PANEL)
                put_sums(c + PANEL * x->c_row, x->c_row, qkv__min(PANEL, rows - i - PANEL), columns, r->sums + SUMS, bias,
                         x->add);
        }
    }
}

void NAME(multiply_bfloat)(const qkv__product *x, const uint16_t *b, void *scratch)
{
    if (x->m <= FEW_BFLOATS) {
        if (x->m > 0) few_rows_bfloats(x, b, scratch);
        return;
    }
    const amx_room r = cut_room(scratch, QKV__BFLOAT_ROWS, qkv__round_up(2 * x->k, TILE_BYTES));
    begin_tiles(TILE_BYTES);
    for (int64_t first = 0; first < x->m; first += QKV__BFLOAT_ROWS) {
        int64_t rows = qkv__min(QKV__BFLOAT_ROWS, x->m - first);
        for (int64_t i = 0; i < rows; i += PANEL)
            pack_bfloat_panel(x->a + (first + i) * x->a_row, x->a_row, qkv__min(PANEL, rows - i), x->k, &r,
                              r.a + i * r.row_bytes);
        tiles_of_bfloats(x, b, first, rows, &r);
    }
    end_tiles();
}

const qkv__kernels NAME(kernels) = { .isa = ISA_NAME,
                                     .row_tile = 2 * PANEL,
                                     .multiply_int8 = NAME(multiply_int8),
                                     .multiply_int4 = NAME(multiply_int4),
                                     .multiply_bfloat = NAME(multiply_bfloat) };
