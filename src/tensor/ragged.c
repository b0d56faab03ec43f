/* ragged.c: attention of sequences that stand one after the other; src/kern/attention.c computes. */
#include "ragged.h"

#include "mask.h"

/* A block of queries of one sequence, in every head. */
typedef struct block {
    const qkv__attention *x;
    int64_t from;
} block;

typedef struct blocks {
    block *list;
    int64_t n, heads, at_once; /* at_once: heads in a task */
} blocks;

static void attend_block(void *work, int64_t task, void *scratch)
{
    const blocks *w = work;
    int64_t cuts = qkv__ceil_div(w->heads, w->at_once), first = task % cuts * w->at_once;
    const block *b = &w->list[task / cuts];
    for (int64_t h = first; h < qkv__min(first + w->at_once, w->heads); h++)
        kern->attend(b->x, 0, h, b->from, qkv__min(b->from + QKV__QUERY_BLOCK, b->x->tq), scratch);
}

/* The first sequence; the others differ in their place and length. */
static qkv__attention first_sequence(qkv_tensor *const qkv[3], qkv_tensor *y, const qkv__ragged_opts *o, float *stats)
{
    int64_t heads = o->heads, kv_heads = o->kv_heads;
    qkv__attention x = { .batch = 1, .heads = heads, .kv_heads = kv_heads, .cap = o->cap, .seen = { .window = o->window } };
    x.dk = qkv__last(qkv[0]) / heads;
    x.dv = qkv__last(qkv[2]) / kv_heads;
    x.q = qkv_tensor_data(qkv[0]);
    x.k = qkv_tensor_data(qkv[1]);
    x.v = qkv_tensor_data(qkv[2]);
    x.y = y->data;
    x.q_rows = (qkv__strides){ 0, x.dk, heads * x.dk };
    x.k_rows = (qkv__strides){ 0, x.dk, kv_heads * x.dk };
    x.v_rows = (qkv__strides){ 0, x.dv, kv_heads * x.dv };
    x.y_rows = (qkv__strides){ 0, x.dv, heads * x.dv };
    x.scale = o->scale == 0 ? qkv__default_scale(x.dk) : o->scale;
    x.seen.bias = o->relative.at;
    memcpy(x.seen.bias_step, (int64_t[]){ 0, o->relative.row, -1, 1 }, sizeof x.seen.bias_step);
    x.largest = stats;
    x.inverse = stats + heads * qkv__rows(y);
    return x;
}

/* The sequence of n tokens that begins with token `at`. */
static qkv__attention sequence_at(qkv__attention x, int64_t at, int64_t n)
{
    x.tq = x.tk = n;
    x.q += at * x.q_rows.row;
    x.k += at * x.k_rows.row;
    x.v += at * x.v_rows.row;
    x.y += at * x.y_rows.row;
    x.largest += at * x.heads;
    x.inverse += at * x.heads;
    return x;
}

/* A task of less work than this is not worth a look at the counter. */
enum { LEAST_WORK = 1 << 17 };

static blocks lay_out_blocks(qkv_tape *t, const qkv__attention *first, const int64_t *lengths, int64_t n)
{
    int64_t at = 0, work = 0;
    blocks w = { .heads = first->heads };
    for (int64_t i = 0; i < n; i++) {
        w.n += qkv__ceil_div(lengths[i], QKV__QUERY_BLOCK);
        work += lengths[i] * lengths[i] * (first->dk + first->dv);
    }
    int64_t a_head = work / qkv__max(1, w.n);
    w.at_once = qkv__min(w.heads, qkv__ceil_div(LEAST_WORK, qkv__max(1, a_head)));
    qkv__attention *all = qkv__save(t, sizeof *all * (size_t)n);
    w.list = all ? qkv__save(t, sizeof *w.list * (size_t)w.n) : NULL;
    block *to = w.list;
    for (int64_t i = 0; to && i < n; at += lengths[i++]) {
        all[i] = sequence_at(*first, at, lengths[i]);
        for (int64_t from = 0; from < lengths[i]; from += QKV__QUERY_BLOCK) *to++ = (block){ &all[i], from };
    }
    return w;
}

qkv_tensor *qkv__attend_ragged(qkv_tensor *const qkv[3], const qkv__ragged_opts *o, const int64_t *lengths, int64_t n)
{
    qkv_tape *t = qkv__operands("attention", 3, qkv);
    if (!t) return NULL;
    int64_t shape[QKV_MAX_DIMS];
    memcpy(shape, qkv[0]->shape, sizeof shape);
    shape[qkv[0]->ndim - 1] = qkv__last(qkv[2]) / o->kv_heads * o->heads;
    qkv_tensor *y = qkv__result(t, qkv[0]->ndim, shape, NULL, 0, NULL);
    float *stats = y ? qkv__save(t, 2 * sizeof *stats * (size_t)(o->heads * qkv__rows(y))) : NULL;
    if (!stats) return NULL;
    const qkv__attention first = first_sequence(qkv, y, o, stats);
    blocks w = lay_out_blocks(t, &first, lengths, n);
    if (!w.list) return NULL;
    qkv_status status = qkv__parallel(w.n * qkv__ceil_div(o->heads, w.at_once), qkv__attention_scratch(first.dk, first.dv),
                                      attend_block, &w);
    return status ? qkv__error_below(t) : y;
}
