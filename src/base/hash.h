/* hash.h: FNV-1a, 64 bits. Seeds of weights, checkpoints and shortlists depend on its values. */
#ifndef QKV_SRC_HASH_H
#define QKV_SRC_HASH_H

#include <stddef.h>
#include <stdint.h>

#define QKV__HASH_START UINT64_C(0xcbf29ce484222325)

/* One step, of a byte or of a wider number taken as one. */
static inline uint64_t qkv__hash_add(uint64_t hash, uint64_t value) { return (hash ^ value) * UINT64_C(0x100000001b3); }

static inline uint64_t qkv__hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < n; i++) hash = qkv__hash_add(hash, at[i]);
    return hash;
}

#endif
