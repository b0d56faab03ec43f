/* slices.h: which rank has which floats of a flat block: adds them up, and keeps their optimizer state.
 *
 * The block is taken a bucket at a time, and of the units of a bucket each rank has a share, in the order of the ranks. A
 * norm is added up by units, so that its bits do not depend on who has which. Buckets are small, since what is computed first
 * and last has nothing beside it that would hide how it travels; with many ranks larger, so that a slice is worth a message. */
#ifndef QKV_SRC_DIST_SLICES_H
#define QKV_SRC_DIST_SLICES_H

#include "dist.h"

enum { QKV__UNIT = 1 << 10, QKV__BUCKET = 1 << 17, QKV__SLICE = 1 << 13 }; /* floats; the last two at least, but for the end */

typedef struct qkv__span {
    int64_t from, to; /* floats of the block */
} qkv__span;

typedef struct qkv__slices {
    int64_t count; /* floats of the block */
    int rank, ranks;
} qkv__slices;

/* Those of this process and its fellows. */
qkv__slices qkv__slices_of(int64_t count);

int64_t qkv__bucket_floats(const qkv__slices *s); /* of each but the last */
int64_t qkv__buckets(const qkv__slices *s);
qkv__span qkv__bucket(const qkv__slices *s, int64_t bucket);

/* What a rank has of a bucket; perhaps nothing. */
qkv__span qkv__slice(const qkv__slices *s, int64_t bucket, int rank);

int64_t qkv__slice_most(const qkv__slices *s); /* floats of the largest one */

/* Where the slice of a bucket begins when all slices of this rank lie one after the other; of the number of buckets: how many
 * floats they are. */
int64_t qkv__slice_place(const qkv__slices *s, int64_t bucket);

/* What this rank has of a bucket and of a span, perhaps nothing (then to is not above from), and where that lies in its
 * slices one after the other. */
qkv__span qkv__slice_of(const qkv__slices *s, int64_t bucket, qkv__span of, int64_t *place);

/* Every rank's slices of the block to every rank. IO, MEMORY. */
qkv_status qkv__share_block(const qkv__slices *s, float *block);

/* A number for each unit of the block, of which every rank has those of its slices: all of them to every rank. IO, MEMORY. */
qkv_status qkv__share_units(const qkv__slices *s, double *units);

/* `own` has this rank's slices one after the other: rank 0 gets a whole bucket in `to`. IO, MEMORY. */
qkv_status qkv__fetch_bucket(const qkv__slices *s, const float *own, int64_t bucket, float *to);

/* The other way: of a bucket that rank 0 has in `from`, each rank gets its slice, at its place in `own`. IO, MEMORY. */
qkv_status qkv__deal_bucket(const qkv__slices *s, const float *from, int64_t bucket, float *own);

#endif
