/* types.h: how the numbers of a weight are kept. types.def lists the ways; who reads a weight asks its type. */
#ifndef QKV_SRC_TYPES_H
#define QKV_SRC_TYPES_H

#include "op.h"

struct qkv__type {
    const char *name; /* as safetensors spells it */
    qkv_dtype dtype;
    int bits;           /* of a number */
    const char *scales; /* how their type is spelled; NULL: there are none */
    void (*widen)(float *to, const qkv_tensor *w, int64_t first, int64_t n);
    void (*dots)(const qkv__product *p, const void *w);
    qkv_status (*multiply)(const qkv__product *p, const qkv_tensor *w);
};

/* The type of that name; NULL when weights cannot be kept so. And the one of so many bits that has scales. */
const qkv__type *qkv__type_named(const char *name);
const qkv__type *qkv__type_quantized(int bits);

/* BF16 whose products may round activations to it too; and the kernel by which those of w do, where a unit multiplies bfloats:
 * NULL where none does, or w is of another type. */
typedef void qkv__bfloat_product(const qkv__product *x, const uint16_t *b, void *scratch);
const qkv__type *qkv__type_bf16_both(void);
qkv__bfloat_product *qkv__bfloat_unit(const qkv_tensor *w);

/* Whether a tensor has scales; and of a row of `in` numbers its bytes, and its scales and theirs. */
static inline bool qkv__is_quantized(const qkv_tensor *w) { return w->type && w->type->scales; }
int64_t qkv__type_row_bytes(const qkv__type *t, int64_t in);
int64_t qkv__type_row_scales(const qkv__type *t, int64_t in);
int64_t qkv__type_scale_bytes(const qkv__type *t);

/* How x is kept: float32 unless it says otherwise. */
const qkv__type *qkv__type_of(const qkv_tensor *x);

/* Where value i of a weight is: a whole byte. */
const void *qkv__value_at(const qkv_tensor *w, int64_t i);

/* Values from .. from+n-1 of a weight as float32. */
void qkv__widen(const qkv_tensor *w, int64_t from, int64_t n, float *to);

/* p (see kern/products.h) where b is the weight w (n, k) of any type: without scales the bits are those of the widened weight.
 * MEMORY. */
qkv_status qkv__multiply_weight(const qkv__product *p, const qkv_tensor *w);

#endif
