/* additive.c: additive attention (Bahdanau et al. 2015): score(i,j) = sum_d w_d tanh(q_id + k_jd), then softmax over the keys
 * that query i may see, and the sum of their values. One row of weights at a time, computed again in backward: nothing T x T
 * unless it is asked for. */
#include "mask.h"
#include "parallel_for.h"

#include <math.h>

enum { QUERY, KEY, WEIGHT, VALUE, OPERANDS };

typedef struct work {
    qkv__attention a;
    const float *w;
    float *dw; /* (batch * kv_heads, dk): each task its own, added up at the end; NULL when not wanted */
} work;

static int64_t at(qkv__strides r, int64_t b, int64_t h, int64_t t) { return b * r.batch + h * r.head + t * r.row; }

static int64_t row_number(const qkv__attention *a, int64_t b, int64_t h, int64_t i) { return (b * a->heads + h) * a->tq + i; }

/* scale * score + bias of every key for query i, -inf for the hidden ones. */
static void score_row(const work *w, int64_t b, int64_t h, int64_t i, float *row)
{
    const qkv__attention *a = &w->a;
    const qkv__seen *s = &a->seen;
    const float *q = a->q + at(a->q_rows, b, h, i), *k = a->k + at(a->k_rows, b, h / (a->heads / a->kv_heads), 0);
    const uint8_t *keep = s->keep ? s->keep + b * s->keep_step[0] + h * s->keep_step[1] + i * s->keep_step[2] : NULL;
    const float *bias = s->bias ? s->bias + b * s->bias_step[0] + h * s->bias_step[1] + i * s->bias_step[2] : NULL;
    int64_t to = qkv__seen_to(a, b, i);
    for (int64_t j = 0; j < a->tk; j++) {
        row[j] = -INFINITY;
        if (j >= to || (keep && !keep[j * s->keep_step[3]])) continue;
        row[j] = a->scale * kern->additive_score(q, k + j * a->k_rows.row, w->w, a->dk);
        if (bias) row[j] += bias[j * s->bias_step[3]];
    }
}

/* Dropout's random numbers come in blocks of 32, so every row begins a new block. */
static void drop_row(const qkv__attention *a, int64_t row_index, float *row)
{
    if (a->drops) kern->dropout(row, row, a->tk, row_index * qkv__round_up(a->tk, 32), a->key, a->keep_below, a->drop_scale);
}

/* ---- forward ---- */

static void keep_row(float *table, const qkv__attention *a, int64_t row_index, const float *row)
{
    if (table) memcpy(table + row_index * a->tk, row, sizeof(float) * (size_t)a->tk);
}

static void raw_scores(const work *w, int64_t b, int64_t h, int64_t i, float *row)
{
    const qkv__attention *a = &w->a;
    const float *q = a->q + at(a->q_rows, b, h, i), *k = a->k + at(a->k_rows, b, h / (a->heads / a->kv_heads), 0);
    for (int64_t j = 0; j < a->tk; j++) row[j] = kern->additive_score(q, k + j * a->k_rows.row, w->w, a->dk);
}

static void forward_row(void *data, int64_t row_index, void *scratch)
{
    const work *w = data;
    const qkv__attention *a = &w->a;
    int64_t i = row_index % a->tq, h = row_index / a->tq % a->heads, b = row_index / a->tq / a->heads;
    float *row = scratch, *y = a->y + at(a->y_rows, b, h, i);
    const float *v = a->v + at(a->v_rows, b, h / (a->heads / a->kv_heads), 0);
    if (a->scores) raw_scores(w, b, h, i, a->scores + row_index * a->tk);
    score_row(w, b, h, i, row);
    keep_row(a->scaled, a, row_index, row);
    kern->softmax(row, row, 1, a->tk);
    keep_row(a->weights, a, row_index, row);
    drop_row(a, row_index, row);
    memset(y, 0, sizeof(float) * (size_t)a->dv);
    for (int64_t j = 0; j < a->tk; j++)
        if (row[j] != 0) kern->axpy(y, v + j * a->v_rows.row, row[j], a->dv); /* hidden keys are not even read */
}

/* ---- backward ---- */

/* y_i = sum_j D_ij P_ij v_j, P = softmax(s), D the dropout:
 *   dv_j += D_ij P_ij dy_i,   dP_ij = D_ij (dy_i . v_j),   ds_ij = P_ij (dP_ij - sum_j P_ij dP_ij)
 * s_ij = scale sum_d w_d tanh(q_id + k_jd):   see kern/ref.c, additive_grad */
static void backward_row(const work *w, int64_t b, int64_t h, int64_t i, float *dw, float *scratch)
{
    const qkv__attention *a = &w->a;
    int64_t kv = h / (a->heads / a->kv_heads), k_at = at(a->k_rows, b, kv, 0), v_at = at(a->v_rows, b, kv, 0);
    int64_t q_at = at(a->q_rows, b, h, i), row_index = row_number(a, b, h, i), n = a->tk;
    const float *dy = a->dy + at(a->y_rows, b, h, i);
    float *weights = scratch, *dropped = scratch + n, *dweights = scratch + 2 * n, *dscores = scratch + 3 * n;
    score_row(w, b, h, i, weights);
    kern->softmax(weights, weights, 1, n);
    memcpy(dropped, weights, sizeof(float) * (size_t)n);
    drop_row(a, row_index, dropped);
    for (int64_t j = 0; j < n; j++) dweights[j] = dropped[j] != 0 ? kern->dot(dy, a->v + v_at + j * a->v_rows.row, a->dv) : 0;
    drop_row(a, row_index, dweights);
    memset(dscores, 0, sizeof(float) * (size_t)n);
    kern->softmax_grad(dscores, weights, dweights, 1, n);
    for (int64_t j = 0; j < n; j++) {
        int64_t key = k_at + j * a->k_rows.row;
        if (a->grad_v && dropped[j] != 0) kern->axpy(a->grad_v + v_at + j * a->v_rows.row, dy, dropped[j], a->dv);
        if (weights[j] != 0)
            kern->additive_grad(a->grad_q ? a->grad_q + q_at : NULL, a->grad_k ? a->grad_k + key : NULL, dw, a->q + q_at,
                                a->k + key, w->w, a->scale * dscores[j], a->dk);
    }
}

