/* deal.c: pieces of work that are dealt out to the ranks as they come. */
#include "deal.h"

#include "../base/memory.h"

qkv_status qkv__deal_piece(qkv__deal *d, int64_t work, bool *is_own)
{
    size_t ranks = (size_t)qkv_dist_size();
    if (!d->work) {
        d->work_bytes = ranks * sizeof *d->work;
        if (!(d->work = qkv__alloc_zero(d->work_bytes))) return QKV_MEMORY;
    }
    if (qkv__grow((void **)&d->pieces, &d->pieces_bytes, (size_t)(d->n + 1) * sizeof *d->pieces)) return QKV_MEMORY;
    size_t least = 0;
    for (size_t r = 1; r < ranks; r++)
        if (d->work[r] < d->work[least]) least = r;
    d->work[least] += work;
    d->pieces[d->n++] = (qkv__dealt){ .rank = (int)least };
    *is_own = (int)least == qkv_dist_rank();
    return QKV_OK;
}

/* The numbers rank by rank, as they travel. ends: in bytes, of each rank's. */
static void pack_numbers(const qkv__deal *d, double *packed, size_t *ends)
{
    size_t at = 0;
    for (int r = 0; r < qkv_dist_size(); r++) {
        for (int64_t i = 0; i < d->n; i++)
            if (d->pieces[i].rank == r) packed[at++] = d->pieces[i].number;
        ends[r] = at * sizeof *packed;
    }
}

static void unpack_numbers(qkv__deal *d, const double *packed)
{
    for (int r = 0; r < qkv_dist_size(); r++)
        for (int64_t i = 0; i < d->n; i++)
            if (d->pieces[i].rank == r) d->pieces[i].number = *packed++;
}

qkv_status qkv__deal_join(qkv__deal *d)
{
    if (qkv_dist_size() == 1) return QKV_OK;
    int64_t all[2] = { d->n };
    for (int r = 0; d->n && r < qkv_dist_size(); r++) all[1] += d->work[r];
    qkv_status agreed = qkv__dist_agree(all, sizeof all, "the text");
    if (agreed || !d->n) return agreed;
    size_t numbers = (size_t)d->n * sizeof(double), bytes = numbers + (size_t)qkv_dist_size() * sizeof(size_t);
    double *packed = qkv__alloc(bytes);
    if (!packed) return QKV_MEMORY;
    size_t *ends = (size_t *)(uintptr_t)((char *)packed + numbers);
    pack_numbers(d, packed, ends);
    qkv_status status = qkv__dist_join(packed, ends);
    if (!status) unpack_numbers(d, packed);
    qkv__release(packed, bytes);
    return status;
}

void qkv__deal_free(qkv__deal *d)
{
    qkv__release(d->pieces, d->pieces_bytes);
    qkv__release(d->work, d->work_bytes);
    *d = (qkv__deal){ 0 };
}
