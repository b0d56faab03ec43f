/* family_llama.c: Llama, Mistral and Qwen2: decoders with rotary positions, RMS norms, a gate, and fewer heads of keys than of
 * queries. */
#include "family.h"

#include <math.h>
#include <string.h>

static const qkv__config_key keys[] = {
    QKV__KEY("vocab_size", vocabulary, NEEDED),
    QKV__KEY("hidden_size", dim, NEEDED),
    QKV__KEY("num_hidden_layers", decoder_layers, NEEDED),
    QKV__KEY("num_attention_heads", heads, NEEDED),
    QKV__KEY("num_key_value_heads", kv_heads, OPTIONAL),
    QKV__KEY("head_dim", d_k, OPTIONAL),
    QKV__KEY("intermediate_size", d_ff, NEEDED),
    QKV__KEY("rms_norm_eps", norm_eps, OPTIONAL),
    QKV__KEY("rope_theta", rotary_base, OPTIONAL),
    QKV__KEY("attention_dropout", attention_dropout, OPTIONAL),
    { NULL, 0, 0, NULL, false },
};
static const qkv__config_key scaling_keys[] = {
    QKV__KEY("factor", rotary_factor, NEEDED),
    QKV__KEY("low_freq_factor", rotary_low, NEEDED),
    QKV__KEY("high_freq_factor", rotary_high, NEEDED),
    QKV__KEY("original_max_position_embeddings", rotary_length, NEEDED),
    { NULL, 0, 0, NULL, false },
};
static const qkv__config_key theta_key[] = { QKV__KEY("rope_theta", rotary_base, OPTIONAL), { NULL, 0, 0, NULL, false } };
static const qkv__fixed fixed[] = { { "hidden_act", 0, "silu" }, { NULL, 0, NULL } };

static const qkv__architecture llama_architectures[] = { { "LlamaForCausalLM", QKV__PART_HEAD },
                                                         { "LlamaModel", 0 },
                                                         { NULL, 0 } };
static const qkv__architecture mistral_architectures[] = { { "MistralForCausalLM", QKV__PART_HEAD },
                                                           { "MistralModel", 0 },
                                                           { NULL, 0 } };
static const qkv__architecture qwen2_architectures[] = { { "Qwen2ForCausalLM", QKV__PART_HEAD },
                                                         { "Qwen2Model", 0 },
                                                         { NULL, 0 } };

