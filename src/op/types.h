/* types.h: how the numbers of a weight are kept. types.def lists the ways; who reads a weight asks its type. */
#ifndef QKV_SRC_TYPES_H
#define QKV_SRC_TYPES_H

#include "op.h"

struct qkv__type {
    const char *name; /* as safetensors spells it */
    size_t bytes;     /* of a number */
    void (*widen)(float *to, const void *from, int64_t n);
    void (*dots)(const qkv__product *p, const void *w);
    qkv_status (*multiply)(const qkv__product *p, const qkv_tensor *w);
};

/* The type of that name; NULL when weights cannot be kept so. */
const qkv__type *qkv__type_named(const char *name);

/* How x is kept: float32 unless it says otherwise. */
const qkv__type *qkv__type_of(const qkv_tensor *x);

/* Where value i of a weight is. */
const void *qkv__value_at(const qkv_tensor *w, int64_t i);

/* Values from .. from+n-1 of a weight as float32. */
void qkv__widen(const qkv_tensor *w, int64_t from, int64_t n, float *to);

/* p (see kern/products.h) where b is the weight w (n, k) of any type: the bits are those of the widened weight. MEMORY. */
qkv_status qkv__multiply_weight(const qkv__product *p, const qkv_tensor *w);

#endif
