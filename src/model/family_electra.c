/* family_electra.c: ELECTRA and ALBERT: BERT with tables that are narrower than its layers; ALBERT's layers share their weights. */
#include "family.h"

#define NARROW_KEYS(activation_presence)                                                                              \
    QKV__KEY("vocab_size", vocab_size, NEEDED), QKV__KEY("hidden_size", dim, NEEDED),                                 \
        QKV__KEY("embedding_size", embed_dim, OPTIONAL), QKV__KEY("num_hidden_layers", encoder_layers, NEEDED),       \
        QKV__KEY("num_attention_heads", heads, NEEDED), QKV__KEY("intermediate_size", d_ff, NEEDED),                  \
        QKV__KEY("max_position_embeddings", max_positions, NEEDED), QKV__KEY("type_vocab_size", token_types, NEEDED), \
        QKV__WORD_KEY("hidden_act", activation, activation_presence, qkv__published_activations),                     \
        QKV__KEY("layer_norm_eps", norm_eps, OPTIONAL), QKV__KEY("hidden_dropout_prob", dropout, OPTIONAL),           \
        QKV__KEY("attention_probs_dropout_prob", attention_dropout, OPTIONAL),                                        \
    {                                                                                                                 \
        NULL, 0, 0, NULL, false                                                                                       \
    }
#define NARROW_OPTIONS                                                                                       \
    .positions = QKV_POSITION_LEARNED, .unscaled = 1, .embed_norm = 1, .norm_eps = 1e-12f, .embed_dim = 128, \
    .pooling = QKV_POOLING_FIRST
static const qkv__fixed fixed[] = { { "position_embedding_type", 0, "absolute" },
                                    { "is_decoder", 0, NULL },
                                    { "add_cross_attention", 0, NULL },
                                    { NULL, 0, NULL } };

/* What stands in the way of both. */
static const char *not_narrow(const qkv_config *o)
{
    qkv_config plain = *o;
    plain.embed_dim = plain.shared_layers = 0;
    plain.pooler = QKV_POOLER_NONE;
    if (o->first_position) return "its first position is 0";
    if (!o->token_types) return "its tokens have types";
    return qkv__not_bert(&plain);
}

/* ---- ELECTRA ---- */

static const qkv__config_key electra_keys[] = { NARROW_KEYS(NEEDED) };
/* The head of the discriminator tells which words are not the author's: it is left out. */
static const qkv__architecture electra_architectures[] = { QKV__ENCODER_ARCHITECTURES("Electra"),
                                                           { "ElectraForPreTraining", 0 },
                                                           { NULL, 0 } };
