/* tree.c: a sum whose order does not depend on who computes it. The floats are taken a bucket at a time, and of each bucket every
 * rank adds up one slice: it gets that slice of every node, adds them in the order of the tree, and gives the sum to all. */
#include "tree.h"

#include "../base/memory.h"
#include "../base/pool.h"
#include "../base/size.h"

#include <string.h>

enum {
    LINE = 16,        /* floats: where slices may begin */
    TASK = 1 << 14,   /* floats of a task of threads */
    BUCKET = 1 << 20, /* floats that are on the way at once */
};

int64_t qkv__tree_middle(qkv__node n)
{
    int64_t left = 1;
    while (2 * left < n.to - n.from) left *= 2;
    return n.from + left;
}

qkv__node qkv__tree_share(int64_t leaves, int rank, int ranks)
{
    return (qkv__node){ leaves * rank / ranks, leaves * (rank + 1) / ranks };
}

static int add_nodes(qkv__node n, qkv__node share, qkv__node *nodes, int found)
{
    if (n.to <= share.from || n.from >= share.to) return found;
    if (n.from >= share.from && n.to <= share.to) return nodes[found] = n, found + 1;
    int64_t middle = qkv__tree_middle(n);
    found = add_nodes((qkv__node){ n.from, middle }, share, nodes, found);
    return add_nodes((qkv__node){ middle, n.to }, share, nodes, found);
}

int qkv__tree_nodes(int64_t leaves, qkv__node share, qkv__node nodes[QKV__MAX_NODES])
{
    return share.from < share.to ? add_nodes((qkv__node){ 0, leaves }, share, nodes, 0) : 0;
}

double qkv__tree_sum(const double *leaf, qkv__node n)
{
    if (n.to - n.from == 1) return leaf[n.from];
    int64_t middle = qkv__tree_middle(n);
    return qkv__tree_sum(leaf, (qkv__node){ n.from, middle }) + qkv__tree_sum(leaf, (qkv__node){ middle, n.to });
}

qkv_status qkv__share_parts(void *array, size_t bytes_each, int64_t n)
{
    int ranks = qkv_dist_ranks();
    size_t bytes = sizeof(size_t) * (size_t)ranks, *ends = qkv__alloc(bytes);
    if (!ends) return QKV_MEMORY;
    for (int r = 0; r < ranks; r++) ends[r] = bytes_each * (size_t)qkv__tree_share(n, r, ranks).to;
    qkv_status status = qkv__dist_join(array, ends);
    qkv__release(ends, bytes);
    return status;
}

/* ---- floats ---- */

typedef struct addition {
    float *to;
    const float *from;
    int64_t n;
} addition;

static void add_task(void *work, int64_t task, void *scratch)
{
    (void)scratch;
    const addition *a = work;
    float *restrict to = a->to;
    const float *restrict from = a->from;
    int64_t end = qkv__min((task + 1) * TASK, a->n);
    for (int64_t i = task * TASK; i < end; i++) to[i] += from[i];
}

qkv_status qkv__add_floats(float *to, const float *from, int64_t n)
{
    addition a = { to, from, n };
    return qkv__parallel(qkv__ceil_div(n, TASK), 0, add_task, &a);
}

/* A node that some rank has added up, and the slice of it that lies here. */
typedef struct part {
    qkv__node node;
    int rank, number; /* the number-th of that rank */
    float *values;
} part;

typedef struct summing {
    int rank, ranks;
    int64_t leaves, count;
    float *const *values; /* of this rank's nodes */
    float *sum;
    part *parts;       /* of all ranks, from left to right */
    int n_parts, most; /* most: of one rank */
    float *room;       /* slices of the others' nodes */
    const void **send;
    void **receive;
    size_t *send_bytes, *receive_bytes;
} summing;

/* Floats of a bucket that rank r adds up. */
static int64_t slice_end(const summing *s, int64_t floats, int r)
{
    return r == s->ranks - 1 ? floats : qkv__min(floats, qkv__round_up(floats / s->ranks, LINE) * (r + 1));
}
static int64_t slice_begin(const summing *s, int64_t floats, int r) { return r ? slice_end(s, floats, r - 1) : 0; }

/* The k-th node of each rank that has so many: its slices go to the ranks that add them up. */
static qkv_status exchange_nodes(const summing *s, int k, int64_t at, int64_t floats)
{
    qkv__node own[QKV__MAX_NODES];
    bool has = k < qkv__tree_nodes(s->leaves, qkv__tree_share(s->leaves, s->rank, s->ranks), own);
    int64_t slice = slice_end(s, floats, s->rank) - slice_begin(s, floats, s->rank);
    for (int r = 0; r < s->ranks; r++) {
        int64_t from = slice_begin(s, floats, r);
        bool sends = has && r != s->rank;
        s->send[r] = sends ? s->values[k] + at + from : NULL;
        s->send_bytes[r] = sends ? sizeof(float) * (size_t)(slice_end(s, floats, r) - from) : 0;
        s->receive[r] = NULL;
        s->receive_bytes[r] = 0;
    }
    for (int i = 0; i < s->n_parts; i++) {
        const part *p = &s->parts[i];
        if (p->number != k || p->rank == s->rank) continue;
        s->receive[p->rank] = p->values;
        s->receive_bytes[p->rank] = sizeof(float) * (size_t)slice;
    }
    return qkv__dist_exchange(s->send, s->send_bytes, s->receive, s->receive_bytes);
}

