/* paged.h: attention to keys and values that are kept in pages, for running a model: no gradients. */
#ifndef QKV_SRC_PAGED_H
#define QKV_SRC_PAGED_H

#include "op.h"

/* Some queries of one sequence: the next `n` rows of q. */
typedef struct qkv__paged_part {
    int64_t n, keys;
    float *const *pages;
    const uint8_t *hidden; /* (keys), or NULL */
    float *weights;        /* (heads, n, keys), or NULL */
} qkv__paged_part;

/* What the parts have in common. */
typedef struct qkv__paged_opts {
    int64_t heads, kv_heads, dk, dv;
    int64_t at; /* of the layer in a page */
    bool causal;
    float scale, cap;       /* 0: 1/sqrt(dk), above 0 else; no cap */
    int64_t window;         /* where causal; 0: none */
    qkv__relative relative; /* where causal and without a cap */
} qkv__paged_opts;

/* y = softmax(q k^T scale + bias) v: the rows of q, (..., heads*dk), belong to the parts one after the other; y (..., heads*dv).
 * The same bits as qkv_attention() gives for the whole sequence. */
qkv_tensor *qkv__attend_paged(qkv_tensor *q, const qkv__paged_opts *o, const qkv__paged_part *parts, int64_t n_parts);

#endif
