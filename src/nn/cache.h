/* cache.h: keys and values of the tokens a decoder has read, in pages that sequences share.
 *
 * A page holds QKV__PAGE tokens of every layer, head by head (kern/products.h has the layout). A sequence is a list of pages
 * and a length. Sequences with a common beginning have the same pages up to the last one that is not full: a copy of a
 * sequence costs a list of pointers, and a page is copied only before one of several that share it writes to it. */
#ifndef QKV_SRC_CACHE_H
#define QKV_SRC_CACHE_H

#include "../tensor/paged.h"

typedef struct qkv__page {
    int64_t users;
    struct qkv__page *next; /* while nobody uses it */
    _Alignas(64) float data[];
} qkv__page;

typedef struct qkv__sequence {
    float **pages;
    int64_t length, n_pages, room; /* tokens; pages, and how many the list has room for */
    const float *last_was;         /* the page that the last one with tokens is to be a copy of; NULL: it is itself */
} qkv__sequence;

/* Starts as zero. All sequences of one cache have the same shape. Used by one thread at a time. */
typedef struct qkv__cache {
    int64_t layers, kv_heads, dk, dv;
    qkv__page *unused;
    int64_t n_pages, n_unused;
} qkv__cache;

/* Room for n more tokens in pages that nobody else uses. MEMORY, and the sequence is as it was. In both cases
 * qkv__cache_settle() must follow before a token is read or written, or a sequence of this cache is cut or dropped. */
qkv_status qkv__cache_reserve(qkv__cache *c, qkv__sequence *s, int64_t n);

/* Copies what the sequence had in a page that others use too. Several threads may do so for several sequences. */
void qkv__cache_settle(const qkv__cache *c, qkv__sequence *s);

/* Tokens at .. at + n - 1 of a layer: k (n, kv_heads*dk), v (n, kv_heads*dv). There must be room. Several
 * threads may write different tokens. */
void qkv__cache_write(const qkv__cache *c, const qkv__sequence *s, int layer, int64_t at, int64_t n, const float *k,
                      const float *v);

/* *to, empty before, becomes what `from` is. MEMORY. */
qkv_status qkv__cache_share(qkv__sequence *to, const qkv__sequence *from);

/* Only the first `length` tokens stay. */
void qkv__cache_cut(qkv__cache *c, qkv__sequence *s, int64_t length);

/* The sequence is empty, and its list released. */
void qkv__cache_drop(qkv__cache *c, qkv__sequence *s);

/* Gives back the pages that nobody uses. */
void qkv__cache_trim(qkv__cache *c);

/* Where a page has the keys of a layer; the bytes of a page, and of all of them. */
int64_t qkv__cache_at(const qkv__cache *c, int layer);
size_t qkv__cache_page_bytes(const qkv__cache *c);
size_t qkv__cache_bytes(const qkv__cache *c);

#endif