/* Adds up the parts of a node, from parts[*next] on, into the first of them. */
static qkv_status add_parts(const summing *s, qkv__node n, int64_t slice, int *next, float **sum)
{
    const part *first = &s->parts[*next];
    if (first->node.from == n.from && first->node.to == n.to) return *sum = first->values, (*next)++, QKV_OK;
    int64_t middle = qkv__tree_middle(n);
    float *right = NULL;
    qkv_status status = add_parts(s, (qkv__node){ n.from, middle }, slice, next, sum);
    if (!status) status = add_parts(s, (qkv__node){ middle, n.to }, slice, next, &right);
    return status ? status : qkv__add_floats(*sum, right, slice);
}

/* The slice that was added up here to all, and theirs from them. */
static qkv_status exchange_sums(const summing *s, float *own, int64_t at, int64_t floats)
{
    for (int r = 0; r < s->ranks; r++) {
        int64_t from = slice_begin(s, floats, r);
        s->send[r] = own;
        s->send_bytes[r] = sizeof(float) * (size_t)(slice_end(s, floats, s->rank) - slice_begin(s, floats, s->rank));
        s->receive[r] = s->sum + at + from;
        s->receive_bytes[r] = sizeof(float) * (size_t)(slice_end(s, floats, r) - from);
    }
    return qkv__dist_exchange(s->send, s->send_bytes, s->receive, s->receive_bytes);
}

static qkv_status sum_bucket(const summing *s, int64_t at, int64_t floats)
{
    int64_t from = slice_begin(s, floats, s->rank), slice = slice_end(s, floats, s->rank) - from, used = 0;
    qkv_status status = QKV_OK;
    for (int i = 0; i < s->n_parts; i++) {
        part *p = &s->parts[i];
        p->values = p->rank == s->rank ? s->values[p->number] + at + from : s->room + slice * used++;
    }
    for (int k = 0; k < s->most && !status; k++) status = exchange_nodes(s, k, at, floats);
    int next = 0;
    float *sum = NULL;
    if (!status) status = add_parts(s, (qkv__node){ 0, s->leaves }, slice, &next, &sum);
    return status ? status : exchange_sums(s, sum, at, floats);
}

/* All ranks' nodes, which each rank knows without being told; parts NULL: only counts them. */
static void list_parts(summing *s, part *parts)
{
    qkv__node nodes[QKV__MAX_NODES];
    s->n_parts = s->most = 0;
    for (int r = 0; r < s->ranks; r++) {
        int n = qkv__tree_nodes(s->leaves, qkv__tree_share(s->leaves, r, s->ranks), nodes);
        for (int k = 0; k < n; k++, s->n_parts++)
            if (parts) parts[s->n_parts] = (part){ .node = nodes[k], .rank = r, .number = k };
        s->most = (int)qkv__max(s->most, n);
    }
    s->parts = parts;
}

qkv_status qkv__dist_tree_sum(int64_t leaves, float *const *values, int64_t count, float *sum)
{
    summing s = {
        .rank = qkv_dist_rank(), .ranks = qkv_dist_ranks(), .leaves = leaves, .count = count, .values = values, .sum = sum
    };
    list_parts(&s, NULL);
    int64_t bucket = qkv__min(BUCKET, count), slice = qkv__min(bucket, qkv__round_up(bucket / s.ranks, LINE) + LINE * s.ranks);
    size_t tables = (size_t)s.ranks * (2 * sizeof(void *) + 2 * sizeof(size_t)), parts = (size_t)s.n_parts * sizeof(part);
    size_t room = (size_t)s.n_parts * (size_t)slice * sizeof(float), bytes = room + parts + tables;
    if (!(s.room = qkv__alloc(bytes))) return QKV_MEMORY;
    list_parts(&s, (part *)(uintptr_t)((char *)s.room + room));
    s.send = (const void **)(uintptr_t)(s.parts + s.n_parts);
    s.receive = (void **)(uintptr_t)(s.send + s.ranks);
    s.send_bytes = (size_t *)(uintptr_t)(s.receive + s.ranks);
    s.receive_bytes = s.send_bytes + s.ranks;
    qkv_status status = QKV_OK;
    for (int64_t at = 0; at < count && !status; at += bucket) status = sum_bucket(&s, at, qkv__min(bucket, count - at));
    qkv__release(s.room, bytes);
    return status;
}
