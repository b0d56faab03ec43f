/* family_modernbert.c: ModernBERT: an encoder with rotary positions, norms before each sub-layer but the first, a gate. Most of
 * its layers see a window to both sides, and have a rotary base of their own. */
#include "family.h"

#include <limits.h>
#include <string.h>

static const qkv__enum_name gated_activations[] = {
    { "gelu", QKV_ACTIVATION_GEGLU }, { "silu", QKV_ACTIVATION_SWIGLU }, { "swish", QKV_ACTIVATION_SWIGLU }, { NULL, 0 }
};
static const qkv__config_key keys[] = {
    QKV__KEY("vocab_size", vocab_size, NEEDED),
    QKV__KEY("hidden_size", dim, NEEDED),
    QKV__KEY("num_hidden_layers", encoder_layers, NEEDED),
    QKV__KEY("num_attention_heads", heads, NEEDED),
    QKV__KEY("intermediate_size", d_ff, NEEDED),
    QKV__WORD_KEY("hidden_activation", activation, OPTIONAL, gated_activations),
    QKV__KEY("norm_eps", norm_eps, OPTIONAL),
    QKV__KEY("global_rope_theta", rope_base, OPTIONAL),
    QKV__KEY("local_rope_theta", window_rope_base, OPTIONAL),
    QKV__KEY("embedding_dropout", dropout, OPTIONAL),
    QKV__KEY("attention_dropout", attention_dropout, OPTIONAL),
    QKV__KEY("mlp_dropout", ffn_dropout, OPTIONAL),
    { NULL, 0, 0, NULL, false },
};
static const qkv__config_key global_key[] = { QKV__KEY("rope_theta", rope_base, OPTIONAL), { NULL, 0, 0, NULL, false } };
static const qkv__config_key local_key[] = { QKV__KEY("rope_theta", window_rope_base, OPTIONAL), { NULL, 0, 0, NULL, false } };
static const qkv__fixed fixed[] = { { NULL, 0, NULL } };
static const qkv__architecture architectures[] = { QKV__ENCODER_ARCHITECTURES("ModernBert"), { NULL, 0 } };

