/* all_gather.c: slices of a block to every rank, in the background. */
#include "all_gather.h"

#include "aside.h"
#include "changes.h"

#include "../base/memory.h"

#include <string.h>

/* A bucket that is on its way. */
typedef struct flight {
    unsigned char **packed; /* the changes of each rank's slice */
    void *posted;
} flight;

struct qkv__all_gather {
    qkv__slices slices;
    float *block, *changes;
    flight flights[2];
    size_t *most, *received; /* bytes of each rank */
    void *room;              /* for the flights and these tables, one allocation */
    size_t room_bytes;
    qkv__mark ready, here; /* so many floats at the beginning are: to be sent, and of all ranks */
    qkv__aside aside;
};

/* ---- a bucket ---- */

static flight *flight_of(qkv__all_gather *g, int64_t bucket) { return &g->flights[bucket % 2]; }

static int64_t floats_of(const qkv__all_gather *g, int64_t bucket, int rank)
{
    qkv__span slice = qkv__slice(&g->slices, bucket, rank);
    return slice.to - slice.from;
}

static qkv_status post_changes(qkv__all_gather *g, int64_t bucket)
{
    flight *f = flight_of(g, bucket);
    int rank = g->slices.rank;
    qkv__mark_wait(&g->ready, qkv__bucket(&g->slices, bucket).to);
    int64_t n = floats_of(g, bucket, rank);
    float *own = g->changes + qkv__slice(&g->slices, bucket, rank).from;
    size_t bytes = qkv__pack_changes(n, own, f->packed[rank]);
    memset(own, 0, sizeof *own * (size_t)n);
    for (int r = 0; r < g->slices.ranks; r++) g->most[r] = qkv__packed_most(floats_of(g, bucket, r));
    return qkv__dist_post_some(f->packed[rank], bytes, (void **)f->packed, g->most, &f->posted);
}

static qkv_status finish_changes(qkv__all_gather *g, int64_t bucket)
{
    const flight *f = flight_of(g, bucket);
    qkv_status status = qkv__dist_finish_some(f->posted, g->received);
    for (int r = 0; r < g->slices.ranks && !status; r++) {
        float *weights = g->block + qkv__slice(&g->slices, bucket, r).from;
        if (r == g->slices.rank || qkv__apply_changes(floats_of(g, bucket, r), weights, f->packed[r], g->received[r])) continue;
        status = qkv__fail(QKV_IO, "rank %d has sent weights that cannot be read", r);
    }
    return status;
}

/* ---- all of them ---- */

/* The next bucket is posted before one is waited for: the link is never idle. After an error too nobody waits for ever. */
static qkv_status gather_buckets(void *data)
{
    qkv__all_gather *g = data;
    int64_t n = qkv__buckets(&g->slices);
    qkv_status status = post_changes(g, 0);
    for (int64_t b = 0; b < n && !status; b++) {
        if (b + 1 < n) status = post_changes(g, b + 1);
        if (!status) status = finish_changes(g, b);
        if (!status) qkv__mark_raise(&g->here, qkv__bucket(&g->slices, b).to);
    }
    qkv__mark_raise(&g->here, g->slices.count);
    return status;
}

static qkv_status make_room(qkv__all_gather *g)
{
    size_t ranks = (size_t)g->slices.ranks, slice = qkv__packed_most(qkv__slice_most(&g->slices));
    g->room_bytes = 2 * ranks * (slice + sizeof(void *) + sizeof(size_t));
    char *at = g->room = qkv__alloc(g->room_bytes);
    if (!at) return QKV_MEMORY;
    g->most = (size_t *)(uintptr_t)at;
    g->received = g->most + ranks;
    at = (char *)(g->received + ranks);
    for (int i = 0; i < 2; i++, at += ranks * sizeof(void *)) g->flights[i].packed = (unsigned char **)(uintptr_t)at;
    for (int i = 0; i < 2; i++)
        for (size_t r = 0; r < ranks; r++, at += slice) g->flights[i].packed[r] = (unsigned char *)at;
    return QKV_OK;
}

qkv__all_gather *qkv__all_gather_begin(const qkv__slices *s, float *block, float *changes)
{
    qkv__all_gather *g = qkv__alloc_zero(sizeof *g);
    if (!g) return NULL;
    g->slices = *s;
    g->block = block;
    g->changes = changes;
    if (make_room(g)) return qkv__release(g, sizeof *g), NULL;
    qkv__mark_init(&g->ready);
    qkv__mark_init(&g->here);
    qkv__aside_begin(&g->aside, gather_buckets, g);
    return g;
}

void qkv__all_gather_ready(qkv__all_gather *g, int64_t to) { qkv__mark_raise(&g->ready, to); }

void qkv__all_gather_wait(qkv__all_gather *g, int64_t to)
{
    qkv__aside_need(&g->aside);
    if (qkv__mark_is_at(&g->here, to)) return;
    qkv__dist_hurry(1);
    qkv__mark_wait(&g->here, to);
    qkv__dist_hurry(-1);
}

static void free_gathering(qkv__all_gather *g)
{
    qkv__mark_destroy(&g->ready);
    qkv__mark_destroy(&g->here);
    qkv__release(g->room, g->room_bytes);
    qkv__release(g, sizeof *g);
}

qkv_status qkv__all_gather_end(qkv__all_gather *g)
{
    qkv_status status = qkv__aside_end(&g->aside);
    free_gathering(g);
    return status;
}

void qkv__all_gather_abandon(qkv__all_gather *g)
{
    qkv__aside_abandon(&g->aside);
    free_gathering(g);
}
