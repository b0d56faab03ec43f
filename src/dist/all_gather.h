/* all_gather.h: every rank's slices of a block (slices.h), as what changed in them (changes.h), to every rank, bucket after bucket
 * from its beginning, by a thread of its own: what has come is read while the rest is on its way. */
#ifndef QKV_SRC_DIST_ALL_GATHER_H
#define QKV_SRC_DIST_ALL_GATHER_H

#include "slices.h"

typedef struct qkv__all_gather qkv__all_gather;

/* Of the others' slices the block is still what it was. Until its end this rank reads of the block what it has waited for, and
 * says whatever else it likes to the others. NULL: MEMORY. */
qkv__all_gather *qkv__all_gather_begin(const qkv__slices *s, float *block, float *changes);

/* Of this rank's slices the floats before this one are as they shall be, and `changes` has what changed: these are set to 0. All of
 * them must be ready before anything is waited for. */
void qkv__all_gather_ready(qkv__all_gather *g, int64_t to);

/* Waits until all floats before this one have come, or never will: the end says so. */
void qkv__all_gather_wait(qkv__all_gather *g, int64_t to);

/* Waits for all of them, and frees g. IO, MEMORY. */
qkv_status qkv__all_gather_end(qkv__all_gather *g);

/* Frees g after an error, or where nobody needs the weights: what is on its way is waited for, and nothing else is sent. */
void qkv__all_gather_abandon(qkv__all_gather *g);

#endif