static const qkv__rename layer[] = {
    { "self.q.", "self_attn.q_proj.", 0, 0, 0 },
    { "self.k.", "self_attn.k_proj.", 0, 0, 0 },
    { "self.v.", "self_attn.v_proj.", 0, 0, 0 },
    { "self.out.", "self_attn.o_proj.", 0, 0, 0 },
    { "self_norm.", "input_layernorm.", 0, 0, 0 },
    { "ffn.in.", "mlp.up_proj.", 0, 0, 0 },
    { "ffn.gate.", "mlp.gate_proj.", 0, 0, 0 },
    { "ffn.out.", "mlp.down_proj.", 0, 0, 0 },
    { "ffn_norm.", "post_attention_layernorm.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const qkv__rename others[] = {
    { "embed.", "model.embed_tokens.", 0, 0, 0 },
    { "decoder.norm.", "model.norm.", 0, 0, 0 },
    { "output.", "lm_head.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const char *const ignored[] = { "*.rotary_emb.inv_freq", "lm_head.weight", NULL };

/* "rope_scaling", or as newer files have it "rope_parameters", where the base is too. */
static qkv_status read_scaling(const qkv__published *p, qkv_transformer_opts *o)
{
    const json_t *newer = qkv__get(p, "rope_parameters"), *scaling = newer ? newer : qkv__get(p, "rope_scaling");
    const char *key = newer ? "rope_parameters" : "rope_scaling";
    if (!scaling) return QKV_OK;
    const json_t *kind = json_object_get(scaling, "rope_type");
    const char *word = json_string_value(kind ? kind : json_object_get(scaling, "type"));
    if (!json_is_object(scaling)) return qkv__fail(QKV_FORMAT, "%s: key \"%s\": expected an object", p->path, key);
    qkv_status status = newer ? qkv__keys_read(p->path, theta_key, scaling, o) : QKV_OK;
    if (status || (newer && !word) || (word && !strcmp(word, "default"))) return status;
    if (!word || strcmp(word, "llama3")) return qkv__unsupported(p, key, "the type llama3");
    status = qkv__keys_read(p->path, scaling_keys, scaling, o);
    if (!status && !(o->rotary_factor >= 1))
        status = qkv__fail(QKV_FORMAT, "%s: key \"%s\": expected a factor of at least 1", p->path, key);
    return status;
}

static qkv_status read_llama(const qkv__published *p, int parts, qkv_transformer_opts *o)
{
    (void)parts;
    bool attention = qkv__is_true(p, "attention_bias", false), inner = qkv__is_true(p, "mlp_bias", false);
    if (attention != inner) return qkv__unsupported(p, "attention_bias", "the value of mlp_bias");
    o->no_bias = !inner;
    o->untied = !qkv__is_true(p, "tie_word_embeddings", false);
    return read_scaling(p, o);
}

static qkv_status read_qwen2(const qkv__published *p, int parts, qkv_transformer_opts *o)
{
    qkv_status status = read_llama(p, parts, o);
    o->no_bias = o->qkv_bias = 1;
    return status;
}

static bool write_scaling(const qkv_transformer_opts *o, json_t *config)
{
    if (o->rotary_factor == 0) return true;
    json_t *scaling = json_pack("{s:s}", "rope_type", "llama3");
    bool ok = scaling && qkv__keys_write(scaling_keys, o, scaling) && !json_object_set(config, "rope_scaling", scaling);
    json_decref(scaling);
    return ok;
}

static bool write_llama(const qkv_transformer_opts *o, json_t *config)
{
    json_t *more = json_pack(
        "{s:I, s:I, s:f, s:f, s:b, s:b, s:b}", "num_key_value_heads", (json_int_t)(o->kv_heads ? o->kv_heads : o->heads),
        "head_dim", (json_int_t)(o->d_k ? o->d_k : o->dim / o->heads), "rope_theta",
        o->rotary_base == 0 ? 10000.0 : (double)o->rotary_base, "rms_norm_eps", o->norm_eps == 0 ? 1e-5 : (double)o->norm_eps,
        "attention_bias", !o->no_bias, "mlp_bias", !o->no_bias, "tie_word_embeddings", !o->untied);
    bool ok = more && !json_object_update(config, more) && write_scaling(o, config);
    json_decref(more);
    return ok;
}

static const char *not_llama(const qkv_transformer_opts *o)
{
    if (!o->decoder_layers || o->encoder_layers) return "it has a decoder alone";
    if (o->positions != QKV_POSITION_ROTARY) return "its positions are rotary";
    if (!o->pre_norm) return "its norms come before each sub-layer";
    if (o->norm != QKV_NORM_RMS) return "its norms are RMS norms";
    if (!o->unscaled) return "its embeddings are not scaled";
    if (o->activation != QKV_ACTIVATION_SILU_GATED) return "its feed-forward layers have a SiLU gate";
    if (o->embed_norm || o->head || o->output_bias) return "it has no norm of embeddings, no head and no bias of the output";
    return o->classes ? "it has no classifier" : qkv__leaves_out(o);
}

static const char *no_biases(const qkv_transformer_opts *o)
{
    const char *problem = not_llama(o);
    return problem ? problem : o->qkv_bias && o->no_bias ? "its queries, keys and values have no bias of their own" : NULL;
}

static const char *not_qwen2(const qkv_transformer_opts *o)
{
    const char *problem = not_llama(o);
    return problem ? problem : !o->no_bias || !o->qkv_bias ? "only its queries, keys and values have a bias" : NULL;
}

#define LLAMA(name, list, reads, problems)                                                                     \
    {                                                                                                          \
        .type = name, .architectures = list, .prefix = "model.", .decoder = "model.layers.#.", .layer = layer, \
        .others = others, .ignored = ignored, .keys = keys, .fixed = fixed,                                    \
        .options = { .positions = QKV_POSITION_ROTARY,                                                         \
                     .pre_norm = 1,                                                                            \
                     .norm = QKV_NORM_RMS,                                                                     \
                     .norm_eps = 1e-6f,                                                                        \
                     .unscaled = 1,                                                                            \
                     .activation = QKV_ACTIVATION_SILU_GATED },                                                \
        .read = reads, .write = write_llama, .missing = problems                                               \
    }
const qkv__family qkv__llama = LLAMA("llama", llama_architectures, read_llama, no_biases);
const qkv__family qkv__mistral = LLAMA("mistral", mistral_architectures, read_llama, no_biases);
const qkv__family qkv__qwen2 = LLAMA("qwen2", qwen2_architectures, read_qwen2, not_qwen2);
