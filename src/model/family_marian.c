/* family_marian.c: Marian, the translators of OPUS-MT: the paper's Transformer with sines and cosines in halves; and Pegasus, the
 * same with its norms before each sub-layer and at the end of each stack. */
#include "family.h"

#include <qkv/data.h>

static const qkv__config_key keys[] = {
    QKV__KEY("vocab_size", vocab_size, NEEDED),
    QKV__KEY("d_model", dim, NEEDED),
    QKV__KEY("encoder_layers", encoder_layers, NEEDED),
    QKV__KEY("decoder_layers", decoder_layers, NEEDED),
    QKV__KEY("encoder_attention_heads", heads, NEEDED),
    QKV__KEY("encoder_ffn_dim", d_ff, NEEDED),
    QKV__WORD_KEY("activation_function", activation, NEEDED, qkv__published_activations),
    QKV__KEY("dropout", dropout, OPTIONAL),
    QKV__KEY("attention_dropout", attention_dropout, OPTIONAL),
    QKV__KEY("activation_dropout", ffn_dropout, OPTIONAL),
    { NULL, 0, 0, NULL, false },
};
static const qkv__fixed marian_fixed[] = { { "static_position_embeddings", 1, NULL }, { "normalize_before", 0, NULL },
                                           { "normalize_embedding", 0, NULL },        { "add_final_layer_norm", 0, NULL },
                                           { "is_encoder_decoder", 1, NULL },         { NULL, 0, NULL } };
static const qkv__fixed pegasus_fixed[] = { { "static_position_embeddings", 1, NULL }, { "normalize_before", 1, NULL },
                                            { "normalize_embedding", 0, NULL },        { "add_final_layer_norm", 1, NULL },
                                            { "is_encoder_decoder", 1, NULL },         { NULL, 0, NULL } };
static const qkv__architecture marian_architectures[] = { { "MarianMTModel", QKV__PART_HEAD },
                                                          { "MarianModel", 0 },
                                                          { NULL, 0 } };
static const qkv__architecture pegasus_architectures[] = { { "PegasusForConditionalGeneration", QKV__PART_HEAD },
                                                           { "PegasusModel", 0 },
                                                           { NULL, 0 } };

