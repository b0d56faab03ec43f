/* family_gemma.c: Gemma 1 to 3: decoders with a GELU gate, scaled embeddings, and gains of norms that are stored less 1. The
 * second has norms behind its sub-layers too, caps, and a window in every other layer; the third norms of queries and keys in
 * place of the caps, and another rotary base in its layers with a window. */
#include "family.h"

#include <math.h>
#include <string.h>

static const qkv__config_key cap_keys[] = {
    QKV__KEY("attn_logit_softcapping", score_softcap, OPTIONAL),
    QKV__KEY("final_logit_softcapping", logit_softcap, OPTIONAL),
    { NULL, 0, 0, NULL, false },
};
static const qkv__config_key local_keys[] = { QKV__KEY("rope_local_base_freq", window_rope_base, OPTIONAL),
                                              { NULL, 0, 0, NULL, false } };
/* The first Gemma's files say "hidden_act": "gelu" and mean the same: only the newer key counts. */
static const qkv__fixed fixed[] = { { "hidden_activation", 0, "gelu_pytorch_tanh" },
                                    { "attention_bias", 0, NULL },
                                    { NULL, 0, NULL } };

static const qkv__architecture gemma_architectures[] = { { "GemmaForCausalLM", QKV__PART_HEAD },
                                                         { "GemmaModel", 0 },
                                                         { NULL, 0 } };
static const qkv__architecture gemma2_architectures[] = { { "Gemma2ForCausalLM", QKV__PART_HEAD },
                                                          { "Gemma2Model", 0 },
                                                          { NULL, 0 } };
static const qkv__architecture gemma3_architectures[] = { { "Gemma3ForCausalLM", QKV__PART_HEAD },
                                                          { "Gemma3TextModel", 0 },
                                                          { NULL, 0 } };

#define MATRICES                                                                                    \
    { "self.q.", "self_attn.q_proj.", 0, 0, 0 }, { "self.k.", "self_attn.k_proj.", 0, 0, 0 },       \
        { "self.v.", "self_attn.v_proj.", 0, 0, 0 }, { "self.out.", "self_attn.o_proj.", 0, 0, 0 }, \
        { "ffn.in.", "mlp.up_proj.", 0, 0, 0 }, { "ffn.gate.", "mlp.gate_proj.", 0, 0, 0 },         \
        { "ffn.out.", "mlp.down_proj.", 0, 0, 0 },                                                  \
    {                                                                                               \
        "self_norm.", "input_layernorm.", QKV__LESS_ONE, 0, 0                                       \
    }
