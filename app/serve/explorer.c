/* explorer.c: the explorer page as a file that holds its data. */
#include "serve.h"

#include <qkv/unstable/util.h>
#include "../engine/attention_capture.h"
#include "../report/attention.h"
#include "page.h"
#include "../engine/about.h"

#include "../../src/base/file.h"
#include "../../src/base/size.h"
#include "../../src/inspect/attend.h"

#include <stdio.h>
#include <string.h>

enum { CELLS = 48 };                 /* a side of a thumbnail */
enum { MOST_EXACT_BYTES = 4 << 20 }; /* of weights as float32: a page with more of them has them rounded and packed */

typedef struct writing {
    const qkv_model *m;
    const qkv_attention_capture *a;
    int kind, layer, head; /* -1: all */
    bool is_rounded;
    qkv__json j;
} writing;

/* ---- what is wanted ---- */

static bool has_kind(const writing *w, int kind) { return w->a->layers[kind] && (w->kind < 0 || w->kind == kind); }

/* Layers, or heads: all of them and their mean, or the one. The mean comes last, as -1. */
static int first_of(int wanted) { return wanted < 0 ? 0 : wanted; }
static int count_of_maps(int wanted, int all) { return wanted < 0 ? all + 1 : 1; }
static int place_of_map(int i, int wanted, int all) { return wanted < 0 && i == all ? -1 : first_of(wanted) + i; }

/* Of all weights, as float32. */
static double bytes_of_weights(const writing *w)
{
    double bytes = 0;
    for (int kind = 0; kind < QKV_ATTENTION_KINDS; kind++) {
        if (!has_kind(w, kind)) continue;
        double maps = (double)count_of_maps(w->layer, w->a->layers[kind]) * count_of_maps(w->head, w->a->heads) + 1;
        bytes += maps * sizeof(float) * (double)qkv_attention_rows(w->a, (qkv_attention_kind)kind)->n *
                 (double)qkv_attention_columns(w->a, (qkv_attention_kind)kind)->n;
    }
    return bytes;
}

static qkv_status check_page_size(const writing *w)
{
    double bytes = bytes_of_weights(w);
    if (bytes <= (double)QKV_PAGE_BYTES) return QKV_OK;
    return qkv__fail(QKV_LIMIT,
                     "explorer: the page would hold %.0f MiB of weights, more than %zu: choose one kind, layer or head, or a "
                     "shorter text",
                     bytes / 1048576, QKV_PAGE_BYTES >> 20);
}

static qkv_status check_explorer_options(const writing *w)
{
    if (w->kind >= QKV_ATTENTION_KINDS || (w->kind >= 0 && !w->a->layers[w->kind]))
        return qkv__fail(QKV_USAGE, "explorer: the model has no attention of kind %d", w->kind);
    for (int kind = 0; kind < QKV_ATTENTION_KINDS; kind++)
        if (has_kind(w, kind) && w->layer >= w->a->layers[kind])
            return qkv__fail(QKV_USAGE, "explorer: layer %d: the layers of the %s are 0..%d", w->layer,
                             qkv_attention_kind_name((qkv_attention_kind)kind), w->a->layers[kind] - 1);
    if (w->head >= w->a->heads) return qkv__fail(QKV_USAGE, "explorer: head %d: heads are 0..%d", w->head, w->a->heads - 1);
    return check_page_size(w);
}

/* ---- the overview ---- */

static const qkv_buffer *text_of(const writing *w) { return &qkv__capture_of(w->a)->text; }

/* The ids of what was chosen, the end not among them. */
static void put_target_ids(writing *w)
{
    const qkv__tokens *t = &qkv__capture_of(w->a)->target;
    bool has_target = w->a->layers[QKV_ATTENTION_CROSS] > 0;
    qkv__put_ids(&w->j, has_target ? t->ids + 1 : NULL, has_target ? t->n - 2 : 0);
}

