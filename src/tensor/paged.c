/* paged.c: attention to keys and values in pages; src/kern/paged.c computes. */
#include "paged.h"

#include "mask.h"

/* A block of queries of one part, in every head. */
typedef struct piece {
    const qkv__paged *x;
    int64_t from, to;
} piece;

typedef struct pieces {
    piece *list;
    int64_t n, heads;
    int64_t at_once; /* heads in a task */
} pieces;

static void attend_piece(void *work, int64_t task, void *scratch)
{
    const pieces *w = work;
    int64_t cuts = qkv__ceil_div(w->heads, w->at_once), first = task % cuts * w->at_once;
    const piece *p = &w->list[task / cuts];
    for (int64_t h = first; h < qkv__min(first + w->at_once, w->heads); h++)
        kern->attend_paged(p->x, h, p->from, p->to, scratch);
}

static int64_t count_pieces(const qkv__paged_part *parts, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += qkv__ceil_div(parts[i].n, QKV__PAGED_QUERIES);
    return count;
}

/* A task of less work than this is not worth waking a thread for. */
enum { LEAST_WORK = 1 << 15 };

static int64_t heads_at_once(const qkv__paged_opts *o, const qkv__paged_part *parts, int64_t n_parts)
{
    int64_t work = 0;
    for (int64_t i = 0; i < n_parts; i++) work += parts[i].n * parts[i].keys * (o->dk + o->dv);
    int64_t a_head = work / qkv__max(1, count_pieces(parts, n_parts));
    return qkv__min(o->heads, qkv__ceil_div(LEAST_WORK, qkv__max(1, a_head)));
}

static void set_part(qkv__paged *x, const qkv__paged_opts *o, const qkv__paged_part *part, const float *q, float *y)
{
    *x = (qkv__paged){ .q = q,
                       .y = y,
                       .q_row = o->heads * o->dk,
                       .y_row = o->heads * o->dv,
                       .heads = o->heads,
                       .kv_heads = o->kv_heads,
                       .dk = o->dk,
                       .dv = o->dv,
                       .n = part->n,
                       .keys = part->keys,
                       .causal = o->causal,
                       .pages = part->pages,
                       .at = o->at,
                       .scale = o->scale == 0 ? qkv__default_scale(o->dk) : o->scale,
                       .relative = o->relative,
                       .hidden = part->hidden,
                       .weights = part->weights,
                       .window = o->window,
                       .cap = o->cap };
}

qkv_tensor *qkv__attend_paged(qkv_tensor *q, const qkv__paged_opts *o, const qkv__paged_part *parts, int64_t n_parts)
{
    qkv_tape *t = qkv__operands("attention", 1, &q);
    if (!t) return NULL;
    int64_t shape[QKV_MAX_DIMS], row = 0, n = 0;
    memcpy(shape, q->shape, sizeof shape);
    shape[q->ndim - 1] = o->heads * o->dv;
    qkv_tensor *y = qkv__result(t, q->ndim, shape, NULL, 0, NULL);
    pieces w = { .n = count_pieces(parts, n_parts), .heads = o->heads, .at_once = heads_at_once(o, parts, n_parts) };
    qkv__paged *all = qkv__save(t, sizeof *all * (size_t)n_parts);
    w.list = qkv__save(t, sizeof *w.list * (size_t)w.n);
    if (!y || !all || !w.list) return NULL;
    for (int64_t i = 0; i < n_parts; i++) {
        set_part(&all[i], o, &parts[i], qkv_tensor_data(q) + row * o->heads * o->dk, y->data + row * o->heads * o->dv);
        for (int64_t from = 0; from < parts[i].n; from += QKV__PAGED_QUERIES)
            w.list[n++] = (piece){ &all[i], from, qkv__min(from + QKV__PAGED_QUERIES, parts[i].n) };
        row += parts[i].n;
    }
    qkv_status status = qkv__parallel(w.n * qkv__ceil_div(w.heads, w.at_once), qkv__attention_scratch(o->dk, o->dv),
                                      attend_piece, &w);
    return status ? qkv__error_below(t) : y;
}
