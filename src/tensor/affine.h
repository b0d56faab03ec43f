/* affine.h: several affine maps of one x. */
#ifndef QKV_SRC_AFFINE_H
#define QKV_SRC_AFFINE_H

#include "product.h"

/* y[i] = qkv_affine(x, w[i], b[i]), n <= QKV__TOGETHER of them, by one parallel call; b[i] may be NULL. False with the error on
 * the tape. The bits, and those of backward, are those of one call after the other. */
bool qkv__affine_together(qkv_tensor *x, qkv_tensor *const *w, qkv_tensor *const *b, int n, qkv_tensor **y);

#endif
