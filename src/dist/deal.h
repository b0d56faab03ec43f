/* deal.h: pieces of work that are dealt out to the ranks as they come, each to the rank that has least so far. Every rank
 * deals all of them and so knows whose each is; it computes its own, and the numbers that come out are then everybody's, in
 * the order of the pieces. */
#ifndef QKV_SRC_DIST_DEAL_H
#define QKV_SRC_DIST_DEAL_H

#include "dist.h"

#include <stdbool.h>

typedef struct qkv__dealt {
    int rank;
    double number; /* what came out */
} qkv__dealt;

/* Starts as zero. */
typedef struct qkv__deal {
    qkv__dealt *pieces;
    int64_t n;
    int64_t *work; /* of each rank */
    size_t pieces_bytes, work_bytes;
} qkv__deal;

/* One more piece, of so much work: *is_own is whether it is this rank's. Its number is to be put in pieces[n - 1]. MEMORY. */
qkv_status qkv__deal_piece(qkv__deal *d, int64_t work, bool *is_own);

/* The numbers of all pieces to every rank. MEMORY, IO. */
qkv_status qkv__deal_join(qkv__deal *d);

void qkv__deal_free(qkv__deal *d);

#endif
