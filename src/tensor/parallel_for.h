/* parallel_for.h: loops and sums of operations, shared by threads. Work is cut by shape only: the bits never depend on the
 * threads. */
#ifndef QKV_SRC_PARALLEL_FOR_H
#define QKV_SRC_PARALLEL_FOR_H

#include "op.h"

/* Runs run(work, from, to) over 0..n in pieces of `grain`, the last maybe shorter. False, with the error on the tape, when
 * memory is out: nothing ran then. */
typedef void qkv__range_task(void *work, int64_t from, int64_t to);
bool qkv__parallel_for(qkv_tape *t, int64_t n, int64_t grain, qkv__range_task *run, void *work);

/* How many items of so many elements make a task. */
static inline int64_t qkv__grain(int64_t elements) { return qkv__max(1, QKV_TASK_ELEMENTS / qkv__max(1, elements)); }

/* Columns of a task that adds up `rows` rows, one after the other: a multiple of 64, so that tasks share no cache line. */
static inline int64_t qkv__columns(int64_t rows) { return qkv__round_up(qkv__grain(rows), 64); }

/* The gradient piece at dx: cleared first when nothing was added to it yet, while it is small enough to stay in the cache. */
static inline float *qkv__piece(float *dx, bool add, int64_t n)
{
    if (!add) memset(dx, 0, sizeof(float) * (size_t)n);
    return dx;
}

/* Blocks of 1024 numbers added in float, their sums in double: one order for every n, and exact enough for any. */
double qkv__sum(const float *x, int64_t n);
double qkv__dot(const float *a, const float *b, int64_t n);

/* The same for anything a kernel adds up from two arrays, with the blocks shared by threads. False as in qkv__parallel_for. */
typedef float qkv__block_sum(const float *a, const float *b, int64_t n);
bool qkv__sum_blocks(qkv_tape *t, qkv__block_sum *sum, const float *a, const float *b, int64_t n, double *total);

#endif
