/* family_bert.c: BERT, RoBERTa, XLM-RoBERTa, CamemBERT and DistilBERT: encoders with learned positions, a norm after each
 * sub-layer. */
#include "family.h"

#define BERT_OPTIONS                                                                                                         \
    {                                                                                                                        \
        .positions = QKV_POSITION_LEARNED, .unscaled = 1, .embed_norm = 1, .norm_eps = 1e-12f, .pooling = QKV_POOLING_FIRST, \
        .dropout = 0.1f, .attention_dropout = 0.1f                                                                           \
    }

static const qkv__config_key bert_keys[] = {
    QKV__KEY("vocab_size", vocab_size, NEEDED),
    QKV__KEY("hidden_size", dim, NEEDED),
    QKV__KEY("num_hidden_layers", encoder_layers, NEEDED),
    QKV__KEY("num_attention_heads", heads, NEEDED),
    QKV__KEY("intermediate_size", d_ff, NEEDED),
    QKV__KEY("max_position_embeddings", max_positions, NEEDED),
    QKV__KEY("type_vocab_size", token_types, NEEDED),
    QKV__WORD_KEY("hidden_act", activation, NEEDED, qkv__published_activations),
    QKV__KEY("layer_norm_eps", norm_eps, OPTIONAL),
    QKV__KEY("hidden_dropout_prob", dropout, OPTIONAL),
    QKV__KEY("attention_probs_dropout_prob", attention_dropout, OPTIONAL),
    { NULL, 0, 0, NULL, false },
};
static const qkv__fixed bert_fixed[] = { { "position_embedding_type", 0, "absolute" },
                                         { "is_decoder", 0, NULL },
                                         { "add_cross_attention", 0, NULL },
                                         { NULL, 0, NULL } };

