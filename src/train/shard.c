/* shard.c: optimizer state that lies on all ranks. Rank 0 writes, and asks for one bucket after the other, so that no rank
 * ever has all of it; when a training goes on each rank reads its own part. */
#include "shard.h"

#include "optimizer.h"

#include "../base/memory.h"
#include "../base/size.h"

#include <string.h>

/* Bytes of a bucket. */
static size_t room_of(const qkv__slices *s) { return sizeof(float) * (size_t)qkv__bucket_floats(s); }

/* What rank 0 asks for; of the state -1: nothing more. */
typedef struct wish {
    int64_t state, bucket;
} wish;

static qkv_status fetch(const qkv_optimizer *o, const qkv__slices *s, wish *w, float *to)
{
    qkv_status status = qkv__dist_copy(w, sizeof *w);
    return status || w->state < 0 ? status : qkv__fetch_bucket(s, qkv__optimizer_state(o, (int)w->state), w->bucket, to);
}

qkv_status qkv__collection_begin(qkv__collection *c, const qkv_optimizer *o, const qkv__slices *s)
{
    *c = (qkv__collection){ .optimizer = o, .slices = s, .room = qkv__alloc(2 * room_of(s)), .bucket = { -1, -1 } };
    return c->room ? QKV_OK : QKV_MEMORY;
}

qkv_status qkv__collection_end(qkv__collection *c)
{
    wish nothing = { .state = -1 };
    qkv__release(c->room, 2 * room_of(c->slices));
    return fetch(c->optimizer, c->slices, &nothing, NULL);
}

qkv_status qkv__give_to_collection(const qkv_optimizer *o, const qkv__slices *s)
{
    wish w = { 0 };
    qkv_status status = QKV_OK;
    while (!status && w.state >= 0) status = fetch(o, s, &w, NULL);
    return status;
}

qkv_status qkv__collect(const void *from, int64_t first, int64_t n, float *to)
{
    const qkv__scattered *s = from;
    qkv__collection *c = s->all;
    int64_t floats = qkv__bucket_floats(c->slices);
    float *room = c->room + s->state * floats;
    for (int64_t at = s->start + first, end = at + n, next; at < end; at = next) {
        wish w = { s->state, at / floats };
        qkv__span bucket = qkv__bucket(c->slices, w.bucket);
        if (c->bucket[w.state] != w.bucket) {
            qkv_status status = fetch(c->optimizer, c->slices, &w, room);
            if (status) return status;
            c->bucket[w.state] = w.bucket;
        }
        next = qkv__min(end, bucket.to);
        memcpy(to, room + (at - bucket.from), sizeof *to * (size_t)(next - at));
        to += next - at;
    }
    return QKV_OK;
}

void qkv__read_scattered(const qkv__scattered *s, int64_t count, const qkv__stored *from)
{
    float *state = qkv__optimizer_state(s->all->optimizer, (int)s->state);
    qkv__span weight = { s->start, s->start + count };
    const qkv__slices *slices = s->all->slices;
    for (int64_t b = weight.from / qkv__bucket_floats(slices), place; qkv__bucket(slices, b).from < weight.to; b++) {
        qkv__span own = qkv__slice_of(slices, b, weight, &place);
        if (own.from < own.to) qkv__safetensors_decode_some(from, own.from - s->start, own.to - own.from, state + place);
    }
}
