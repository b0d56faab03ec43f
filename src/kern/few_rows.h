/* few_rows.h: in which order a few rows of activations meet the rows of a weight in 8 or 4 bits. Included only by
 * per-instruction-set sources, after tile.h.
 *
 * Four rows of w at a time, a quarter of all apart, so that each is followed in memory by the one that comes next: four long runs
 * are what a processor reads ahead in by itself. Four rows side by side, asked for before their turn, had 26 GB/s where plain
 * reading has 33 and these have 32 (Zen 3, 2 threads). */
#ifndef QKV_SRC_FEW_ROWS_H
#define QKV_SRC_FEW_ROWS_H

enum { FEW = 4 }; /* rows of a, at most, for which w is read as it lies */

/* Called with (x, rows, j, apart, columns) for column j of every quarter, then for each of what is left. */
typedef void few_columns(const qkv__quantized *x, const void *rows, int64_t j, int64_t apart, int64_t columns);

ALWAYS void each_column_of_quarters(const qkv__quantized *x, const void *rows, few_columns *multiply)
{
    int64_t quarter = x->n / 4;
    for (int64_t j = 0; j < quarter; j++) multiply(x, rows, j, quarter, 4);
    for (int64_t j = 4 * quarter; j < x->n; j++) multiply(x, rows, j, 0, 1);
}

#endif
