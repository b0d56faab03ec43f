/* arena.h: memory that is given out piece by piece and taken back all at once.
 * It grows in blocks; after a reset one block has room for all of them, so that a steady step allocates nothing. */
#ifndef QKV_SRC_ARENA_H
#define QKV_SRC_ARENA_H

#include "memory.h"

typedef struct qkv__block qkv__block;
typedef struct qkv__arena {
    qkv__block *blocks; /* newest first; only the newest is given out from */
    size_t used;        /* bytes given out since the last reset */
    size_t peak;        /* the most bytes all blocks ever had together */
    size_t wanted;      /* bytes of the next first block */
} qkv__arena;

/* Bytes at a multiple of 64, not cleared; NULL with the error set when memory is out. Never NULL for 0 bytes otherwise. */
void *qkv__arena_take(qkv__arena *a, size_t bytes);
void qkv__arena_reset(qkv__arena *a);
void qkv__arena_free(qkv__arena *a);

#endif
