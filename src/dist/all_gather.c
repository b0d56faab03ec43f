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

/* After an error too nobody waits for ever. */
static qkv_status gather_buckets(void *data)
{
    qkv__all_gather *g = data;
    qkv_status status = QKV_OK;
    for (int64_t b = 0; b < qkv__buckets(&g->slices) && !status; b++) {
        status = qkv__share_bucket(&g->slices, g->block, b);
        qkv__mark_raise(&g->here, status ? g->slices.count : qkv__bucket(&g->slices, b).to);
    }
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
