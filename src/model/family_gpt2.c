/* family_gpt2.c: GPT-2: a decoder with learned positions, norms before each sub-layer, matrices stored as (in, out). */
#include "family.h"

static const qkv__config_key keys[] = {
    QKV__KEY("vocab_size", vocab_size, NEEDED),
    QKV__KEY("n_embd", dim, NEEDED),
    QKV__KEY("n_layer", decoder_layers, NEEDED),
    QKV__KEY("n_head", heads, NEEDED),
    QKV__KEY("n_positions", max_positions, NEEDED),
    QKV__KEY("n_inner", d_ff, OPTIONAL),
    QKV__WORD_KEY("activation_function", activation, OPTIONAL, qkv__published_activations),
    QKV__KEY("layer_norm_epsilon", norm_eps, OPTIONAL),
    QKV__KEY("resid_pdrop", dropout, OPTIONAL),
    QKV__KEY("attn_pdrop", attention_dropout, OPTIONAL),
    { NULL, 0, 0, NULL, false },
};
static const qkv__fixed fixed[] = { { "scale_attn_weights", 1, NULL },
                                    { "scale_attn_by_inverse_layer_idx", 0, NULL },
                                    { "add_cross_attention", 0, NULL },
                                    { NULL, 0, NULL } };
static const qkv__architecture architectures[] = { { "GPT2LMHeadModel", QKV__PART_HEAD }, { "GPT2Model", 0 }, { NULL, 0 } };

static const qkv__rename layer[] = {
    { "self.q.", "attn.c_attn.", QKV__TURNED, 0, 3 },
    { "self.k.", "attn.c_attn.", QKV__TURNED, 1, 3 },
    { "self.v.", "attn.c_attn.", QKV__TURNED, 2, 3 },
    { "self.out.", "attn.c_proj.", QKV__TURNED, 0, 0 },
    { "self_norm.", "ln_1.", 0, 0, 0 },
    { "ffn.in.", "mlp.c_fc.", QKV__TURNED, 0, 0 },
    { "ffn.out.", "mlp.c_proj.", QKV__TURNED, 0, 0 },
    { "ffn_norm.", "ln_2.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const qkv__rename others[] = {
    { "embed.", "transformer.wte.", 0, 0, 0 },
    { "decoder.positions.", "transformer.wpe.", 0, 0, 0 },
    { "decoder.norm.", "transformer.ln_f.", 0, 0, 0 },
    { "output.", "lm_head.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const char *const ignored[] = { "*.attn.bias", "*.attn.masked_bias", "lm_head.weight", NULL };

static qkv_status read_gpt2(const qkv__published *p, int parts, qkv_config *o)
{
    (void)parts;
    if (!qkv__get(p, "n_inner") && __builtin_mul_overflow(o->dim, 4, &o->d_ff))
        return qkv__fail(QKV_FORMAT, "%s: key \"n_embd\" is larger than memory can be", p->path);
    o->untied = !qkv__is_true(p, "tie_word_embeddings", true);
    return QKV_OK;
}

static void write_gpt2(const qkv_config *o, qkv__json_writer *w)
{
    qkv__json_put_bool(w, "tie_word_embeddings", !o->untied);
    qkv__json_put_real(w, "embd_pdrop", (double)o->dropout, QKV__JSON_FLOAT);
}

static const char *missing(const qkv_config *o)
{
    if (!o->decoder_layers || o->encoder_layers) return "it has a decoder alone";
    if (o->positions != QKV_POSITION_LEARNED || o->first_position) return "its positions are learned, from 0 on";
    if (!o->pre_norm) return "its norms come before each sub-layer";
    if (o->norm != QKV_NORM_LAYER) return "its norms are layer norms";
    if (!o->unscaled) return "its embeddings are not scaled";
    if (o->no_bias || o->output_bias) return "its layers have biases, but not the output";
    if (qkv__is_gated(o->activation)) return "its feed-forward layers have no gate";
    if ((o->kv_heads && o->kv_heads != o->heads) || (o->d_k && o->d_k * o->heads != o->dim)) return "its heads are alike";
    if (o->embed_norm || o->head) return "it has no norm of embeddings and no head";
    return o->classes ? "it has no classifier" : qkv__leaves_out(o);
}

const qkv__family qkv__gpt2 = { .type = "gpt2",
                                .architectures = architectures,
                                .prefix = "transformer.",
                                .decoder = "transformer.h.#.",
                                .layer = layer,
                                .others = others,
                                .ignored = ignored,
                                .keys = keys,
                                .fixed = fixed,
                                .options = { .positions = QKV_POSITION_LEARNED,
                                             .pre_norm = 1,
                                             .unscaled = 1,
                                             .activation = QKV_ACTIVATION_GELU_TANH,
                                             .dropout = 0.1f,
                                             .attention_dropout = 0.1f },
                                .read = read_gpt2,
                                .write = write_gpt2,
                                .missing = missing };