static void put_translation(writing *w)
{
    const qkv__tokens *t = &qkv__capture_of(w->a)->target;
    const qkv_translation *found = w->a->found;
    size_t begin = t->ends[0], end = t->ends[t->n - 2];
    qkv__put_raw(&w->j, "{\"translations\":[");
    if (found) qkv__put_translation(&w->j, found->text.data, found->text.length, &found->score, found->ids, found->n_ids);
    else qkv__put_translation(&w->j, t->text.data + begin, end - begin, NULL, t->ids + 1, t->n - 2);
    qkv__put_raw(&w->j, "]}");
}

static qkv_status put_classes(writing *w)
{
    qkv_matrix *rows = NULL;
    qkv_status status = qkv_classify(w->m, &(qkv_str){ text_of(w)->data, text_of(w)->length }, 1, NULL, &rows);
    qkv__put_raw(&w->j, "{");
    if (!status) qkv__put_classes(&w->j, w->m, rows->data, rows->width);
    qkv__put_raw(&w->j, "}");
    qkv_free(rows);
    return status;
}

static qkv_status put_output(writing *w)
{
    switch (qkv__job_of(w->m)) {
    case QKV__TRANSLATES: return put_translation(w), QKV_OK;
    case QKV__CLASSIFIES: return put_classes(w);
    case QKV__GENERATES: return qkv__put_raw(&w->j, "{\"text\":\"\",\"ids\":[]}"), QKV_OK;
    default: return qkv__put_raw(&w->j, "{}"), QKV_OK;
    }
}

static qkv_status put_overview(writing *w)
{
    qkv__put_raw(&w->j, "{\"info\":");
    qkv__put_info(&w->j, w->m, "qkv");
    qkv__put_raw(&w->j, ",\"overview\":{\"task\":");
    qkv__put_name(&w->j, qkv__job_name(qkv__job_of(w->m)));
    qkv__put_raw(&w->j, ",\"text\":");
    qkv__put_string(&w->j, text_of(w)->data, text_of(w)->length);
    qkv__put_raw(&w->j, ",\"output\":");
    qkv_status status = put_output(w);
    qkv__put_raw(&w->j, ",\"target_ids\":");
    put_target_ids(w);
    qkv__put_raw(&w->j, ",");
    qkv__put_sides(&w->j, w->a, w->kind);
    qkv__put_raw(&w->j, "}");
    return status;
}

/* ---- the weights ---- */

static bool are_fractions(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(x[i] >= 0 && x[i] <= 1)) return false;
    return true;
}

/* {"u16": ..}: round(65535 x) of each, the low bytes before the high ones, packed: of a long text nearly all high bytes are 0. */
static void put_fractions(qkv__json *j, const float *x, size_t n)
{
    unsigned char *bytes = qkv__alloc(2 * n);
    if (!bytes) {
        j->status = QKV_MEMORY;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        unsigned whole = (unsigned)(65535 * x[i] + 0.5f);
        bytes[i] = (unsigned char)whole;
        bytes[n + i] = (unsigned char)(whole >> 8);
    }
    qkv__put_raw(j, "{\"u16\":");
    qkv__put_gzip(j, bytes, 2 * n);
    qkv__put_raw(j, "}");
    qkv__release(bytes, 2 * n);
}

/* What is no fraction, as a row that somebody edited may be, stays as it is. */
static void put_rounded_weights(qkv__json *j, const float *x, size_t n)
{
    if (are_fractions(x, n)) put_fractions(j, x, n);
    else qkv__put_float_base64(j, x, n);
}

static qkv_status put_map(writing *w, qkv_attention_kind kind, int layer, int head)
{
    return qkv__put_head(&w->j, w->a, kind, layer, head, w->is_rounded ? put_rounded_weights : qkv__put_float_base64);
}

static void put_key(writing *w, bool *follows, const char *key)
{
    qkv__put_raw(&w->j, *follows ? "," : "");
    qkv__put_name(&w->j, key);
    qkv__put_raw(&w->j, ":");
    *follows = true;
}

static void name_place(char text[16], int place)
{
    if (place < 0) strcpy(text, "mean");
    else snprintf(text, 16, "%d", place);
}