static const qkv__rename layer[] = {
    { "self.q.", "attn.Wqkv.", 0, 0, 3 },    { "self.k.", "attn.Wqkv.", 0, 1, 3 },
    { "self.v.", "attn.Wqkv.", 0, 2, 3 },    { "self.out.", "attn.Wo.", 0, 0, 0 },
    { "self_norm.", "attn_norm.", 0, 0, 0 }, { "ffn.gate.", "mlp.Wi.", 0, 0, 2 },
    { "ffn.in.", "mlp.Wi.", 0, 1, 2 },       { "ffn.out.", "mlp.Wo.", 0, 0, 0 },
    { "ffn_norm.", "mlp_norm.", 0, 0, 0 },   { NULL, NULL, 0, 0, 0 },
};
static const qkv__rename others[] = {
    { "embed.", "model.embeddings.tok_embeddings.", 0, 0, 0 },
    { "encoder.embed_norm.", "model.embeddings.norm.", 0, 0, 0 },
    { "encoder.norm.", "model.final_norm.", 0, 0, 0 },
    { "head.norm.", "head.norm.", 0, 0, 0 },
    { "head.", "head.dense.", 0, 0, 0 },
    { "classifier.", "classifier.", 0, 0, 0 },
    { "token_classifier.", "classifier.", 0, 0, 0 },
    { "span_classifier.", "classifier.", 0, 0, 0 },
    { "output.", "decoder.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const char *const ignored[] = { "decoder.weight", NULL };

/* ---- reading ---- */

static qkv_status read_whole_key(const qkv__published *p, const char *key, int64_t missing, int64_t *out)
{
    const qkv__json_value *value = qkv__get(p, key);
    *out = value ? qkv__json_int(value) : missing;
    if (*out >= 1 && *out <= INT_MAX) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: key \"%s\": expected a whole number, at least 1", p->path, key);
}

/* Newer files have the base of each kind of layers in an object of "rope_parameters". */
static qkv_status read_theta(const qkv__published *p, const char *kind, const qkv__config_key *key, qkv_config *o)
{
    const qkv__json_value *all = qkv__get(p, "rope_parameters"), *own = qkv__json_get(all, kind);
    const char *type = qkv__json_get_text(own, "rope_type");
    if (qkv__get(p, "rope_scaling") || (type && strcmp(type, "default")))
        return qkv__unsupported(p, all ? "rope_parameters" : "rope_scaling", "the type default");
    if (all && !qkv__json_is_object(all))
        return qkv__fail(QKV_FORMAT, "%s: key \"rope_parameters\": expected an object", p->path);
    return qkv__json_is_object(own) ? qkv__keys_read(p->path, key, own, o) : QKV_OK;
}

/* A window of half of "local_attention" to either side, and the token itself, in all layers but every so many-th from the first
 * on, or as "layer_types" says. */
static qkv_status read_windows(const qkv__published *p, qkv_config *o)
{
    int64_t every, local;
    qkv_status status = read_whole_key(p, "global_attn_every_n_layers", 3, &every);
    if (!status) status = read_whole_key(p, "local_attention", 128, &local);
    if (!status) status = read_theta(p, "sliding_attention", local_key, o);
    if (status) return status;
    o->window_size = local / 2 + 1;
    o->global_every = (int)every;
    status = qkv__read_layer_types(p, o);
    bool has_local = false;
    for (int i = 0; i < o->encoder_layers; i++) has_local = has_local || qkv__has_window(o, i);
    if (!has_local) o->window_size = o->global_every = 0, o->window_rope_base = 0;
    return status;
}

/* The head stands before the words and before the classes. */
static qkv_status read_parts(const qkv__published *p, int parts, qkv_config *o)
{
    const char *pooling = qkv__json_text(qkv__get(p, "classifier_pooling"));
    const char *inner = qkv__json_text(qkv__get(p, "hidden_activation"));
    const char *own = qkv__json_text(qkv__get(p, "classifier_activation"));
    o->head = parts != 0;
    o->no_head_bias = o->head && !qkv__is_true(p, "classifier_bias", false);
    o->output_bias = (parts & QKV__PART_HEAD) && qkv__is_true(p, "decoder_bias", true);
    o->untied = (parts & QKV__PART_HEAD) && !qkv__is_true(p, "tie_word_embeddings", true);
    if (o->head && strcmp(own ? own : "gelu", inner ? inner : "gelu"))
        return qkv__unsupported(p, "classifier_activation", "the value of hidden_activation");
    if (!(parts & ~QKV__PART_HEAD)) return QKV_OK;
    o->pooler = QKV_POOLER_HEAD;
    o->pooling = pooling && !strcmp(pooling, "mean") ? QKV_POOLING_MEAN : QKV_POOLING_FIRST;
    if (pooling && strcmp(pooling, "mean") && strcmp(pooling, "cls"))
        return qkv__unsupported(p, "classifier_pooling", "cls or mean");
    return qkv__read_classes(p, parts, o);
}

static qkv_status read_modernbert(const qkv__published *p, int parts, qkv_config *o)
{
    bool attention = qkv__is_true(p, "attention_bias", false), inner = qkv__is_true(p, "mlp_bias", false);
    if (attention != inner) return qkv__unsupported(p, "attention_bias", "the value of mlp_bias");
    o->no_bias = !inner;
    o->no_norm_bias = !qkv__is_true(p, "norm_bias", false);
    qkv_status status = read_parts(p, parts, o);
    if (!status) status = read_theta(p, "full_attention", global_key, o);
    return status ? status : read_windows(p, o);
}

/* ---- writing ---- */

/* Other programs have ids of their own where config.json says nothing. */
static void put_ids(qkv__json_writer *w)
{
    static const char *const ids[][2] = { { "pad_token_id", "pad_token_id" },
                                          { "cls_token_id", "bos_token_id" },
                                          { "sep_token_id", "eos_token_id" },
                                          { "classifier_activation", "hidden_activation" } };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) qkv__json_put_copy(w, ids[i][0], ids[i][1]);
}

