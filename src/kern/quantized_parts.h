/* quantized_parts.h: what the two ways of multiplying weights in 8 and 4 bits have in common. Included only by
 * per-instruction-set sources, after tile.h. */
#ifndef QKV_SRC_QUANTIZED_PARTS_H
#define QKV_SRC_QUANTIZED_PARTS_H

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

#endif
