/* attend_maps.c: the weights of chosen heads as maps with titles, and as JSON and CSV. */
#include "attention.h"
#include "../../src/inspect/attend.h"

#include "../../src/base/json.h"
#include "../../src/base/options.h"
#include "../../src/base/size.h"
#include "out.h"
#include "../term/translator.h"

#include <stdio.h>
#include <string.h>

enum { TITLE_BYTES = 160, PART_BYTES = 48 };
static const char call[] = "attention";

struct qkv_attention_maps_work {
    qkv__arena arena; /* all that the maps point to */
};

typedef struct qkv_attention_maps_work maps_work;

/* ---- titles ---- */

static void name_layer(char text[PART_BYTES], int number)
{
    if (number == QKV_ATTENTION_MEAN) snprintf(text, PART_BYTES, "%s", qkv__translated("mean of layers"));
    else if (number == QKV_ATTENTION_EACH) snprintf(text, PART_BYTES, "%s", qkv__translated("all layers"));
    else snprintf(text, PART_BYTES, qkv__translated("layer %d"), number);
}

static void name_head(char text[PART_BYTES], int number)
{
    if (number == QKV_ATTENTION_MEAN) snprintf(text, PART_BYTES, "%s", qkv__translated("mean of heads"));
    else if (number == QKV_ATTENTION_EACH) snprintf(text, PART_BYTES, "%s", qkv__translated("all heads"));
    else snprintf(text, PART_BYTES, qkv__translated("head %d"), number);
}

static void name_all(const qkv_attention_maps_opts *o, char title[TITLE_BYTES])
{
    static const char *const kinds[QKV_ATTENTION_KINDS] = { [QKV_ATTENTION_ENCODER] = QKV__N("encoder self-attention"),
                                                            [QKV_ATTENTION_DECODER] = QKV__N("decoder self-attention"),
                                                            [QKV_ATTENTION_CROSS] = QKV__N("cross-attention") };
    char layer[PART_BYTES], head[PART_BYTES];
    name_layer(layer, o->layer);
    name_head(head, o->head);
    const char *kind = qkv__translated(kinds[o->kind]), *minus = o->minus ? qkv__translated(", minus the other model's") : "";
    if (o->rollout) snprintf(title, TITLE_BYTES, qkv__translated("%s, rollout%s"), kind, minus);
    else if (o->layer == o->head && o->layer < 0)
        snprintf(title, TITLE_BYTES,
                 o->layer == QKV_ATTENTION_EACH ? qkv__translated("%s, all layers and heads%s")
                                                : qkv__translated("%s, mean of all layers and heads%s"),
                 kind, minus);
    else snprintf(title, TITLE_BYTES, qkv__translated("%s, %s, %s%s"), kind, layer, head, minus);
}

/* In a grid a map is named by what the others are not. */
static void name_map(const qkv_attention_maps_opts *o, const qkv_attention_map *map, char title[TITLE_BYTES])
{
    char layer[PART_BYTES], head[PART_BYTES];
    bool are_layers = o->layer == QKV_ATTENTION_EACH;
    name_layer(layer, map->layer);
    name_head(head, map->head);
    if (are_layers && o->head == QKV_ATTENTION_EACH) snprintf(title, TITLE_BYTES, qkv__translated("%s, %s"), layer, head);
    else snprintf(title, TITLE_BYTES, "%s", are_layers ? layer : head);
}

/* ---- weights ---- */

static qkv_status take_weights(const qkv_attention_capture *a, const qkv_attention_maps_opts *o, const qkv_attention_map *map,
                               float *to)
{
    return o->rollout ? qkv_attention_rollout(a, o->kind, to) : qkv_attention_weights(a, o->kind, map->layer, map->head, to);
}

