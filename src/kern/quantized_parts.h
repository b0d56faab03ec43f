/* quantized_parts.h: what the two ways of multiplying weights in 8 and 4 bits have in common. Included only by
 * per-instruction-set sources, after tile.h. */
#ifndef QKV_SRC_QUANTIZED_PARTS_H
#define QKV_SRC_QUANTIZED_PARTS_H

typedef int32_t word __attribute__((may_alias)); /* four bytes */

static inline vf floats(vi x) { return __builtin_convertvector(x, vf); }

/* ---- few rows ----
 * Four rows of w at a time, a quarter of all apart, so that each is followed in memory by the one that comes next: four long runs
 * are what a processor reads ahead in by itself. Four rows side by side, asked for before their turn, had 26 GB/s where plain
 * reading has 33 and these have 32 (Zen 3, 2 threads). */

enum { FEW = 4 }; /* rows of a, at most, for which w is read as it lies */

/* Called with (x, rows, j, apart, columns) for column j of every quarter, then for each of what is left. */
typedef void few_columns(const qkv__quantized *x, const void *rows, int64_t j, int64_t apart, int64_t columns);

ALWAYS void each_column_of_quarters(const qkv__quantized *x, const void *rows, few_columns *multiply)
{
    int64_t quarter = x->n / 4;
    for (int64_t j = 0; j < quarter; j++) multiply(x, rows, j, quarter, 4);
    for (int64_t j = 4 * quarter; j < x->n; j++) multiply(x, rows, j, 0, 1);
}

/* ---- tiles: c^T = w a^T ---- */

/* Vectors of a panel of so many rows of a. */
static inline int vectors_of(int64_t rows) { return rows > W ? NV : 1; }

enum { TILE_ROWS = (int)MR > (int)W ? (int)MR : (int)W }; /* that put_tile() reads */

/* MR values for each row of a, from a tile that has them the other way round, TILE_ROWS of them. Where they are whole vectors they
 * spill into the columns of the next tile, which is written later. */
static void put_tile(const qkv__quantized *x, int64_t first, int64_t rows, int64_t j, const float *tile, int64_t width)
{
    int64_t columns = qkv__min(MR, x->n - j), i = 0;
    float *c = x->c + first * x->c_row + j;
    if ((int)MR <= (int)W && x->n - j >= W) {
        vf bias = x->bias ? load(x->bias + j) : (vf){ 0 };
        for (; i + 4 <= rows; i += 4) {
            vf row[4];
            columns_of_rows(tile + i, width, row);
            EACH (r, 4) store(c + (i + r) * x->c_row, x->bias ? row[r] + bias : row[r]);
        }
    }
    for (; i < rows; i++)
        for (int64_t r = 0; r < columns; r++)
            c[i * x->c_row + r] = x->bias ? tile[r * width + i] + x->bias[j + r] : tile[r * width + i];
}

/* ---- tiles: c = a w^T, 8 bits ---- */

/* 16 bytes each of W rows of w from row j and byte p on, zeros where there are none: column[c] has word c of every row. */
static inline void words_of_weights(const qkv__quantized *x, int64_t j, int64_t p, vf column[4])
{
    const int8_t *w = (const int8_t *)x->w + j * x->k + p;
    int64_t rows = qkv__min(W, x->n - j), bytes = qkv__min(16, x->k - p);
    if (rows == W && bytes == 16 && x->k % 4 == 0) {
        columns_of_rows((const float *)(const void *)w, x->k / 4, column);
        return;
    }
    float some[4 * W] = { 0 };
    for (int64_t r = 0; r < rows && bytes > 0; r++) memcpy(some + 4 * r, w + r * x->k, (size_t)bytes);
    columns_of_rows(some, 4, column);
}

/* NR rows of w from row j on as [word of k][row], taken 128 too high or as they are. */
ALWAYS void pack_weights(const qkv__quantized *x, int64_t j, int64_t words, const int raised_by, word *panel)
{
    const vi raise = (vi){ 0 } ^ (raised_by ? (int32_t)0x80808080 : 0);
    for (int64_t v = 0; v < NR; v += W)
        for (int64_t p = 0; p < 4 * words; p += 16) {
            vf column[4];
            words_of_weights(x, j + v, p, column);
            EACH (c, 4) store((float *)(panel + (p / 4 + c) * NR + v), (vf)((vi)column[c] ^ raise));
        }
}

/* A vector of c, in row i from column j on. */
ALWAYS void put_int8(const qkv__quantized *x, int64_t i, int64_t j, vi sum, int64_t left)
{
    vf y = floats(sum) * (x->a_scales[i] * get((const float *)x->w_scales + j, left, 0));
    if (x->bias) y += get(x->bias + j, left, 0);
    put(x->c + i * x->c_row + j, y, left);
}

#endif
