#ifndef QKV_TEXT_H
#define QKV_TEXT_H
#include <qkv/base.h>
#ifdef __cplusplus
extern "C" {
#endif
/* ---- pairs of id sequences, and batches of them ---- */
typedef struct qkv_pairs qkv_pairs;
QKV_API qkv_pairs *qkv_pairs_new(void); /* NULL when memory is out. You own it. */
QKV_API void qkv_pairs_free(qkv_pairs *p);
QKV_API int64_t qkv_pairs_count(const qkv_pairs *p);

/* Adds a copy of one pair: n source ids and m target ids, without start and end. USAGE for NULL, MEMORY: then nothing was
 * added. */
QKV_API qkv_status qkv_pairs_add(qkv_pairs *p, const int32_t *source, size_t n, const int32_t *target, size_t m);

typedef struct qkv_batch_opts {
    int64_t max_tokens; /* rows times the longest row, of source and of target each, padding included; 0 means 2048 */
    uint64_t seed;
    int in_order;       /* 1: as the pairs were added; else sorted by length, and the batches shuffled */
    int32_t start, end; /* a target goes in as start + ids and must come out as ids + end; a source is ids + end */
    int32_t pad;
} qkv_batch_opts;

/* What a label is that does not count. */
#define QKV_IGNORED (-100)

/* One batch; a zero struct is an empty one, used again and again. */
typedef struct qkv_batch {
    int64_t rows, source_length, target_length; /* the longest of the rows */
    int64_t tokens;                             /* labels that count */
    int32_t *source, *target, *labels;          /* (rows, length), padded */
    int32_t *source_lengths, *target_lengths;   /* (rows) */
    void *memory;
    size_t bytes;
} qkv_batch;
QKV_API void qkv_batch_free(qkv_batch *b);

/* One pass over all pairs, cut into batches: each pair once. It depends on the pairs, the options and the number of the epoch
 * alone, so a training that goes on later sees the batches it would have seen. NULL on error: USAGE, MEMORY. You own it; the
 * pairs must outlive it and not change. */
typedef struct qkv_epoch qkv_epoch;
QKV_API qkv_epoch *qkv_epoch_new(const qkv_pairs *p, const qkv_batch_opts *opts, uint64_t number);
QKV_API void qkv_epoch_free(qkv_epoch *e);
QKV_API int64_t qkv_epoch_batches(const qkv_epoch *e);

/* The i-th batch; a pair that is longer than max_tokens is a batch of its own. USAGE for i out of range, MEMORY. */
QKV_API qkv_status qkv_epoch_batch(const qkv_epoch *e, int64_t i, qkv_batch *out);

#ifdef __cplusplus
}
#endif
#endif
