/* shared_texts.c: texts that the ranks read together, each its share, so that all have about as much to do. */
#include "texts.h"

#include "../base/size.h"
#include "../dist/dist.h"

#include <string.h>

static size_t text_bytes(const qkv_texts *t, int64_t i)
{
    if (t->ids) return (size_t)t->n_ids[i];
    size_t length = t->lengths ? t->lengths[i] : strlen(t->texts[i]);
    return t->pairs ? length + (t->pair_lengths ? t->pair_lengths[i] : strlen(t->pairs[i])) : length;
}

/* The rows that each rank has to all; ends[r] is the text after rank r's last. */
static qkv_status join_rows(const qkv_matrix *own, int64_t from, size_t *ends, qkv_matrix *all)
{
    size_t row = (size_t)own->width * sizeof *own->data;
    if (qkv__grow((void **)&all->data, &all->bytes, ends[qkv_dist_size() - 1] * row)) return QKV_MEMORY;
    all->n = (int64_t)ends[qkv_dist_size() - 1];
    all->width = own->width;
    if (own->n) memcpy(all->data + from * own->width, own->data, (size_t)own->n * row);
    for (int r = 0; r < qkv_dist_size(); r++) ends[r] *= row;
    return qkv__dist_join(all->data, ends);
}

static qkv_status add_cuts(int64_t own, int64_t *parts, int64_t *sum)
{
    qkv_status status = qkv__dist_share(&own, sizeof own, parts);
    *sum = 0;
    for (int r = 0; r < qkv_dist_size() && !status; r++) *sum += parts[r];
    return status;
}

static qkv_texts part_of_texts(const qkv_texts *t, int64_t from, int64_t to)
{
    qkv_texts part = { .n = to - from };
    if (t->ids) part.ids = t->ids + from, part.n_ids = t->n_ids + from;
    if (t->texts) part.texts = t->texts + from;
    if (t->lengths) part.lengths = t->lengths + from;
    if (t->pairs) part.pairs = t->pairs + from;
    if (t->pair_lengths) part.pair_lengths = t->pair_lengths + from;
    return part;
}

qkv_status qkv__read_shared_texts(const qkv_model *m, const qkv_texts *texts, const qkv_encoder_opts *opts, qkv__head *head,
                                  const void *data, int64_t width, qkv_matrix *out)
{
    if (qkv_dist_size() == 1 || !texts || (!texts->texts && !texts->n_ids) || texts->n < 1 || !out)
        return qkv__read_texts(m, texts, opts, head, data, width, out);
    size_t ranks = (size_t)qkv_dist_size(), n = (size_t)texts->n, bytes = (n + 2 * ranks) * sizeof n,
           *lengths = qkv__alloc(bytes);
    if (!lengths) return QKV_MEMORY;
    size_t *ends = lengths + n;
    for (size_t i = 0; i < n; i++) lengths[i] = text_bytes(texts, (int64_t)i);
    for (size_t r = 0; r < ranks; r++) ends[r] = (size_t)qkv_dist_first(lengths, texts->n, (int)r + 1);
    int64_t from = qkv_dist_rank() ? (int64_t)ends[qkv_dist_rank() - 1] : 0;
    const qkv_texts own = part_of_texts(texts, from, (int64_t)ends[qkv_dist_rank()]);
    qkv_matrix rows = { 0 };
    qkv_status status = qkv__read_texts(m, &own, opts, head, data, width, &rows);
    if (!status) status = join_rows(&rows, from, ends, out);
    if (!status) status = add_cuts(rows.cut, (int64_t *)(uintptr_t)(ends + ranks), &out->cut);
    if (status) out->n = 0;
    qkv_matrix_free(&rows);
    qkv__release(lengths, bytes);
    return status;
}
