/* family_bart.c: BART, an encoder and a decoder with learned positions and a norm of the embeddings; mBART, the same with its norms
 * before each sub-layer; both also with a classifier of texts; M2M-100 and NLLB, mBARTs with sinusoids in place of learned
 * positions. */
#include "family.h"

#define BOTH_STACKS                                                                                             \
    QKV__KEY("vocab_size", vocab_size, NEEDED), QKV__KEY("d_model", dim, NEEDED),                               \
        QKV__KEY("encoder_layers", encoder_layers, NEEDED), QKV__KEY("decoder_layers", decoder_layers, NEEDED), \
        QKV__KEY("encoder_attention_heads", heads, NEEDED), QKV__KEY("encoder_ffn_dim", d_ff, NEEDED),          \
        QKV__WORD_KEY("activation_function", activation, NEEDED, qkv__published_activations),                   \
        QKV__KEY("dropout", dropout, OPTIONAL), QKV__KEY("attention_dropout", attention_dropout, OPTIONAL),     \
        QKV__KEY("activation_dropout", ffn_dropout, OPTIONAL)
static const qkv__config_key learned_keys[] = { BOTH_STACKS,
                                                QKV__KEY("max_position_embeddings", max_positions, NEEDED),
                                                { NULL, 0, 0, NULL, false } };
static const qkv__config_key m2m_100_keys[] = { BOTH_STACKS, { NULL, 0, 0, NULL, false } };

static const qkv__fixed bart_fixed[] = { { "static_position_embeddings", 0, NULL }, { "normalize_before", 0, NULL },
                                         { "normalize_embedding", 1, NULL },        { "add_final_layer_norm", 0, NULL },
                                         { "is_encoder_decoder", 1, NULL },         { NULL, 0, NULL } };
static const qkv__fixed mbart_fixed[] = { { "static_position_embeddings", 0, NULL }, { "normalize_before", 1, NULL },
                                          { "normalize_embedding", 1, NULL },        { "add_final_layer_norm", 1, NULL },
                                          { "is_encoder_decoder", 1, NULL },         { NULL, 0, NULL } };
static const qkv__fixed m2m_100_fixed[] = { { "is_encoder_decoder", 1, NULL }, { NULL, 0, NULL } };

static const qkv__architecture bart_architectures[] = { { "BartForConditionalGeneration", QKV__PART_HEAD },
                                                        { "BartModel", 0 },
                                                        { "BartForSequenceClassification", QKV__PART_CLASSIFIER },
                                                        { NULL, 0 } };
static const qkv__architecture mbart_architectures[] = { { "MBartForConditionalGeneration", QKV__PART_HEAD },
                                                         { "MBartModel", 0 },
                                                         { "MBartForSequenceClassification", QKV__PART_CLASSIFIER },
                                                         { NULL, 0 } };
static const qkv__architecture m2m_100_architectures[] = { { "M2M100ForConditionalGeneration", QKV__PART_HEAD },
                                                           { "M2M100Model", 0 },
                                                           { NULL, 0 } };

