/* pairs.h: how many ids stay in memory, and which pairs occur twice. */
#ifndef QKV_SRC_PAIRS_H
#define QKV_SRC_PAIRS_H

#include <qkv/data.h>

#include <stdbool.h>

/* qkv_dataset_new() with another bound than QKV_PAIRS_IN_MEMORY. */
qkv_dataset *qkv__dataset_new_with_limit(size_t bytes);

/* How many pairs of a equal another one before them, and how many of b are in a too, by a hash of 64 bits. MEMORY. */
qkv_status qkv__dataset_repeats(const qkv_dataset *a, const qkv_dataset *b, int64_t *repeated, int64_t *shared);

/* Estimates the share of sources that are parts of other sources, by min-hash (Broder 1997): those whose least hash of all runs of
 * `run` ids is that of another source too. A source of fewer ids is one run. 0 without pairs. MEMORY. */
qkv_status qkv__dataset_shared_runs(const qkv_dataset *p, int64_t run, double *share);

/* Adds the last of every `every` pairs of p to held, and the others to kept. The errors of qkv_dataset_add_ids(). */
qkv_status qkv__dataset_split(const qkv_dataset *p, int64_t every, qkv_dataset *kept, qkv_dataset *held);

/* The *n ids of pair i's source (side 0) or target (1), which live until a pair is added. */
const int32_t *qkv__dataset_side(const qkv_dataset *p, int64_t i, int side, int64_t *n);

/* Rows `part * rows / parts` to those of the next part of the i-th batch of an epoch, padded to the longest of them; perhaps none.
 * The errors of qkv_loader_batch(), which gives all of them. */
qkv_status qkv__loader_part(const qkv_loader *e, int64_t i, int64_t part, int64_t parts, qkv_batch **out);

/* Writes all pairs to a file of this machine's byte order, whole or not at all. IO, MEMORY. */
qkv_status qkv__dataset_write(const qkv_dataset *p, const char *path);

/* Lets go of what pairs there are and takes those of such a file, which is mapped: none can be added any more. On an error
 * nothing has changed: FORMAT, IO, MEMORY. */
qkv_status qkv__dataset_open(qkv_dataset *p, const char *path);
bool qkv__dataset_are_opened(const qkv_dataset *p);

/* What pairs are made of: where their sides end in the ids, source and target of each in turn. */
typedef struct qkv__pair_arrays {
    int64_t n, n_ids;
    int64_t *ends; /* 2 n */
    int32_t *ids;
} qkv__pair_arrays;

qkv__pair_arrays qkv__dataset_arrays(const qkv_dataset *p);

/* Lets go of what pairs there are and makes room for so many with so many ids in all, which are to be written where the arrays
 * are then. LIMIT, MEMORY, IO. */
qkv_status qkv__dataset_make_room(qkv_dataset *p, int64_t n, int64_t n_ids);

/* Ids of all targets, without start and end. */
int64_t qkv__dataset_target_ids(const qkv_dataset *p);

#endif
