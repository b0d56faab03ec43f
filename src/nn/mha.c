/* mha.c: multi-head attention, Concat(head_1..head_h) W^O. The heads stay side by side in the last dimension: no transposes. */
#include "layer.h"

#include "../tensor/tape.h"

#include <string.h>

static bool refuse(qkv_params *p, const char *name, const qkv_mha_opts *o, const char *why)
{
    return qkv__params_fail(p, QKV_USAGE,
                            "attention \"%.200s\" (dim %lld, heads %lld, kv_heads %lld, kv_dim %lld, d_k %lld, d_v %lld): %s",
                            QKV_SHOWN(name), (long long)o->dim, (long long)o->heads, (long long)o->kv_heads,
                            (long long)o->kv_dim, (long long)o->d_k, (long long)o->d_v, why);
}

/* Fills in the defaults; false, with the error in p, when the sizes do not fit together. */
static bool settle(qkv_params *p, const char *name, qkv_mha_opts *o)
{
    int64_t widest;
    if (!o->kv_heads) o->kv_heads = o->heads;
    if (!o->kv_dim) o->kv_dim = o->dim;
    if (o->dim < 1 || o->heads < 1) return refuse(p, name, o, "dim and heads must be at least 1");
    if (o->kv_heads < 1 || o->kv_dim < 1 || o->d_k < 0 || o->d_v < 0) return refuse(p, name, o, "no size may be negative");
    if (o->heads % o->kv_heads) return refuse(p, name, o, "heads must be a multiple of kv_heads");
    if (!o->d_k && o->dim % o->heads) return refuse(p, name, o, "dim does not divide into its heads: change one, or give d_k");
    if (!o->d_k) o->d_k = o->dim / o->heads;
    if (!o->d_v) o->d_v = o->d_k;
    if (__builtin_mul_overflow(o->heads, qkv__max(o->d_k, o->d_v), &widest))
        return refuse(p, name, o, "the heads together are larger than memory can be");
    return (o->dropout >= 0 && o->dropout < 1) || refuse(p, name, o, "dropout must be at least 0 and below 1");
}

qkv_mha qkv_mha_new_with(qkv_params *p, const char *name, const qkv_mha_opts *opts)
{
    qkv_mha_opts o = opts ? *opts : (qkv_mha_opts){ 0 };
    if (!p || !settle(p, name, &o)) return (qkv_mha){ 0 };
    qkv_mha m = { .heads = o.heads, .kv_heads = o.kv_heads, .dropout = o.dropout };
    bool bare = o.no_bias && !o.qkv_bias;
    m.q = qkv__linear_part(p, name, "q", o.dim, o.heads * o.d_k, bare); /* one by one: an initialiser list has no order */
    m.k = qkv__linear_part(p, name, "k", o.kv_dim, o.kv_heads * o.d_k, bare);
    m.v = qkv__linear_part(p, name, "v", o.kv_dim, o.kv_heads * o.d_v, bare);
    m.out = qkv__linear_part(p, name, "out", o.heads * o.d_v, o.dim, o.no_bias);
    return m.q.weight && m.k.weight && m.v.weight && m.out.weight ? m : (qkv_mha){ 0 };
}

qkv_mha qkv_mha_new(qkv_params *p, const char *name, int64_t dim, int64_t heads)
{
    return qkv_mha_new_with(p, name, &(qkv_mha_opts){ .dim = dim, .heads = heads });
}

static qkv_tensor *turn(qkv_tensor *x, const qkv_rotary_opts *rotary, int64_t heads)
{
    if (!rotary) return x;
    qkv_rotary_opts own = *rotary;
    own.heads = heads;
    return qkv_rotary(x, &own);
}

qkv_tensor *qkv__mha_forward(const qkv_mha *m, qkv_tensor *x, qkv_tensor *y, qkv_mask mask, const qkv_rotary_opts *rotary)
{
    if (!x || !y) return NULL;
    if (!m->q.weight) return qkv__no_weights(x->tape, "attention");
    qkv_tensor *q = turn(qkv_linear_forward(&m->q, x), rotary, m->heads);
    qkv_tensor *k = turn(qkv_linear_forward(&m->k, y), rotary, m->kv_heads);
    qkv_tensor *v = qkv_linear_forward(&m->v, y);
    const qkv_attention_opts opts = { .heads = m->heads, .kv_heads = m->kv_heads, .dropout = m->dropout };
    return qkv_linear_forward(&m->out, qkv_attention_with(q, k, v, mask, &opts));
}

/* Row r of x, (rows, 1, width), into place `step` of row r of the cache. */
static void keep(float *cache, const qkv_tensor *x, const qkv__steps *s)
{
    int64_t width = qkv_dim(x, -1);
    for (int64_t r = 0; r < s->rows; r++)
        memcpy(cache + (r * s->room + s->step) * width, qkv_data(x) + r * width, sizeof(float) * (size_t)width);
}

qkv_tensor *qkv__mha_step(const qkv_mha *m, qkv_tensor *x, const qkv__pass *pass)
{
    const qkv__steps *s = pass->steps;
    qkv_tensor *q = turn(qkv_linear_forward(&m->q, x), pass->rotary, m->heads);
    qkv_tensor *k = turn(qkv_linear_forward(&m->k, x), pass->rotary, m->kv_heads);
    qkv_tensor *v = qkv_linear_forward(&m->v, x);
    if (!q || !k || !v) return NULL;
    keep(pass->cache->k, k, s);
    keep(pass->cache->v, v, s);
    k = qkv__borrow(x->tape, 3, (int64_t[]){ s->rows, s->room, qkv_dim(k, -1) }, pass->cache->k);
    v = qkv__borrow(x->tape, 3, (int64_t[]){ s->rows, s->room, qkv_dim(v, -1) }, pass->cache->v);
    const qkv_attention_opts opts = { .heads = m->heads, .kv_heads = m->kv_heads };
    return qkv_linear_forward(&m->out, qkv_attention_with(q, k, v, (qkv_mask){ .key_lengths = s->seen }, &opts));
}

/* The rows of a sentence ask the same memory: they are its queries. */
qkv_tensor *qkv__mha_cross_step(const qkv_mha *m, qkv_tensor *x, const qkv__pass *pass)
{
    const qkv__steps *s = pass->steps;
    if (!x) return NULL;
    int64_t dim = qkv_dim(x, -1), width_k = m->k.weight->shape[0], width_v = m->v.weight->shape[0];
    qkv_tensor *asked = qkv_reshape(x, 3, (int64_t[]){ s->sentences, s->rows / s->sentences, dim });
    qkv_tensor *k = qkv__borrow(x->tape, 3, (int64_t[]){ s->sentences, s->memory_length, width_k }, pass->cache->cross_k);
    qkv_tensor *v = qkv__borrow(x->tape, 3, (int64_t[]){ s->sentences, s->memory_length, width_v }, pass->cache->cross_v);
    const qkv_attention_opts opts = { .heads = m->heads, .kv_heads = m->kv_heads };
    qkv_tensor *found = qkv_attention_with(qkv_linear_forward(&m->q, asked), k, v,
                                           (qkv_mask){ .key_lengths = s->memory_lengths }, &opts);
    return qkv_reshape(qkv_linear_forward(&m->out, found), 3, (int64_t[]){ s->rows, 1, dim });
}

qkv_tensor *qkv_mha_forward(const qkv_mha *m, qkv_tensor *x, qkv_tensor *y, qkv_mask mask)
{
    return qkv__mha_forward(m, x, y, mask, NULL);
}
