/* touch.c: what is changed in a model while it runs, see qkv_touch. */
#include "layer.h"

#include <string.h>

/* ---- parts that are off, places ---- */

static bool is_at(const qkv_edit *x, qkv_edit_kind what, qkv_attention_kind kind, int layer)
{
    return x->what == what && x->kind == kind && (x->layer == layer || x->layer < 0);
}

bool qkv__layer_is_off(const qkv__touches *x, int stack, int layer)
{
    qkv_attention_kind kind = stack == QKV__DECODER ? QKV_ATTENTION_DECODER : QKV_ATTENTION_ENCODER;
    for (int64_t i = 0; i < x->n; i++)
        if (is_at(&x->list[i], QKV_EDIT_ABLATE_LAYER, kind, layer)) return true;
    return false;
}

bool qkv__head_is_off(const qkv__touches *x, qkv_attention_kind kind, int layer, int head)
{
    for (int64_t i = 0; i < x->n; i++)
        if (is_at(&x->list[i], QKV_EDIT_ABLATE_HEAD, kind, layer) && x->list[i].head == head) return true;
    return false;
}

int64_t qkv__moved_position(const qkv__touches *x, int stack, int64_t place)
{
    qkv_attention_kind kind = stack == QKV__DECODER ? QKV_ATTENTION_DECODER : QKV_ATTENTION_ENCODER;
    for (int64_t i = x->n - 1; i >= 0; i--) /* the last one counts */
        if (x->list[i].what == QKV_EDIT_SET_POSITION && x->list[i].kind == kind && x->list[i].place == place)
            return x->list[i].other;
    return place;
}

const int32_t *qkv__moved_positions(qkv_tape *t, const qkv__touches *x, int stack, int64_t batch, int64_t length)
{
    bool any = false;
    for (int64_t i = 0; i < x->n; i++) any = any || x->list[i].what == QKV_EDIT_SET_POSITION;
    int32_t *positions = any ? qkv__save(t, sizeof *positions * (size_t)(batch * length)) : NULL;
    for (int64_t i = 0; positions && i < batch * length; i++) positions[i] = (int32_t)qkv__moved_position(x, stack, i % length);
    return positions;
}

uint8_t *qkv__hidden_keys(qkv_tape *t, const qkv__touches *x, qkv_attention_kind kind, int64_t n, uint8_t hidden)
{
    uint8_t *keys = NULL;
    for (int64_t i = 0; i < x->n; i++) {
        const qkv_edit *touch = &x->list[i];
        if (touch->what != QKV_EDIT_HIDE_KEY || touch->kind != kind) continue;
        if (!keys && (keys = qkv__save(t, (size_t)n))) memset(keys, !hidden, (size_t)n);
        if (keys && touch->place < n) keys[touch->place] = hidden;
    }
    return keys;
}

/* ---- values ---- */

static bool changes_value(const qkv_edit *x, qkv_attention_kind kind, int layer)
{
    return is_at(x, QKV_EDIT_SWAP_VALUES, kind, layer) || is_at(x, QKV_EDIT_ZERO_VALUE, kind, layer);
}

bool qkv__touches_weights(const qkv__touches *x, qkv_attention_kind kind, int layer)
{
    for (int64_t i = 0; i < x->n; i++)
        if (changes_value(&x->list[i], kind, layer) || is_at(&x->list[i], QKV_EDIT_ROW, kind, layer)) return true;
    return false;
}

/* The query from which on a change of values counts: in the decoder one that sees both keys. */
static int64_t counts_from(const qkv_edit *x)
{
    bool waits = x->what == QKV_EDIT_SWAP_VALUES && x->kind == QKV_ATTENTION_DECODER;
    return !waits ? 0 : x->place > x->other ? x->place : x->other;
}

