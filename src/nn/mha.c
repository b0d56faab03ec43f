/* mha.c: multi-head attention, Concat(head_1..head_h) W^O. The heads stay side by side in the last dimension: no transposes. */
#include "layer.h"

#include "../base/options.h"
#include "../base/pool.h"
#include "../tensor/parallel_for.h"
#include "../tensor/ragged.h"
#include "../tensor/tape.h"

#include <string.h>

static bool refuse_mha(qkv_params *p, const char *name, const qkv_mha_opts *o, const char *why)
{
    return qkv__params_fail(p, QKV_USAGE,
                            "attention \"%.200s\" (dim %lld, heads %lld, kv_heads %lld, kv_dim %lld, d_k %lld, d_v %lld): %s",
                            QKV_SHOWN(name), (long long)o->dim, (long long)o->heads, (long long)o->kv_heads,
                            (long long)o->kv_dim, (long long)o->d_k, (long long)o->d_v, why);
}

/* Fills in the defaults; false, with the error in p, when the sizes do not fit together. */
static bool resolve_mha_options(qkv_params *p, const char *name, qkv_mha_opts *o)
{
    int64_t widest;
    if (!o->kv_heads) o->kv_heads = o->heads;
    if (!o->kv_dim) o->kv_dim = o->dim;
    if (o->dim < 1 || o->heads < 1) return refuse_mha(p, name, o, "dim and heads must be at least 1");
    if (o->kv_heads < 1 || o->kv_dim < 1 || o->d_k < 0 || o->d_v < 0) return refuse_mha(p, name, o, "no size may be negative");
    if (o->heads % o->kv_heads) return refuse_mha(p, name, o, "heads must be a multiple of kv_heads");
    if (!o->d_k && o->dim % o->heads)
        return refuse_mha(p, name, o, "dim does not divide into its heads: change one, or give d_k");
    if (!o->d_k) o->d_k = o->dim / o->heads;
    if (!o->d_v) o->d_v = o->d_k;
    if (__builtin_mul_overflow(o->heads, qkv__max(o->d_k, o->d_v), &widest))
        return refuse_mha(p, name, o, "the heads together are larger than memory can be");
    return (o->dropout >= 0 && o->dropout < 1) || refuse_mha(p, name, o, "dropout must be at least 0 and below 1");
}

qkv_mha qkv_mha_new(qkv_params *p, const char *name, const qkv_mha_opts *opts)
{
    qkv_mha_opts o;
    if (QKV__READ_OPTIONS(&o, dropout, opts, "attention")) return qkv__params_error_below(p), (qkv_mha){ 0 };
    if (!p || !resolve_mha_options(p, name, &o)) return (qkv_mha){ 0 };
    qkv_mha m = { .heads = o.heads, .kv_heads = o.kv_heads, .dropout = o.dropout };
    bool bare = o.no_bias && !o.qkv_bias;
    m.q = qkv__linear_part(p, name, "q", o.dim, o.heads * o.d_k, bare); /* one by one: an initialiser list has no order */
    m.k = qkv__linear_part(p, name, "k", o.kv_dim, o.kv_heads * o.d_k, bare);
    m.v = qkv__linear_part(p, name, "v", o.kv_dim, o.kv_heads * o.d_v, bare);
    m.out = qkv__linear_part(p, name, "out", o.heads * o.d_v, o.dim, o.no_bias);
    return m.q.weight && m.k.weight && m.v.weight && m.out.weight ? m : (qkv_mha){ 0 };
}

/* Queries of x, keys and values of y. */
static bool project(const qkv_mha *m, qkv_tensor *x, qkv_tensor *y, qkv_tensor *qkv[3])
{
    const qkv_linear *const all[] = { &m->q, &m->k, &m->v };
    return x == y ? qkv__linear_together(all, 3, x, qkv)
                  : qkv__linear_together(all, 1, x, qkv) && qkv__linear_together(all + 1, 2, y, qkv + 1);
}

/* The norm of every head, (..., heads*d_k) as (tokens, heads, d_k). */
static qkv_tensor *normalise_heads(const qkv_norm *n, qkv_tensor *x)
{
    if (!n->gain || !x) return x;
    int64_t width = n->gain->shape[0], shape[3];
    memcpy(shape, x->shape, sizeof shape);
    qkv_tensor *heads = qkv_reshape(x, 3, (int64_t[]){ qkv__rows(x), qkv__last(x) / width, width });
    return qkv_reshape(qkv_norm_forward(n, heads), 3, shape);
}

