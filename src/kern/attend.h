/* attend.h: the pieces of attention that run over a panel of queries, one a lane. A tile of scores is kept as [key][query].
 * Included only by per-instruction-set sources. */
#ifndef QKV_SRC_ATTEND_H
#define QKV_SRC_ATTEND_H

#include "tile.h"

enum { BQ = QKV__QUERY_BLOCK, BK = 96 }; /* queries of a block, keys of a tile: together in the level-2 cache */
_Static_assert(BQ % NR == 0 && BK % 2 == 0, "panels are whole; dropout takes keys in pairs");

#if QKV_VECTOR_BYTES == 64 /* one vector after the other, as in packed products: see matmul.c */
enum { COLUMN_ROWS = 16 };
TILE(tile_one_column, 1, A_BY_COLUMN)
static void tile_columns(int64_t mr, const float *a, int64_t a_step, const float *b, int64_t b_k, float *c, int64_t c_i,
                         int64_t k, bool add)
{
    EACH (v, NV) tile_one_column(mr, a, a_step, b + v * W, b_k, c + v * W, c_i, k, add);
}
#else
enum { COLUMN_ROWS = MR };
TILE(tile_columns, NV, A_BY_COLUMN)
#endif
TILE(tile_by_row, NV, A_BY_ROW)
TILE(tile_of_one_vector, 1, A_BY_ROW)

static inline int64_t padded(int64_t d) { return qkv__round_up(d, NR); }

/* m rows cut evenly into tiles: 16 as 6 + 5 + 5 would have it, 6 + 6 + 4 is as good */
static inline int64_t even_height(int64_t m, int64_t most) { return qkv__ceil_div(m, qkv__ceil_div(m, most)); }
static inline int64_t tile_height(int64_t m) { return even_height(m, MR); }
static inline int64_t column_height(int64_t m) { return even_height(m, COLUMN_ROWS); }

/* ---- packing ---- */

/* n <= NR rows of d as [d][NR], zero past n */
static void pack_panel(const float *x, int64_t row, int64_t n, int64_t d, float *out)
{
    int64_t p = 0;
    for (; p + 4 <= d; p += 4)
        EACH (v, NV) {
            vf column[4];
            columns_of_first_rows(x + v * W * row + p, row, n - v * W, column);
            EACH (c, 4) store(out + (p + c) * NR + v * W, column[c]);
        }
    for (; p < d; p++)
        for (int64_t i = 0; i < NR; i++) out[p * NR + i] = i < n ? x[i * row + p] : 0;
}

/* n rows of d as chunks of NR columns, each [n][NR], zero past d */
static void pack_chunks(const float *x, int64_t row, int64_t n, int64_t d, float *out)
{
    for (int64_t c = 0; c < d; c += NR)
        for (int64_t i = 0; i < n; i++, out += NR) {
            const float *from = x + i * row + c;
            if (d - c >= NR)
                EACH (v, NV) store(out + v * W, load(from + v * W));
            else copy_tile(out, NR, from, row, 1, d - c), memset(out + d - c, 0, sizeof(float) * (size_t)(NR - d + c));
        }
}

/* ---- the products ---- */

/* out[j][lane] = row j . query of the lane: n rows of d, a panel [d][NR] of so many queries. Where these fit one vector, the
 * others' lanes are left as they are. */
static inline void rows_times_panel(const float *rows, int64_t row, int64_t n, int64_t d, const float *panel, int64_t queries,
                                    float *out)
{
    int64_t step = tile_height(n);
    tile_function *run = queries > W ? tile_by_row : tile_of_one_vector;
    for (int64_t j = 0; j < n; j += step)
        run(qkv__min(step, n - j), rows + j * row, row, panel, NR, out + j * NR, NR, d, false);
}

/* out[i][c] += sum over p < k of a[p*a_step + i] * chunks[c][p], i < m: out has whole chunks */
static void columns_times_chunks(const float *a, int64_t a_step, int64_t m, const float *chunks, int64_t room, int64_t d,
                                 int64_t k, float *out, int64_t out_row)
{
    for (int64_t c = 0; c < d; c += NR) tile_columns(m, a, a_step, chunks + c * room, NR, out + c, out_row, k, true);
}

/* ---- the softmax ---- */

/* n scores times the scale, by themselves: a bias comes after it, and a sum fused with its product would have other bits. */
static inline void scale_scores(float *s, int64_t n, float scale)
{
    for (int64_t j = 0; j < n; j += W) store(s + j, load(s + j) * scale);
}

/* n scores, a multiple of W, become cap tanh(score scale / cap) */
static inline void cap_scores(float *s, int64_t n, float scale, float cap)
{
    for (int64_t i = 0; i < n; i += W) store(s + i, vtanh(load(s + i) * (scale / cap)) * cap);
}

/* The online softmax of a panel: scores s become weights relative to the largest so far; sum and the rows of y, which were
 * relative to the largest before, follow. A lane that has seen nothing keeps -inf and 0. Vectors without a query are passed by. */
static void absorb(float *s, int64_t n, float scale, int64_t queries, float *largest, float *sum, float *y, int64_t y_row)
{
    float shrink[NR];
    for (int64_t v = 0; v * W < queries; v++) {
        vf top = set1(-INFINITY), total = { 0 }, before = load(largest + v * W);
        for (int64_t j = 0; j < n; j++) top = vmax(load(s + j * NR + v * W), top);
        top = vmax(top * scale, before);
        vf base = pick(top > -INFINITY, top, (vf){ 0 }), ratio = vexp(before - base);
        for (int64_t j = 0; j < n; j++) {
            vf weight = vexp(load(s + j * NR + v * W) * scale - base);
            store(s + j * NR + v * W, weight);
            total += weight;
        }
        store(largest + v * W, top);
        store(sum + v * W, load(sum + v * W) * ratio + total);
        store(shrink + v * W, ratio);
    }
    for (int64_t i = 0; i < queries; i++)
        if (shrink[i] != 1)
            for (int64_t d = 0; d < y_row; d += W) store(y + i * y_row + d, load(y + i * y_row + d) * shrink[i]);
}

#endif
