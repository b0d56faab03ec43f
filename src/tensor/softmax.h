/* softmax.h: log-probabilities of which only a few are looked at. */
#ifndef QKV_SRC_SOFTMAX_H
#define QKV_SRC_SOFTMAX_H

#include "op.h"

#include <math.h>

/* Of one row. */
typedef struct qkv__log_sum {
    float max, log_sum; /* of exp(x - max) */
} qkv__log_sum;

/* One for each row of x, on its tape; NULL with the error there. */
qkv__log_sum *qkv__log_sums(qkv_tensor *x);

/* What qkv_log_softmax() gives for x, which is one number of the row: the same bits. */
static inline float qkv__log_p(const qkv__log_sum *row, float x)
{
    return row->max == -INFINITY ? x : x - row->max - row->log_sum;
}

#endif
