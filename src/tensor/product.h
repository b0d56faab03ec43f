/* product.h: the matrix product on all threads. */
#ifndef QKV_SRC_PRODUCT_H
#define QKV_SRC_PRODUCT_H

#include "op.h"

/* Computes p (see kern/products.h), its rows and columns shared among threads; k is never cut, so the bits do not depend on
 * how. MEMORY when the scratch cannot be had: c is untouched then. */
qkv_status qkv__multiply(const qkv__product *p);

/* The same where b is a weight (n, k) of any type, widened a few rows at a time. */
qkv_status qkv__multiply_widened(const qkv__product *p, const qkv_tensor *b);

/* The same for `count` products of one shape: product i has its operands at a + i*a_next, and so on. */
qkv_status qkv__multiply_many(const qkv__product *p, int64_t count, int64_t a_next, int64_t b_next, int64_t c_next);

/* Products p[i] with the weights w[i] of any type, n of them, which read the same a: in one parallel call where the types
 * allow it, for a few rows do not pay for many. The bits are those of one after the other. MEMORY. */
enum { QKV__TOGETHER = 4 };
qkv_status qkv__multiply_weights(const qkv__product *p, qkv_tensor *const *w, int n);

#endif
