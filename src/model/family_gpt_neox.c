/* family_gpt_neox.c: GPT-NeoX and the Pythias: attention and feed-forward read the same x, a part of each head turns, and queries,
 * keys and values lie in one matrix, head by head. */
#include "family.h"

static const qkv__config_key keys[] = {
    QKV__KEY("vocab_size", vocab_size, NEEDED),
    QKV__KEY("hidden_size", dim, NEEDED),
    QKV__KEY("num_hidden_layers", decoder_layers, NEEDED),
    QKV__KEY("num_attention_heads", heads, NEEDED),
    QKV__KEY("intermediate_size", d_ff, NEEDED),
    QKV__WORD_KEY("hidden_act", activation, OPTIONAL, qkv__published_activations),
    QKV__KEY("layer_norm_eps", norm_eps, OPTIONAL),
    QKV__KEY("rotary_emb_base", rope_base, OPTIONAL),
    QKV__KEY("use_parallel_residual", parallel, OPTIONAL),
    QKV__KEY("hidden_dropout", dropout, OPTIONAL),
    QKV__KEY("attention_dropout", attention_dropout, OPTIONAL),
    { NULL, 0, 0, NULL, false },
};
static const qkv__fixed fixed[] = { { "attention_bias", 1, NULL }, { NULL, 0, NULL } };
static const qkv__architecture architectures[] = { { "GPTNeoXForCausalLM", QKV__PART_HEAD },
                                                   { "GPTNeoXModel", 0 },
                                                   { NULL, 0 } };

static const qkv__rename layer[] = {
    { "self.q.", "attention.query_key_value.", QKV__BY_HEAD, 0, 3 },
    { "self.k.", "attention.query_key_value.", QKV__BY_HEAD, 1, 3 },
    { "self.v.", "attention.query_key_value.", QKV__BY_HEAD, 2, 3 },
    { "self.out.", "attention.dense.", 0, 0, 0 },
    { "self_norm.", "input_layernorm.", 0, 0, 0 },
    { "ffn.in.", "mlp.dense_h_to_4h.", 0, 0, 0 },
    { "ffn.out.", "mlp.dense_4h_to_h.", 0, 0, 0 },
    { "ffn_norm.", "post_attention_layernorm.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const qkv__rename others[] = {
    { "embed.", "gpt_neox.embed_in.", 0, 0, 0 },
    { "decoder.norm.", "gpt_neox.final_layer_norm.", 0, 0, 0 },
    { "output.", "embed_out.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const char *const ignored[] = { "*.attention.bias", "*.attention.masked_bias", "*.rotary_emb.inv_freq",
                                       "embed_out.weight", NULL };

static qkv_status read_gpt_neox(const qkv__published *p, int parts, qkv_config *o)
{
    (void)parts;
    static const qkv__config_key newer_key[] = { QKV__KEY("rope_theta", rope_base, OPTIONAL), { NULL, 0, 0, NULL, false } };
    if (!qkv__get(p, "rotary_emb_base") && qkv__read_keys(p, newer_key, o)) return qkv_error_status();
    o->untied = !qkv__is_true(p, "tie_word_embeddings", false);
    qkv_status status = qkv__read_rotary(p, NULL, o);
    if (!status && !qkv__get(p, "rotary_pct")) status = qkv__read_rotary_part(p, "partial_rotary_factor", o);
    return status ? status : qkv__read_rotary_part(p, "rotary_pct", o);
}

static void write_gpt_neox(const qkv_config *o, qkv__json_writer *w)
{
    double part = o->rope_width ? (double)o->rope_width / (double)o->d_k : 1;
    qkv__json_put_real(w, "rotary_pct", part, QKV__JSON_FLOAT);
    qkv__json_put_bool(w, "tie_word_embeddings", !o->untied);
    qkv__write_rotary(o, w);
}

/* But for positions and the order of its sub-layers, what GPT-2 has. */
static const char *not_gpt_neox(const qkv_config *o)
{
    qkv_config plain = *o;
    if (o->positions != QKV_POSITION_ROPE) return "its positions are rotary";
    if (o->rope_scaling == QKV_ROPE_LONG) return "its rotary frequencies have no divisors of their own (longrope)";
    plain.positions = QKV_POSITION_LEARNED;
    plain.rope_width = plain.parallel = 0;
    return qkv__gpt2.missing(&plain);
}

const qkv__family qkv__gpt_neox = { .type = "gpt_neox",
                                    .architectures = architectures,
                                    .prefix = "gpt_neox.",
                                    .decoder = "gpt_neox.layers.#.",
                                    .layer = layer,
                                    .others = others,
                                    .ignored = ignored,
                                    .keys = keys,
                                    .fixed = fixed,
                                    .options = { .positions = QKV_POSITION_ROPE,
                                                 .pre_norm = 1,
                                                 .unscaled = 1,
                                                 .parallel = 1,
                                                 .activation = QKV_ACTIVATION_GELU },
                                    .read = read_gpt_neox,
                                    .write = write_gpt_neox,
                                    .missing = not_gpt_neox };
