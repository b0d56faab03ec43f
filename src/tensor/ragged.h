/* ragged.h: attention of sequences of different lengths that stand one after the other, for running a model: no padding, no
 * gradients. */
#ifndef QKV_SRC_RAGGED_H
#define QKV_SRC_RAGGED_H

#include "op.h"

/* What the sequences have in common; zeros as in qkv_attention_opts. */
typedef struct qkv__ragged_opts {
    int64_t heads, kv_heads, window;
    float scale, cap;
    qkv__relative relative; /* without a cap */
} qkv__ragged_opts;

/* y = softmax(q k^T scale + bias) v within each of `n` sequences, of which lengths[i] tokens each stand in the first dimension of
 * q (tokens, ..., heads*dk), k (tokens, ..., kv_heads*dk) and v (tokens, ..., kv_heads*dv); y (tokens, ..., heads*dv). The same
 * bits as qkv_attention() gives for each by itself. */
qkv_tensor *qkv__attend_ragged(qkv_tensor *const qkv[3], const qkv__ragged_opts *o, const int64_t *lengths, int64_t n);

#endif
