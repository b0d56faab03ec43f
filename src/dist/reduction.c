/* reduction.c: a sum over ranks, bucket by bucket. Of each bucket every rank adds up its slice: it gets that slice of every
 * node, adds them in the order of the tree, and gives the sum to all. All ranks take the buckets in the same order, the last
 * one first, each as soon as it is ready: what a bucket waits for is computed in the meantime. */
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

struct qkv__reduction {
    qkv__reduction_opts o;
    qkv__slices slices;
    part *parts;       /* of all ranks, from left to right */
    int n_parts, most; /* most: of one rank */
    float *room;       /* slices of the others' nodes */
    const void **send; /* of an exchange, a place for each rank */
    void **receive;
    size_t *send_bytes, *receive_bytes;
    size_t bytes; /* of all these, one allocation */
    qkv__mark ready; /* so many floats at the end are */
    qkv__aside aside;
};

static void add_span(float *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

/* ---- a bucket ---- */

/* The k-th node of each rank that has so many: its slices go to the ranks that add them up. */
static qkv_status exchange_nodes(const qkv__reduction *s, int k, int64_t bucket)
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
        const part *p = &s->parts[i];
        if (p->number != k || p->rank == rank) continue;
        s->receive[p->rank] = p->values;
        s->receive_bytes[p->rank] = sizeof(float) * (size_t)(mine.to - mine.from);
    }
    return qkv__dist_exchange(s->send, s->send_bytes, s->receive, s->receive_bytes);
}

/* Adds up the parts of a node, from parts[*next] on, into the first of them. */
static float *add_parts(const qkv__reduction *s, qkv__node n, int64_t slice, int *next)
{
    const part *first = &s->parts[*next];
    if (first->node.from == n.from && first->node.to == n.to) return (*next)++, first->values;
    int64_t middle = qkv__tree_middle(n);
    float *left = add_parts(s, (qkv__node){ n.from, middle }, slice, next);
    add_span(left, add_parts(s, (qkv__node){ middle, n.to }, slice, next), slice);
    return left;
}

static qkv_status sum_in_tree(const qkv__reduction *s, int64_t bucket)
{
    qkv__span mine = qkv__slice(&s->slices, bucket, s->slices.rank);
    int64_t slice = mine.to - mine.from, used = 0;
    qkv_status status = QKV_OK;
    for (int i = 0; i < s->n_parts; i++) {
        part *p = &s->parts[i];
        p->values = p->rank == s->slices.rank ? s->o.values[p->number] + mine.from : s->room + slice * used++;
    }
    for (int k = 0; k < s->most && !status; k++) status = exchange_nodes(s, k, bucket);
    if (status) return status;
    int next = 0;
    const float *sum = add_parts(s, (qkv__node){ 0, s->o.leaves }, slice, &next);
    if (slice && sum != s->o.sum + mine.from) memcpy(s->o.sum + mine.from, sum, sizeof *sum * (size_t)slice);
    return s->o.keeps_slice ? QKV_OK : qkv__share_bucket(&s->slices, s->o.sum, bucket);
}

static qkv_status reduce_bucket(const qkv__reduction *s, int64_t bucket)
{
    qkv__span all = qkv__bucket(&s->slices, bucket);
    for (int i = 0; i < s->o.n_late; i++) add_span(s->o.sum + all.from, s->o.late[i] + all.from, all.to - all.from);
    return s->o.is_fast ? qkv__dist_fast_sum(s->o.sum + all.from, (size_t)(all.to - all.from)) : sum_in_tree(s, bucket);
}

/* ---- all of them ---- */

static qkv_status reduce_buckets(void *data)
{
    qkv__reduction *s = data;
    qkv_status status = QKV_OK;
    for (int64_t b = qkv__buckets(&s->slices) - 1; b >= 0 && !status; b--) {
        qkv__mark_wait(&s->ready, s->o.count - qkv__bucket(&s->slices, b).from);
        status = reduce_bucket(s, b);
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
    s->parts = parts;
}

static qkv_status make_room(qkv__reduction *s)
{
    size_t ranks = (size_t)s->slices.ranks, tables = ranks * (2 * sizeof(void *) + 2 * sizeof(size_t));
    qkv__span first = qkv__bucket(&s->slices, 0); /* no other is larger */
    int64_t units = qkv__ceil_div(first.to - first.from, QKV__UNIT), slice = QKV__UNIT * qkv__ceil_div(units, s->slices.ranks);
    list_parts(s, NULL);
    size_t room = (size_t)s->n_parts * (size_t)slice * sizeof(float), parts = (size_t)s->n_parts * sizeof(part);
    s->bytes = room + parts + tables;
    if (!(s->room = qkv__alloc(s->bytes))) return QKV_MEMORY;
    list_parts(s, (part *)(uintptr_t)((char *)s->room + room));
    s->send = (const void **)(uintptr_t)(s->parts + s->n_parts);
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
    qkv__release(s->room, s->bytes);
    qkv__release(s, sizeof *s);
    return status;
}
