/* family_t5.c: T5, Flan-T5, mT5 and UMT5: an encoder and a decoder without positions, whose scores have a bias by distance instead
 * and are not scaled, with RMS norms and no biases. Their feed-forward layers have a gate, or none, and then other names; the bias is
 * one for all layers of a stack, of UMT5 one for each. */
#include "family.h"

#include <string.h>

static const qkv__enum_name inner_layers[] = { { "relu", QKV_ACTIVATION_RELU },
                                               { "gated-gelu", QKV_ACTIVATION_GEGLU_TANH },
                                               { "gelu", QKV_ACTIVATION_GELU },
                                               { "gelu_new", QKV_ACTIVATION_GELU_TANH },
                                               { "silu", QKV_ACTIVATION_SILU },
                                               { "gated-silu", QKV_ACTIVATION_SWIGLU },
                                               { NULL, 0 } };
static const qkv__config_key keys[] = {
    QKV__KEY("vocab_size", vocab_size, NEEDED),
    QKV__KEY("d_model", dim, NEEDED),
    QKV__KEY("d_kv", d_k, OPTIONAL),
    QKV__KEY("d_ff", d_ff, NEEDED),
    QKV__KEY("num_layers", encoder_layers, NEEDED),
    QKV__KEY("num_heads", heads, NEEDED),
    QKV__KEY("relative_attention_num_buckets", relative_buckets, OPTIONAL),
    QKV__KEY("relative_attention_max_distance", relative_max_distance, OPTIONAL),
    QKV__KEY("layer_norm_epsilon", norm_eps, OPTIONAL),
    QKV__KEY("dropout_rate", dropout, OPTIONAL),
    QKV__WORD_KEY("feed_forward_proj", activation, OPTIONAL, inner_layers),
    { NULL, 0, 0, NULL, false },
};
static const qkv__config_key decoder_key[] = { QKV__KEY("num_decoder_layers", decoder_layers, OPTIONAL),
                                               { NULL, 0, 0, NULL, false } };
static const qkv__fixed fixed[] = { { NULL, 0, NULL } };

#define ATTENTION(ours, theirs)                                                                                          \
    { ours ".q.", theirs ".q.", 0, 0, 0 }, { ours ".k.", theirs ".k.", 0, 0, 0 }, { ours ".v.", theirs ".v.", 0, 0, 0 }, \
    {                                                                                                                    \
        ours ".out.", theirs ".o.", 0, 0, 0                                                                              \
    }
#define OF_DISTANCES "layer.0.SelfAttention.relative_attention_bias."
#define SELF                                                                                      \
    ATTENTION("self", "layer.0.SelfAttention"), { "self_norm.", "layer.0.layer_norm.", 0, 0, 0 }, \
    {                                                                                             \
        "relative_positions.", OF_DISTANCES, 0, 0, 0                                              \
    }
#define CROSS \
    ATTENTION("cross", "layer.1.EncDecAttention"), { "cross_norm.", "layer.1.layer_norm.", 0, 0, 0 }
#define PLAIN(at)                                    \
    {                                                \
        "ffn.in.", at ".DenseReluDense.wi.", 0, 0, 0 \
    }
#define GATED(at) \
    { "ffn.gate.", at ".DenseReluDense.wi_0.", 0, 0, 0 }, { "ffn.in.", at ".DenseReluDense.wi_1.", 0, 0, 0 }
#define FFN(at) \
    { "ffn.out.", at ".DenseReluDense.wo.", 0, 0, 0 }, { "ffn_norm.", at ".layer_norm.", 0, 0, 0 }, { NULL, NULL, 0, 0, 0 }
static const qkv__rename plain_encoder[] = { SELF, PLAIN("layer.1"), FFN("layer.1") };
static const qkv__rename gated_encoder[] = { SELF, GATED("layer.1"), FFN("layer.1") };
static const qkv__rename plain_decoder[] = { SELF, CROSS, PLAIN("layer.2"), FFN("layer.2") };
static const qkv__rename gated_decoder[] = { SELF, CROSS, GATED("layer.2"), FFN("layer.2") };

