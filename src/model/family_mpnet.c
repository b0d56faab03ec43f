/* family_mpnet.c: MPNet: RoBERTa without token types, and with a bias by distance that all layers share. */
#include "family.h"

static const qkv__config_key keys[] = {
    QKV__KEY("vocab_size", vocab_size, NEEDED),
    QKV__KEY("hidden_size", dim, NEEDED),
    QKV__KEY("num_hidden_layers", encoder_layers, NEEDED),
    QKV__KEY("num_attention_heads", heads, NEEDED),
    QKV__KEY("intermediate_size", d_ff, NEEDED),
    QKV__KEY("max_position_embeddings", max_positions, NEEDED),
    QKV__KEY("relative_attention_num_buckets", relative_buckets, OPTIONAL),
    QKV__WORD_KEY("hidden_act", activation, NEEDED, qkv__published_activations),
    QKV__KEY("layer_norm_eps", norm_eps, OPTIONAL),
    QKV__KEY("hidden_dropout_prob", dropout, OPTIONAL),
    QKV__KEY("attention_probs_dropout_prob", attention_dropout, OPTIONAL),
    { NULL, 0, 0, NULL, false },
};
static const qkv__fixed fixed[] = { { NULL, 0, NULL } };
static const qkv__architecture architectures[] = { QKV__ENCODER_ARCHITECTURES("MPNet"), { NULL, 0 } };
static const qkv__rename layer[] = {
    { "self.q.", "attention.attn.q.", 0, 0, 0 },
    { "self.k.", "attention.attn.k.", 0, 0, 0 },
    { "self.v.", "attention.attn.v.", 0, 0, 0 },
    { "self.out.", "attention.attn.o.", 0, 0, 0 },
    { "self_norm.", "attention.LayerNorm.", 0, 0, 0 },
    { "ffn.in.", "intermediate.dense.", 0, 0, 0 },
    { "ffn.out.", "output.dense.", 0, 0, 0 },
    { "ffn_norm.", "output.LayerNorm.", 0, 0, 0 },
    { NULL, NULL, 0, 0, 0 },
};
static const qkv__rename others[] = {
    { "embed.", "mpnet.embeddings.word_embeddings.", 0, 0, 0 },
    { "encoder.positions.", "mpnet.embeddings.position_embeddings.", 0, 0, 0 },
    { "encoder.embed_norm.", "mpnet.embeddings.LayerNorm.", 0, 0, 0 },
    { "encoder.relative_positions.", "mpnet.encoder.relative_attention_bias.", 0, 0, 0 },
    { "pooler.", "classifier.dense.", 0, 0, 0 },
    { "pooler.", "mpnet.pooler.dense.", 0, 0, 0 },
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
static const char *const ignored[] = { "*embeddings.position_ids", "lm_head.decoder.*", "lm_head.bias", "*pooler.dense.*",
                                       NULL };

static qkv_status read_mpnet(const qkv__published *p, int parts, qkv_config *o)
{
    qkv_status status = qkv__bert_skip_padding(p, o);
    if (!status) status = qkv__bert_read_parts(p, parts, o);
    if (!status && o->head && o->activation != QKV_ACTIVATION_GELU) status = qkv__unsupported(p, "hidden_act", "gelu");
    if (qkv__classifies_texts(o) || qkv__has_tensor(p, &qkv__mpnet, "mpnet.pooler.dense.weight")) o->pooler = QKV_POOLER_TANH;
    return status;
}

static const char *not_mpnet(const qkv_config *o)
{
    qkv_config plain = *o;
    plain.relative_buckets = 0;
    const char *problem = qkv__not_bert(&plain);
    if (problem) return problem;
    if (!o->relative_buckets || (o->relative_max_distance && o->relative_max_distance != 128))
        return "its scores have a bias by distance, up to 128";
    if (!o->first_position) return "its first position comes after the padding's";
    if (o->token_types) return "its tokens have no types";
    if (o->head && o->activation != QKV_ACTIVATION_GELU) return "its activation is gelu";
    return (o->pooler && o->pooler != QKV_POOLER_TANH) || (qkv__classifies_texts(o) && !o->pooler) ? "its pooler is a tanh"
                                                                                                   : NULL;
}

const qkv__family qkv__mpnet = { .type = "mpnet",
                                 .architectures = architectures,
                                 .prefix = "mpnet.",
                                 .encoder = "mpnet.encoder.layer.#.",
                                 .layer = layer,
                                 .others = others,
                                 .ignored = ignored,
                                 .keys = keys,
                                 .fixed = fixed,
                                 .classifier = "classifier.out_proj.weight",
                                 .head = "lm_head.dense.weight",
                                 .options = { .positions = QKV_POSITION_LEARNED,
                                              .unscaled = 1,
                                              .embed_norm = 1,
                                              .norm_eps = 1e-12f,
                                              .relative_buckets = 32,
                                              .pooling = QKV_POOLING_FIRST,
                                              .dropout = 0.1f,
                                              .attention_dropout = 0.1f },
                                 .read = read_mpnet,
                                 .write = qkv__bert_write_skipped,
                                 .missing = not_mpnet };
