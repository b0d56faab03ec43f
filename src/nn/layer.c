/* layer.c: one layer of an encoder or a decoder (section 3.1 of the paper). */
#include "layer.h"

#include "../tensor/inplace.h"
#include "../tensor/tape.h"

#include <stdio.h>
#include <string.h>

/* ---- making ---- */

qkv_norm qkv__norm_of_width(qkv_params *p, const char *layer, const char *part, const qkv_config *o, int64_t width,
                            qkv_norm_kind kind)
{
    char name[QKV_NAME_MAX];
    if (!qkv__join_name(p, name, layer, part)) return (qkv_norm){ 0 };
    qkv_norm n = qkv_norm_new(p, name, width, kind == QKV_NORM_LAYER && o->no_norm_bias ? QKV_NORM_LAYER_NO_BIAS : kind);
    if (o->norm_eps != 0) n.eps = o->norm_eps;
    return n;
}

qkv_norm qkv__norm_part(qkv_params *p, const char *layer, const char *part, const qkv_config *o)
{
    return qkv__norm_of_width(p, layer, part, o, o->dim, o->norm);
}

static qkv_mha mha_part(qkv_params *p, const char *layer, const char *part, const qkv_config *o)
{
    char name[QKV_NAME_MAX];
    if (!qkv__join_name(p, name, layer, part)) return (qkv_mha){ 0 };
    return qkv_mha_new(p, name,
                       &(qkv_mha_opts){ .dim = o->dim,
                                        .heads = o->heads,
                                        .kv_heads = o->kv_heads,
                                        .d_k = o->d_k,
                                        .no_bias = o->no_bias,
                                        .qkv_bias = o->qkv_bias,
                                        .dropout = o->attention_dropout });
}

static qkv_ffn ffn_part(qkv_params *p, const char *layer, const qkv_config *o)
{
    char name[QKV_NAME_MAX];
    if (!qkv__join_name(p, name, layer, "ffn")) return (qkv_ffn){ 0 };
    return qkv_ffn_new(
        p, name,
        &(qkv_ffn_opts){
            .dim = o->dim, .d_ff = o->d_ff, .activation = o->activation, .no_bias = o->no_bias, .dropout = o->ffn_dropout });
}

bool qkv__has_window(const qkv_config *o, int i)
{
    return o->window_size && i >= o->window_from_layer && !(o->global_every && i % o->global_every == o->global_at);
}

/* What few models have. */
static void make_more_norms(qkv_params *p, qkv__layer *l, const char *layer, const qkv_config *o, bool crosses)
{
    int64_t width = o->d_k ? o->d_k : o->heads > 0 ? o->dim / o->heads : 0; /* heads are checked with the attention */
    if (o->qk_norm) {
        l->q_norm = qkv__norm_of_width(p, layer, "self.q_norm", o, width, QKV_NORM_RMS);
        l->k_norm = qkv__norm_of_width(p, layer, "self.k_norm", o, width, QKV_NORM_RMS);
    }
    if (!o->post_norm) return;
    l->self_post_norm = qkv__norm_part(p, layer, "self_post_norm", o);
    if (crosses) l->cross_post_norm = qkv__norm_part(p, layer, "cross_post_norm", o);
    l->ffn_post_norm = qkv__norm_part(p, layer, "ffn_post_norm", o);
}

bool qkv__layer_make(qkv_params *p, qkv__layer *l, const char *layer, int i, const qkv_config *o, bool crosses)
{
    l->self = mha_part(p, layer, "self", o);
    if (i || !o->no_first_norm) l->self_norm = qkv__norm_part(p, layer, "self_norm", o);
    if (crosses) {
        l->cross = mha_part(p, layer, "cross", o);
        l->cross_norm = qkv__norm_part(p, layer, "cross_norm", o);
    }
    l->ffn = ffn_part(p, layer, o);
    l->ffn_norm = qkv__norm_part(p, layer, "ffn_norm", o);
    make_more_norms(p, l, layer, o, crosses);
    return !qkv_params_status(p);
}