const qkv__rename qkv__marian_layer[] = {
    { "self.q.", "self_attn.q_proj.", 0, 0, 0 },
    { "self.k.", "self_attn.k_proj.", 0, 0, 0 },
    { "self.v.", "self_attn.v_proj.", 0, 0, 0 },
    { "self.out.", "self_attn.out_proj.", 0, 0, 0 },
    { "self_norm.", "self_attn_layer_norm.", 0, 0, 0 },
    { "cross.q.", "encoder_attn.q_proj.", 0, 0, 0 },
    { "cross.k.", "encoder_attn.k_proj.", 0, 0, 0 },
    { "cross.v.", "encoder_attn.v_proj.", 0, 0, 0 },
    { "cross.out.", "encoder_attn.out_proj.", 0, 0, 0 },
    { "cross_norm.", "encoder_attn_layer_norm.", 0, 0, 0 },
    { "ffn.in.", "fc1.", 0, 0, 0 },
    { "ffn.out.", "fc2.", 0, 0, 0 },
    { "ffn_norm.", "final_layer_norm.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const qkv__rename others[] = {
    { "embed.", "model.shared.", 0, 0, 0 },
    { "embed.", "model.encoder.embed_tokens.", 0, 0, 0 },
    { "target_embed.", "model.decoder.embed_tokens.", 0, 0, 0 },
    { "encoder.norm.", "model.encoder.layer_norm.", 0, 0, 0 }, /* these two Pegasus alone has */
    { "decoder.norm.", "model.decoder.layer_norm.", 0, 0, 0 },
    { "output.bias", "final_logits_bias", QKV__SQUEEZED, 0, 0 },
    { "output.", "lm_head.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const char *const ignored[] = { "*.embed_positions.weight", "*.embed_tokens.weight", "lm_head.weight",
                                       "final_logits_bias", NULL };

static qkv_status same(const qkv__published *p, const char *a, const char *b)
{
    const qkv__json_value *x = qkv__get(p, a), *y = qkv__get(p, b);
    if (!y || qkv__json_int(x) == qkv__json_int(y)) return QKV_OK;
    return qkv__fail(QKV_UNSUPPORTED, "%s: keys \"%s\" and \"%s\": only equal ones are supported", p->path, a, b);
}

qkv_status qkv__marian_read(const qkv__published *p, int parts, qkv_config *o)
{
    qkv_status status = same(p, "encoder_attention_heads", "decoder_attention_heads");
    if (!status) status = same(p, "encoder_ffn_dim", "decoder_ffn_dim");
    if (status) return status;
    o->unscaled = !qkv__is_true(p, "scale_embedding", false);
    o->untied = !qkv__is_true(p, "tie_word_embeddings", true);
    o->output_bias = (parts & QKV__PART_HEAD) && qkv__has_tensor(p, &qkv__marian, "final_logits_bias");
    return QKV_OK;
}

static qkv_status read_marian(const qkv__published *p, int parts, qkv_config *o)
{
    qkv_status status = qkv__marian_read(p, parts, o);
    if (status) return status;
    if (qkv__is_true(p, "share_encoder_decoder_embeddings", true)) return QKV_OK;
    o->target_vocab_size = qkv__json_int(qkv__get(p, "decoder_vocab_size"));
    if (o->target_vocab_size >= 1) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: key \"decoder_vocab_size\": expected a whole number, at least 1", p->path);
}

/* Without a forced_eos_token_id, other programs end a text that has become too long with the id that </s> mostly has in the
 * family, which is another token of ours. */
void qkv__marian_write(const qkv_config *o, qkv__json_writer *w)
{
    qkv__json_put_int(w, "decoder_attention_heads", o->heads);
    qkv__json_put_int(w, "decoder_ffn_dim", o->d_ff);
    qkv__json_put_bool(w, "scale_embedding", !o->unscaled);
    qkv__json_put_bool(w, "tie_word_embeddings", !o->untied);
    qkv__json_put_copy(w, "forced_eos_token_id", "eos_token_id");
    if (!qkv__json_has(w, "max_position_embeddings")) qkv__json_put_int(w, "max_position_embeddings", 512);
}

static void write_marian(const qkv_config *o, qkv__json_writer *w)
{
    qkv__marian_write(o, w);
    qkv__json_put_int(w, "decoder_vocab_size", o->target_vocab_size ? o->target_vocab_size : o->vocab_size);
    qkv__json_put_bool(w, "share_encoder_decoder_embeddings", !o->target_vocab_size);
}

static const char *not_either(const qkv_config *o)
{
    if (!o->encoder_layers || !o->decoder_layers) return "it has an encoder and a decoder";
    if (o->positions != QKV_POSITION_SINUSOID_HALVES) return "its positions are all sines, then all cosines (sinusoid_halves)";
    if (o->first_position) return "its first position is 0";
    if (o->norm != QKV_NORM_LAYER || (o->norm_eps != 0 && o->norm_eps != 1e-5f))
        return "its norms are layer norms with an eps of 1e-5";
    if (o->no_bias) return "its layers have biases";
    if (o->no_source_eos) return "its sources end with " QKV_SPECIAL_END " (source_eos)";
    if (qkv__is_gated(o->activation)) return "its feed-forward layers have no gate";
    if (!qkv__heads_are_alike(o)) return "its heads are alike";
    if (o->embed_norm || o->token_types || o->head) return "it has no norm of embeddings, no token types and no head";
    return o->classes ? "it has no classifier" : qkv__leaves_out(o);
}

static const char *not_marian(const qkv_config *o)
{
    const char *problem = not_either(o);
    return problem ? problem : o->pre_norm ? "its norms come after each sub-layer" : NULL;
}

static const char *not_pegasus(const qkv_config *o)
{
    const char *problem = not_either(o);
    if (problem) return problem;
    if (!o->pre_norm) return "its norms come before each sub-layer";
    return o->target_vocab_size ? "its source and target share one vocabulary" : NULL;
}

#define MARIAN(name, of, norms_first)                                                                                     \
    .type = name, .architectures = of##_architectures, .prefix = "model.", .encoder = "model.encoder.layers.#.",          \
    .decoder = "model.decoder.layers.#.", .layer = qkv__marian_layer, .others = others, .ignored = ignored, .keys = keys, \
    .fixed = of##_fixed, .head = "final_logits_bias",                                                                     \
    .options = { .positions = QKV_POSITION_SINUSOID_HALVES, .pre_norm = norms_first, .dropout = 0.1f }, .missing = not_##of
const qkv__family qkv__marian = { MARIAN("marian", marian, 0), .read = read_marian, .write = write_marian };
const qkv__family qkv__pegasus = { MARIAN("pegasus", pegasus, 1), .renumbers_pieces = true, .read = qkv__marian_read,
                                   .write = qkv__marian_write };