/* Whose value each of n keys has for a query: from[j], or -1 for zeros. False when each has its own. */
static bool value_sources(const qkv__touches *x, qkv_attention_kind kind, int layer, int64_t query, int64_t n, int32_t *from)
{
    bool any = false;
    for (int64_t j = 0; j < n; j++) from[j] = (int32_t)j;
    for (int64_t i = 0; i < x->n; i++) {
        const qkv_edit *touch = &x->list[i];
        bool zeros = touch->what == QKV_EDIT_ZERO_VALUE;
        if (!changes_value(touch, kind, layer) || query < counts_from(touch)) continue;
        if (touch->place >= n || (!zeros && touch->other >= n)) continue;
        any = true;
        int32_t was = from[touch->place];
        from[touch->place] = zeros ? -1 : from[touch->other];
        if (!zeros) from[touch->other] = was;
    }
    return any;
}

/* v (batch, keys, width) as a query has it. What stands behind the end of a text is not its own. */
static qkv_tensor *changed_values(qkv_tensor *v, const qkv__pass *pass, qkv_attention_kind kind, const int32_t *lengths,
                                  int64_t query)
{
    qkv_tape *t = v->tape;
    int64_t batch = v->shape[0], n = v->shape[1], width = v->shape[2];
    int32_t *from = qkv__save(t, sizeof *from * (size_t)(batch * n));
    qkv_tensor *kept = qkv_constant(t, 3, (int64_t[]){ batch, n, 1 }, NULL);
    bool any = false;
    for (int64_t b = 0; from && kept && b < batch; b++) {
        int64_t own = lengths ? lengths[b] : n;
        any |= value_sources(&pass->touches, kind, pass->layer, query, own, from + b * n);
        for (int64_t j = 0; j < n; j++) {
            int64_t i = b * n + j, source = j < own ? from[i] : j;
            qkv__tensor_data(kept)[i] = source >= 0;
            from[i] = (int32_t)(b * n + (source < 0 ? j : source));
        }
    }
    if (!from || !kept || !any) return from && kept ? v : NULL;
    v = qkv_reshape(v, 2, (int64_t[]){ batch * n, width });
    return qkv_mul(qkv_gather(t, v, from, 2, (int64_t[]){ batch, n }), kept);
}

/* ---- whole sequences: by operations that have gradients ---- */

typedef struct touching {
    qkv_tensor *const *qkv;
    qkv_mask mask;
    const qkv_attention_opts *o;
    const qkv__pass *pass;
    qkv_attention_kind kind;
    int64_t batch, queries, keys, dv;
} touching;

/* A constant (1, queries, heads*dv) that is 1 where `counts` says so. */
typedef bool counts(const touching *w, int64_t query, int64_t head, int64_t from);
static qkv_tensor *map_of(const touching *w, counts *is_one, int64_t from)
{
    int64_t width = w->o->heads * w->dv;
    qkv_tensor *map = qkv_constant(w->qkv[0]->tape, 3, (int64_t[]){ 1, w->queries, width }, NULL);
    for (int64_t i = 0; map && i < w->queries * width; i++)
        qkv__tensor_data(map)[i] = is_one(w, i / width, i % width / w->dv, from);
    return map;
}

/* Whether values as they are from query `from` on are those of this query: no other change begins between. */
static bool has_values_of(const touching *w, int64_t query, int64_t head, int64_t from)
{
    const qkv__touches *x = &w->pass->touches;
    int64_t last = 0;
    (void)head;
    for (int64_t i = 0; i < x->n; i++) {
        int64_t begins = changes_value(&x->list[i], w->kind, w->pass->layer) ? counts_from(&x->list[i]) : 0;
        if (begins <= query && begins > last) last = begins;
    }
    return last == from;
}

static const qkv_edit *edit_of(const touching *w, int64_t query, int64_t head)
{
    const qkv__touches *x = &w->pass->touches;
    for (int64_t i = x->n - 1; i >= 0; i--)
        if (is_at(&x->list[i], QKV_EDIT_ROW, w->kind, w->pass->layer) && x->list[i].head == head && x->list[i].place == query)
            return &x->list[i];
    return NULL;
}

static bool is_not_edited(const touching *w, int64_t query, int64_t head, int64_t from)
{
    (void)from;
    return !edit_of(w, query, head);
}

static bool is_on(const touching *w, int64_t query, int64_t head, int64_t from)
{
    (void)query, (void)from;
    return !qkv__head_is_off(&w->pass->touches, w->kind, w->pass->layer, (int)head);
}

