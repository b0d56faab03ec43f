/* attention_maps.c: which heads are looked at, and their weights. */
#include "attention_maps.h"

#include "term/heatmap.h"
#include "options.h"

#include <stdlib.h>
#include <string.h>

#define KIND_NAME(constant, name) name,
const char *const attention_kind_names[] = { QKV_ATTENTION_LIST(KIND_NAME) NULL };
static const char *const long_names[QKV_ATTENTION_KINDS] = { [QKV_ATTENTION_ENCODER] = "encoder self-attention",
                                                             [QKV_ATTENTION_DECODER] = "decoder self-attention",
                                                             [QKV_ATTENTION_CROSS] = "cross-attention" };

/* ---- titles ---- */

static void name_part(char *text, size_t room, const char *what, int number)
{
    if (number == MEAN_OF_THEM) snprintf(text, room, "mean of %ss", what);
    else if (number == ALL_OF_THEM) snprintf(text, room, "all %ss", what);
    else snprintf(text, room, "%s %d", what, number);
}

static void name_all(attention_maps *m)
{
    char layer[32], head[32];
    const char *kind = long_names[m->choice.kind];
    name_part(layer, sizeof layer, "layer", m->choice.layer);
    name_part(head, sizeof head, "head", m->choice.head);
    if (m->choice.rollout) snprintf(m->title, sizeof m->title, "%s, rollout", kind);
    else if (m->choice.layer == m->choice.head && m->choice.layer < 0)
        snprintf(m->title, sizeof m->title, "%s, %s layers and heads", kind,
                 m->choice.layer == ALL_OF_THEM ? "all" : "mean of all");
    else snprintf(m->title, sizeof m->title, "%s, %s, %s", kind, layer, head);
    if (m->minus) strcat(m->title, ", minus the other model's");
}

/* In a grid a map is named by what the others are not. */
static void name_map(const map_choice *c, attention_map *map)
{
    char layer[32], head[32];
    name_part(layer, sizeof layer, "layer", map->layer);
    name_part(head, sizeof head, "head", map->head);
    if (c->layer == ALL_OF_THEM && c->head == ALL_OF_THEM) snprintf(map->title, sizeof map->title, "%s, %s", layer, head);
    else snprintf(map->title, sizeof map->title, "%s", c->layer == ALL_OF_THEM ? layer : head);
}

/* ---- weights ---- */

static int64_t cells(const attention_maps *m) { return m->rows->n * m->columns->n; }

static qkv_status take_weights(const qkv_attention_capture *a, const map_choice *c, const attention_map *map, float *to)
{
    qkv_status status = c->rollout ? qkv_attention_capture_rollout(a, c->kind, to)
                                   : qkv_attention_capture_weights(a, c->kind, map->layer, map->head, to);
    return status ? library_failed() : QKV_OK;
}

static qkv_status fill_map(const qkv_attention_capture *a, const qkv_attention_capture *other, attention_maps *m,
                           attention_map *map)
{
    size_t bytes = sizeof *map->weights * (size_t)cells(m);
    if (!(map->weights = malloc(bytes))) return fail(QKV_MEMORY, "out of memory");
    qkv_status status = take_weights(a, &m->choice, map, map->weights);
    if (status || !other) return status;
    float *minus = malloc(bytes);
    if (!minus) return fail(QKV_MEMORY, "out of memory");
    status = take_weights(other, &m->choice, map, minus);
    for (int64_t i = 0; i < cells(m) && !status; i++) map->weights[i] -= minus[i];
    free(minus);
    return status;
}

static qkv_status fill_maps(const qkv_attention_capture *a, const qkv_attention_capture *other, attention_maps *m)
{
    const map_choice *c = &m->choice;
    int layers = c->layer == ALL_OF_THEM ? a->layers[c->kind] : 1, heads = c->head == ALL_OF_THEM ? a->heads : 1;
    if (c->layer == ALL_OF_THEM && c->head == ALL_OF_THEM) m->across = heads;
    if (!(m->at = calloc((size_t)layers * (size_t)heads, sizeof *m->at))) return fail(QKV_MEMORY, "out of memory");
    qkv_status status = QKV_OK;
    for (int l = 0; l < layers; l++)
        for (int h = 0; h < heads && !status; h++) {
            attention_map *map = &m->at[m->n++];
            map->layer = c->layer == ALL_OF_THEM ? l : c->layer;
            map->head = c->head == ALL_OF_THEM ? h : c->head;
            name_map(c, map);
            status = fill_map(a, other, m, map);
        }
    return status;
}

/* ---- two models ---- */

static bool same_side(const qkv_attention_side *a, const qkv_attention_side *b)
{
    if (a->n != b->n || memcmp(a->first, b->first, sizeof *a->first * (size_t)(a->n + 1))) return false;
    for (int64_t i = 0; i < a->n; i++)
        if (strcmp(a->names[i], b->names[i])) return false;
    return true;
}

static qkv_status check_alike(const attention_maps *m, const qkv_attention_capture *other)
{
    if (same_side(m->rows, qkv_attention_capture_rows(other, m->choice.kind)) &&
        same_side(m->columns, qkv_attention_capture_columns(other, m->choice.kind)))
        return QKV_OK;
    return fail(QKV_USAGE, "--diff: %s cuts this text into other tokens: they cannot be compared", m->minus);
}

/* ---- all of it ---- */

/* That they are there, before anything is allocated by how many there are. */
static qkv_status check_choice(const qkv_attention_capture *a, map_choice c)
{
    qkv_head_measures x;
    int layer = c.layer < 0 ? 0 : c.layer, head = c.head < 0 ? 0 : c.head;
    return qkv_attention_capture_measure(a, c.kind, layer, head, &x) ? library_failed() : QKV_OK;
}

qkv_status make_maps(const qkv_attention_capture *a, const qkv_attention_capture *other, const char *other_name,
                     map_choice choice, attention_maps *out)
{
    *out = (attention_maps){ .choice = choice, .minus = other ? other_name : NULL };
    qkv_status status = check_choice(a, choice);
    if (status) return status;
    out->rows = qkv_attention_capture_rows(a, choice.kind);
    out->columns = qkv_attention_capture_columns(a, choice.kind);
    if (!cells(out)) return fail(QKV_USAGE, "without special tokens there is nothing left to show");
    name_all(out);
    if (other && (status = check_alike(out, other))) return status;
    return fill_maps(a, other, out);
}

qkv_status print_maps(const attention_maps *m)
{
    qkv_status status = QKV_OK;
    printf("%s\n", m->title);
    for (int64_t i = 0; i < m->n && !status; i++) {
        if (m->n > 1) printf("\n%s\n", m->at[i].title);
        const qkv_heatmap_opts o = { .rows = m->rows->n,
                                     .columns = m->columns->n,
                                     .row_names = m->rows->names,
                                     .column_names = m->columns->names,
                                     .colours = m->minus ? QKV_COLOURS_RED_BLUE : QKV_COLOURS_VIRIDIS };
        status = print_map(m->at[i].weights, &o);
    }
    return status;
}

void free_maps(attention_maps *maps)
{
    for (int64_t i = 0; i < maps->n; i++) free(maps->at[i].weights);
    free(maps->at);
    *maps = (attention_maps){ 0 };
}
