/* reduction.c: a sum over ranks, bucket by bucket. Of each bucket every rank adds up its slice: it gets that slice of every
 * node, adds them in the order of the tree, and gives the sum to all. All ranks take the buckets in the same order, the last
 * one first, each as soon as it is ready: what a bucket waits for is computed in the meantime. One that is ready is sent before
 * the one before it has come, so that the link is never idle. */
#include "reduction.h"

#include "aside.h"

#include "../base/memory.h"
#include "../base/size.h"

#include <string.h>

/* A node that some rank has added up, and the slice of it that lies here. */
typedef struct part {
    qkv__node node;
    int rank, number; /* the number-th of that rank */
    float *values;
} part;

/* A bucket that is on its way. */
typedef struct flight {
    part *parts;   /* of all ranks, from left to right */
    float *room;   /* slices of the others' nodes */
    void **posted; /* of the first node of each rank, of the second... */
} flight;

struct qkv__reduction {
    qkv__reduction_opts o;
    qkv__slices slices;
    flight flights[2];
    int n_parts, most; /* most: of one rank */
    const void **send; /* of an exchange, a place for each rank */
    void **receive;
    size_t *send_bytes, *receive_bytes;
    size_t bytes;    /* of all these, one allocation */
    qkv__mark ready; /* so many floats at the end are */
    qkv__aside aside;
};