/* One head of keys and values and all queries that read it, in order: no other task adds to the same gradients. */
static void backward_head(void *data, int64_t task, void *scratch)
{
    const work *w = data;
    const qkv__attention *a = &w->a;
    int64_t group = a->heads / a->kv_heads, b = task / a->kv_heads, first = task % a->kv_heads * group;
    float *dw = w->dw ? w->dw + task * a->dk : NULL;
    if (dw) memset(dw, 0, sizeof(float) * (size_t)a->dk);
    for (int64_t h = first; h < first + group; h++)
        for (int64_t i = 0; i < a->tq; i++) backward_row(w, b, h, i, dw, scratch);
}

static void additive_backward(qkv_tensor *y)
{
    work w = *(const work *)y->saved;
    qkv__attention *a = &w.a;
    int64_t tasks = a->batch * a->kv_heads;
    float *dw = qkv__grad(y->in[WEIGHT]);
    w.w = qkv_tensor_data(y->in[WEIGHT]);
    a->q = qkv_tensor_data(y->in[QUERY]);
    a->k = qkv_tensor_data(y->in[KEY]);
    a->v = qkv_tensor_data(y->in[VALUE]);
    a->dy = y->grad;
    a->grad_q = qkv__grad(y->in[QUERY]);
    a->grad_k = qkv__grad(y->in[KEY]);
    a->grad_v = qkv__grad(y->in[VALUE]);
    if (dw) w.dw = qkv__save(y->tape, sizeof(float) * (size_t)(tasks * a->dk));
    if (qkv_tape_status(y->tape)) return;
    if (qkv__parallel(tasks, sizeof(float) * 4 * (size_t)a->tk, backward_head, &w)) qkv__error_below(y->tape);
    else if (dw) kern->add_rows(dw, w.dw, tasks, a->dk, a->dk);
}

/* ---- the operation ---- */

/* Room for one of the maps that may be asked for. */
static float *map_for(qkv_tape *t, const qkv__attention *a, bool wanted, qkv_tensor **out)
{
    qkv_tensor *map = wanted ? qkv__attention_map(t, a) : NULL;
    if (out) *out = map;
    return qkv__tensor_data(map);
}

static bool additive_forward(qkv_tape *t, work *w, const qkv_attention_opts *opts)
{
    qkv__attention *a = &w->a;
    qkv_tensor *weights;
    a->weights = map_for(t, a, opts->weights || qkv__keeps_attention(t), &weights);
    a->scaled = map_for(t, a, opts->scaled, opts->scaled);
    a->scores = map_for(t, a, opts->scores, opts->scores);
    if (qkv_tape_status(t)) return false;
    if (qkv__parallel(a->batch * a->heads * a->tq, sizeof(float) * (size_t)a->tk, forward_row, w)) qkv__error_below(t);
    if (opts->weights) *opts->weights = weights;
    if (qkv__keeps_attention(t)) qkv__keep_attention(t, weights);
    return !qkv_tape_status(t);
}

qkv_tensor *qkv__additive_attention(qkv_tensor *q, qkv_tensor *k, qkv_tensor *v, const qkv_mask *mask,
                                    const qkv_attention_opts *opts)
{
    qkv_tensor *w = opts->additive, *in[OPERANDS] = { q, k, w, v }, *qkv[3] = { q, k, v };
    const char *name = "additive_attention";
    int ndim;
    int64_t shape[4];
    qkv_tape *t = qkv__operands(name, OPERANDS, in);
    work *s = t ? qkv__save(t, sizeof *s) : NULL;
    if (!s) return NULL;
    *s = (work){ .w = qkv_tensor_data(w) };
    bool keeps = q->wants_grad || k->wants_grad || w->wants_grad || v->wants_grad;
    if (!qkv__attention_setup(t, name, qkv, mask, opts, keeps, &s->a, &ndim, shape)) return NULL;
    if (opts->window || opts->softcap > 0) return qkv__error(t, QKV_USAGE, "%s: it has no window and no cap", name);
    if (opts->relative_bias) return qkv__error(t, QKV_USAGE, "%s: it has no bias by distance (relative)", name);
    if (w->ndim != 1 || w->shape[0] != s->a.dk)
        return qkv__error(t, QKV_USAGE, "%s: w is %s, it must be (%lld), the width of q and k", name, QKV_TEXT(w),
                          (long long)s->a.dk);
    if (s->a.scale == 0) s->a.scale = 1.0f;
    qkv_tensor *y = qkv__result(t, ndim, shape, additive_backward, OPERANDS, in);
    if (!y) return NULL;
    y->saved = s;
    s->a.q = qkv_tensor_data(q);
    s->a.k = qkv_tensor_data(k);
    s->a.v = qkv_tensor_data(v);
    s->a.y = y->data;
    return additive_forward(t, s, opts) ? y : NULL;
}
