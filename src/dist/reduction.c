/* reduction.c: a sum over ranks, bucket by bucket. Of each bucket every rank adds up its slice: it gets that slice of every
 * node, adds them in the order of the tree, and gives the sum to all. All ranks take the buckets in the same order, the last
 * one first, each as soon as it is ready: what a bucket waits for is computed in the meantime. */
#include "reduction.h"

#include "../base/memory.h"
#include "../base/size.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

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
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* of ready */
    pthread_cond_t is_changed;
    int64_t ready; /* the floats from here on are */
    qkv_status status;
    char sentence[QKV_SENTENCE_MAX];
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

static void wait_until_ready(qkv__reduction *s, int64_t from)
{
    pthread_mutex_lock(&s->lock);
    while (s->ready > from) pthread_cond_wait(&s->is_changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* A thread that wakes up for a moment must not wait until one that computes on the same core has had its time: since 6.12
 * Linux lets it go first where it asks for short slices. Elsewhere nothing changes. */
static void ask_for_short_slices(void)
{
#ifdef SYS_sched_setattr
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period; /* nanoseconds */
    } attributes = { .size = sizeof attributes, .nice = getpriority(PRIO_PROCESS, 0), .runtime = 100000 };
    syscall(SYS_sched_setattr, 0, &attributes, 0);
#endif
}

/* Its error is told by the thread that waits for the end. */
static void reduce_buckets(qkv__reduction *s)
{
    for (int64_t b = qkv__buckets(&s->slices) - 1; b >= 0 && !s->status; b--) {
        wait_until_ready(s, qkv__bucket(&s->slices, b).from);
        s->status = reduce_bucket(s, b);
    }
    if (s->status) snprintf(s->sentence, sizeof s->sentence, "%s", qkv_error());
}

static void *reduction_thread(void *data)
{
    ask_for_short_slices();
    reduce_buckets(data);
    return NULL;
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
    s->ready = o->count;
    if (make_room(s)) {
        qkv__release(s, sizeof *s);
        return NULL;
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->is_changed, NULL);
    s->has_thread = qkv__dist_is_threaded() && !pthread_create(&s->thread, NULL, reduction_thread, s);
    return s;
}

void qkv__reduction_ready(qkv__reduction *s, int64_t from)
{
    pthread_mutex_lock(&s->lock);
    if (from < s->ready) s->ready = from;
    pthread_cond_signal(&s->is_changed);
    pthread_mutex_unlock(&s->lock);
}

qkv_status qkv__reduction_end(qkv__reduction *s)
{
    qkv__reduction_ready(s, 0);
    if (s->has_thread) pthread_join(s->thread, NULL);
    else reduce_buckets(s);
    qkv_status status = s->status ? qkv__fail_again(s->status, s->sentence) : QKV_OK;
    pthread_cond_destroy(&s->is_changed);
    pthread_mutex_destroy(&s->lock);
    qkv__release(s->room, s->bytes);
    qkv__release(s, sizeof *s);
    return status;
}