static qkv_status fill_map(const qkv_attention_capture *a, const qkv_attention_maps_opts *o, int64_t cells, maps_work *w,
                           qkv_attention_map *map)
{
    size_t bytes = sizeof(float) * (size_t)cells;
    float *weights = qkv__arena_take(&w->arena, bytes), *minus = NULL;
    char *title = qkv__arena_take(&w->arena, TITLE_BYTES);
    if (!weights || !title) return QKV_MEMORY;
    name_map(o, map, title);
    map->title = title;
    map->weights = weights;
    qkv_status status = take_weights(a, o, map, weights);
    if (status || !o->minus) return status;
    if (!(minus = qkv__alloc(bytes))) return QKV_MEMORY;
    status = take_weights(o->minus, o, map, minus);
    for (int64_t i = 0; i < cells && !status; i++) weights[i] -= minus[i];
    qkv__release(minus, bytes);
    return status;
}

static qkv_status fill_maps(const qkv_attention_capture *a, const qkv_attention_maps_opts *o, int64_t cells, maps_work *w,
                            qkv_attention_maps *m)
{
    bool are_layers = o->layer == QKV_ATTENTION_EACH, are_heads = o->head == QKV_ATTENTION_EACH;
    int layers = are_layers ? a->layers[o->kind] : 1, heads = are_heads ? a->heads : 1;
    if (are_layers && are_heads) m->across = heads;
    qkv_attention_map *maps = qkv__arena_take(&w->arena, sizeof *maps * (size_t)layers * (size_t)heads);
    if (!(m->maps = maps)) return QKV_MEMORY;
    qkv_status status = QKV_OK;
    for (; m->n < (int64_t)layers * heads && !status; m->n++) {
        maps[m->n] = (qkv_attention_map){ .layer = are_layers ? (int)(m->n / heads) : o->layer,
                                          .head = are_heads ? (int)(m->n % heads) : o->head };
        status = fill_map(a, o, cells, w, &maps[m->n]);
    }
    return status;
}

/* ---- what is asked for ---- */

static bool same_axis(const qkv_axis *a, const qkv_axis *b)
{
    if (!b || a->n != b->n || memcmp(a->first, b->first, sizeof *a->first * (size_t)(a->n + 1))) return false;
    for (int64_t i = 0; i < a->n; i++)
        if (strcmp(a->names[i], b->names[i])) return false;
    return true;
}

/* That they are there, before anything is allocated by how many there are. */
static qkv_status check_choice(const qkv_attention_capture *a, const qkv_attention_maps_opts *o)
{
    qkv_head_measures x;
    int layer = o->layer < 0 ? 0 : o->layer, head = o->head < 0 ? 0 : o->head;
    qkv_status status = qkv_attention_stats(a, o->kind, layer, head, &x);
    if (status) return status;
    if (o->layer < QKV_ATTENTION_EACH || o->head < QKV_ATTENTION_EACH)
        return qkv__fail(QKV_USAGE, "%s: layer %d, head %d: they count from 0", call, o->layer, o->head);
    const qkv_axis *rows = qkv_attention_rows(a, o->kind), *columns = qkv_attention_columns(a, o->kind);
    if (!rows->n || !columns->n) return qkv__fail(QKV_USAGE, "without special tokens there is nothing left to show");
    if (!o->minus || (same_axis(rows, qkv_attention_rows(o->minus, o->kind)) &&
                      same_axis(columns, qkv_attention_columns(o->minus, o->kind))))
        return QKV_OK;
    return qkv__fail(QKV_USAGE, "%s cuts this text into other tokens: they cannot be compared",
                     o->minus_name ? o->minus_name : "the other model");
}

/* The window that every layer of the maps has; 0: some layer sees everything. Rollout reaches as far as all layers do. */
static int64_t window_of_all(const qkv_attention_capture *a, const qkv_attention_maps_opts *o)
{
    int64_t window = 0;
    if (o->rollout || o->kind == QKV_ATTENTION_CROSS) return 0;
    if (o->layer >= 0) return a->windows[o->layer];
    for (int i = 0; i < a->layers[o->kind]; i++)
        if (!(window = a->windows[i])) return 0;
    return window;
}

/* Whether all tokens of unit j are `window` or more places from all of unit i, in one direction. */
static bool is_out_of_window(const qkv_axis *x, int64_t i, int64_t j, int64_t window)
{
    int64_t early = i < j ? i : j, late = i < j ? j : i;
    int64_t end = x->begin[early] + x->first[early + 1] - x->first[early];
    return window && x->begin[late] - (end - 1) >= window;
}

