/* shard.h: optimizer state that lies on all ranks, in the one file of a checkpoint: it has the same bytes as one that is not
 * sharded. */
#ifndef QKV_SRC_SHARD_H
#define QKV_SRC_SHARD_H

#include "../dist/slices.h"
#include "../io/safetensors.h"

#include <qkv/train.h>

/* On rank 0, while it writes: a bucket of each state at a time is here. */
typedef struct qkv__collection {
    const qkv_optimizer *optimizer;
    const qkv__slices *slices;
    float *room;       /* for two buckets */
    int64_t bucket[2]; /* which one of each state it is; -1: none */
} qkv__collection;

/* The state of a weight. */
typedef struct qkv__scattered {
    qkv__collection *all;
    int64_t state, start; /* start: of the weight in the block */
} qkv__scattered;

/* MEMORY. */
qkv_status qkv__collection_begin(qkv__collection *c, const qkv_optimizer *o, const qkv__slices *s);

/* A qkv__to_store.get: from is a qkv__scattered. IO. */
qkv_status qkv__collect(const void *from, int64_t first, int64_t n, float *to);

/* The others may go on. IO. */
qkv_status qkv__collection_end(qkv__collection *c);

/* On the other ranks: gives rank 0 what it asks for until it has ended. IO. */
qkv_status qkv__give_to_collection(const qkv_optimizer *o, const qkv__slices *s);

/* Reads this rank's part of the state of a weight. */
void qkv__read_scattered(const qkv__scattered *s, int64_t count, const qkv__stored *from);

#endif