static qkv_tensor *turn(qkv_tensor *x, const qkv_rope_opts *rotary, int64_t heads)
{
    if (!rotary) return x;
    qkv_rope_opts own = *rotary;
    own.heads = heads;
    return qkv_rope(x, &own);
}

/* Queries, keys and values of self-attention: normalised and turned as the layer has it. */
static bool project_self(const qkv__layer *l, qkv_tensor *x, const qkv__pass *pass, qkv_tensor *qkv[3])
{
    const qkv_rope_opts *rotary = l->window ? pass->local_rotary : pass->rotary;
    if (!project(&l->self, x, x, qkv)) return false;
    qkv[0] = turn(normalise_heads(&l->q_norm, qkv[0]), rotary, l->self.heads);
    qkv[1] = turn(normalise_heads(&l->k_norm, qkv[1]), rotary, l->self.kv_heads);
    return qkv[0] && qkv[1];
}

/* Attention of whole sequences and the last projection; pass NULL: nothing is changed in it. */
static qkv_tensor *attend_whole(const qkv_mha *m, qkv_tensor *x, qkv_tensor *y, qkv_tensor *qkv[3], const qkv_mask *mask,
                                qkv_attention_opts opts, const qkv__pass *pass)
{
    opts.size = sizeof opts;
    opts.heads = m->heads;
    opts.kv_heads = m->kv_heads;
    opts.dropout = m->dropout;
    qkv_tensor *heads = pass && pass->touches.n
                            ? qkv__attend_touched(qkv, mask, &opts, pass, x == y ? qkv__self_of(pass) : QKV_ATTENTION_CROSS)
                            : qkv_attention(qkv[0], qkv[1], qkv[2], mask, &opts);
    qkv__keep_projections(&(qkv_projections){ .x = x, .y = y, .q = qkv[0], .k = qkv[1], .v = qkv[2], .heads = heads });
    return qkv_linear_forward(&m->out, heads);
}

static qkv_tensor *mha_scaled(const qkv_mha *m, qkv_tensor *x, qkv_tensor *y, const qkv_mask *mask, float scale,
                              const qkv__pass *pass)
{
    qkv_tensor *qkv[3];
    if (!x || !y) return NULL;
    if (!m || !m->q.weight) return qkv__no_weights(x->tape, "attention");
    return project(m, x, y, qkv) ? attend_whole(m, x, y, qkv, mask, (qkv_attention_opts){ .scale = scale }, pass) : NULL;
}

qkv_tensor *qkv__cross_forward(const qkv_mha *m, qkv_tensor *x, const qkv__pass *pass)
{
    return mha_scaled(m, x, pass->memory, &pass->cross, pass->o->attention_scale, pass);
}

qkv_tensor *qkv__self_forward(const qkv__layer *l, qkv_tensor *x, const qkv__pass *pass)
{
    qkv_tensor *qkv[3];
    if (!x || !project_self(l, x, pass, qkv)) return NULL;
    const qkv_attention_opts opts = { .scale = pass->o->attention_scale,
                                      .window = l->window,
                                      .softcap = pass->o->score_softcap,
                                      .relative_bias = pass->relative };
    return attend_whole(&l->self, x, x, qkv, &pass->self, opts, pass);
}

qkv_tensor *qkv__self_ragged(const qkv__layer *l, qkv_tensor *x, const qkv__pass *pass)
{
    qkv_tensor *qkv[3];
    if (!x || !project_self(l, x, pass, qkv)) return NULL;
    const qkv__ragged_opts opts = { .heads = l->self.heads,
                                    .kv_heads = l->self.kv_heads,
                                    .window = l->window,
                                    .scale = pass->o->attention_scale,
                                    .cap = pass->o->score_softcap,
                                    .relative = qkv__relative_of(pass->relative) };
    return qkv_linear_forward(&l->self.out, qkv__attend_ragged(qkv, &opts, pass->ragged->lengths, pass->ragged->n));
}

/* Rows of a tensor that belong to heads which are switched off become zeros. */
static void silence_heads(const qkv_mha *m, qkv_tensor *y, const uint8_t *off)
{
    int64_t width = qkv_tensor_dim(y, -1) / m->heads, tokens = qkv_tensor_count(y) / qkv_tensor_dim(y, -1);
    for (int64_t i = 0; i < tokens * m->heads; i++)
        if (off[i % m->heads]) memset(qkv__tensor_data(y) + i * width, 0, sizeof(float) * (size_t)width);
}