/* A decoder's row sees itself and what is before it, and no row what is out of its window. */
static qkv_status mark_hidden(const qkv_attention_capture *a, const qkv_attention_maps_opts *o, maps_work *w,
                              qkv_attention_maps *m)
{
    int64_t n = m->rows->n, window = window_of_all(a, o);
    bool causal = m->kind == QKV_ATTENTION_DECODER;
    if (!causal && !window) return QKV_OK;
    const qkv_axis *x = causal ? &a->target : &a->source;
    uint8_t *hidden = qkv__arena_take(&w->arena, (size_t)(n * n));
    if (!hidden) return QKV_MEMORY;
    for (int64_t i = 0; i < n * n; i++) hidden[i] = (causal && i % n > i / n) || is_out_of_window(x, i / n, i % n, window);
    m->hidden = hidden;
    return QKV_OK;
}

static qkv_status make_chosen(const qkv_attention_capture *a, const qkv_attention_maps_opts *o, maps_work *w,
                              qkv_attention_maps *m)
{
    const char *name = o->minus_name ? o->minus_name : "";
    char *title = qkv__arena_take(&w->arena, TITLE_BYTES), *minus = qkv__arena_take(&w->arena, strlen(name) + 1);
    if (!title || !minus) return QKV_MEMORY;
    name_all(o, title);
    strcpy(minus, name);
    m->title = title;
    m->minus = o->minus ? minus : NULL;
    m->rows = qkv_attention_rows(a, o->kind);
    m->columns = qkv_attention_columns(a, o->kind);
    m->kind = o->kind;
    m->rollout = o->rollout;
    qkv_status status = mark_hidden(a, o, w, m);
    return status ? status : fill_maps(a, o, m->rows->n * m->columns->n, w, m);
}

/* ---- the calls ---- */

void qkv_attention_maps_free(qkv_attention_maps *maps)
{
    if (!maps) return;
    if (maps->work) qkv__arena_free(&maps->work->arena);
    qkv__release(maps->work, sizeof *maps->work);
    *maps = (qkv_attention_maps){ 0 };
}

qkv_status qkv_attention_maps_make(const qkv_attention_capture *a, const qkv_attention_maps_opts *opts, qkv_attention_maps *out)
{
    qkv_attention_maps_opts o;
    qkv_status status = QKV__READ_OPTIONS(&o, minus_name, opts, call);
    if (status) return status;
    if (!a || !out) return qkv__fail(QKV_USAGE, "%s: what was attended to and a place for the maps are needed", call);
    maps_work *w = out->work ? out->work : qkv__alloc_zero(sizeof *w);
    if (!w) return QKV_MEMORY;
    qkv__arena_reset(&w->arena);
    *out = (qkv_attention_maps){ .work = w };
    status = check_choice(a, &o);
    if (!status) status = make_chosen(a, &o, w, out);
    if (status) qkv_attention_maps_free(out);
    return status;
}

/* ---- JSON ---- */

static void put_json_string(qkv__out *out, const char *text)
{
    qkv__json_writer w = { 0 };
    qkv__json_put_text(&w, NULL, text);
    if (w.status && !out->status) out->status = w.status;
    qkv__out_bytes(out, w.text, w.length);
    qkv__json_writer_free(&w);
}

static void put_side_tokens(qkv__out *out, const char *key, const qkv_axis *side)
{
    qkv__out_printf(out, "\"%s\": [", key);
    for (int64_t i = 0; i < side->n; i++) {
        if (i) qkv__out_printf(out, ", ");
        put_json_string(out, side->names[i]);
    }
    qkv__out_printf(out, "],\n ");
}

static void put_part_number(qkv__out *out, const char *key, int number)
{
    if (number == QKV_ATTENTION_MEAN) qkv__out_printf(out, ", \"%s\": \"mean\"", key);
    else qkv__out_printf(out, ", \"%s\": %d", key, number);
}

