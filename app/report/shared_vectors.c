/* shared_vectors.c: the vectors of texts that the ranks read together. */
#include "shared_vectors.h"

#include "../../src/base/memory.h"
#include "../../src/base/size.h"
#include "../../src/dist/dist.h"

#include <string.h>

void qkv__vectors_free(qkv__vectors *v)
{
    qkv__release(v->data, v->bytes);
    *v = (qkv__vectors){ 0 };
}

/* The rows that each rank has to all; ends[r] is the text after rank r's last. */
static qkv_status join_rows(const qkv_matrix *own, int64_t from, size_t *ends, qkv__vectors *all)
{
    size_t row = (size_t)own->width * sizeof *own->data;
    if (qkv__grow((void **)&all->data, &all->bytes, ends[qkv_dist_size() - 1] * row)) return QKV_MEMORY;
    all->rows = (int64_t)ends[qkv_dist_size() - 1];
    all->width = own->width;
    if (own->rows) memcpy(all->data + from * own->width, own->data, (size_t)own->rows * row);
    for (int r = 0; r < qkv_dist_size(); r++) ends[r] *= row;
    return qkv_dist_size() > 1 ? qkv__dist_join(all->data, ends) : QKV_OK;
}

qkv_status qkv__embed_shared(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_embed_opts *opts, qkv__vectors *out)
{
    size_t ranks = (size_t)qkv_dist_size(), bytes = ((size_t)n + ranks) * sizeof(size_t), *lengths = qkv__alloc(bytes);
    if (!lengths) return QKV_MEMORY;
    size_t *ends = lengths + n;
    for (int64_t i = 0; i < n; i++) lengths[i] = texts[i].length;
    for (size_t r = 0; r < ranks; r++) ends[r] = ranks > 1 ? (size_t)qkv_dist_first(lengths, n, (int)r + 1) : (size_t)n;
    int64_t from = qkv_dist_rank() ? (int64_t)ends[qkv_dist_rank() - 1] : 0;
    qkv_matrix *own = NULL;
    qkv_status status = qkv_embed(m, texts + from, (int64_t)ends[qkv_dist_rank()] - from, opts, &own);
    if (!status) status = join_rows(own, from, ends, out);
    if (status) out->rows = 0;
    qkv_free(own);
    qkv__release(lengths, bytes);
    return status;
}
