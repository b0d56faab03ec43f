/* slices.c: which rank has which floats of a flat block, and how they come together. */
#include "slices.h"

#include "../base/memory.h"
#include "../base/size.h"

#include <string.h>

qkv__slices qkv__slices_of(int64_t count)
{
    return (qkv__slices){ .count = count, .rank = qkv_dist_rank(), .ranks = qkv_dist_size() };
}

int64_t qkv__bucket_floats(const qkv__slices *s) { return qkv__max(QKV__BUCKET, (int64_t)QKV__SLICE * s->ranks); }

int64_t qkv__buckets(const qkv__slices *s) { return qkv__ceil_div(s->count, qkv__bucket_floats(s)); }

qkv__span qkv__bucket(const qkv__slices *s, int64_t bucket)
{
    int64_t floats = qkv__bucket_floats(s);
    return (qkv__span){ bucket * floats, qkv__min((bucket + 1) * floats, s->count) };
}

qkv__span qkv__slice(const qkv__slices *s, int64_t bucket, int rank)
{
    qkv__span all = qkv__bucket(s, bucket);
    int64_t units = qkv__ceil_div(all.to - all.from, QKV__UNIT);
    return (qkv__span){ all.from + QKV__UNIT * (units * rank / s->ranks),
                        qkv__min(all.to, all.from + QKV__UNIT * (units * (rank + 1) / s->ranks)) };
}

int64_t qkv__slice_most(const qkv__slices *s)
{
    int64_t units = qkv__ceil_div(qkv__min(s->count, qkv__bucket_floats(s)), QKV__UNIT);
    return QKV__UNIT * qkv__ceil_div(units, s->ranks);
}

/* All buckets but the last are alike. */
int64_t qkv__slice_place(const qkv__slices *s, int64_t bucket)
{
    if (!bucket) return 0;
    qkv__span first = qkv__slice(s, 0, s->rank), last = qkv__slice(s, bucket - 1, s->rank);
    return (bucket - 1) * (first.to - first.from) + (last.to - last.from);
}

qkv__span qkv__slice_of(const qkv__slices *s, int64_t bucket, qkv__span of, int64_t *place)
{
    qkv__span slice = qkv__slice(s, bucket, s->rank), own = { qkv__max(slice.from, of.from), qkv__min(slice.to, of.to) };
    *place = qkv__slice_place(s, bucket) + (own.from - slice.from);
    return own;
}

static qkv_status share_bucket(const qkv__slices *s, float *block, int64_t bucket, void **posted)
{
    size_t bytes = sizeof(size_t) * (size_t)s->ranks, *ends = qkv__alloc(bytes);
    if (!ends) return QKV_MEMORY;
    int64_t from = qkv__bucket(s, bucket).from;
    for (int r = 0; r < s->ranks; r++) ends[r] = sizeof *block * (size_t)(qkv__slice(s, bucket, r).to - from);
    qkv_status status = qkv__dist_post_join(block + from, ends, posted);
    qkv__release(ends, bytes);
    return status;
}

qkv_status qkv__share_block(const qkv__slices *s, float *block)
{
    qkv_status status = QKV_OK;
    for (int64_t b = 0; b < qkv__buckets(s) && !status; b++) {
        void *posted;
        status = share_bucket(s, block, b, &posted);
        if (!status) status = qkv__dist_finish(posted);
    }
    return status;
}

/* ---- numbers of units ---- */

static int64_t units_in(int64_t floats) { return qkv__ceil_div(floats, QKV__UNIT); }

/* Between the order of the block and that of the ranks, in which `packed` is. */
static void pack_units(const qkv__slices *s, double *units, double *packed, bool unpack)
{
    for (int r = 0; r < s->ranks; r++)
        for (int64_t b = 0; b < qkv__buckets(s); b++) {
            qkv__span slice = qkv__slice(s, b, r);
            size_t n = (size_t)units_in(slice.to - slice.from);
            double *at = units + slice.from / QKV__UNIT;
            memcpy(unpack ? at : packed, unpack ? packed : at, sizeof *at * n);
            packed += n;
        }
}

qkv_status qkv__share_units(const qkv__slices *s, double *units)
{
    size_t table = sizeof(size_t) * (size_t)s->ranks, bytes = sizeof *units * (size_t)units_in(s->count), end = 0;
    double *packed = qkv__alloc(bytes + table);
    if (!packed) return QKV_MEMORY;
    size_t *ends = (size_t *)(uintptr_t)((char *)packed + bytes);
    for (int r = 0; r < s->ranks; r++) {
        for (int64_t b = 0; b < qkv__buckets(s); b++) {
            qkv__span slice = qkv__slice(s, b, r);
            end += sizeof *units * (size_t)units_in(slice.to - slice.from);
        }
        ends[r] = end;
    }
    pack_units(s, units, packed, false);
    qkv_status status = qkv__dist_join(packed, ends);
    if (!status) pack_units(s, units, packed, true);
    qkv__release(packed, bytes + table);
    return status;
}

/* ---- to and from rank 0 ---- */

/* With every rank r: `whole`, a bucket, has its slice on rank 0, and `own` this rank's among its slices one after the other. */
static qkv_status exchange_with_first(const qkv__slices *s, int64_t bucket, float *own, float *whole, bool to_first)
{
    size_t n = (size_t)s->ranks, bytes = n * (2 * sizeof(void *) + 2 * sizeof(size_t));
    void **first = qkv__alloc_zero(bytes), **mine = first ? first + n : NULL;
    if (!first) return QKV_MEMORY;
    size_t *first_bytes = (size_t *)(mine + n), *mine_bytes = first_bytes + n;
    int64_t from = qkv__bucket(s, bucket).from;
    for (int r = 0; r < s->ranks; r++) {
        qkv__span slice = qkv__slice(s, bucket, r);
        size_t length = sizeof(float) * (size_t)(slice.to - slice.from);
        if (r == s->rank) mine[0] = own + qkv__slice_place(s, bucket), mine_bytes[0] = length;
        if (!s->rank) first[r] = whole + (slice.from - from), first_bytes[r] = length;
    }
    qkv_status status = to_first ? qkv__dist_exchange((const void *const *)mine, mine_bytes, first, first_bytes)
                                 : qkv__dist_exchange((const void *const *)first, first_bytes, mine, mine_bytes);
    qkv__release(first, bytes);
    return status;
}

qkv_status qkv__fetch_bucket(const qkv__slices *s, const float *own, int64_t bucket, float *to)
{
    return exchange_with_first(s, bucket, (float *)(uintptr_t)own, to, true); /* own is read alone */
}

qkv_status qkv__deal_bucket(const qkv__slices *s, const float *from, int64_t bucket, float *own)
{
    return exchange_with_first(s, bucket, own, (float *)(uintptr_t)from, false);
}
