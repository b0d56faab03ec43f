/* translate_split.c: long texts, sentence by sentence or part by part, and the results together again. */
#include "passages.h"
#include "translate.h"

#include "../base/result.h"
#include "../base/size.h"

#include <string.h>

typedef struct splitting {
    int64_t n; /* texts */
    qkv__passages p;
    qkv_translations *found; /* of the passages */
    qkv_translations *out;
    qkv_status *status; /* of the result, to be written, and so are the next three */
    const int32_t **source_ids;
    int64_t *n_source;
    qkv_translation *best;
    qkv_buffer joined;
    bool in_line;
} splitting;

static void *take_room(splitting *x, int64_t n, size_t size)
{
    size_t bytes;
    return qkv__size_mul((size_t)n, size, &bytes) ? qkv__result_alloc(x->out, bytes) : NULL;
}

/* The ids of all passages of a text, one after the other. */
static int64_t count_ids(const splitting *x, int64_t i, int k)
{
    int64_t n = 0;
    for (int64_t s = x->p.first[i]; s < x->p.first[i + 1]; s++)
        n += qkv__max(0, x->found->best[s * x->found->n_best + k].n_ids);
    return n;
}

static qkv_status join_best(splitting *x, int64_t i, int k)
{
    qkv_translation *to = &x->best[i * x->found->n_best + k];
    *to = (qkv_translation){ .text = { "", 0 }, .n_ids = -1 };
    if (k && !qkv__passages_have(&x->p, i, x->found, k)) return QKV_OK;
    qkv_status status = qkv__passages_join(&x->p, i, x->found, k, x->in_line, &x->joined);
    const qkv_str text = status ? (qkv_str){ NULL, 0 } : qkv__result_copy(x->out, x->joined.data, x->joined.length);
    int32_t *ids = text.data ? take_room(x, count_ids(x, i, k), sizeof *ids) : NULL;
    if (!ids) return status ? status : QKV_MEMORY;
    *to = (qkv_translation){ .text = text, .ids = ids };
    for (int64_t s = x->p.first[i]; s < x->p.first[i + 1]; s++) {
        const qkv_translation *one = &x->found->best[s * x->found->n_best + k];
        if (one->n_ids < 0) continue;
        if (one->n_ids) memcpy(ids + to->n_ids, one->ids, sizeof *ids * (size_t)one->n_ids);
        to->n_ids += one->n_ids;
        to->log_p += one->log_p;
        to->score += one->score;
        to->truncated |= one->truncated;
    }
    return QKV_OK;
}

/* A text is refused where one of its passages is, of which then the tokens are told. */
static qkv_status join_sources(splitting *x, int64_t i)
{
    int64_t n = 0, used = 0;
    x->status[i] = QKV_OK;
    x->source_ids[i] = NULL;
    for (int64_t s = x->p.first[i]; s < x->p.first[i + 1]; s++) n += x->found->n_source[s];
    x->n_source[i] = n;
    for (int64_t s = x->p.first[i]; s < x->p.first[i + 1]; s++)
        if (x->found->status[s]) return x->status[i] = x->found->status[s], x->n_source[i] = x->found->n_source[s], QKV_OK;
    int32_t *ids = n ? take_room(x, n, sizeof *ids) : NULL;
    if (!ids) return n ? QKV_MEMORY : QKV_OK;
    x->source_ids[i] = ids;
    for (int64_t s = x->p.first[i]; s < x->p.first[i + 1]; used += x->found->n_source[s++])
        if (x->found->source_ids[s])
            memcpy(ids + used, x->found->source_ids[s], sizeof(int32_t) * (size_t)x->found->n_source[s]);
    return QKV_OK;
}

static qkv_status join_results(splitting *x)
{
    qkv_translations *out = x->out;
    int64_t n = x->n;
    *out = *x->found;
    out->n = n;
    out->status = x->status = take_room(x, n, sizeof *x->status);
    out->source_ids = x->source_ids = take_room(x, n, sizeof *x->source_ids);
    out->n_source = x->n_source = take_room(x, n, sizeof *x->n_source);
    out->best = x->best = take_room(x, n * out->n_best, sizeof *x->best);
    if (!x->status || !x->source_ids || !x->n_source || !x->best) return QKV_MEMORY;
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < n && !status; i++) {
        status = join_sources(x, i);
        for (int k = 0; k < out->n_best && !status; k++) status = join_best(x, i, k);
    }
    return status;
}

qkv_status qkv__translate_split(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_translate_opts *opts,
                                qkv_translations *out)
{
    splitting x = { .n = n, .out = out, .in_line = opts->split == QKV_SPLIT_PARTS };
    qkv_translate_opts o = *opts;
    if ((unsigned)opts->split > QKV_SPLIT_AUTO || opts->attention)
        return qkv__fail(QKV_USAGE, "translate: there is no such split, or attention is wanted of several passages together");
    o.split = QKV_SPLIT_NONE;
    qkv_status status = qkv__passages_cut(&x.p, m, texts, n, opts, INT64_MAX);
    if (!status) status = qkv_translate(m, x.p.passages, x.p.n, &o, &x.found);
    if (!status) status = join_results(&x);
    qkv_free(x.found);
    qkv_buffer_free(&x.joined);
    qkv__passages_free(&x.p);
    return status;
}
