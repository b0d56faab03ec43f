/* products.h: what the matrix product and the attention kernels are asked to do. */
#ifndef QKV_SRC_PRODUCTS_H
#define QKV_SRC_PRODUCTS_H

#include "../base/random.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* c = a b (+ c) (+ bias).   a (m,k)   b (k,n)   c (m,n);   element (i,j) of a is a[i*a_row + j*a_col], of b likewise.
 * Each element of c is a sum of chains of fused multiply-adds, whose order depends on k and on b's layout alone:
 *   b stored (n,k), b_row 1: k in blocks of QKV__CHAINS * QKV__CHAIN; in a block, one chain for each remainder of k by QKV__CHAINS
 *   otherwise:               k in blocks of QKV__CHAIN, one chain each
 * A chain starts from 0 and runs in the order of k; chains are added to c one after the other; then the bias. So an element's bits
 * depend on its row of a and its column of b, and on nothing else: not on m or n, nor on how the work is cut.
 * (Four interleaved chains are what a dot product of two rows in memory can do at the speed of memory.) */
enum { QKV__CHAIN = 256, QKV__CHAINS = 4 };

typedef struct qkv__product {
    const float *a, *b, *bias; /* bias: n numbers, or NULL */
    float *c;
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col, c_row;
    bool add;
} qkv__product;

/* Bytes of scratch a product needs on each thread. */
#define QKV__PRODUCT_SCRATCH ((size_t)3 << 20)

#endif
