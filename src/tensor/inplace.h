/* inplace.h: operations that overwrite their operand, for layers that know that nobody reads it again: neither another
 * operation, nor the backward of the one that made it. The values are those of the operations they are named after. */
#ifndef QKV_SRC_INPLACE_H
#define QKV_SRC_INPLACE_H

#include <qkv/tensor.h>

/* Its own backward reads the result, which only qkv__dropout_inplace() may overwrite. */
qkv_tensor *qkv__relu_inplace(qkv_tensor *x);

/* Where x wants no gradient; else beside it, for their backward reads x. */
qkv_tensor *qkv__gelu_inplace(qkv_tensor *x);
qkv_tensor *qkv__gelu_tanh_inplace(qkv_tensor *x);
qkv_tensor *qkv__silu_inplace(qkv_tensor *x);

qkv_tensor *qkv__dropout_inplace(qkv_tensor *x, float p);
qkv_tensor *qkv__add_inplace(qkv_tensor *x, qkv_tensor *other); /* x + other; equal shapes */

/* silu(gate) x and gelu(gate) x, the erf form; equal shapes. */
qkv_tensor *qkv__silu_gated(qkv_tensor *gate, qkv_tensor *x);
qkv_tensor *qkv__gelu_gated(qkv_tensor *gate, qkv_tensor *x);

#endif
