/* reduction.h: a sum over ranks in the order of a tree (tree.h), of which each rank gets its slices (slices.h); made while its floats are still being computed: bucket after
 * bucket from the end of the block, as a backward pass makes them final, by a thread of its own. */
#ifndef QKV_SRC_DIST_REDUCTION_H
#define QKV_SRC_DIST_REDUCTION_H

#include "slices.h"
#include "tree.h"

#include <stdbool.h>

typedef struct qkv__reduction_opts {
    int64_t leaves;       /* of the tree */
    float *const *values; /* of this rank's nodes; `sum` is the last of them, and all are used up */
    float *sum;
    int64_t count;      /* floats of each */
    float *const *late; /* what is to be added to `sum` first, in this order */
    int n_late;
} qkv__reduction_opts;

typedef struct qkv__reduction qkv__reduction;

/* What the options point at must outlive it. NULL: MEMORY. */
qkv__reduction *qkv__reduction_begin(const qkv__reduction_opts *o);

/* The floats of `sum` from this one on will not change any more. */
void qkv__reduction_ready(qkv__reduction *r, int64_t from);

/* All are ready: waits for the sum, and frees r. IO, MEMORY. */
qkv_status qkv__reduction_end(qkv__reduction *r);

#endif
