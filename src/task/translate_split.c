/* translate_split.c: long texts, sentence by sentence or part by part, and the results together again. */
#include "passages.h"
#include "translate.h"

#include "../base/size.h"
#include "../base/status.h"

#include <string.h>

typedef struct splitting {
    const qkv_texts *texts;
    qkv__passages p;
    qkv_translations found; /* of the passages */
    qkv_translations *out;
    bool in_line;
} splitting;

static void *take_room(splitting *x, int64_t n, size_t size)
{
    size_t bytes;
    return qkv__size_mul((size_t)n, size, &bytes) ? qkv__arena_take(&x->out->work->arena, bytes) : NULL;
}

/* The ids of all passages of a text, one after the other. */
static int64_t count_ids(const splitting *x, int64_t i, int k)
{
    int64_t n = 0;
    for (int64_t s = x->p.first[i]; s < x->p.first[i + 1]; s++) n += qkv__max(0, x->found.best[s * x->found.n_best + k].n_ids);
    return n;
}

static qkv_status join_best(splitting *x, int64_t i, int k)
{
    qkv_translation *to = &x->out->best[i * x->found.n_best + k];
    *to = (qkv_translation){ .text = "", .n_ids = -1 };
    if (k && !qkv__passages_have(&x->p, i, &x->found, k)) return QKV_OK;
    qkv_buffer *joined = &x->out->work->bytes;
    qkv_status status = qkv__passages_join(&x->p, i, &x->found, k, x->in_line, joined);
    char *text = status ? NULL : take_room(x, (int64_t)joined->length + 1, 1);
    int32_t *ids = text ? take_room(x, count_ids(x, i, k), sizeof *ids) : NULL;
    if (!ids) return status ? status : QKV_MEMORY;
    memcpy(text, joined->data, joined->length + 1);
    *to = (qkv_translation){ .text = text, .length = joined->length, .ids = ids };
    for (int64_t s = x->p.first[i]; s < x->p.first[i + 1]; s++) {
        const qkv_translation *one = &x->found.best[s * x->found.n_best + k];
        if (one->n_ids < 0) continue;
        if (one->n_ids) memcpy(ids + to->n_ids, one->ids, sizeof *ids * (size_t)one->n_ids);
        to->n_ids += one->n_ids;
        to->log_p += one->log_p;
        to->score += one->score;
        to->is_cut |= one->is_cut;
    }
    return QKV_OK;
}

/* A text is refused where one of its passages is, of which then the tokens are told. */
static qkv_status join_sources(splitting *x, int64_t i)
{
    qkv_translations *out = x->out;
    int64_t n = 0, used = 0;
    out->status[i] = QKV_OK;
    out->source_ids[i] = NULL;
    for (int64_t s = x->p.first[i]; s < x->p.first[i + 1]; s++) n += x->found.n_source[s];
    out->n_source[i] = n;
    for (int64_t s = x->p.first[i]; s < x->p.first[i + 1]; s++)
        if (x->found.status[s]) return out->status[i] = x->found.status[s], out->n_source[i] = x->found.n_source[s], QKV_OK;
    if (!n || !(out->source_ids[i] = take_room(x, n, sizeof(int32_t)))) return n ? QKV_MEMORY : QKV_OK;
    for (int64_t s = x->p.first[i]; s < x->p.first[i + 1]; used += x->found.n_source[s++])
        if (x->found.source_ids[s])
            memcpy(out->source_ids[i] + used, x->found.source_ids[s], sizeof(int32_t) * (size_t)x->found.n_source[s]);
    return QKV_OK;
}

static qkv_status join_results(splitting *x)
{
    qkv_translations *out = x->out;
    int64_t n = x->texts->n;
    struct qkv_translations_work *work = out->work;
    *out = x->found;
    out->work = work;
    out->n = n;
    out->status = take_room(x, n, sizeof *out->status);
    out->source_ids = take_room(x, n, sizeof *out->source_ids);
    out->n_source = take_room(x, n, sizeof *out->n_source);
    out->best = take_room(x, n * out->n_best, sizeof *out->best);
    if (!out->status || !out->source_ids || !out->n_source || !out->best) return QKV_MEMORY;
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < n && !status; i++) {
        status = join_sources(x, i);
        for (int k = 0; k < out->n_best && !status; k++) status = join_best(x, i, k);
    }
    return status;
}

qkv_status qkv__translate_split(const qkv_model *m, const qkv_texts *texts, const qkv_translate_opts *opts,
                                qkv_translations *out)
{
    splitting x = { .texts = texts, .out = out, .in_line = opts->split == QKV_SPLIT_PARTS };
    qkv_translate_opts o = *opts;
    if ((unsigned)opts->split > QKV_SPLIT_AUTO || opts->attention)
        return qkv__fail(QKV_USAGE, "translate: there is no such split, or attention is wanted of several passages together");
    o.split = QKV_SPLIT_NONE;
    qkv_status status = qkv__passages_cut(&x.p, m, texts, opts, INT64_MAX);
    if (!status) status = qkv_translate(m, x.p.passages, x.p.lengths, x.p.n, &o, &x.found);
    if (!status) status = join_results(&x);
    qkv_translations_free(&x.found);
    qkv__passages_free(&x.p);
    return status;
}
