/* labelled_texts.c: labelled texts of a file through a classifier, a group at a time. */
#include "results.h"
#include "labelled_texts.h"

#include "../../src/base/arena.h"
#include "../../src/base/options.h"
#include "../../src/base/size.h"
#include "notes.h"

#include <string.h>

enum { USUAL_BATCH = 256, MOST_BATCH = 1 << 20 };

/* Texts that are classified together. */
typedef struct text_group {
    const qkv_model *model;
    const qkv_encoder_opts *reading;
    const qkv__labelled_use *use;
    int64_t n, most;
    qkv__labelled_counts counts;
    qkv__unknown_labels unknown;
    bool is_strict;
    qkv_str *at, *pairs;
    double *targets;          /* (most, width): what they are */
    qkv__arena places, bytes; /* the arrays, and the texts of this group */
    qkv_matrix *found;
} text_group;

static qkv_status begin_group(text_group *g)
{
    size_t n = (size_t)g->most, width = (size_t)g->use->width;
    bool ok = (g->at = qkv__arena_take(&g->places, n * sizeof *g->at)) &&
              (g->pairs = qkv__arena_take(&g->places, n * sizeof *g->pairs)) &&
              (g->targets = qkv__arena_take(&g->places, n * width * sizeof *g->targets));
    return ok ? QKV_OK : QKV_MEMORY;
}

static qkv_status count_group(text_group *g)
{
    qkv_encoder_opts reading = g->reading ? *g->reading : QKV_OPTS(qkv_encoder_opts);
    reading.pairs = g->pairs;
    qkv_status status = g->n ? qkv_classify(g->model, g->at, g->n, &reading, &g->found) : QKV_OK;
    for (int64_t i = 0; i < g->n && !status; i++)
        status = g->use->count(g->use->data, g->found->data + i * g->found->width, g->found->width,
                               g->targets + i * g->use->width);
    if (status) return status;
    g->counts.texts += g->n;
    g->counts.cut += g->n ? g->found->truncated : 0;
    g->n = 0;
    qkv__arena_reset(&g->bytes);
    return QKV_OK;
}

/* A copy that lives as long as the group; NULL stays NULL. */
static qkv_status hold_text(text_group *g, const char *text, size_t length, qkv_str *to)
{
    char *copy = text ? qkv__arena_take(&g->bytes, length + 1) : NULL;
    if (copy) memcpy(copy, text, length);
    *to = (qkv_str){ copy, copy ? length : 0 };
    return copy || !text ? QKV_OK : QKV_MEMORY;
}

static qkv_status unknown_label(const char *path, int64_t line, const char *label)
{
    return qkv__fail(QKV_FORMAT, "%s: line %lld: the model does not know the label \"%.60s\"%s", path, (long long)line, label,
                     line == 1 ? ": if line 1 is a header, give --header" : "");
}

static qkv_status take_labelled(void *data, const qkv_labelled *x)
{
    text_group *g = data;
    double *target = g->targets + g->n * g->use->width;
    for (int64_t i = 0; i < g->use->width; i++) target[i] = 0;
    const char *unknown = NULL;
    qkv_status status = g->use->read(g->use->data, x, target, &unknown);
    if (!status && unknown && !g->is_strict) return qkv__note_unknown(&g->unknown, x, unknown), QKV_OK;
    if (!status && unknown) return unknown_label(x->path, x->line, unknown);
    if (!status) status = hold_text(g, x->text.data, x->text.length, &g->at[g->n]);
    if (!status) status = hold_text(g, x->pair.data, x->pair.length, &g->pairs[g->n]);
    if (!status) g->n++;
    return status || g->n < g->most ? status : count_group(g);
}

qkv_status qkv__classify_each(const qkv_model *m, const char *path, const qkv_classify_labelled_opts *o,
                              const qkv__labelled_use *use, qkv__labelled_counts *counts)
{
    text_group g = { .model = m,
                     .reading = o->reading,
                     .use = use,
                     .most = o->batch ? qkv__min(o->batch, MOST_BATCH) : USUAL_BATCH,
                     .is_strict = o->labelled && o->labelled->strict };
    const qkv__notes notes = { o->note, o->note_data };
    qkv_status status = begin_group(&g);
    if (!status) status = qkv__labelled_read(path, o->labelled, take_labelled, &g, notes, NULL);
    if (!status) status = count_group(&g);
    if (!status && !g.counts.texts && g.unknown.n) status = unknown_label(path, g.unknown.first_line, g.unknown.first);
    if (!status && !g.counts.texts) status = qkv__fail(QKV_FORMAT, "%s: there are no texts", path);
    if (!status) qkv__tell_unknown(notes, path, &g.unknown);
    g.counts.unknown = g.unknown.n;
    *counts = g.counts;
    qkv__arena_free(&g.places);
    qkv__arena_free(&g.bytes);
    qkv_free(g.found);
    return status;
}
