/* family_llama.c: Llama, Mistral, Qwen2 and Qwen3: decoders with rotary positions, RMS norms, a gate, and fewer heads of keys
 * than of queries. */
#include "family.h"

const qkv__config_key qkv__llama_keys[] = {
    QKV__KEY("vocab_size", vocab_size, NEEDED),
    QKV__KEY("hidden_size", dim, NEEDED),
    QKV__KEY("num_hidden_layers", decoder_layers, NEEDED),
    QKV__KEY("num_attention_heads", heads, NEEDED),
    QKV__KEY("num_key_value_heads", kv_heads, OPTIONAL),
    QKV__KEY("head_dim", d_k, OPTIONAL),
    QKV__KEY("intermediate_size", d_ff, NEEDED),
    QKV__KEY("rms_norm_eps", norm_eps, OPTIONAL),
    QKV__KEY("rope_theta", rope_base, OPTIONAL),
    QKV__KEY("attention_dropout", attention_dropout, OPTIONAL),
    { NULL, 0, 0, NULL, false },
};
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

static const qkv__architecture qwen3_architectures[] = { { "Qwen3ForCausalLM", QKV__PART_HEAD },
                                                         { "Qwen3Model", 0 },
                                                         { NULL, 0 } };

static const qkv__rename layer[] = {
    { "self.q.", "self_attn.q_proj.", 0, 0, 0 },
    { "self.k.", "self_attn.k_proj.", 0, 0, 0 },
    { "self.v.", "self_attn.v_proj.", 0, 0, 0 },
    { "self.out.", "self_attn.o_proj.", 0, 0, 0 },
    { "self.q_norm.", "self_attn.q_norm.", 0, 0, 0 },
    { "self.k_norm.", "self_attn.k_norm.", 0, 0, 0 },
    { "self_norm.", "input_layernorm.", 0, 0, 0 },
    { "ffn.in.", "mlp.up_proj.", 0, 0, 0 },
    { "ffn.gate.", "mlp.gate_proj.", 0, 0, 0 },
    { "ffn.out.", "mlp.down_proj.", 0, 0, 0 },
    { "ffn_norm.", "post_attention_layernorm.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
const qkv__rename qkv__llama_others[] = {
    { "embed.", "model.embed_tokens.", 0, 0, 0 },
    { "decoder.norm.", "model.norm.", 0, 0, 0 },
    { "output.", "lm_head.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
const char *const qkv__llama_ignored[] = { "*.rotary_emb.inv_freq", "lm_head.weight", NULL };

static qkv_status read_llama(const qkv__published *p, int parts, qkv_config *o)
{
    (void)parts;
    bool attention = qkv__is_true(p, "attention_bias", false), inner = qkv__is_true(p, "mlp_bias", false);
    if (attention != inner) return qkv__unsupported(p, "attention_bias", "the value of mlp_bias");
    o->no_bias = !inner;
    o->untied = !qkv__is_true(p, "tie_word_embeddings", false);
    return qkv__read_rotary(p, NULL, o);
}

static qkv_status read_mistral(const qkv__published *p, int parts, qkv_config *o)
{
    qkv_status status = read_llama(p, parts, o);
    return status ? status : qkv__read_window(p, o);
}

/* The first layers see everything, and all of them where no window is asked for. */
static qkv_status read_qwen_window(const qkv__published *p, qkv_config *o)
{
    static const qkv__config_key key[] = { QKV__KEY("max_window_layers", window_from_layer, OPTIONAL),
                                           { NULL, 0, 0, NULL, false } };
    if (!qkv__is_true(p, "use_sliding_window", false)) return QKV_OK;
    o->window_size = 4096;
    o->window_from_layer = 28;
    qkv_status status = qkv__read_keys(p, key, o);
    return status ? status : qkv__read_window(p, o);
}

static qkv_status read_qwen2(const qkv__published *p, int parts, qkv_config *o)
{
    qkv_status status = read_llama(p, parts, o);
    o->no_bias = o->qkv_bias = 1;
    return status ? status : read_qwen_window(p, o);
}

static qkv_status read_qwen3(const qkv__published *p, int parts, qkv_config *o)
{
    (void)parts;
    if (qkv__is_true(p, "attention_bias", false)) return qkv__unsupported(p, "attention_bias", "false");
    o->untied = !qkv__is_true(p, "tie_word_embeddings", false);
    qkv_status status = qkv__read_rotary(p, NULL, o);
    return status ? status : read_qwen_window(p, o);
}

static void write_llama(const qkv_config *o, qkv__json_writer *w)
{
    qkv__json_put_int(w, "num_key_value_heads", o->kv_heads ? o->kv_heads : o->heads);
    qkv__json_put_int(w, "head_dim", o->d_k ? o->d_k : o->dim / o->heads);
    qkv__json_put_real(w, "rope_theta", o->rope_base == 0 ? 10000 : (double)o->rope_base, QKV__JSON_FLOAT);
    qkv__json_put_real(w, "rms_norm_eps", o->norm_eps == 0 ? 1e-5 : (double)o->norm_eps, QKV__JSON_FLOAT);
    qkv__json_put_bool(w, "attention_bias", !o->no_bias);
    qkv__json_put_bool(w, "mlp_bias", !o->no_bias);
    qkv__json_put_bool(w, "tie_word_embeddings", !o->untied);
    qkv__write_rotary(o, w);
}

static void write_mistral(const qkv_config *o, qkv__json_writer *w)
{
    write_llama(o, w);
    qkv__put_window(o, w);
}

static void write_qwen(const qkv_config *o, qkv__json_writer *w)
{
    write_llama(o, w);
    qkv__write_window(o, w);
    qkv__json_put_bool(w, "use_sliding_window", o->window_size > 0);
    qkv__json_put_int(w, "max_window_layers", o->window_size ? o->window_from_layer : o->decoder_layers);
}

static const char *not_llama(const qkv_config *o)
{
    if (!o->decoder_layers || o->encoder_layers) return "it has a decoder alone";
    if (o->positions != QKV_POSITION_ROPE) return "its positions are rotary";
    if (!o->pre_norm) return "its norms come before each sub-layer";
    if (o->norm != QKV_NORM_RMS) return "its norms are RMS norms";
    if (!o->unscaled) return "its embeddings are not scaled";
    if (o->activation != QKV_ACTIVATION_SWIGLU) return "its feed-forward layers have a SiLU gate";
    if (o->embed_norm || o->head || o->output_bias) return "it has no norm of embeddings, no head and no bias of the output";
    return o->classes ? "it has no classifier" : qkv__leaves_out(o);
}

static const char *no_biases(const qkv_config *o)
{
    const char *problem = not_llama(o);
    return problem ? problem : o->qkv_bias && o->no_bias ? "its queries, keys and values have no bias of their own" : NULL;
}

/* Every layer of it has a window, or none. */
static const char *not_mistral(const qkv_config *o)
{
    qkv_config plain = *o;
    if (o->window_size && (o->window_from_layer || o->global_every)) return "all of its layers have a window, or none";
    plain.window_size = 0;
    return no_biases(&plain);
}

static const char *not_qwen2(const qkv_config *o)
{
    qkv_config plain = *o;
    plain.window_size = 0;
    const char *problem = not_llama(&plain);
    return problem ? problem : !o->no_bias || !o->qkv_bias ? "only its queries, keys and values have a bias" : NULL;
}

static const char *not_qwen3(const qkv_config *o)
{
    qkv_config plain = *o;
    if (!o->qk_norm) return "its queries and keys have norms (qk_norm)";
    if (!o->no_bias || o->qkv_bias) return "its layers have no biases";
    plain.window_size = plain.qk_norm = 0;
    return not_llama(&plain);
}

#define LLAMA(name, list, reads, writes, problems, ...)                                                        \
    {                                                                                                          \
        .type = name, .architectures = list, .prefix = "model.", .decoder = "model.layers.#.", .layer = layer, \
        .others = qkv__llama_others, .ignored = qkv__llama_ignored, .keys = qkv__llama_keys, .fixed = fixed,   \
        .options = { .positions = QKV_POSITION_ROPE,                                                           \
                     .pre_norm = 1,                                                                            \
                     .norm = QKV_NORM_RMS,                                                                     \
                     .norm_eps = 1e-6f,                                                                        \
                     .unscaled = 1,                                                                            \
                     .activation = QKV_ACTIVATION_SWIGLU,                                                      \
                     __VA_ARGS__ },                                                                            \
        .read = reads, .write = writes, .missing = problems                                                    \
    }
const qkv__family qkv__llama = LLAMA("llama", llama_architectures, read_llama, write_llama, no_biases, .window_size = 0);
const qkv__family qkv__mistral = LLAMA("mistral", mistral_architectures, read_mistral, write_mistral, not_mistral,
                                       .window_size = 0);
const qkv__family qkv__qwen2 = LLAMA("qwen2", qwen2_architectures, read_qwen2, write_qwen, not_qwen2, .window_size = 0);
const qkv__family qkv__qwen3 = LLAMA("qwen3", qwen3_architectures, read_qwen3, write_qwen, not_qwen3, .qk_norm = 1,
                                     .no_bias = 1, .d_k = 128);