static const qkv__rename electra_others[] = {
    { "embed.", "electra.embeddings.word_embeddings.", 0, 0, 0 },
    { "token_types.", "electra.embeddings.token_type_embeddings.", 0, 0, 0 },
    { "encoder.positions.", "electra.embeddings.position_embeddings.", 0, 0, 0 },
    { "encoder.embed_norm.", "electra.embeddings.LayerNorm.", 0, 0, 0 },
    { "encoder.widen.", "electra.embeddings_project.", 0, 0, 0 },
    { "pooler.", "classifier.dense.", 0, 0, 0 },
    { "classifier.", "classifier.out_proj.", 0, 0, 0 },
    { "token_classifier.", "classifier.", 0, 0, 0 },
    { "span_classifier.", "qa_outputs.", 0, 0, 0 },
    { "head.norm.", "generator_predictions.LayerNorm.", 0, 0, 0 },
    { "head.", "generator_predictions.dense.", 0, 0, 0 },
    { "output.", "generator_lm_head.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const char *const electra_ignored[] = { "*embeddings.position_ids", "discriminator_predictions.*",
                                               "generator_lm_head.weight", NULL };

static qkv_status read_electra(const qkv__published *p, int parts, qkv_config *o)
{
    if (o->embed_dim == o->dim) o->embed_dim = 0;
    qkv_status status = qkv__bert_read_parts(p, parts, o);
    if (!status && o->head && o->activation != QKV_ACTIVATION_GELU) status = qkv__unsupported(p, "hidden_act", "gelu");
    if (qkv__classifies_texts(o)) o->pooler = QKV_POOLER_GELU;
    return status;
}

static void write_electra(const qkv_config *o, qkv__json_writer *w)
{
    qkv__bert_write_tied(o, w);
    qkv__json_put_int(w, "embedding_size", o->embed_dim ? o->embed_dim : o->dim);
}

static const char *not_electra(const qkv_config *o)
{
    const char *problem = not_narrow(o);
    if (problem) return problem;
    if (o->shared_layers) return "its layers have weights of their own";
    if (o->embed_dim == o->dim) return "tables as wide as its layers are not projected";
    if (o->head && o->activation != QKV_ACTIVATION_GELU) return "its activation is gelu";
    return o->pooler != (qkv__classifies_texts(o) ? QKV_POOLER_GELU : QKV_POOLER_NONE)
               ? "its pooler is a GELU before a classifier"
               : NULL;
}

const qkv__family qkv__electra = { .type = "electra",
                                   .architectures = electra_architectures,
                                   .prefix = "electra.",
                                   .encoder = "electra.encoder.layer.#.",
                                   .layer = qkv__bert_layer,
                                   .others = electra_others,
                                   .ignored = electra_ignored,
                                   .keys = electra_keys,
                                   .fixed = fixed,
                                   .classifier = "classifier.out_proj.weight",
                                   .head = "generator_predictions.dense.weight",
                                   .options = { NARROW_OPTIONS, .dropout = 0.1f, .attention_dropout = 0.1f },
                                   .read = read_electra,
                                   .write = write_electra,
                                   .missing = not_electra };

/* ---- ALBERT ---- */

static const qkv__config_key albert_keys[] = { NARROW_KEYS(OPTIONAL) };
static const qkv__architecture albert_architectures[] = { QKV__ENCODER_ARCHITECTURES("Albert"),
                                                          { "AlbertForPreTraining", QKV__PART_HEAD },
                                                          { NULL, 0 } };
static const qkv__rename albert_layer[] = {
    { "self.q.", "attention.query.", 0, 0, 0 },
    { "self.k.", "attention.key.", 0, 0, 0 },
    { "self.v.", "attention.value.", 0, 0, 0 },
    { "self.out.", "attention.dense.", 0, 0, 0 },
    { "self_norm.", "attention.LayerNorm.", 0, 0, 0 },
    { "ffn.in.", "ffn.", 0, 0, 0 },
    { "ffn.out.", "ffn_output.", 0, 0, 0 },
    { "ffn_norm.", "full_layer_layer_norm.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const qkv__rename albert_others[] = {
    { "embed.", "albert.embeddings.word_embeddings.", 0, 0, 0 },
    { "token_types.", "albert.embeddings.token_type_embeddings.", 0, 0, 0 },
    { "encoder.positions.", "albert.embeddings.position_embeddings.", 0, 0, 0 },
    { "encoder.embed_norm.", "albert.embeddings.LayerNorm.", 0, 0, 0 },
    { "encoder.widen.", "albert.encoder.embedding_hidden_mapping_in.", 0, 0, 0 },
    { "pooler.", "albert.pooler.", 0, 0, 0 },
    { "classifier.", "classifier.", 0, 0, 0 },
    { "token_classifier.", "classifier.", 0, 0, 0 },
    { "span_classifier.", "qa_outputs.", 0, 0, 0 },
    { "head.norm.", "predictions.LayerNorm.", 0, 0, 0 },
    { "head.", "predictions.dense.", 0, 0, 0 },
    { "output.bias", "predictions.bias", 0, 0, 0 },
    { "output.bias", "predictions.decoder.bias", 0, 0, 0 },
    { "output.", "predictions.decoder.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const char *const albert_ignored[] = {
    "*embeddings.position_ids", "predictions.decoder.*", "predictions.bias", "sop_classifier.*", "*pooler.*", NULL
};

static qkv_status read_albert(const qkv__published *p, int parts, qkv_config *o)
{
    static const char *const ones[] = { "num_hidden_groups", "inner_group_num" };
    for (int i = 0; i < 2; i++) {
        const qkv__json_value *n = qkv__get(p, ones[i]);
        if (n && qkv__json_int(n) != 1) return qkv__unsupported(p, ones[i], "1");
    }
    qkv_status status = qkv__bert_read_parts(p, parts, o);
    if (qkv__classifies_texts(o)) o->pooler = QKV_POOLER_TANH;
    return status;
}

static void write_albert(const qkv_config *o, qkv__json_writer *w)
{
    qkv__bert_write_tied(o, w);
    qkv__json_put_int(w, "num_hidden_groups", 1);
    qkv__json_put_int(w, "inner_group_num", 1);
}

static const char *not_albert(const qkv_config *o)
{
    const char *problem = not_narrow(o);
    if (problem) return problem;
    if (!o->shared_layers) return "its layers share their weights (shared_layers)";
    if (!o->embed_dim) return "its tables have a width of their own (embed_dim)";
    return o->pooler != (qkv__classifies_texts(o) ? QKV_POOLER_TANH : QKV_POOLER_NONE)
               ? "its pooler is a tanh before a classifier"
               : NULL;
}

const qkv__family qkv__albert = { .type = "albert",
                                  .architectures = albert_architectures,
                                  .prefix = "albert.",
                                  .encoder = "albert.encoder.albert_layer_groups.0.albert_layers.0.",
                                  .layer = albert_layer,
                                  .others = albert_others,
                                  .ignored = albert_ignored,
                                  .keys = albert_keys,
                                  .fixed = fixed,
                                  .classifier = "classifier.weight",
                                  .head = "predictions.dense.weight",
                                  .options = { NARROW_OPTIONS, .activation = QKV_ACTIVATION_GELU_TANH, .shared_layers = 1 },
                                  .read = read_albert,
                                  .write = write_albert,
                                  .missing = not_albert };