static void put_weights_json(qkv__out *out, const qkv_attention_maps *m, const float *weights)
{
    qkv__out_printf(out, "\"weights\": [");
    for (int64_t i = 0; i < m->rows->n; i++) {
        qkv__out_printf(out, i ? ",\n  [" : "\n  [");
        for (int64_t k = 0; k < m->columns->n; k++)
            qkv__out_printf(out, "%s%.9g", k ? ", " : "", (double)weights[i * m->columns->n + k]);
        qkv__out_printf(out, "]");
    }
    qkv__out_printf(out, "]}");
}

static void put_map_json(qkv__out *out, const qkv_attention_maps *m, const qkv_attention_map *map)
{
    qkv__out_printf(out, "{\"kind\": \"%s\"", qkv_attention_kind_name(m->kind));
    if (m->rollout) qkv__out_printf(out, ", \"layer\": \"rollout\"");
    else put_part_number(out, "layer", map->layer), put_part_number(out, "head", map->head);
    if (m->minus) qkv__out_printf(out, ", \"minus\": "), put_json_string(out, m->minus);
    qkv__out_printf(out, ",\n ");
    put_side_tokens(out, "queries", m->rows);
    put_side_tokens(out, "keys", m->columns);
    put_weights_json(out, m, map->weights);
}

static qkv_status check_written(const qkv_attention_maps *maps, const qkv_buffer *out)
{
    if (!maps || !out || !maps->rows || !maps->columns)
        return qkv__fail(QKV_USAGE, "%s: maps and a place for their text are needed", call);
    return QKV_OK;
}

qkv_status qkv_attention_maps_json(const qkv_attention_maps *maps, qkv_buffer *out)
{
    qkv_status status = check_written(maps, out);
    if (status) return status;
    qkv__out text = qkv__out_begin(out);
    if (maps->n > 1) qkv__out_printf(&text, "[");
    for (int64_t i = 0; i < maps->n; i++) {
        if (i) qkv__out_printf(&text, ",\n");
        put_map_json(&text, maps, &maps->maps[i]);
    }
    qkv__out_printf(&text, maps->n > 1 ? "]\n" : "\n");
    return qkv__out_end(&text);
}

/* ---- CSV ---- */

static void put_field(qkv__out *out, const char *text)
{
    const char *quote = strpbrk(text, ",\"\r\n") ? "\"" : "";
    qkv__out_printf(out, "%s", quote);
    for (; *text; text++) {
        if (*text == '"') qkv__out_bytes(out, "\"", 1);
        qkv__out_bytes(out, text, 1);
    }
    qkv__out_printf(out, "%s", quote);
}

static void put_csv_part(qkv__out *out, int number)
{
    if (number == QKV_ATTENTION_MEAN) qkv__out_printf(out, "mean,");
    else qkv__out_printf(out, "%d,", number);
}

static void put_csv_row(qkv__out *out, const qkv_attention_maps *m, const qkv_attention_map *map, int64_t row)
{
    if (m->n > 1) put_csv_part(out, map->layer), put_csv_part(out, map->head);
    put_field(out, m->rows->names[row]);
    for (int64_t k = 0; k < m->columns->n; k++) qkv__out_printf(out, ",%.9g", (double)map->weights[row * m->columns->n + k]);
    qkv__out_printf(out, "\r\n");
}

qkv_status qkv_attention_maps_csv(const qkv_attention_maps *maps, qkv_buffer *out)
{
    qkv_status status = check_written(maps, out);
    if (status) return status;
    qkv__out text = qkv__out_begin(out);
    if (maps->n > 1) qkv__out_printf(&text, "layer,head,");
    for (int64_t k = 0; k < maps->columns->n; k++) {
        qkv__out_printf(&text, ",");
        put_field(&text, maps->columns->names[k]);
    }
    qkv__out_printf(&text, "\r\n");
    for (int64_t i = 0; i < maps->n; i++)
        for (int64_t row = 0; row < maps->rows->n; row++) put_csv_row(&text, maps, &maps->maps[i], row);
    return qkv__out_end(&text);
}
