/* all_gather.c: slices of a block to every rank, in the background. */
#include "all_gather.h"

#include "aside.h"

#include "../base/memory.h"

struct qkv__all_gather {
    qkv__slices slices;
    float *block;
    qkv__mark here; /* so many floats at the beginning are */
    qkv__aside aside;
};

/* The next bucket is posted before one is waited for: the link is never idle. After an error too nobody waits for ever. */
static qkv_status gather_buckets(void *data)
{
    qkv__all_gather *g = data;
    void *now, *next = NULL;
    int64_t n = qkv__buckets(&g->slices);
    qkv_status status = qkv__share_bucket(&g->slices, g->block, 0, &now);
    for (int64_t b = 0; b < n && !status; b++, now = next) {
        if (b + 1 < n) status = qkv__share_bucket(&g->slices, g->block, b + 1, &next);
        if (!status) status = qkv__dist_finish(now);
        if (!status) qkv__mark_raise(&g->here, qkv__bucket(&g->slices, b).to);
    }
    qkv__mark_raise(&g->here, g->slices.count);
    return status;
}

qkv__all_gather *qkv__all_gather_begin(const qkv__slices *s, float *block)
{
    qkv__all_gather *g = qkv__alloc_zero(sizeof *g);
    if (!g) return NULL;
    g->slices = *s;
    g->block = block;
    qkv__mark_init(&g->here);
    qkv__aside_begin(&g->aside, gather_buckets, g);
    return g;
}

void qkv__all_gather_wait(qkv__all_gather *g, int64_t to)
{
    qkv__aside_need(&g->aside);
    qkv__mark_wait(&g->here, to);
}

qkv_status qkv__all_gather_end(qkv__all_gather *g)
{
    qkv_status status = qkv__aside_end(&g->aside);
    qkv__mark_destroy(&g->here);
    qkv__release(g, sizeof *g);
    return status;
}
