/* tree.c: a sum whose order does not depend on who computes it. */
#include "tree.h"

#include "../base/memory.h"
#include "../base/pool.h"
#include "../base/size.h"

enum { TASK = 1 << 14 }; /* floats of a task of threads */

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
    int ranks = qkv_dist_size();
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
