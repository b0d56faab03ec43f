/* family_phi3.c: Phi-3: a Llama whose queries, keys and values lie in one matrix, and so do the two of its gate. */
#include "family.h"

static const qkv__config_key keys[] = {
    QKV__KEY("vocab_size", vocab_size, NEEDED),
    QKV__KEY("hidden_size", dim, NEEDED),
    QKV__KEY("num_hidden_layers", decoder_layers, NEEDED),
    QKV__KEY("num_attention_heads", heads, NEEDED),
    QKV__KEY("num_key_value_heads", kv_heads, OPTIONAL),
    QKV__KEY("intermediate_size", d_ff, NEEDED),
    QKV__KEY("rms_norm_eps", norm_eps, OPTIONAL),
    QKV__KEY("rope_theta", rope_base, OPTIONAL),
    QKV__KEY("resid_pdrop", dropout, OPTIONAL),
    QKV__KEY("attention_dropout", attention_dropout, OPTIONAL),
    { NULL, 0, 0, NULL, false },
};
static const qkv__fixed fixed[] = {
    { "hidden_act", 0, "silu" }, { "attention_bias", 0, NULL }, { "mlp_bias", 0, NULL }, { NULL, 0, NULL }
};
static const qkv__architecture architectures[] = { { "Phi3ForCausalLM", QKV__PART_HEAD }, { "Phi3Model", 0 }, { NULL, 0 } };

static const qkv__rename layer[] = {
    { "self.q.", "self_attn.qkv_proj.", 0, 0, 3 },         { "self.k.", "self_attn.qkv_proj.", 0, 1, 3 },
    { "self.v.", "self_attn.qkv_proj.", 0, 2, 3 },         { "self.out.", "self_attn.o_proj.", 0, 0, 0 },
    { "self_norm.", "input_layernorm.", 0, 0, 0 },         { "ffn.gate.", "mlp.gate_up_proj.", 0, 0, 2 },
    { "ffn.in.", "mlp.gate_up_proj.", 0, 1, 2 },           { "ffn.out.", "mlp.down_proj.", 0, 0, 0 },
    { "ffn_norm.", "post_attention_layernorm.", 0, 0, 0 }, { NULL, NULL, 0, 0, 0 },
};

static qkv_status read_phi3(const qkv__published *p, int parts, qkv_config *o)
{
    (void)parts;
    o->untied = !qkv__is_true(p, "tie_word_embeddings", false);
    qkv_status status = qkv__read_rotary(p, NULL, o);
    if (!status) status = qkv__read_rotary_part(p, "partial_rotary_factor", o);
    return status ? status : qkv__read_window(p, o);
}

static void write_phi3(const qkv_config *o, qkv__json_writer *w)
{
    double part = o->rope_width ? (double)o->rope_width / (double)o->d_k : 1;
    qkv__json_put_real(w, "embd_pdrop", (double)o->dropout, QKV__JSON_FLOAT);
    qkv__json_put_real(w, "partial_rotary_factor", part, QKV__JSON_FLOAT);
    qkv__json_put_bool(w, "tie_word_embeddings", !o->untied);
    qkv__put_window(o, w);
    qkv__write_rotary(o, w);
}

static const char *not_phi3(const qkv_config *o)
{
    qkv_config plain = *o;
    if (o->d_k && o->d_k * o->heads != o->dim) return "its heads share dim evenly";
    if (!o->no_bias || o->qkv_bias) return "its layers have no biases";
    plain.rope_width = 0;
    plain.rope_scaling = QKV_ROPE_LLAMA3;
    return qkv__mistral.missing(&plain);
}

const qkv__family qkv__phi3 = { .type = "phi3",
                                .architectures = architectures,
                                .prefix = "model.",
                                .decoder = "model.layers.#.",
                                .layer = layer,
                                .others = qkv__llama_others,
                                .ignored = qkv__llama_ignored,
                                .keys = keys,
                                .fixed = fixed,
                                .options = { .positions = QKV_POSITION_ROPE,
                                             .pre_norm = 1,
                                             .norm = QKV_NORM_RMS,
                                             .norm_eps = 1e-5f,
                                             .no_bias = 1,
                                             .unscaled = 1,
                                             .activation = QKV_ACTIVATION_SWIGLU },
                                .read = read_phi3,
                                .write = write_phi3,
                                .missing = not_phi3 };