static qkv_status put_one_head(writing *w, bool *follows, qkv_attention_kind kind, int layer, int head)
{
    char key[64], layer_name[16], head_name[16];
    name_place(layer_name, layer);
    name_place(head_name, head);
    snprintf(key, sizeof key, "%s/%s/%s", qkv_attention_kind_name(kind), layer_name, head_name);
    put_key(w, follows, key);
    return put_map(w, kind, layer, head);
}

static qkv_status put_rollout(writing *w, bool *follows, qkv_attention_kind kind)
{
    char key[64];
    if (kind == QKV_ATTENTION_CROSS || w->layer >= 0 || w->head >= 0) return QKV_OK;
    snprintf(key, sizeof key, "%s/rollout", qkv_attention_kind_name(kind));
    put_key(w, follows, key);
    return put_map(w, kind, QKV__ROLLOUT, QKV__MEAN);
}

static qkv_status put_heads(writing *w, bool *follows, qkv_attention_kind kind)
{
    int layers = count_of_maps(w->layer, w->a->layers[kind]), heads = count_of_maps(w->head, w->a->heads);
    qkv_status status = QKV_OK;
    for (int l = 0; l < layers; l++)
        for (int h = 0; h < heads && !status; h++) {
            int layer = place_of_map(l, w->layer, w->a->layers[kind]), head = place_of_map(h, w->head, w->a->heads);
            bool is_mean = layer < 0 || head < 0;
            if (!(is_mean && w->is_rounded)) status = put_one_head(w, follows, kind, layer, head); /* else the page makes it */
        }
    return status ? status : put_rollout(w, follows, kind);
}

/* Of every head or of none: a grid with holes would show what was left out. */
static qkv_status put_thumbnails(writing *w, bool *follows, qkv_attention_kind kind)
{
    if (w->layer >= 0 || w->head >= 0) return QKV_OK;
    put_key(w, follows, qkv_attention_kind_name(kind));
    return qkv__put_thumbnails(&w->j, w->a, kind, CELLS);
}

static qkv_status put_ranks(writing *w, bool *follows, qkv_attention_kind kind)
{
    put_key(w, follows, qkv_attention_kind_name(kind));
    return qkv__put_ranks(&w->j, w->a, kind, w->layer, w->head);
}

static qkv_status put_page_part(writing *w, const char *name, qkv_status (*put)(writing *, bool *, qkv_attention_kind))
{
    bool follows = false;
    qkv_status status = QKV_OK;
    qkv__put_raw(&w->j, ",");
    qkv__put_name(&w->j, name);
    qkv__put_raw(&w->j, ":{");
    for (int kind = 0; kind < QKV_ATTENTION_KINDS && !status; kind++)
        if (has_kind(w, kind)) status = put(w, &follows, (qkv_attention_kind)kind);
    qkv__put_raw(&w->j, "}");
    return status;
}

/* ---- the file ---- */

static qkv_status make_page(writing *w)
{
    qkv_status status = check_explorer_options(w);
    if (status) return status;
    w->is_rounded = bytes_of_weights(w) > MOST_EXACT_BYTES;
    size_t place = qkv__page_place(qkv__explorer_page, qkv__explorer_size, "qkv-data"), rest = place + strlen("null");
    qkv__put_bytes(&w->j, qkv__explorer_page, place);
    status = put_overview(w);
    if (!status) status = put_page_part(w, "thumbnails", put_thumbnails);
    if (!status) status = put_page_part(w, "ranks", put_ranks);
    if (!status) status = put_page_part(w, "heads", put_heads);
    qkv__put_raw(&w->j, "}");
    qkv__put_bytes(&w->j, qkv__explorer_page + rest, qkv__explorer_size - rest);
    return status ? status : w->j.status;
}

qkv_status qkv_explorer_write(const char *path, const qkv_model *m, const qkv_attention_capture *a, int kind, int layer,
                              int head)
{
    if (!path || !m || !a || !a->heads)
        return qkv__fail(QKV_USAGE, "explorer: a path, a model and what it attended to are needed");
    writing w = { .m = m, .a = a, .kind = kind, .layer = layer, .head = head };
    qkv_status status = make_page(&w);
    if (!status) status = qkv_file_write(path, w.j.text.data, w.j.text.length);
    qkv_buffer_free(&w.j.text);
    return status;
}