/* Attention with the values that queries from `from` on have. */
static qkv_tensor *attend_from(const touching *w, int64_t from, qkv_tensor **weights)
{
    qkv_attention_opts opts = *w->o;
    opts.weights = weights;
    qkv_tensor *v = changed_values(w->qkv[2], w->pass, w->kind, w->mask.key_lengths, from);
    return qkv_attention(w->qkv[0], w->qkv[1], v, &w->mask, &opts);
}

/* For every query with its own values. Those that are the same for all queries are the common case. */
static qkv_tensor *attend_with_values(const touching *w, qkv_tensor **weights)
{
    const qkv__touches *x = &w->pass->touches;
    qkv_tape *t = w->qkv[0]->tape;
    qkv_tensor *y = attend_from(w, 0, weights);
    bool kept = qkv__set_keeps_attention(t, false), is_first = true; /* one map is kept of each attention */
    for (int64_t i = 0; y && i < x->n; i++) {
        int64_t from = changes_value(&x->list[i], w->kind, w->pass->layer) ? counts_from(&x->list[i]) : 0;
        bool is_new = from > 0 && from < w->queries;
        for (int64_t k = 0; k < i && is_new; k++)
            is_new = !changes_value(&x->list[k], w->kind, w->pass->layer) || counts_from(&x->list[k]) != from;
        if (!is_new) continue;
        if (is_first) y = qkv_mul(y, map_of(w, has_values_of, 0));
        is_first = false;
        y = qkv_add(y, qkv_mul(attend_from(w, from, NULL), map_of(w, has_values_of, from)));
    }
    qkv__set_keeps_attention(t, kept);
    return y;
}

/* What the given row gives: (batch, queries, heads*dv), zeros but for its query and head; its weights are seen too. */
static qkv_tensor *edited(const touching *w, const qkv_edit *edit, qkv_tensor *weights)
{
    qkv_tape *t = w->qkv[0]->tape;
    qkv_tensor *row = qkv_constant(t, 3, (int64_t[]){ w->batch, w->queries, w->keys }, NULL);
    qkv_tensor *place = qkv_constant(t, 2, (int64_t[]){ w->dv, w->o->heads * w->dv }, NULL);
    if (!row || !place || !weights) return NULL;
    for (int64_t b = 0; b < w->batch; b++) {
        int64_t seen = w->mask.key_lengths ? w->mask.key_lengths[b] : w->keys, n = edit->n_row < seen ? edit->n_row : seen;
        float *shown = qkv__tensor_data(weights) + ((b * w->o->heads + edit->head) * w->queries + edit->place) * w->keys;
        memset(shown, 0, sizeof(float) * (size_t)w->keys);
        memcpy(shown, edit->row, sizeof(float) * (size_t)n);
        memcpy(qkv__tensor_data(row) + (b * w->queries + edit->place) * w->keys, shown, sizeof(float) * (size_t)w->keys);
    }
    for (int64_t d = 0; d < w->dv; d++) qkv__tensor_data(place)[d * w->o->heads * w->dv + edit->head * w->dv + d] = 1;
    int64_t kv_heads = w->o->kv_heads ? w->o->kv_heads : w->o->heads, h = edit->head / (w->o->heads / kv_heads);
    qkv_tensor *v = qkv_slice(changed_values(w->qkv[2], w->pass, w->kind, w->mask.key_lengths, edit->place), 2, h * w->dv,
                              (h + 1) * w->dv);
    return qkv_matmul(qkv_matmul(row, v, 0), place, 0);
}

static qkv_tensor *edit_rows(const touching *w, qkv_tensor *y, qkv_tensor *weights)
{
    const qkv__touches *x = &w->pass->touches;
    bool any = false;
    for (int64_t i = 0; y && i < x->n; i++) {
        const qkv_edit *edit = &x->list[i];
        if (!is_at(edit, QKV_EDIT_ROW, w->kind, w->pass->layer) || edit->place >= w->queries) continue;
        if (edit_of(w, edit->place, edit->head) != edit) continue;
        if (!any) y = qkv_mul(y, map_of(w, is_not_edited, 0));
        any = true;
        y = qkv_add(y, edited(w, edit, weights));
    }
    return y;
}