static void put_windows(const qkv_config *o, qkv__json_writer *w)
{
    float base = o->window_rope_base == 0 ? o->rope_base : o->window_rope_base;
    int64_t local = o->window_size > 1 ? 2 * (o->window_size - 1) : 1;
    if (!o->window_size) local = 128;
    qkv__json_put_real(w, "local_rope_theta", (double)base, QKV__JSON_FLOAT);
    qkv__json_put_int(w, "local_attention", local);
    if (!o->window_size || (o->global_every && !o->global_at && !o->window_from_layer))
        qkv__json_put_int(w, "global_attn_every_n_layers", o->window_size ? o->global_every : 1);
    if (o->window_size) qkv__write_layer_types(o, w);
}

static void write_modernbert(const qkv_config *o, qkv__json_writer *w)
{
    qkv__json_put_bool(w, "norm_bias", !o->no_norm_bias);
    qkv__json_put_bool(w, "attention_bias", !o->no_bias);
    qkv__json_put_bool(w, "mlp_bias", !o->no_bias);
    qkv__json_put_bool(w, "decoder_bias", o->output_bias);
    qkv__json_put_bool(w, "classifier_bias", o->head && !o->no_head_bias);
    qkv__json_put_bool(w, "tie_word_embeddings", !o->untied);
    qkv__json_put_text(w, "classifier_pooling", o->pooling == QKV_POOLING_MEAN ? "mean" : "cls");
    qkv__json_put_real(w, "classifier_dropout", (double)o->dropout, QKV__JSON_FLOAT);
    put_ids(w);
    put_windows(o, w);
}

static const char *not_modernbert(const qkv_config *o)
{
    qkv_config plain = *o;
    if (!o->encoder_layers || o->decoder_layers) return "it has an encoder alone";
    if (o->positions != QKV_POSITION_ROPE || o->rope_factor != 0) return "its positions are rotary, and not scaled";
    if (!o->pre_norm || !o->no_first_norm) return "its norms come before each sub-layer but the first (no_first_norm)";
    if (o->norm != QKV_NORM_LAYER) return "its norms are layer norms";
    if (!o->embed_norm) return "it has a norm after the embeddings (embed_norm)";
    if (!o->unscaled) return "its embeddings are not scaled";
    if (!qkv__is_gated(o->activation)) return "its feed-forward layers have a gate";
    if (!qkv__heads_are_alike(o)) return "its heads are alike";
    plain.window_size = 0;
    if (qkv__has_besides(&plain)) return qkv__has_besides(&plain);
    if (o->qkv_bias && o->no_bias) return "its queries, keys and values have no bias of their own";
    if (o->token_types) return "its tokens have no types";
    if ((o->untied || o->output_bias) && !o->head) return "its output layer comes with a head";
    if (!o->classes) return o->pooler ? "it has no pooler without a classifier" : NULL;
    if (o->pooler != QKV_POOLER_HEAD) return "its classifier reads its head (pooler)";
    return o->pooling == QKV_POOLING_MEAN || o->pooling == QKV_POOLING_FIRST
               ? NULL
               : "its classifier reads the mean or the first token";
}

const qkv__family qkv__modernbert = { .type = "modernbert",
                                      .architectures = architectures,
                                      .prefix = "model.",
                                      .encoder = "model.layers.#.",
                                      .layer = layer,
                                      .others = others,
                                      .ignored = ignored,
                                      .keys = keys,
                                      .fixed = fixed,
                                      .classifier = "classifier.weight",
                                      .head = "decoder.bias",
                                      .options = { .positions = QKV_POSITION_ROPE,
                                                   .rope_base = 160000,
                                                   .window_rope_base = 10000,
                                                   .pre_norm = 1,
                                                   .no_first_norm = 1,
                                                   .norm_eps = 1e-5f,
                                                   .embed_norm = 1,
                                                   .unscaled = 1,
                                                   .activation = QKV_ACTIVATION_GEGLU },
                                      .read = read_modernbert,
                                      .write = write_modernbert,
                                      .missing = not_modernbert };
