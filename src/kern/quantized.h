/* quantized.h: products of weights in 8 or 4 bits with activations in 8. Whole numbers are summed exactly, and the few float
 * steps around them are the same everywhere, without fused multiply-adds: the bits are those of ref_quantized.c on every
 * instruction set, at any m and n.
 *
 * Activations. A group is a whole row for int8 and QKV__GROUP numbers of a row for int4 (the last may be short).
 *   largest = max |x|;   q = x * (127 / largest), rounded to the nearest whole number, ties to even;   scale = largest / 127
 * A group below QKV__SMALLEST has q = 0 and scale 0; one with a NaN or an infinity has q = 0 and scale NaN, so that every
 * result is NaN.
 *
 * int8: w (n,k), -127 .. 127 (-128 counts as that), a float32 scale for each row.
 *       c = (float)(sum of q w) * (a_scale * w_scale) (+ bias)
 * int4: w (n, groups, 16 bytes), -8 .. 7 kept as 0 .. 15: byte i has number i of the group in its low bits and number 16 + i
 *       in its high ones, 8 (which is zero) behind k; an IEEE half as scale for each group.
 *       A group's term is (float)(sum of q w) * (a_scale * w_scale). Terms are added in 8 chains, chain i those of the groups
 *       i, i + 8, ... in this order from 0; then chains i and i + 4, then i and i + 2, then the last two; then the bias. */
#ifndef QKV_SRC_QUANTIZED_H
#define QKV_SRC_QUANTIZED_H

#include "../base/size.h"

enum { QKV__GROUP = 32, QKV__GROUP_BYTES = QKV__GROUP / 2, QKV__GROUP_CHAINS = 8 };

/* Columns of an int8 weight, at most: 127 * 128 * k must fit an int32_t. */
enum { QKV__INT8_COLUMNS = 1 << 17 };

#define QKV__SMALLEST 0x1p-100f

typedef struct qkv__quantized {
    const int8_t *a;       /* (m, k rounded up to a whole group), zeros behind k: as quantize_rows() leaves it */
    const float *a_scales; /* (m), or (m, groups) */
    const void *w, *w_scales;
    const float *bias; /* (n), or NULL */
    float *c;
    int64_t m, n, k, c_row;
} qkv__quantized;

static inline int64_t qkv__groups(int64_t k) { return qkv__ceil_div(k, QKV__GROUP); }
static inline int64_t qkv__whole_groups(int64_t k) { return qkv__groups(k) * QKV__GROUP; }

/* Rows of a that a kernel has at a time at most, and bytes of scratch it needs for them. */
enum { QKV__QUANTIZED_ROWS = 64 };

/* Rows of at most so many numbers are short: of them there is room for three times as many, and for more rows of w. */
enum { QKV__SHORT_ROW = 2048 };

static inline size_t qkv__quantized_scratch(int64_t k)
{
    /* for each of a's rows and a tile's of w three times its bytes, and for every group a scale and a sum; chains of a tile */
    int64_t columns = qkv__round_up(k, QKV__GROUP * QKV__GROUP_CHAINS);
    int64_t rows = (k <= QKV__SHORT_ROW ? 3 * QKV__QUANTIZED_ROWS + 36 : QKV__QUANTIZED_ROWS) + 12;
    return (size_t)(rows * (3 * columns + 8 * qkv__groups(columns)) + (32 << 10));
}

#endif
