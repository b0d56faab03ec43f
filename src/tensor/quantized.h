/* quantized.h: weights in 8 and 4 bits. kern/quantized.h says what they mean. */
#ifndef QKV_SRC_OP_QUANTIZED_H
#define QKV_SRC_OP_QUANTIZED_H

#include "product.h"
#include "types.h"

/* Rows (rows, in) as a type with scales keeps them: each number as near as its group's scale allows. For 8 bits that is the
 * largest size / 127; for 4 bits, of a few that are tried, the one with the smallest squared error. False for a number that is
 * not finite, or too large for a scale. BF16, which has none, is the nearest, whatever it is. */
bool qkv__quantize_weight(const qkv__type *type, const float *x, int64_t rows, int64_t in, void *values, void *scales);

/* A weight's numbers as float32: whole number * scale. */
void qkv__widen_int8(float *to, const qkv_tensor *w, int64_t first, int64_t n);
void qkv__widen_int4(float *to, const qkv_tensor *w, int64_t first, int64_t n);

/* c = a w^T (+ bias) for n weights of one type with scales, at most QKV__TOGETHER, and the same a, as its rows lie: quantized
 * once, multiplied in one call on all threads. MEMORY. */
qkv_status qkv__multiply_quantized(const qkv__product *p, const qkv_tensor *const *w, int n);

#endif
