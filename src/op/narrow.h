/* narrow.h: weights that are kept in 16 bits and widened as they are read. Only affine and gather read them so. */
#ifndef QKV_SRC_NARROW_H
#define QKV_SRC_NARROW_H

#include "../tensor/tape.h"

/* Values from .. from+n-1 of a weight as float32, kept in 16 bits or not. */
void qkv__widen(const qkv_tensor *w, int64_t from, int64_t n, float *to);

#endif
