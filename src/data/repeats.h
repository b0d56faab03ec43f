/* repeats.h: texts that occur more than once, counted by a hash of 64 bits each: among ten million texts, two different ones are
 * taken for the same with a probability of 3 in a million. */
#ifndef QKV_SRC_REPEATS_H
#define QKV_SRC_REPEATS_H

#include "../base/status.h"

#include <stddef.h>
#include <stdint.h>

/* A zero struct holds none; 8 bytes each, and as much again while it grows. */
typedef struct qkv__hashes {
    uint64_t *at;
    size_t bytes;
    int64_t n;
} qkv__hashes;

/* Adds the hash of a text, or of two; pair may be NULL. MEMORY. */
qkv_status qkv__hashes_add_text(qkv__hashes *h, const char *text, size_t length, const char *pair, size_t pair_length);
qkv_status qkv__hashes_add(qkv__hashes *h, uint64_t hash);
void qkv__hashes_free(qkv__hashes *h);

/* For qsort() of hashes. */
int qkv__compare_hashes(const void *a, const void *b);

/* How many of a equal another one before them, and how many of b are in a too. Sorts a. */
void qkv__hashes_count(qkv__hashes *a, const qkv__hashes *b, int64_t *repeated, int64_t *shared);

#endif
