/* family_opt.c: OPT: GPT-2's decoder with ReLU, learned positions from 2 on, and matrices as they are. */
#include "family.h"

static const qkv__config_key keys[] = {
    QKV__KEY("vocab_size", vocab_size, NEEDED),
    QKV__KEY("hidden_size", dim, NEEDED),
    QKV__KEY("num_hidden_layers", decoder_layers, NEEDED),
    QKV__KEY("num_attention_heads", heads, NEEDED),
    QKV__KEY("ffn_dim", d_ff, NEEDED),
    QKV__KEY("max_position_embeddings", max_positions, NEEDED),
    QKV__WORD_KEY("activation_function", activation, OPTIONAL, qkv__published_activations),
    QKV__KEY("dropout", dropout, OPTIONAL),
    QKV__KEY("attention_dropout", attention_dropout, OPTIONAL),
    { NULL, 0, 0, NULL, false },
};
static const qkv__fixed fixed[] = { { "do_layer_norm_before", 1, NULL },
                                    { "_remove_final_layer_norm", 0, NULL },
                                    { "enable_bias", 1, NULL },
                                    { "layer_norm_elementwise_affine", 1, NULL },
                                    { NULL, 0, NULL } };
static const qkv__architecture architectures[] = { { "OPTForCausalLM", QKV__PART_HEAD }, { "OPTModel", 0 }, { NULL, 0 } };

static const qkv__rename layer[] = {
    { "self.q.", "self_attn.q_proj.", 0, 0, 0 },
    { "self.k.", "self_attn.k_proj.", 0, 0, 0 },
    { "self.v.", "self_attn.v_proj.", 0, 0, 0 },
    { "self.out.", "self_attn.out_proj.", 0, 0, 0 },
    { "self_norm.", "self_attn_layer_norm.", 0, 0, 0 },
    { "ffn.in.", "fc1.", 0, 0, 0 },
    { "ffn.out.", "fc2.", 0, 0, 0 },
    { "ffn_norm.", "final_layer_norm.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const qkv__rename others[] = {
    { "embed.", "model.decoder.embed_tokens.", 0, 0, 0 },
    { "decoder.positions.", "model.decoder.embed_positions.", 0, 0, 0 },
    { "decoder.norm.", "model.decoder.final_layer_norm.", 0, 0, 0 },
    { "output.", "lm_head.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const char *const ignored[] = { "lm_head.weight", NULL };

static qkv_status read_opt(const qkv__published *p, int parts, qkv_config *o)
{
    (void)parts;
    const qkv__json_value *width = qkv__get(p, "word_embed_proj_dim");
    if (width && qkv__json_int(width) != o->dim) return qkv__unsupported(p, "word_embed_proj_dim", "the value of hidden_size");
    o->untied = !qkv__is_true(p, "tie_word_embeddings", true);
    return QKV_OK;
}

static void write_opt(const qkv_config *o, qkv__json_writer *w)
{
    qkv__json_put_int(w, "word_embed_proj_dim", o->dim);
    qkv__json_put_bool(w, "tie_word_embeddings", !o->untied);
}

/* But for where positions begin, and the eps of norms, what GPT-2 has. */
static const char *not_opt(const qkv_config *o)
{
    qkv_config plain = *o;
    if (o->positions != QKV_POSITION_LEARNED || o->first_position != 2) return "its positions are learned, from 2 on";
    if (o->norm_eps != 0 && o->norm_eps != 1e-5f) return "its norms have an eps of 1e-5";
    plain.first_position = 0;
    return qkv__gpt2.missing(&plain);
}

const qkv__family qkv__opt = { .type = "opt",
                               .architectures = architectures,
                               .prefix = "model.",
                               .decoder = "model.decoder.layers.#.",
                               .layer = layer,
                               .others = others,
                               .ignored = ignored,
                               .keys = keys,
                               .fixed = fixed,
                               .options = { .positions = QKV_POSITION_LEARNED,
                                            .first_position = 2,
                                            .pre_norm = 1,
                                            .unscaled = 1,
                                            .activation = QKV_ACTIVATION_RELU,
                                            .dropout = 0.1f },
                               .read = read_opt,
                               .write = write_opt,
                               .missing = not_opt };