const qkv__rename qkv__bert_layer[] = {
    { "self.q.", "attention.self.query.", 0, 0, 0 },
    { "self.k.", "attention.self.key.", 0, 0, 0 },
    { "self.v.", "attention.self.value.", 0, 0, 0 },
    { "self.out.", "attention.output.dense.", 0, 0, 0 },
    { "self_norm.", "attention.output.LayerNorm.", 0, 0, 0 },
    { "ffn.in.", "intermediate.dense.", 0, 0, 0 },
    { "ffn.out.", "output.dense.", 0, 0, 0 },
    { "ffn_norm.", "output.LayerNorm.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};

/* A head fills in words; a classifier has classes. */
qkv_status qkv__bert_read_parts(const qkv__published *p, int parts, qkv_config *o)
{
    o->head = o->output_bias = (parts & QKV__PART_HEAD) != 0;
    o->untied = o->head && !qkv__is_true(p, "tie_word_embeddings", true);
    return qkv__read_classes(p, parts, o);
}

void qkv__bert_write_tied(const qkv_config *o, qkv__json_writer *w)
{
    qkv__json_put_bool(w, "tie_word_embeddings", !o->untied);
}

/* ---- BERT ---- */

static const qkv__architecture bert_architectures[] = { QKV__ENCODER_ARCHITECTURES("Bert"),
                                                        { "BertForPreTraining", QKV__PART_HEAD },
                                                        { NULL, 0 } };
static const qkv__rename bert_others[] = {
    { "embed.", "bert.embeddings.word_embeddings.", 0, 0, 0 },
    { "token_types.", "bert.embeddings.token_type_embeddings.", 0, 0, 0 },
    { "encoder.positions.", "bert.embeddings.position_embeddings.", 0, 0, 0 },
    { "encoder.embed_norm.", "bert.embeddings.LayerNorm.", 0, 0, 0 },
    { "pooler.", "bert.pooler.dense.", 0, 0, 0 },
    { "classifier.", "classifier.", 0, 0, 0 },
    { "token_classifier.", "classifier.", 0, 0, 0 },
    { "span_classifier.", "qa_outputs.", 0, 0, 0 },
    { "head.norm.", "cls.predictions.transform.LayerNorm.", 0, 0, 0 },
    { "head.", "cls.predictions.transform.dense.", 0, 0, 0 },
    { "output.bias", "cls.predictions.bias", 0, 0, 0 },
    { "output.bias", "cls.predictions.decoder.bias", 0, 0, 0 },
    { "output.", "cls.predictions.decoder.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const char *const bert_ignored[] = { "*embeddings.position_ids",  "*embeddings.token_type_ids",
                                            "cls.predictions.decoder.*", "cls.predictions.bias",
                                            "cls.seq_relationship.*",    NULL };

static qkv_status read_bert(const qkv__published *p, int parts, qkv_config *o)
{
    qkv_status status = qkv__bert_read_parts(p, parts, o);
    if (qkv__classifies_texts(o) || qkv__has_tensor(p, &qkv__bert, "bert.pooler.dense.weight")) o->pooler = QKV_POOLER_TANH;
    return status;
}

/* What stands in the way of every encoder of this kind. */
const char *qkv__not_bert(const qkv_config *o)
{
    if (!o->encoder_layers || o->decoder_layers) return "it has an encoder alone";
    if (o->positions != QKV_POSITION_LEARNED) return "its positions are learned";
    if (o->pre_norm) return "its norms come after each sub-layer";
    if (o->norm != QKV_NORM_LAYER) return "its norms are layer norms";
    if (!o->embed_norm) return "it has a norm after the embeddings (embed_norm)";
    if (!o->unscaled) return "its embeddings are not scaled";
    if (o->no_bias) return "its layers have biases";
    if (qkv__is_gated(o->activation)) return "its feed-forward layers have no gate";
    if (!qkv__heads_are_alike(o)) return "its heads are alike";
    if (o->head != o->output_bias) return "its head and its output's bias come together";
    if (o->untied && !o->head) return "its output layer is the embedding";
    if (o->classes && o->pooling != QKV_POOLING_FIRST) return "its classifier reads the first token";
    return qkv__leaves_out(o);
}

static const char *not_quite_bert(const qkv_config *o)
{
    const char *problem = qkv__not_bert(o);
    if (problem) return problem;
    if (o->first_position) return "its first position is 0";
    if (!o->token_types) return "its tokens have types";
    if (o->pooler == QKV_POOLER_RELU || (qkv__classifies_texts(o) && !o->pooler)) return "its pooler is a tanh";
    return NULL;
}

const qkv__family qkv__bert = { .type = "bert",
                                .architectures = bert_architectures,
                                .prefix = "bert.",
                                .encoder = "bert.encoder.layer.#.",
                                .layer = qkv__bert_layer,
                                .others = bert_others,
                                .ignored = bert_ignored,
                                .keys = bert_keys,
                                .fixed = bert_fixed,
                                .classifier = "classifier.weight",
                                .head = "cls.predictions.transform.dense.weight",
                                .options = BERT_OPTIONS,
                                .read = read_bert,
                                .write = qkv__bert_write_tied,
                                .missing = not_quite_bert };

/* ---- RoBERTa: positions begin after the padding's, the pooler belongs to the classifier ---- */

static const qkv__architecture roberta_architectures[] = { QKV__ENCODER_ARCHITECTURES("Roberta"), { NULL, 0 } };
static const qkv__architecture xlm_roberta_architectures[] = { QKV__ENCODER_ARCHITECTURES("XLMRoberta"), { NULL, 0 } };
static const qkv__architecture camembert_architectures[] = { QKV__ENCODER_ARCHITECTURES("Camembert"), { NULL, 0 } };
static const qkv__rename roberta_others[] = {
    { "embed.", "roberta.embeddings.word_embeddings.", 0, 0, 0 },
    { "token_types.", "roberta.embeddings.token_type_embeddings.", 0, 0, 0 },
    { "encoder.positions.", "roberta.embeddings.position_embeddings.", 0, 0, 0 },
    { "encoder.embed_norm.", "roberta.embeddings.LayerNorm.", 0, 0, 0 },
    { "pooler.", "classifier.dense.", 0, 0, 0 },
    { "pooler.", "roberta.pooler.dense.", 0, 0, 0 },
    { "classifier.", "classifier.out_proj.", 0, 0, 0 },
    { "token_classifier.", "classifier.", 0, 0, 0 },
    { "span_classifier.", "qa_outputs.", 0, 0, 0 },
    { "head.norm.", "lm_head.layer_norm.", 0, 0, 0 },
    { "head.", "lm_head.dense.", 0, 0, 0 },
    { "output.bias", "lm_head.bias", 0, 0, 0 },
    { "output.bias", "lm_head.decoder.bias", 0, 0, 0 },
    { "output.", "lm_head.decoder.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const char *const roberta_ignored[] = { "*embeddings.position_ids", "*embeddings.token_type_ids",
                                               "lm_head.decoder.*",        "lm_head.bias",
                                               "*pooler.dense.*",          NULL };

qkv_status qkv__bert_skip_padding(const qkv__published *p, qkv_config *o)
{
    const qkv__json_value *pad = qkv__get(p, "pad_token_id");
    int64_t padding = pad ? qkv__json_int(pad) : 1;
    if (padding < 0 || padding >= o->max_positions)
        return qkv__fail(QKV_FORMAT, "%s: key \"pad_token_id\": it is no position", p->path);
    o->first_position = padding + 1;
    o->max_positions -= o->first_position;
    return QKV_OK;
}

static qkv_status read_roberta(const qkv__published *p, int parts, qkv_config *o)
{
    qkv_status status = qkv__bert_skip_padding(p, o);
    if (!status) status = qkv__bert_read_parts(p, parts, o);
    if (!status && o->head && o->activation != QKV_ACTIVATION_GELU) status = qkv__unsupported(p, "hidden_act", "gelu");
    if (qkv__classifies_texts(o) || qkv__has_tensor(p, &qkv__roberta, "roberta.pooler.dense.weight"))
        o->pooler = QKV_POOLER_TANH;
    return status;
}

void qkv__bert_write_skipped(const qkv_config *o, qkv__json_writer *w)
{
    qkv__bert_write_tied(o, w);
    qkv__json_put_int(w, "pad_token_id", o->first_position - 1);
    qkv__json_put_int(w, "max_position_embeddings", o->max_positions + o->first_position);
}

static const char *not_roberta(const qkv_config *o)
{
    const char *problem = qkv__not_bert(o);
    if (problem) return problem;
    if (!o->first_position) return "its first position comes after the padding's";
    if (!o->token_types) return "its tokens have types";
    if (o->head && o->activation != QKV_ACTIVATION_GELU) return "its activation is gelu";
    if (o->pooler == QKV_POOLER_RELU || (qkv__classifies_texts(o) && !o->pooler)) return "its pooler is a tanh";
    return NULL;
}

#define ROBERTA(name, list)                                                                                     \
    {                                                                                                           \
        .type = name, .architectures = list, .prefix = "roberta.", .encoder = "roberta.encoder.layer.#.",       \
        .layer = qkv__bert_layer, .others = roberta_others, .ignored = roberta_ignored, .keys = bert_keys,      \
        .fixed = bert_fixed, .classifier = "classifier.out_proj.weight", .head = "lm_head.dense.weight",        \
        .options = BERT_OPTIONS, .read = read_roberta, .write = qkv__bert_write_skipped, .missing = not_roberta \
    }
const qkv__family qkv__roberta = ROBERTA("roberta", roberta_architectures);
const qkv__family qkv__xlm_roberta = ROBERTA("xlm-roberta", xlm_roberta_architectures);
const qkv__family qkv__camembert = ROBERTA("camembert", camembert_architectures);

/* ---- DistilBERT: no token types, a pooler of ReLU ---- */

static const qkv__config_key distilbert_keys[] = {
    QKV__KEY("vocab_size", vocab_size, NEEDED),
    QKV__KEY("dim", dim, NEEDED),
    QKV__KEY("n_layers", encoder_layers, NEEDED),
    QKV__KEY("n_heads", heads, NEEDED),
    QKV__KEY("hidden_dim", d_ff, NEEDED),
    QKV__KEY("max_position_embeddings", max_positions, NEEDED),
    QKV__WORD_KEY("activation", activation, NEEDED, qkv__published_activations),
    QKV__KEY("dropout", dropout, OPTIONAL),
    QKV__KEY("attention_dropout", attention_dropout, OPTIONAL),
    { NULL, 0, 0, NULL, false },
};
static const qkv__fixed distilbert_fixed[] = { { NULL, 0, NULL } };
static const qkv__architecture distilbert_architectures[] = { QKV__ENCODER_ARCHITECTURES("DistilBert"), { NULL, 0 } };
static const qkv__rename distilbert_layer[] = {
    { "self.q.", "attention.q_lin.", 0, 0, 0 },
    { "self.k.", "attention.k_lin.", 0, 0, 0 },
    { "self.v.", "attention.v_lin.", 0, 0, 0 },
    { "self.out.", "attention.out_lin.", 0, 0, 0 },
    { "self_norm.", "sa_layer_norm.", 0, 0, 0 },
    { "ffn.in.", "ffn.lin1.", 0, 0, 0 },
    { "ffn.out.", "ffn.lin2.", 0, 0, 0 },
    { "ffn_norm.", "output_layer_norm.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const qkv__rename distilbert_others[] = {
    { "embed.", "distilbert.embeddings.word_embeddings.", 0, 0, 0 },
    { "encoder.positions.", "distilbert.embeddings.position_embeddings.", 0, 0, 0 },
    { "encoder.embed_norm.", "distilbert.embeddings.LayerNorm.", 0, 0, 0 },
    { "pooler.", "pre_classifier.", 0, 0, 0 },
    { "classifier.", "classifier.", 0, 0, 0 },
    { "token_classifier.", "classifier.", 0, 0, 0 },
    { "span_classifier.", "qa_outputs.", 0, 0, 0 },
    { "head.norm.", "vocab_layer_norm.", 0, 0, 0 },
    { "head.", "vocab_transform.", 0, 0, 0 },
    { "output.", "vocab_projector.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const char *const distilbert_ignored[] = { "*embeddings.position_ids", "vocab_projector.weight", NULL };

static qkv_status read_distilbert(const qkv__published *p, int parts, qkv_config *o)
{
    if (parts & QKV__PART_CLASSIFIER) o->pooler = QKV_POOLER_RELU;
    return qkv__bert_read_parts(p, parts, o);
}

static const char *not_distilbert(const qkv_config *o)
{
    const char *problem = qkv__not_bert(o);
    if (problem) return problem;
    if (o->first_position) return "its first position is 0";
    if (o->token_types) return "its tokens have no types";
    if (o->norm_eps != 1e-12f) return "the eps of its norms is 1e-12";
    if (o->pooler == QKV_POOLER_TANH || qkv__classifies_texts(o) != (o->pooler != QKV_POOLER_NONE))
        return "its pooler is a ReLU before a classifier";
    return NULL;
}

const qkv__family qkv__distilbert = { .type = "distilbert",
                                      .architectures = distilbert_architectures,
                                      .prefix = "distilbert.",
                                      .encoder = "distilbert.transformer.layer.#.",
                                      .layer = distilbert_layer,
                                      .others = distilbert_others,
                                      .ignored = distilbert_ignored,
                                      .keys = distilbert_keys,
                                      .fixed = distilbert_fixed,
                                      .classifier = "classifier.weight",
                                      .head = "vocab_transform.weight",
                                      .options = BERT_OPTIONS,
                                      .read = read_distilbert,
                                      .write = qkv__bert_write_tied,
                                      .missing = not_distilbert };