static const qkv__rename others[] = {
    { "embed.", "model.shared.", 0, 0, 0 },
    { "embed.", "model.encoder.embed_tokens.", 0, 0, 0 },
    { "encoder.positions.", "model.encoder.embed_positions.", 0, 0, 0 },
    { "decoder.positions.", "model.decoder.embed_positions.", 0, 0, 0 },
    { "encoder.embed_norm.", "model.encoder.layernorm_embedding.", 0, 0, 0 },
    { "decoder.embed_norm.", "model.decoder.layernorm_embedding.", 0, 0, 0 },
    { "encoder.norm.", "model.encoder.layer_norm.", 0, 0, 0 },
    { "decoder.norm.", "model.decoder.layer_norm.", 0, 0, 0 },
    { "output.bias", "final_logits_bias", QKV__SQUEEZED, 0, 0 },
    { "output.", "lm_head.", 0, 0, 0 },
    { "pooler.", "classification_head.dense.", 0, 0, 0 },
    { "classifier.", "classification_head.out_proj.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const char *const ignored[] = { "*.embed_positions.weight*", "*.embed_tokens.weight", "lm_head.weight",
                                       "final_logits_bias", NULL };

/* Positions begin behind two that stood for padding once. */
enum { FIRST_POSITION = 2 };

/* What stands in the way of all three; each has a norm of the embeddings or none. */
static const char *not_any(const qkv_config *o, bool embed_norm, bool pre_norm)
{
    if (!o->encoder_layers || !o->decoder_layers) return "it has an encoder and a decoder";
    if (o->first_position != FIRST_POSITION) return "its first position is 2";
    if (o->norm != QKV_NORM_LAYER || (o->norm_eps != 0 && o->norm_eps != 1e-5f))
        return "its norms are layer norms with an eps of 1e-5";
    if (!o->embed_norm != !embed_norm) return embed_norm ? "it has a norm of embeddings" : "it has no norm of embeddings";
    if (!o->pre_norm != !pre_norm)
        return pre_norm ? "its norms come before each sub-layer" : "its norms come after each sub-layer";
    if (o->no_bias) return "its layers have biases";
    if (o->no_source_eos) return "its sources end with a token of their own (source_eos)";
    if (qkv__is_gated(o->activation)) return "its feed-forward layers have no gate";
    if (!qkv__heads_are_alike(o)) return "its heads are alike";
    if (o->target_vocab_size) return "its source and target share one vocabulary";
    if (o->classes && (o->pooling != QKV_POOLING_LAST || o->pooler != QKV_POOLER_TANH))
        return "its classifier is a layer with tanh at the last token";
    return o->token_types || o->head ? "it has no token types and no head" : qkv__leaves_out(o);
}

static const char *not_bart(const qkv_config *o)
{
    return o->positions != QKV_POSITION_LEARNED ? "its positions are learned" : not_any(o, true, false);
}

static const char *not_mbart(const qkv_config *o)
{
    return o->positions != QKV_POSITION_LEARNED ? "its positions are learned" : not_any(o, true, true);
}

static const char *not_m2m_100(const qkv_config *o)
{
    if (o->positions != QKV_POSITION_SINUSOID_FAIRSEQ) return "its positions are sinusoids of fairseq";
    if (o->classes) return "it has no classifier";
    return o->output_bias ? "its output has no bias" : not_any(o, false, true);
}

/* Its classifier reads the decoder's state at the last </s>, the last token of every text. */
static qkv_status read_bart(const qkv__published *p, int parts, qkv_config *o)
{
    qkv_status status = qkv__marian_read(p, parts, o);
    if (!status) status = qkv__read_classes(p, parts, o);
    if (!o->classes) return status;
    o->pooling = QKV_POOLING_LAST;
    o->pooler = QKV_POOLER_TANH;
    o->untied = o->output_bias = 0; /* it has no output */
    return status;
}

#define BART(of, key_list, kind, ...)                                                                               \
    {                                                                                                               \
        .type = #of, .architectures = of##_architectures, .prefix = "model.", .encoder = "model.encoder.layers.#.", \
        .decoder = "model.decoder.layers.#.", .layer = qkv__marian_layer, .others = others, .ignored = ignored,     \
        .keys = key_list, .fixed = of##_fixed, .head = "final_logits_bias",                                         \
        .classifier = "classification_head.out_proj.weight", .renumbers_pieces = true, .read = read_bart,           \
        .write = qkv__marian_write, .missing = not_##of, .options = {                                               \
            .positions = kind,                                                                                      \
            .first_position = FIRST_POSITION,                                                                       \
            .dropout = 0.1f,                                                                                        \
            __VA_ARGS__                                                                                             \
        }                                                                                                           \
    }
const qkv__family qkv__bart = BART(bart, learned_keys, QKV_POSITION_LEARNED, .embed_norm = 1);
const qkv__family qkv__mbart = BART(mbart, learned_keys, QKV_POSITION_LEARNED, .embed_norm = 1, .pre_norm = 1);
const qkv__family qkv__m2m_100 = BART(m2m_100, m2m_100_keys, QKV_POSITION_SINUSOID_FAIRSEQ, .pre_norm = 1);