static void add_span(float *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

/* ---- a bucket ---- */

/* The k-th node of each rank that has so many: its slices go to the ranks that add them up. */
static qkv_status post_nodes(const qkv__reduction *s, const flight *f, int k, int64_t bucket)
{
    qkv__node own[QKV__MAX_NODES];
    int rank = s->slices.rank, ranks = s->slices.ranks;
    bool has = k < qkv__tree_nodes(s->o.leaves, qkv__tree_share(s->o.leaves, rank, ranks), own);
    qkv__span mine = qkv__slice(&s->slices, bucket, rank);
    for (int r = 0; r < ranks; r++) {
        qkv__span slice = qkv__slice(&s->slices, bucket, r);
        bool sends = has && r != rank;
        s->send[r] = sends ? s->o.values[k] + slice.from : NULL;
        s->send_bytes[r] = sends ? sizeof(float) * (size_t)(slice.to - slice.from) : 0;
        s->receive[r] = NULL;
        s->receive_bytes[r] = 0;
    }
    for (int i = 0; i < s->n_parts; i++) {
        const part *p = &f->parts[i];
        if (p->number != k || p->rank == rank) continue;
        s->receive[p->rank] = p->values;
        s->receive_bytes[p->rank] = sizeof(float) * (size_t)(mine.to - mine.from);
    }
    return qkv__dist_post(s->send, s->send_bytes, s->receive, s->receive_bytes, &f->posted[k]);
}

/* Adds up the parts of a node, from parts[*next] on, into the first of them. */
static float *add_parts(const part *parts, qkv__node n, int64_t slice, int *next)
{
    const part *first = &parts[*next];
    if (first->node.from == n.from && first->node.to == n.to) return (*next)++, first->values;
    int64_t middle = qkv__tree_middle(n);
    float *left = add_parts(parts, (qkv__node){ n.from, middle }, slice, next);
    add_span(left, add_parts(parts, (qkv__node){ middle, n.to }, slice, next), slice);
    return left;
}

static flight *flight_of(qkv__reduction *s, int64_t bucket) { return &s->flights[bucket % 2]; }

/* Sends a bucket that is ready. */
static qkv_status post_bucket(qkv__reduction *s, int64_t bucket)
{
    flight *f = flight_of(s, bucket);
    qkv__span all = qkv__bucket(&s->slices, bucket), mine = qkv__slice(&s->slices, bucket, s->slices.rank);
    int64_t slice = mine.to - mine.from, used = 0;
    qkv_status status = QKV_OK;
    for (int i = 0; i < s->o.n_late; i++) add_span(s->o.sum + all.from, s->o.late[i] + all.from, all.to - all.from);
    for (int i = 0; i < s->n_parts; i++) {
        part *p = &f->parts[i];
        p->values = p->rank == s->slices.rank ? s->o.values[p->number] + mine.from : f->room + slice * used++;
    }
    for (int k = 0; k < s->most && !status; k++) status = post_nodes(s, f, k, bucket);
    return status;
}

static qkv_status sum_in_tree(qkv__reduction *s, int64_t bucket)
{
    const flight *f = flight_of(s, bucket);
    qkv__span mine = qkv__slice(&s->slices, bucket, s->slices.rank);
    int64_t slice = mine.to - mine.from;
    qkv_status status = QKV_OK;
    for (int k = 0; k < s->most && !status; k++) status = qkv__dist_finish(f->posted[k]);
    if (status) return status;
    int next = 0;
    const float *sum = add_parts(f->parts, (qkv__node){ 0, s->o.leaves }, slice, &next);
    if (slice && sum != s->o.sum + mine.from) memcpy(s->o.sum + mine.from, sum, sizeof *sum * (size_t)slice);
    return QKV_OK;
}

/* ---- all of them ---- */

/* Floats that must be ready before a bucket is sent. */
static int64_t needed(const qkv__reduction *s, int64_t bucket) { return s->o.count - qkv__bucket(&s->slices, bucket).from; }

/* One that is not waited for is posted before its turn only where nothing else is said in between: ranks need not do so at the
 * same time. */
static qkv_status reduce_buckets(void *data)
{
    qkv__reduction *s = data;
    qkv_status status = QKV_OK;
    for (int64_t b = qkv__buckets(&s->slices) - 1, next = b; b >= 0 && !status; b--) {
        if (next == b) {
            qkv__mark_wait(&s->ready, needed(s, b));
            status = post_bucket(s, next--);
        }
        if (!status && next >= 0 && qkv__mark_is_at(&s->ready, needed(s, next)))
            status = post_bucket(s, next--);
        if (!status) status = sum_in_tree(s, b);
    }
    return status;
}

/* All ranks' nodes, which each rank knows without being told; parts NULL: only counts them. */
static void list_parts(qkv__reduction *s, part *parts)
{
    qkv__node nodes[QKV__MAX_NODES];
    s->n_parts = s->most = 0;
    for (int r = 0; r < s->slices.ranks; r++) {
        int n = qkv__tree_nodes(s->o.leaves, qkv__tree_share(s->o.leaves, r, s->slices.ranks), nodes);
        for (int k = 0; k < n; k++, s->n_parts++)
            if (parts) parts[s->n_parts] = (part){ .node = nodes[k], .rank = r, .number = k };
        s->most = (int)qkv__max(s->most, n);
    }
}

/* One allocation for both flights and the tables. */
static qkv_status make_room(qkv__reduction *s)
{
    size_t ranks = (size_t)s->slices.ranks, tables = ranks * (2 * sizeof(void *) + 2 * sizeof(size_t));
    list_parts(s, NULL);
    size_t room = (size_t)s->n_parts * (size_t)qkv__slice_most(&s->slices) * sizeof(float),
           parts = (size_t)s->n_parts * sizeof(part);
    size_t posted = (size_t)s->most * sizeof(void *), each = room + parts + posted;
    s->bytes = 2 * each + tables;
    char *at = qkv__alloc(s->bytes);
    if (!at) return QKV_MEMORY;
    for (int i = 0; i < 2; i++, at += each) {
        s->flights[i] = (flight){ (part *)(uintptr_t)(at + room), (float *)(uintptr_t)at,
                                  (void **)(uintptr_t)(at + room + parts) };
        list_parts(s, s->flights[i].parts);
    }
    s->send = (const void **)(uintptr_t)at;
    s->receive = (void **)(uintptr_t)(s->send + ranks);
    s->send_bytes = (size_t *)(uintptr_t)(s->receive + ranks);
    s->receive_bytes = s->send_bytes + ranks;
    return QKV_OK;
}

qkv__reduction *qkv__reduction_begin(const qkv__reduction_opts *o)
{
    qkv__reduction *s = qkv__alloc_zero(sizeof *s);
    if (!s) return NULL;
    s->o = *o;
    s->slices = qkv__slices_of(o->count);
    if (make_room(s)) {
        qkv__release(s, sizeof *s);
        return NULL;
    }
    qkv__mark_init(&s->ready);
    qkv__aside_begin(&s->aside, reduce_buckets, s);
    return s;
}

void qkv__reduction_ready(qkv__reduction *s, int64_t from) { qkv__mark_raise(&s->ready, s->o.count - from); }

qkv_status qkv__reduction_end(qkv__reduction *s)
{
    qkv__reduction_ready(s, 0);
    qkv_status status = qkv__aside_end(&s->aside);
    qkv__mark_destroy(&s->ready);
    qkv__release(s->flights[0].room, s->bytes);
    qkv__release(s, sizeof *s);
    return status;
}