/* Where the weights of each part go, on the tape, one (1, heads, queries, keys) after the other. */
static void keep_weights(const qkv_mha *m, qkv_tape *t, qkv__paged_part *parts, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        qkv_tensor *weights = qkv__result(t, 4, (int64_t[]){ 1, m->heads, parts[i].n, parts[i].keys }, NULL, 0, NULL);
        parts[i].weights = qkv__tensor_data(weights);
        if (weights && qkv__keeps_attention(t)) qkv__keep_attention(t, weights);
    }
}

static qkv_tensor *attend_cached(const qkv_mha *m, qkv_tensor *q, const qkv__pass *pass, bool is_cross, int64_t window)
{
    const qkv__cached_forward *f = pass->cached;
    const qkv__cache *cache = is_cross ? f->cross_cache : f->self_cache;
    qkv__paged_part *parts = is_cross ? f->cross : f->self;
    const qkv__paged_opts opts = { .heads = m->heads,
                                   .kv_heads = m->kv_heads,
                                   .dk = cache->dk,
                                   .dv = cache->dv,
                                   .at = qkv__cache_at(cache, f->layer),
                                   .causal = !is_cross,
                                   .scale = pass->o->attention_scale,
                                   .cap = is_cross ? 0 : pass->o->score_softcap,
                                   .window = window,
                                   .relative = qkv__relative_of(is_cross ? NULL : pass->relative) };
    qkv_attention_kind kind = is_cross ? QKV_ATTENTION_CROSS : QKV_ATTENTION_DECODER;
    bool is_touched = qkv__touches_weights(&pass->touches, kind, f->layer);
    for (int64_t i = 0; pass->touches.n && i < f->rows; i++) parts[i].weights = NULL; /* those of another layer are gone */
    if (q && (is_touched || qkv__keeps_attention(q->tape))) keep_weights(m, q->tape, parts, f->rows);
    qkv_tensor *y = qkv__attend_paged(q, &opts, parts, f->rows);
    if (y && is_touched) qkv__touch_cached(pass, m, y, kind);
    if (y && f->heads_off) silence_heads(m, y, f->heads_off + (2 * f->layer + is_cross) * m->heads);
    return qkv_linear_forward(&m->out, y);
}

typedef struct cache_writing {
    const qkv__cached_forward *f;
    const qkv_tensor *k, *v;
} cache_writing;

/* Tokens from .. to-1, those of all rows counted. */
static void write_tokens(void *work, int64_t from, int64_t to)
{
    const cache_writing *w = work;
    const qkv__cached_forward *f = w->f;
    for (int64_t r = 0, first = 0; r < f->rows && first < to; first += f->self[r++].n) {
        int64_t at = qkv__max(first, from), end = qkv__min(first + f->self[r].n, to);
        if (at < end)
            qkv__cache_write(f->self_cache, f->sequences[r], f->layer, f->self[r].keys - f->self[r].n + at - first, end - at,
                             qkv_tensor_data(w->k) + at * qkv__last(w->k), qkv_tensor_data(w->v) + at * qkv__last(w->v));
    }
}

static bool write_cache(const qkv__cached_forward *f, const qkv_tensor *k, const qkv_tensor *v)
{
    cache_writing w = { f, k, v };
    int64_t grain = qkv__grain(qkv__last(k) + qkv__last(v)), tokens = qkv__rows(k);
    if (tokens > f->rows) grain = qkv__round_up(grain, QKV__PAGE); /* most pages are one thread's */
    return qkv__parallel_for(k->tape, tokens, grain, write_tokens, &w);
}

/* Goes on when the tokens before these are in the cache too. */
static void take_turn(const qkv__turn *turn, int layer)
{
    if (turn->before) qkv__wait_for(turn->before, layer + 1);
    atomic_store_explicit(turn->own, layer + 1, memory_order_release);
}

qkv_tensor *qkv__self_cached(const qkv__layer *l, qkv_tensor *x, const qkv__pass *pass)
{
    qkv_tensor *qkv[3];
    if (!x || !project_self(l, x, pass, qkv) || !write_cache(pass->cached, qkv[1], qkv[2])) return NULL;
    if (pass->cached->turn) take_turn(pass->cached->turn, pass->cached->layer);
    return attend_cached(&l->self, qkv[0], pass, false, l->window);
}

qkv_tensor *qkv__cross_cached(const qkv_mha *m, qkv_tensor *x, const qkv__pass *pass)
{
    return attend_cached(m, qkv_linear_forward(&m->q, x), pass, true, 0);
}

qkv_tensor *qkv_mha_forward(const qkv_mha *m, qkv_tensor *x, qkv_tensor *y, const qkv_mask *mask)
{
    return mha_scaled(m, x, y, mask, 0, NULL);
}