static const qkv__rename gemma_layer[] = {
    MATRICES,
    { "ffn_norm.", "post_attention_layernorm.", QKV__LESS_ONE, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const qkv__rename gemma2_layer[] = {
    MATRICES,
    { "self.q_norm.", "self_attn.q_norm.", QKV__LESS_ONE, 0, 0 },
    { "self.k_norm.", "self_attn.k_norm.", QKV__LESS_ONE, 0, 0 },
    { "self_post_norm.", "post_attention_layernorm.", QKV__LESS_ONE, 0, 0 },
    { "ffn_norm.", "pre_feedforward_layernorm.", QKV__LESS_ONE, 0, 0 },
    { "ffn_post_norm.", "post_feedforward_layernorm.", QKV__LESS_ONE, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const qkv__rename others[] = {
    { "embed.", "model.embed_tokens.", 0, 0, 0 },
    { "decoder.norm.", "model.norm.", QKV__LESS_ONE, 0, 0 },
    { "output.", "lm_head.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};

/* ---- reading ---- */

static qkv_status read_gemma(const qkv__published *p, int parts, qkv_config *o)
{
    (void)parts;
    o->untied = !qkv__is_true(p, "tie_word_embeddings", true);
    return qkv__read_rotary(p, "full_attention", o);
}

/* "query_pre_attn_scalar" is what scores are divided by, squared. */
static qkv_status read_scale(const qkv__published *p, qkv_config *o)
{
    const qkv__json_value *divisor = qkv__get(p, "query_pre_attn_scalar");
    double by = divisor ? qkv__json_number(divisor) : 256, width = (double)o->d_k;
    if (!(by > 0 && by < INFINITY))
        return qkv__fail(QKV_FORMAT, "%s: key \"query_pre_attn_scalar\": expected a number above 0", p->path);
    o->attention_scale = by == width ? 0 : (float)(1 / sqrt(by));
    return QKV_OK;
}

static qkv_status read_gemma2(const qkv__published *p, int parts, qkv_config *o)
{
    qkv_status status = qkv__read_keys(p, cap_keys, o);
    if (qkv__json_is_null(qkv__value(p, "attn_logit_softcapping"))) o->score_softcap = 0;
    if (qkv__json_is_null(qkv__value(p, "final_logit_softcapping"))) o->logit_softcap = 0;
    if (!status) status = read_scale(p, o);
    if (!status) status = read_gemma(p, parts, o);
    if (!o->global_every) o->global_every = 2, o->global_at = 1;
    return status ? status : qkv__read_window(p, o);
}

static qkv_status read_gemma3(const qkv__published *p, int parts, qkv_config *o)
{
    const qkv__json_value *every = qkv__get(p, "sliding_window_pattern");
    const qkv__json_value *local = qkv__json_get(qkv__get(p, "rope_parameters"), "sliding_attention");
    const qkv__json_value *base = qkv__json_get(local, "rope_theta");
    if (!every) every = qkv__get(p, "_sliding_window_pattern");
    if (every && (!qkv__json_is_int(every) || qkv__json_int(every) < 1 || qkv__json_int(every) > 1000))
        return qkv__fail(QKV_FORMAT, "%s: key \"sliding_window_pattern\": expected a whole number from 1 to 1000", p->path);
    o->global_every = every ? (int)qkv__json_int(every) : 6;
    o->global_at = o->global_every - 1;
    qkv_status status = qkv__read_keys(p, local_keys, o);
    if (qkv__json_is_number(base)) o->window_rope_base = (float)qkv__json_number(base);
    return status ? status : read_gemma2(p, parts, o);
}

/* ---- writing ---- */

static void write_gemma(const qkv_config *o, qkv__json_writer *w)
{
    qkv__json_put_text(w, "hidden_act", "gelu_pytorch_tanh");
    qkv__json_put_bool(w, "tie_word_embeddings", !o->untied);
    qkv__write_rotary(o, w);
}

static void put_cap(qkv__json_writer *w, const char *key, float cap)
{
    if (cap > 0) qkv__json_put_real(w, key, (double)cap, QKV__JSON_FLOAT);
    else qkv__json_put_null(w, key);
}

/* The divisor is a whole number where it was one. */
static void write_gemma2(const qkv_config *o, qkv__json_writer *w)
{
    static const char key[] = "query_pre_attn_scalar";
    double scale = (double)o->attention_scale, by = o->attention_scale == 0 ? (double)o->d_k : 1 / (scale * scale);
    write_gemma(o, w);
    qkv__write_window(o, w);
    if (fabs(by - round(by)) < 1e-4 * by) qkv__json_put_int(w, key, (int64_t)round(by));
    else qkv__json_put_real(w, key, by, QKV__JSON_FLOAT);
    put_cap(w, "attn_logit_softcapping", o->score_softcap);
    put_cap(w, "final_logit_softcapping", o->logit_softcap);
}

static void write_gemma3(const qkv_config *o, qkv__json_writer *w)
{
    float base = o->window_rope_base == 0 ? o->rope_base : o->window_rope_base;
    write_gemma2(o, w);
    qkv__json_put_real(w, "rope_local_base_freq", (double)base, QKV__JSON_FLOAT);
    qkv__json_put_int(w, "sliding_window_pattern", o->global_every ? o->global_every : 6);
}

static const char *not_gemma(const qkv_config *o)
{
    if (!o->decoder_layers || o->encoder_layers) return "it has a decoder alone";
    if (o->positions != QKV_POSITION_ROPE) return "its positions are rotary";
    if (!o->pre_norm) return "its norms come before each sub-layer";
    if (o->norm != QKV_NORM_RMS) return "its norms are RMS norms";
    if (o->unscaled) return "its embeddings are scaled";
    if (o->activation != QKV_ACTIVATION_GEGLU_TANH) return "its feed-forward layers have a GELU gate (gelu-tanh-gated)";
    if (!o->no_bias || o->qkv_bias) return "its layers have no biases";
    if (o->embed_norm || o->head || o->output_bias) return "it has no norm of embeddings, no head and no bias of the output";
    return o->classes ? "it has no classifier" : qkv__leaves_out(o);
}

static const char *not_gemma2(const qkv_config *o)
{
    qkv_config plain = *o;
    if (!o->post_norm) return "its sub-layers have norms behind them too (post_norm)";
    if (o->qk_norm) return "its queries and keys have no norms";
    plain.post_norm = 0;
    plain.score_softcap = plain.logit_softcap = plain.attention_scale = 0;
    plain.window_size = 0;
    return not_gemma(&plain);
}

static const char *not_gemma3(const qkv_config *o)
{
    qkv_config plain = *o;
    if (!o->qk_norm) return "its queries and keys have norms (qk_norm)";
    plain.qk_norm = 0;
    plain.window_rope_base = 0;
    return not_gemma2(&plain);
}

/* The defaults of its own config: what its files leave out. */
#define GEMMA(name, list, rows, reads, writes, problems, ...)                                                 \
    {                                                                                                         \
        .type = name, .architectures = list, .prefix = "model.", .decoder = "model.layers.#.", .layer = rows, \
        .others = others, .ignored = qkv__llama_ignored, .keys = qkv__llama_keys, .fixed = fixed,             \
        .options = { .positions = QKV_POSITION_ROPE,                                                          \
                     .pre_norm = 1,                                                                           \
                     .norm = QKV_NORM_RMS,                                                                    \
                     .norm_eps = 1e-6f,                                                                       \
                     .no_bias = 1,                                                                            \
                     .d_k = 256,                                                                              \
                     .activation = QKV_ACTIVATION_GEGLU_TANH,                                                 \
                     __VA_ARGS__ },                                                                           \
        .read = reads, .write = writes, .missing = problems                                                   \
    }
const qkv__family qkv__gemma = GEMMA("gemma", gemma_architectures, gemma_layer, read_gemma, write_gemma, not_gemma,
                                     .window_size = 0);
const qkv__family qkv__gemma2 = GEMMA("gemma2", gemma2_architectures, gemma2_layer, read_gemma2, write_gemma2, not_gemma2,
                                      .post_norm = 1, .window_size = 4096, .score_softcap = 50, .logit_softcap = 30);
const qkv__family qkv__gemma3_text = GEMMA("gemma3_text", gemma3_architectures, gemma2_layer, read_gemma3, write_gemma3,
                                           not_gemma3, .post_norm = 1, .qk_norm = 1, .window_size = 4096, .rope_base = 1e6f,
                                           .window_rope_base = 10000);
