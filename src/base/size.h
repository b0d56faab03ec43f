/* size.h: arithmetic on sizes that cannot wrap. Each gives 1 when the result fits and 0 when it does not. */
#ifndef QKV_SRC_SIZE_H
#define QKV_SRC_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool qkv__size_mul(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool qkv__size_add(size_t a, size_t b, size_t *out) { return !__builtin_add_overflow(a, b, out); }

/* The product of a shape's dimensions, each >= 0. The product of the dimensions that are not 0 must fit too, so that no shape
 * with a 0 in it hides an absurd one; and four times it must fit, so that bytes never wrap. */
static inline bool qkv__shape_count(int ndim, const int64_t *shape, int64_t *count)
{
    int64_t product = 1, bytes;
    bool empty = false;
    if (ndim > 0 && !shape) return false;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0) return false;
        if (shape[i] == 0) empty = true;
        else if (__builtin_mul_overflow(product, shape[i], &product)) return false;
    }
    if (__builtin_mul_overflow(product, (int64_t)sizeof(double), &bytes)) return false;
    *count = empty ? 0 : product;
    return true;
}

static inline int64_t qkv__min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t qkv__max(int64_t a, int64_t b) { return a > b ? a : b; }

/* a / b rounded up, and a rounded up to a multiple of b; a >= 0, b > 0, results known to fit */
static inline int64_t qkv__ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static inline int64_t qkv__round_up(int64_t a, int64_t b) { return qkv__ceil_div(a, b) * b; }

#endif
