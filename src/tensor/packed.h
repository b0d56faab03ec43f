/* packed.h: weights that large products read again, kept in the order the product wants. */
#ifndef QKV_SRC_PACKED_H
#define QKV_SRC_PACKED_H

#include "op.h"

#include <stdatomic.h>

/* Of one weight. Starts as zero. */
typedef struct qkv__packing {
    _Atomic(const float *) values;
    atomic_int uses;
    const qkv__kernels *by; /* who packed it: another instruction set has another order */
    size_t bytes;
} qkv__packing;

/* The packed values of w for a product of `rows` rows, or NULL where b should be read as it lies: few rows, a weight that may
 * change, its first use, no room left under the limit. Any thread. MEMORY. */
qkv_status qkv__packed_weight(const qkv_tensor *w, int64_t rows, const float **packed);

/* Whether no product of many rows has read w yet, and the second one that does may pack it. */
bool qkv__packs_at_next_use(const qkv_tensor *w);

/* Nobody may use it any more. */
void qkv__packing_free(qkv__packing *p);

/* Sets qkv_packed_limit(); weights that are packed stay so. */
void qkv__set_packed_limit(size_t bytes);

#endif