/* ---- forward ---- */

static void note_step(const qkv__pass *pass, int sub, int step, const qkv_tensor *x)
{
    const qkv__trail *trail = pass->trail;
    if (trail && x && trail->layer == pass->layer)
        memcpy(trail->rows[sub][step], qkv_tensor_data(x) + trail->token * qkv__last(x), sizeof(float) * (size_t)qkv__last(x));
}

/* What a sub-layer sees, and what becomes of x and its result, which a linear layer made and nobody else reads. */
static qkv_tensor *before(int sub, const qkv_norm *n, qkv_tensor *x, const qkv__pass *pass)
{
    if (pass->o->pre_norm && n->gain) x = qkv_norm_forward(n, x);
    note_step(pass, sub, QKV__AT_X, x);
    return x;
}

static qkv_tensor *after(int sub, const qkv_norm *n, const qkv_norm *post, qkv_tensor *x, qkv_tensor *result,
                         const qkv__pass *pass)
{
    note_step(pass, sub, QKV__AT_IN, x);
    note_step(pass, sub, QKV__AT_OUT, result);
    if (post->gain) result = qkv_norm_forward(post, result);
    qkv_tensor *sum = qkv__add_inplace(qkv__dropout_inplace(result, pass->o->dropout), x);
    note_step(pass, sub, QKV__AT_SUM, sum);
    qkv_tensor *y = pass->o->pre_norm ? sum : qkv_norm_forward(n, sum);
    note_step(pass, sub, QKV__AT_NORM, y);
    return y;
}

static qkv_tensor *self_attention(const qkv__layer *l, qkv_tensor *x, const qkv__pass *pass)
{
    if (pass->cached) return qkv__self_cached(l, x, pass);
    return pass->ragged ? qkv__self_ragged(l, x, pass) : qkv__self_forward(l, x, pass);
}

static qkv_tensor *sub_layers(const qkv__layer *l, qkv_tensor *x, const qkv__pass *pass)
{
    qkv_tensor *start = x, *found = self_attention(l, before(QKV__SUB_SELF, &l->self_norm, x, pass), pass), *seen;
    x = after(QKV__SUB_SELF, &l->self_norm, &l->self_post_norm, x, found, pass);
    if (pass->memory || (pass->cached && pass->cached->cross)) {
        seen = before(QKV__SUB_CROSS, &l->cross_norm, x, pass);
        found = pass->cached ? qkv__cross_cached(&l->cross, seen, pass) : qkv__cross_forward(&l->cross, seen, pass);
        x = after(QKV__SUB_CROSS, &l->cross_norm, &l->cross_post_norm, x, found, pass);
    }
    found = qkv_ffn_forward(&l->ffn, before(QKV__SUB_FFN, &l->ffn_norm, pass->o->parallel ? start : x, pass));
    return after(QKV__SUB_FFN, &l->ffn_norm, &l->ffn_post_norm, x, found, pass);
}

/* A layer on a tape of its own, whose memory serves all of them: many tokens would otherwise need as much for each, and most of
 * their time would go to memory that the system has to clear. */
static qkv_tensor *layer_in_place(const qkv__layer *l, qkv_tensor *x, const qkv__pass *pass)
{
    qkv_tape_reset(pass->layer_tape);
    qkv_tensor *y = sub_layers(l, qkv__borrow(pass->layer_tape, x->ndim, x->shape, qkv__tensor_data(x)), pass);
    if (!y) return qkv_tape_status(pass->layer_tape), qkv__error_below(x->tape);
    memcpy(qkv__tensor_data(x), qkv__tensor_data(y), sizeof(float) * (size_t)x->count);
    return x;
}

qkv_tensor *qkv__layer_forward(const qkv__layer *l, qkv_tensor *x, const qkv__pass *pass)
{
    return x && pass->layer_tape ? layer_in_place(l, x, pass) : sub_layers(l, x, pass);
}
