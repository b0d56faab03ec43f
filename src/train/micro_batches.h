/* micro_batches.h: the gradient of an update as the sum of its micro-batches' gradients, added in one order by any number of
 * ranks. */
#ifndef QKV_SRC_MICRO_BATCHES_H
#define QKV_SRC_MICRO_BATCHES_H

#include <qkv/nn.h>

#include <stdbool.h>

/* Partial sums of gradients, kept from one update to the next; zero to begin with. */
enum { QKV__MAX_PARTIAL = 192 };
typedef struct qkv__partial_sums {
    float *at[QKV__MAX_PARTIAL];
    size_t bytes; /* of each */
} qkv__partial_sums;
void qkv__partial_sums_free(qkv__partial_sums *s);

/* Adds the gradient of a micro-batch to those of the params, which are zero, by a backward pass on the tape. */
typedef qkv_status qkv__micro_batch(void *data, int64_t i);

typedef struct qkv__micro_batches {
    qkv_params *params;
    qkv_tape *tape;
    int64_t n;
    qkv__micro_batch *run;
    void *data; /* for run */
    qkv__partial_sums *sums;
} qkv__micro_batches;

/* Runs this rank's share of n micro-batches, and leaves the sum of all of them, over all ranks, in the gradients of the
 * params, in the order of src/dist/tree.h. They must be zero before. Of several ranks each has the sum of its slices
 * (src/dist/slices.h), and the rest of its gradients mean nothing. While the last micro-batch goes backward, gradients that are
 * final are on their way already. The errors of run; IO, MEMORY. */
qkv_status qkv__sum_micro_batches(const qkv__micro_batches *m);

#endif