static const qkv__rename others[] = {
    { "embed.", "shared.", 0, 0, 0 },
    { "embed.", "encoder.embed_tokens.", 0, 0, 0 },
    { "encoder.relative_positions.", "encoder.block.0." OF_DISTANCES, 0, 0, 0 },
    { "decoder.relative_positions.", "decoder.block.0." OF_DISTANCES, 0, 0, 0 },
    { "encoder.norm.", "encoder.final_layer_norm.", 0, 0, 0 },
    { "decoder.norm.", "decoder.final_layer_norm.", 0, 0, 0 },
    { "output.", "lm_head.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
/* The first published files have a bias of cross-attention, which nothing reads. */
static const char *const ignored[] = { "*.embed_tokens.weight", "lm_head.weight",
                                       "*EncDecAttention.relative_attention_bias.weight", NULL };

static bool is_encoder_alone(const qkv__published *p)
{
    const char *name = qkv__json_text(qkv__json_at(qkv__get(p, "architectures"), 0));
    size_t n = name ? strlen(name) : 0;
    return n >= 12 && !strcmp(name + n - 12, "EncoderModel");
}

/* Newer files say that tables are tied where they are not, and then with a key of its own that the output is not scaled. */
static qkv_status read_output(const qkv__published *p, qkv_config *o)
{
    bool is_tied = qkv__is_true(p, "tie_word_embeddings", true), scales = qkv__is_true(p, "scale_decoder_outputs", is_tied);
    if (!o->decoder_layers) return QKV_OK;
    o->untied = !is_tied || (!scales && qkv__has_tensor(p, &qkv__t5, "lm_head.weight"));
    o->scaled_output = scales;
    return scales && !is_tied ? qkv__unsupported(p, "scale_decoder_outputs", "the value of tie_word_embeddings") : QKV_OK;
}

/* "feed_forward_proj" in two other words, which newer files have besides. */
static qkv_status check_inner_layer(const qkv__published *p, const qkv_config *o)
{
    qkv_config said = *o;
    bool is_gated = qkv__is_gated(o->activation);
    static const qkv__config_key key[] = { QKV__WORD_KEY("dense_act_fn", activation, OPTIONAL, qkv__published_activations),
                                           { NULL, 0, 0, NULL, false } };
    static const int plain[] = {
        [QKV_ACTIVATION_GEGLU_TANH] = QKV_ACTIVATION_GELU_TANH, [QKV_ACTIVATION_SWIGLU] = QKV_ACTIVATION_SILU
    };
    said.activation = is_gated ? (qkv_activation)plain[o->activation] : o->activation;
    const int expected = (int)said.activation;
    qkv_status status = qkv__read_keys(p, key, &said);
    if (!status && (int)said.activation != expected)
        status = qkv__unsupported(p, "dense_act_fn", "what feed_forward_proj says");
    if (!status && qkv__is_true(p, "is_gated_act", is_gated) != is_gated)
        status = qkv__unsupported(p, "is_gated_act", "what feed_forward_proj says");
    return status;
}

static qkv_status read_t5(const qkv__published *p, int parts, qkv_config *o)
{
    (void)parts;
    o->decoder_layers = o->encoder_layers;
    qkv_status status = qkv__read_keys(p, decoder_key, o);
    if (is_encoder_alone(p)) o->decoder_layers = 0;
    if (o->relative_buckets < 1) return qkv__unsupported(p, "relative_attention_num_buckets", "at least 1");
    if (!status) status = read_output(p, o);
    o->ffn_dropout = o->attention_dropout = o->dropout;
    return status ? status : check_inner_layer(p, o);
}

static void write_t5(const qkv_config *o, qkv__json_writer *w)
{
    qkv__json_put_int(w, "num_decoder_layers", o->decoder_layers ? o->decoder_layers : o->encoder_layers);
    qkv__json_put_bool(w, "tie_word_embeddings", !o->untied);
    qkv__json_put_bool(w, "is_encoder_decoder", o->decoder_layers > 0);
}

static const char *not_any_t5(const qkv_config *o)
{
    qkv_config plain = *o;
    if (!o->encoder_layers) return "it has an encoder";
    if (o->positions != QKV_POSITION_NONE || !o->relative_buckets) return "it has a bias by distance in place of positions";
    if (o->attention_scale != 1) return "its scores are not scaled";
    if (o->norm != QKV_NORM_RMS || !o->pre_norm || o->no_first_norm) return "its norms are RMS norms before each sub-layer";
    if (!o->no_bias || o->qkv_bias || o->output_bias) return "its layers have no biases";
    if (!o->unscaled || o->embed_norm || o->token_types) return "its embeddings are read as they are";
    if (o->kv_heads && o->kv_heads != o->heads) return "its heads are alike";
    if (o->target_vocab_size) return "its source and target share one vocabulary";
    if (o->decoder_layers && !o->untied == !o->scaled_output) return "its output is scaled where it is tied";
    if (o->classes || o->head) return "it has no classifier and no head";
    if (o->activation == QKV_ACTIVATION_GEGLU) return "the GELU of its gate is that of tanh";
    plain.relative_buckets = plain.scaled_output = 0;
    plain.attention_scale = 0;
    return qkv__has_besides(&plain);
}

static const char *not_t5(const qkv_config *o)
{
    return o->relative_per_layer ? "its layers share a bias by distance" : not_any_t5(o);
}

static const char *not_umt5(const qkv_config *o)
{
    return o->relative_per_layer ? not_any_t5(o) : "each of its layers has a bias by distance";
}

static const qkv__family t5_gated, mt5_gated, umt5_gated;

static const char *inner_layer(const qkv__published *p, const char *missing)
{
    const char *inner = qkv__json_text(qkv__get(p, "feed_forward_proj"));
    return inner ? inner : missing;
}

static bool has_gate(const qkv__published *p, const qkv_config *o, const char *missing)
{
    return p ? !strncmp(inner_layer(p, missing), "gated", 5) : qkv__is_gated(o->activation);
}

static const qkv__family *t5_variant(const qkv__published *p, const qkv_config *o)
{
    return has_gate(p, o, "relu") ? &t5_gated : &qkv__t5;
}

static const qkv__family *mt5_variant(const qkv__published *p, const qkv_config *o)
{
    return has_gate(p, o, "gated-gelu") ? &mt5_gated : &qkv__mt5;
}

static const qkv__family *umt5_variant(const qkv__published *p, const qkv_config *o)
{
    return has_gate(p, o, "gated-gelu") ? &umt5_gated : &qkv__umt5;
}

static const qkv__architecture t5_architectures[] = { { "T5ForConditionalGeneration", QKV__PART_HEAD },
                                                      { "T5WithLMHeadModel", QKV__PART_HEAD },
                                                      { "T5EncoderModel", 0 },
                                                      { "T5Model", QKV__PART_HEAD },
                                                      { NULL, 0 } };
static const qkv__architecture mt5_architectures[] = {
    { "MT5ForConditionalGeneration", QKV__PART_HEAD }, { "MT5EncoderModel", 0 }, { "MT5Model", QKV__PART_HEAD }, { NULL, 0 }
};
static const qkv__architecture umt5_architectures[] = {
    { "UMT5ForConditionalGeneration", QKV__PART_HEAD }, { "UMT5EncoderModel", 0 }, { "UMT5Model", QKV__PART_HEAD }, { NULL, 0 }
};
#define FAMILY(of, inner, lacks, ...)                                                                                    \
    {                                                                                                                    \
        .type = #of, .architectures = of##_architectures, .prefix = "", .encoder = "encoder.block.#.",                   \
        .decoder = "decoder.block.#.", .layer = inner##_encoder, .decoder_layer = inner##_decoder, .others = others,     \
        .ignored = ignored, .keys = keys, .fixed = fixed, .renumbers_pieces = false, .read = read_t5, .write = write_t5, \
        .missing = lacks, .variant = of##_variant, .options = {                                                          \
            .positions = QKV_POSITION_NONE,                                                                              \
            .relative_buckets = 32,                                                                                      \
            .relative_max_distance = 128,                                                                                \
            .attention_scale = 1,                                                                                        \
            .norm = QKV_NORM_RMS,                                                                                        \
            .norm_eps = 1e-6f,                                                                                           \
            .pre_norm = 1,                                                                                               \
            .no_bias = 1,                                                                                                \
            .unscaled = 1,                                                                                               \
            .d_k = 64,                                                                                                   \
            .dropout = 0.1f,                                                                                             \
            __VA_ARGS__                                                                                                  \
        }                                                                                                                \
    }
#define GELU .activation = QKV_ACTIVATION_GEGLU_TANH /* where the config does not say */
const qkv__family qkv__t5 = FAMILY(t5, plain, not_t5, .relative_per_layer = 0);
const qkv__family qkv__mt5 = FAMILY(mt5, plain, not_t5, .relative_per_layer = 0);
const qkv__family qkv__umt5 = FAMILY(umt5, plain, not_umt5, .relative_per_layer = 1);
static const qkv__family t5_gated = FAMILY(t5, gated, not_t5, .relative_per_layer = 0);
static const qkv__family mt5_gated = FAMILY(mt5, gated, not_t5, GELU);
static const qkv__family umt5_gated = FAMILY(umt5, gated, not_umt5, .relative_per_layer = 1, GELU);
