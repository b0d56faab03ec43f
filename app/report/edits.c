/* touch.c: changes of a model as they are typed. */
#include <qkv/unstable/inspect.h>

#include "attention.h"
#include "../../src/base/arena.h"
#include "../../src/base/memory.h"
#include "../../src/base/status.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct qkv_touches_work {
    qkv__arena arena; /* of rows */
    qkv_edit *list;
    size_t bytes;
};

/* How each is written, after the kind. */
static const char *const forms[QKV_EDIT_KINDS] = { [QKV_EDIT_ABLATE_HEAD] = "LAYER.HEAD, such as 1.3",
                                                   [QKV_EDIT_ABLATE_LAYER] = "LAYER, such as 2",
                                                   [QKV_EDIT_HIDE_KEY] = "PLACE, such as 2",
                                                   [QKV_EDIT_SET_POSITION] = "PLACE=OTHER, such as 3=5",
                                                   [QKV_EDIT_ROW] = "LAYER.HEAD.PLACE=W,W,.., such as 1.3.2=0.5,0.5",
                                                   [QKV_EDIT_SWAP_VALUES] = "PLACE=OTHER or LAYER.PLACE=OTHER",
                                                   [QKV_EDIT_ZERO_VALUE] = "PLACE or LAYER.PLACE" };

#define NAME(constant, name) name,
static const char *const names[QKV_EDIT_KINDS] = { QKV_EDIT_LIST(NAME) };
#undef NAME

/* ---- reading ---- */

/* Numbers with points between them, at most `most`; how many there were, -1 for another text. */
static int read_numbers(const char **at, int64_t *to, int most)
{
    for (int n = 0; n < most; (*at)++) {
        char *end;
        errno = 0;
        if (**at < '0' || **at > '9') return -1;
        to[n++] = strtoll(*at, &end, 10);
        if (errno || to[n - 1] > INT32_MAX) return -1;
        *at = end;
        if (*end != '.') return n;
    }
    return -1;
}

/* Weights with commas between them, up to the end or a semicolon. False for another text. */
static bool read_row(qkv__arena *arena, const char **at, qkv_edit *x)
{
    int64_t room = 1;
    for (const char *c = *at; *c && *c != ';'; c++) room += *c == ',';
    float *row = qkv__arena_take(arena, sizeof *row * (size_t)room);
    for (x->n_row = 0; row; (*at)++) {
        char *end;
        row[x->n_row++] = strtof(*at, &end);
        if (end == *at) return false;
        *at = end;
        if (*end != ',') break;
    }
    x->row = row;
    return row;
}

static void default_kind(const qkv_config *o, qkv_edit *x)
{
    bool is_source = x->what == QKV_EDIT_HIDE_KEY || x->what == QKV_EDIT_SET_POSITION;
    if (!o->decoder_layers || (o->encoder_layers && is_source)) x->kind = QKV_ATTENTION_ENCODER;
    else x->kind = !o->encoder_layers || x->what == QKV_EDIT_ABLATE_LAYER ? QKV_ATTENTION_DECODER : QKV_ATTENTION_CROSS;
}

/* "encoder:" and so on; whether there was one. */
static bool read_kind(const char **at, qkv_edit *x)
{
    for (int kind = 0; kind < QKV_ATTENTION_KINDS; kind++) {
        const char *name = qkv_attention_kind_name((qkv_attention_kind)kind);
        size_t n = strlen(name);
        if (strncmp(*at, name, n) || (*at)[n] != ':') continue;
        x->kind = (qkv_attention_kind)kind;
        *at += n + 1;
        return true;
    }
    return false;
}

/* Layer, head and place, as many as the change has; the layer of a value may be left out. */
static bool read_where(const char **at, qkv_edit *x)
{
    bool is_value = x->what == QKV_EDIT_SWAP_VALUES || x->what == QKV_EDIT_ZERO_VALUE;
    bool has_head = x->what == QKV_EDIT_ABLATE_HEAD || x->what == QKV_EDIT_ROW;
    bool has_layer = has_head || x->what == QKV_EDIT_ABLATE_LAYER;
    bool has_place = x->what != QKV_EDIT_ABLATE_HEAD && x->what != QKV_EDIT_ABLATE_LAYER;
    int64_t numbers[3];
    int n = read_numbers(at, numbers, 3), used = 0;
    if (n != has_layer + has_head + has_place && !(is_value && n == 2)) return false;
    x->layer = has_layer || n == 2 ? (int)numbers[used++] : -1;
    if (has_head) x->head = (int)numbers[used++];
    if (has_place) x->place = numbers[used];
    return true;
}

static bool read_rest(qkv__arena *arena, const char **at, qkv_edit *x)
{
    bool has_other = x->what == QKV_EDIT_SET_POSITION || x->what == QKV_EDIT_SWAP_VALUES, has_row = x->what == QKV_EDIT_ROW;
    if ((has_other || has_row) && *(*at)++ != '=') return false;
    if (has_other && read_numbers(at, &x->other, 1) != 1) return false;
    if (has_row && !read_row(arena, at, x)) return false;
    return !**at || **at == ';';
}

/* ---- the list ---- */

static qkv_status append_touch(qkv_touches *list, const qkv_edit *x)
{
    struct qkv_touches_work *w = list->work;
    qkv_status status = qkv__grow((void **)&w->list, &w->bytes, sizeof *x * (size_t)(list->n + 1));
    if (status) return status;
    w->list[list->n++] = *x;
    list->touches = w->list;
    return QKV_OK;
}

static qkv_status add_one(qkv_touches *list, const qkv_config *o, qkv_edit_kind what, const char **at)
{
    qkv_edit x = { .what = what };
    const char *begin = *at;
    bool has_kind = read_kind(at, &x);
    if (!has_kind) default_kind(o, &x);
    if (!read_where(at, &x) || !read_rest(&list->work->arena, at, &x))
        return qkv__fail(QKV_USAGE, "%s %.60s: expected %s, from 0, with encoder:, decoder: or cross: before it where wanted",
                         names[what], begin, forms[what]);
    qkv_status status = append_touch(list, &x);
    if (status || has_kind || what != QKV_EDIT_HIDE_KEY || !o->encoder_layers || !o->decoder_layers) return status;
    x.kind = QKV_ATTENTION_CROSS; /* hidden from all that could see it */
    return append_touch(list, &x);
}

qkv_status qkv_touches_add(qkv_touches *list, const qkv_model *m, qkv_edit_kind what, const char *text)
{
    if (!list || !m || !text || (unsigned)what >= QKV_EDIT_KINDS)
        return qkv__fail(QKV_USAGE, "touch: a list, a model, a change and its text are needed");
    if (!list->work && !(list->work = qkv__alloc_zero(sizeof *list->work))) return QKV_MEMORY;
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    int64_t had = list->n;
    qkv_status status;
    do status = add_one(list, &o, what, &text);
    while (!status && *text++ == ';');
    if (status) list->n = had;
    return status;
}

void qkv_touches_free(qkv_touches *list)
{
    if (!list) return;
    if (list->work) {
        qkv__arena_free(&list->work->arena);
        qkv__release(list->work->list, list->work->bytes);
    }
    qkv__release(list->work, sizeof *list->work);
    *list = (qkv_touches){ 0 };
}
