/* confusion.c: what labelled texts are, and what a classifier says they are. */
#include "texts.h"

#include "../base/arena.h"
#include "../base/options.h"
#include "../base/size.h"
#include "../text/notes.h"

#include <string.h>

static const char call[] = "classify labelled";
enum { USUAL_BATCH = 256, MOST_BATCH = 1 << 20 };

int64_t qkv__likeliest_class(const float *row, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

/* Texts that are classified together. */
typedef struct text_group {
    const qkv_model *model;
    const qkv_reading_opts *reading;
    qkv_confusion *out;
    int64_t n, most;
    const char **texts, **pairs;
    size_t *lengths, *pair_lengths;
    int64_t *classes;         /* what they are */
    qkv__arena places, bytes; /* the arrays, and the texts of this group */
    qkv_matrix found;
} text_group;

static qkv_status begin_group(text_group *g)
{
    size_t n = (size_t)g->most;
    bool ok = (g->texts = qkv__arena_take(&g->places, n * sizeof *g->texts)) &&
              (g->pairs = qkv__arena_take(&g->places, n * sizeof *g->pairs)) &&
              (g->lengths = qkv__arena_take(&g->places, n * sizeof *g->lengths)) &&
              (g->pair_lengths = qkv__arena_take(&g->places, n * sizeof *g->pair_lengths)) &&
              (g->classes = qkv__arena_take(&g->places, n * sizeof *g->classes));
    return ok ? QKV_OK : QKV_MEMORY;
}

static qkv_status count_group(text_group *g)
{
    const qkv_texts texts = { .texts = g->texts,
                              .pairs = g->n && g->pairs[0] ? g->pairs : NULL,
                              .lengths = g->lengths,
                              .pair_lengths = g->pair_lengths,
                              .n = g->n };
    qkv_status status = g->n ? qkv_classify(g->model, &texts, g->reading, &g->found) : QKV_OK;
    if (status) return status;
    for (int64_t i = 0; i < g->n; i++) {
        int64_t said = qkv__likeliest_class(g->found.data + i * g->found.width, g->found.width);
        g->out->counts[g->classes[i] * g->out->classes + said]++;
    }
    g->out->texts += g->n;
    g->out->cut += g->n ? g->found.cut : 0;
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

static int64_t class_named(const qkv_confusion *c, const char *label)
{
    for (int64_t i = 0; i < c->classes; i++)
        if (!strcmp(c->labels[i], label)) return i;
    return -1;
}

static qkv_status take_labelled(void *data, const qkv_labelled *x)
{
    text_group *g = data;
    int64_t class_id = class_named(g->out, x->label);
    if (class_id < 0)
        return qkv__fail(QKV_FORMAT, "%s: line %lld: the model does not know the label \"%.60s\"%s", x->path,
                         (long long)x->line, x->label, x->line == 1 ? ": if line 1 is a header, give --header" : "");
    g->classes[g->n] = class_id;
    qkv_status status = hold_text(g, x->text, x->text_length, &g->texts[g->n], &g->lengths[g->n]);
    if (!status) status = hold_text(g, x->pair, x->pair_length, &g->pairs[g->n], &g->pair_lengths[g->n]);
    if (!status) g->n++;
    return status || g->n < g->most ? status : count_group(g);
}

static qkv_status begin_confusion(const qkv_model *m, qkv_confusion *c)
{
    int64_t classes = 0;
    while (qkv_model_label(m, classes)) classes++;
    if (classes < 2)
        return qkv__fail(QKV_UNSUPPORTED, "%s: the model has %s", call,
                         classes ? "one label, and scores texts" : "no labels: it is not a classifier");
    size_t counts = sizeof *c->counts * (size_t)(classes * classes), labels = sizeof *c->labels * (size_t)classes;
    qkv_status status = qkv__grow((void **)&c->counts, &c->counts_bytes, counts);
    if (!status) status = qkv__grow((void **)&c->labels, &c->labels_bytes, labels);
    if (status) return status;
    memset(c->counts, 0, counts);
    for (int64_t i = 0; i < classes; i++) c->labels[i] = qkv_model_label(m, i);
    c->classes = classes;
    c->texts = c->cut = 0;
    return QKV_OK;
}

qkv_status qkv_classify_labelled(const qkv_model *m, const char *path, const qkv_classify_labelled_opts *opts,
                                 qkv_confusion *out)
{
    qkv_classify_labelled_opts o;
    qkv_status status = QKV__READ_OPTIONS(&o, note_data, opts, call);
    if (status) return status;
    if (!m || !path || !out || o.batch < 0)
        return qkv__fail(QKV_USAGE, "%s: a model, a file and a place for the result are needed", call);
    text_group g = {
        .model = m, .reading = o.reading, .out = out, .most = o.batch ? qkv__min(o.batch, MOST_BATCH) : USUAL_BATCH
    };
    status = begin_confusion(m, out);
    if (!status) status = begin_group(&g);
    if (!status) status = qkv__labelled_read(path, o.labelled, take_labelled, &g, (qkv__notes){ o.note, o.note_data }, NULL);
    if (!status) status = count_group(&g);
    if (!status && !out->texts) status = qkv__fail(QKV_FORMAT, "%s: there are no texts", path);
    qkv__arena_free(&g.places);
    qkv__arena_free(&g.bytes);
    qkv_matrix_free(&g.found);
    if (status) qkv_confusion_free(out);
    return status;
}

void qkv_confusion_free(qkv_confusion *c)
{
    if (!c) return;
    qkv__release(c->counts, c->counts_bytes);
    qkv__release(c->labels, c->labels_bytes);
    *c = (qkv_confusion){ 0 };
}
