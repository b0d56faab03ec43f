/* labelled_texts.c: labelled texts of a file through a classifier, a group at a time. */
#include "labelled_texts.h"

#include "../base/arena.h"
#include "../base/options.h"
#include "../base/size.h"
#include "../text/notes.h"

#include <string.h>

enum { USUAL_BATCH = 256, MOST_BATCH = 1 << 20 };

/* Texts that are classified together. */
typedef struct text_group {
    const qkv_model *model;
    const qkv_reading_opts *reading;
    const qkv__labelled_use *use;
    int64_t n, most, texts, cut;
    const char **at, **pairs;
    size_t *lengths, *pair_lengths;
    double *targets;          /* (most, width): what they are */
    qkv__arena places, bytes; /* the arrays, and the texts of this group */
    qkv_matrix found;
} text_group;

static qkv_status begin_group(text_group *g)
{
    size_t n = (size_t)g->most, width = (size_t)g->use->width;
    bool ok = (g->at = qkv__arena_take(&g->places, n * sizeof *g->at)) &&
              (g->pairs = qkv__arena_take(&g->places, n * sizeof *g->pairs)) &&
              (g->lengths = qkv__arena_take(&g->places, n * sizeof *g->lengths)) &&
              (g->pair_lengths = qkv__arena_take(&g->places, n * sizeof *g->pair_lengths)) &&
              (g->targets = qkv__arena_take(&g->places, n * width * sizeof *g->targets));
    return ok ? QKV_OK : QKV_MEMORY;
}

static qkv_status count_group(text_group *g)
{
    const qkv_texts texts = { .texts = g->at,
                              .pairs = g->n && g->pairs[0] ? g->pairs : NULL,
                              .lengths = g->lengths,
                              .pair_lengths = g->pair_lengths,
                              .n = g->n };
    qkv_status status = g->n ? qkv_classify(g->model, &texts, g->reading, &g->found) : QKV_OK;
    for (int64_t i = 0; i < g->n && !status; i++)
        status = g->use->count(g->use->data, g->found.data + i * g->found.width, g->found.width,
                               g->targets + i * g->use->width);
    if (status) return status;
    g->texts += g->n;
    g->cut += g->n ? g->found.cut : 0;
    g->n = 0;
    qkv__arena_reset(&g->bytes);
    return QKV_OK;
}

/* A copy that lives as long as the group; NULL stays NULL. */
static qkv_status hold_text(text_group *g, const char *text, size_t length, const char **to, size_t *to_length)
{
    char *copy = text ? qkv__arena_take(&g->bytes, length + 1) : NULL;
    if (copy) memcpy(copy, text, length);
    *to = copy;
    *to_length = length;
    return copy || !text ? QKV_OK : QKV_MEMORY;
}

static qkv_status take_labelled(void *data, const qkv_labelled *x)
{
    text_group *g = data;
    double *target = g->targets + g->n * g->use->width;
    for (int64_t i = 0; i < g->use->width; i++) target[i] = 0;
    qkv_status status = g->use->read(g->use->data, x, target);
    if (!status) status = hold_text(g, x->text, x->text_length, &g->at[g->n], &g->lengths[g->n]);
    if (!status) status = hold_text(g, x->pair, x->pair_length, &g->pairs[g->n], &g->pair_lengths[g->n]);
    if (!status) g->n++;
    return status || g->n < g->most ? status : count_group(g);
}

qkv_status qkv__classify_each(const qkv_model *m, const char *path, const qkv_classify_labelled_opts *o,
                              const qkv__labelled_use *use, int64_t *texts, int64_t *cut)
{
    text_group g = {
        .model = m, .reading = o->reading, .use = use, .most = o->batch ? qkv__min(o->batch, MOST_BATCH) : USUAL_BATCH
    };
    qkv_status status = begin_group(&g);
    if (!status) status = qkv__labelled_read(path, o->labelled, take_labelled, &g, (qkv__notes){ o->note, o->note_data }, NULL);
    if (!status) status = count_group(&g);
    if (!status && !g.texts) status = qkv__fail(QKV_FORMAT, "%s: there are no texts", path);
    *texts = g.texts;
    *cut = g.cut;
    qkv__arena_free(&g.places);
    qkv__arena_free(&g.bytes);
    qkv_matrix_free(&g.found);
    return status;
}