static bool has_heads_off(const touching *w)
{
    for (int h = 0; h < (int)w->o->heads; h++)
        if (!is_on(w, 0, h, 0)) return true;
    return false;
}

qkv_tensor *qkv__attend_touched(qkv_tensor *const qkv[3], const qkv_mask *mask, const qkv_attention_opts *opts,
                                const qkv__pass *pass, qkv_attention_kind kind)
{
    int64_t kv_heads = opts->kv_heads ? opts->kv_heads : opts->heads;
    touching w = { .qkv = qkv,
                   .mask = *mask,
                   .o = opts,
                   .pass = pass,
                   .kind = kind,
                   .batch = qkv[0]->shape[0],
                   .queries = qkv[0]->shape[1],
                   .keys = qkv[1]->shape[1],
                   .dv = qkv[2]->shape[2] / kv_heads };
    qkv_tensor *weights = NULL;
    bool is_touched = qkv__touches_weights(&pass->touches, kind, pass->layer);
    qkv_tensor *y = is_touched ? attend_with_values(&w, &weights) : qkv_attention(qkv[0], qkv[1], qkv[2], mask, opts);
    if (is_touched) y = edit_rows(&w, y, weights);
    return has_heads_off(&w) ? qkv_mul(y, map_of(&w, is_on, 0)) : y;
}

/* ---- attention to pages ---- */

/* sum weights[j] v[from[j]] of a head over n keys, to y. */
static void add_values(const qkv__cache *c, const qkv__paged_part *part, int layer, int64_t kv_head, const float *weights,
                       const int32_t *from, int64_t n, float *y)
{
    int64_t values = qkv__cache_at(c, layer) + (c->kv_heads * c->dk + kv_head * c->dv) * QKV__PAGE;
    memset(y, 0, sizeof *y * (size_t)c->dv);
    for (int64_t j = 0; j < n; j++) {
        if (from[j] < 0 || weights[j] == 0) continue;
        const float *v = part->pages[from[j] / QKV__PAGE] + values + from[j] % QKV__PAGE * c->dv;
        for (int64_t d = 0; d < c->dv; d++) y[d] += weights[j] * v[d];
    }
}

static void touch_query(const touching *w, const qkv__paged_part *part, int64_t i, int64_t place, int32_t *from, float *y)
{
    const qkv__cached_forward *f = w->pass->cached;
    const qkv__cache *c = w->kind == QKV_ATTENTION_CROSS ? f->cross_cache : f->self_cache;
    int64_t seen = w->kind == QKV_ATTENTION_DECODER ? place + 1 : part->keys; /* what comes later changes no bit */
    bool moved = value_sources(&w->pass->touches, w->kind, f->layer, place, seen, from);
    for (int64_t h = 0; h < w->o->heads; h++) {
        const qkv_edit *edit = edit_of(w, place, h);
        float *weights = part->weights + (h * part->n + i) * part->keys;
        int64_t n = !edit ? 0 : edit->n_row < seen ? edit->n_row : seen;
        if (edit) memset(weights, 0, sizeof *weights * (size_t)part->keys);
        if (edit) memcpy(weights, edit->row, sizeof *weights * (size_t)n);
        if (edit || moved) add_values(c, part, f->layer, h / (w->o->heads / c->kv_heads), weights, from, seen, y + h * c->dv);
    }
}

void qkv__touch_cached(const qkv__pass *pass, const qkv_mha *m, qkv_tensor *y, qkv_attention_kind kind)
{
    const qkv__cached_forward *f = pass->cached;
    const qkv__paged_part *parts = kind == QKV_ATTENTION_CROSS ? f->cross : f->self;
    const touching w = { .o = &(qkv_attention_opts){ .heads = m->heads }, .pass = pass, .kind = kind };
    float *row = qkv__tensor_data(y);
    for (int64_t r = 0; r < f->rows; r++) {
        int32_t *from = qkv__save(y->tape, sizeof *from * (size_t)parts[r].keys);
        if (!from) return;
        for (int64_t i = 0; i < parts[r].n; i++, row += qkv__last(y))
            touch_query(&w, &parts[r], i, f->self[r].keys - f->self[r].n + i, from, row);
    }
}
