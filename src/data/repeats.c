/* repeats.c: texts that occur more than once. */
#include "repeats.h"

#include "../base/hash.h"
#include "../base/memory.h"

#include <stdlib.h>

qkv_status qkv__hashes_add(qkv__hashes *h, uint64_t hash)
{
    qkv_status status = qkv__grow((void **)&h->at, &h->bytes, sizeof *h->at * (size_t)(h->n + 1));
    if (!status) h->at[h->n++] = hash;
    return status;
}

/* FNV-1a over the bytes and their number, and the last step of MurmurHash3, after which every bit depends on all of them. */
qkv_status qkv__hashes_add_text(qkv__hashes *h, const char *text, size_t length, const char *pair, size_t pair_length)
{
    uint64_t x = qkv__hash_bytes(QKV__HASH_START, text, length);
    x = qkv__hash_add(x, length ^ 0x80000000u);
    if (pair) x = qkv__hash_bytes(x, pair, pair_length);
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53u;
    return qkv__hashes_add(h, x ^ (x >> 33));
}

void qkv__hashes_free(qkv__hashes *h)
{
    qkv__release(h->at, h->bytes);
    *h = (qkv__hashes){ 0 };
}

int qkv__compare_hashes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void qkv__hashes_count(qkv__hashes *a, const qkv__hashes *b, int64_t *repeated, int64_t *shared)
{
    *repeated = *shared = 0;
    if (!a->n) return;
    qsort(a->at, (size_t)a->n, sizeof *a->at, qkv__compare_hashes);
    for (int64_t i = 1; i < a->n; i++) *repeated += a->at[i] == a->at[i - 1];
    for (int64_t i = 0; i < b->n; i++)
        *shared += bsearch(&b->at[i], a->at, (size_t)a->n, sizeof *a->at, qkv__compare_hashes) != NULL;
}
