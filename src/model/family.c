/* family.c: what all published families share: their list, their names, the keys that have one answer. */
#include "family.h"

#include <stdio.h>
#include <string.h>

static const qkv__family *const families[] = {
    &qkv__marian,  &qkv__pegasus, &qkv__bart,       &qkv__mbart,       &qkv__m2m_100,   &qkv__t5,         &qkv__mt5,
    &qkv__umt5,    &qkv__bert,    &qkv__roberta,    &qkv__xlm_roberta, &qkv__camembert, &qkv__distilbert, &qkv__mpnet,
    &qkv__electra, &qkv__albert,  &qkv__modernbert, &qkv__gpt2,        &qkv__llama,     &qkv__mistral,    &qkv__qwen2,
    &qkv__qwen3,   &qkv__gemma,   &qkv__gemma2,     &qkv__gemma3_text, &qkv__phi3,      &qkv__opt,        &qkv__gpt_neox
};
enum { FAMILIES = sizeof families / sizeof *families };

const qkv__family *qkv__family_find(const char *type)
{
    for (int i = 0; i < FAMILIES; i++)
        if (!strcmp(families[i]->type, type)) return families[i];
    return NULL;
}

static const char *type_with(const char *architecture)
{
    for (int i = 0; i < FAMILIES; i++)
        for (const qkv__architecture *a = families[i]->architectures; a->name; a++)
            if (!strcmp(a->name, architecture)) return families[i]->type;
    return NULL;
}

const char *qkv__model_type(const qkv__json_value *config)
{
    const qkv__json_value *said = qkv__json_get(config, "model_type");
    const char *name = qkv__json_text(qkv__json_at(qkv__json_get(config, "architectures"), 0));
    return !said && name ? type_with(name) : qkv__json_text(said);
}

const char *qkv__family_names(void)
{
    return "marian, pegasus, bart, mbart, m2m_100, t5, mt5, umt5, bert, roberta, xlm-roberta, camembert, distilbert, mpnet, "
           "electra, "
           "albert, modernbert, gpt2, llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text, phi3, opt, gpt_neox "
           "and " QKV__OWN_TYPE;
}

/* ---- keys ---- */

const qkv__enum_name qkv__published_activations[] = {
    { "relu", QKV_ACTIVATION_RELU },           { "gelu", QKV_ACTIVATION_GELU },
    { "gelu_new", QKV_ACTIVATION_GELU_TANH },  { "gelu_pytorch_tanh", QKV_ACTIVATION_GELU_TANH },
    { "gelu_fast", QKV_ACTIVATION_GELU_TANH }, { "silu", QKV_ACTIVATION_SILU },
    { "swish", QKV_ACTIVATION_SILU },          { NULL, 0 }
};

const qkv__json_value *qkv__value(const qkv__published *p, const char *key)
{
    size_t i = qkv__json_find(p->config, key, strlen(key));
    if (p->is_read && i != SIZE_MAX) p->is_read[i] = true;
    return qkv__json_at(p->config, i);
}

const qkv__json_value *qkv__get(const qkv__published *p, const char *key)
{
    const qkv__json_value *value = qkv__value(p, key);
    return qkv__json_is_null(value) ? NULL : value;
}

bool qkv__is_true(const qkv__published *p, const char *key, bool missing)
{
    const qkv__json_value *value = qkv__get(p, key);
    return value ? qkv__json_is_true(value) : missing;
}

/* With the value, where it is short. */
qkv_status qkv__unsupported(const qkv__published *p, const char *key, const char *supported)
{
    const qkv__json_value *value = qkv__json_get(p->config, key);
    qkv__json_writer w = { 0 };
    if (value) qkv__json_put_value(&w, NULL, value);
    bool is_short = w.text && !w.status && w.length <= 60;
    qkv_status status = qkv__fail(QKV_UNSUPPORTED, "%s: key \"%s\"%s%s: only %s is supported", p->path, key,
                                  is_short ? " is " : "", is_short ? w.text : "", supported);
    qkv__json_writer_free(&w);
    return status;
}

qkv_status qkv__read_keys(const qkv__published *p, const qkv__config_key *keys, qkv_config *o)
{
    for (const qkv__config_key *k = keys; k->name; k++) qkv__value(p, k->name);
    return qkv__keys_read(p->path, keys, p->config, o);
}

static qkv_status check_fixed(const qkv__published *p, const qkv__fixed *f)
{
    for (; f->key; f++) {
        const qkv__json_value *value = qkv__get(p, f->key);
        const char *word = qkv__json_text(value);
        bool right = !value || (f->word ? word && !strcmp(word, f->word)
                                        : qkv__json_is_bool(value) && qkv__json_is_true(value) == f->flag);
        if (!right) return qkv__unsupported(p, f->key, f->word ? f->word : f->flag ? "true" : "false");
    }
    return QKV_OK;
}

qkv_status qkv__count_labels(const qkv__published *p, int64_t *n)
{
    const qkv__json_value *names = qkv__get(p, "id2label"), *count = qkv__get(p, "num_labels");
    *n = names ? (int64_t)qkv__json_size(names) : count ? qkv__json_int(count) : 2;
    if ((names && !qkv__json_is_object(names)) || *n < 1)
        return qkv__fail(QKV_FORMAT, "%s: key \"%s\": expected at least one class", p->path, names ? "id2label" : "num_labels");
    return QKV_OK;
}

bool qkv__classifies_texts(const qkv_config *o) { return o->classes && !o->classes_of; }

qkv_status qkv__read_classes(const qkv__published *p, int parts, qkv_config *o)
{
    if (parts & QKV__PART_SPANS) {
        o->classes = 2;
        o->classes_of = QKV_CLASSES_OF_SPANS;
    }
    if (!(parts & (QKV__PART_CLASSIFIER | QKV__PART_TOKENS))) return QKV_OK;
    if (parts & QKV__PART_TOKENS) o->classes_of = QKV_CLASSES_OF_TOKENS;
    return qkv__count_labels(p, &o->classes);
}

static const char *has_more(const qkv_config *o)
{
    if (o->window_size) return "its layers see the whole text, without windows";
    if (o->qk_norm) return "its queries and keys have no norms";
    if (o->post_norm) return "its sub-layers have no norms behind them";
    if (o->parallel) return "its sub-layers come one after the other";
    if (o->score_softcap > 0 || o->logit_softcap > 0) return "its scores and logits have no caps";
    if (o->attention_scale > 0) return "its scores are divided by sqrt(d_k)";
    if (o->rope_scaling == QKV_ROPE_LONG) return "its rotary frequencies have no divisors of their own (longrope)";
    return o->rope_width ? "all numbers of its queries and keys turn" : NULL;
}

const char *qkv__has_besides(const qkv_config *o)
{
    if (o->ngrams) return "its classifier has no naive Bayes (ngrams)";
    if (o->relative_buckets) return "its scores have no bias by distance";
    if (o->scaled_output) return "its output layer reads hidden states as they are";
    if (o->embed_dim) return "its tables are as wide as its layers";
    if (o->pooler == QKV_POOLER_GELU) return "its pooler is no GELU";
    return o->shared_layers ? "its layers have weights of their own" : has_more(o);
}

const char *qkv__leaves_out(const qkv_config *o)
{
    if (o->no_first_norm) return "its first layer has a norm before attention too";
    if (o->no_norm_bias && o->norm == QKV_NORM_LAYER) return "its norms have biases";
    if (o->no_head_bias && o->head) return "its head has a bias";
    return o->pooler == QKV_POOLER_HEAD ? "its classifier does not read its head" : qkv__has_besides(o);
}

bool qkv__heads_are_alike(const qkv_config *o)
{
    return (!o->kv_heads || o->kv_heads == o->heads) && (!o->d_k || o->d_k * o->heads == o->dim);
}

/* ---- reading ---- */

bool qkv__has_tensor(const qkv__published *p, const qkv__family *f, const char *name)
{
    size_t prefix = strlen(f->prefix);
    return qkv__weights_find(p->weights, name) ||
           (!strncmp(name, f->prefix, prefix) && qkv__weights_find(p->weights, name + prefix));
}

/* The parts that the architecture needs, and those that the file has besides. */
static qkv_status find_parts(const qkv__family *f, const qkv__published *p, int *parts)
{
    const qkv__json_value *list = qkv__get(p, "architectures");
    const char *name = qkv__json_text(qkv__json_at(list, 0));
    const qkv__architecture *a = f->architectures;
    if (list && !name && (!qkv__json_is_array(list) || qkv__json_size(list)))
        return qkv__fail(QKV_FORMAT, "%s: key \"architectures\": expected a list of names", p->path);
    while (name && a->name && strcmp(a->name, name)) a++;
    if (!a->name)
        return qkv__fail(QKV_UNSUPPORTED, "%s: unsupported architecture \"%.60s\": of %s models, %s and the like are supported",
                         p->path, name, f->type, f->architectures[0].name);
    *parts = name ? a->parts : 0;
    if (f->head && qkv__has_tensor(p, f, f->head)) *parts |= QKV__PART_HEAD;
    bool is_of_tokens = *parts & (QKV__PART_TOKENS | QKV__PART_SPANS); /* whose classifiers may have the same name */
    if (f->classifier && !is_of_tokens && qkv__has_tensor(p, f, f->classifier)) *parts |= QKV__PART_CLASSIFIER;
    return QKV_OK;
}

/* Keys that families look at as they need them. */
static qkv_status check_flags(const qkv__published *p)
{
    static const char *const flags[] = { "tie_word_embeddings", "scale_embedding", "share_encoder_decoder_embeddings",
                                         "attention_bias",      "mlp_bias",        "use_sliding_window",
                                         "do_sample",           "norm_bias",       "decoder_bias",
                                         "classifier_bias" };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const qkv__json_value *value = qkv__json_get(p->config, flags[i]); /* not read by this */
        if (value && !qkv__json_is_null(value) && !qkv__json_is_bool(value))
            return qkv__fail(QKV_FORMAT, "%s: key \"%s\": expected true or false", p->path, flags[i]);
    }
    return QKV_OK;
}

qkv_status qkv__family_read(const qkv__family *f, const qkv__published *p, qkv_config *o)
{
    int parts = 0;
    *o = f->options;
    o->size = sizeof *o;
    qkv__value(p, "model_type");
    qkv_status status = qkv__read_keys(p, f->keys, o);
    if (!status) status = check_fixed(p, f->fixed);
    if (!status) status = check_flags(p);
    if (!status) status = find_parts(f, p, &parts);
    return status ? status : f->read(p, parts, o);
}

/* ---- names ---- */

/* "encoder.3.self.q.weight" is in layer 3 of the encoder: *rest is then "self.q.weight". NULL for a name in no layer. */
static const char *layer_start(const qkv__family *f, const char *ours, int *number, const char **rest)
{
    int length = 0;
    const char *start = !strncmp(ours, "encoder.", 8) ? f->encoder : !strncmp(ours, "decoder.", 8) ? f->decoder : NULL;
    if (!start || sscanf(ours + 8, "%d.%n", number, &length) != 1 || !length) return NULL;
    *rest = ours + 8 + length;
    return start;
}

bool qkv__family_place(const qkv__family *f, const char *ours, int n, char theirs[QKV_NAME_MAX], qkv__rename *how)
{
    int number = 0;
    const char *rest = ours, *start = layer_start(f, ours, &number, &rest);
    bool has_own = start && start == f->decoder && f->decoder_layer;
    for (const qkv__rename *r = has_own ? f->decoder_layer : start ? f->layer : f->others; r->ours; r++) {
        size_t length = strlen(r->ours);
        if (strncmp(rest, r->ours, length) || n-- > 0) continue;
        const char *mark = start ? strchr(start, '#') : NULL;
        int written = mark ? snprintf(theirs, QKV_NAME_MAX, "%.*s%d%s%s%s", (int)(mark - start), start, number, mark + 1,
                                      r->theirs, rest + length)
                           : snprintf(theirs, QKV_NAME_MAX, "%s%s%s", start ? start : "", r->theirs, rest + length);
        *how = *r;
        return written < QKV_NAME_MAX;
    }
    return false;
}

static bool fits(const char *pattern, const char *name)
{
    size_t length = strlen(pattern), n = strlen(name);
    bool open_start = *pattern == '*', open_end = length > 1 && pattern[length - 1] == '*';
    pattern += open_start;
    length -= (size_t)open_start + (size_t)open_end;
    for (size_t at = 0; at + length <= n && (open_start || at == 0); at++)
        if (!strncmp(name + at, pattern, length) && (open_end || at + length == n)) return true;
    return false;
}

bool qkv__family_ignores(const qkv__family *f, const char *theirs)
{
    for (const char *const *pattern = f->ignored; *pattern; pattern++)
        if (fits(*pattern, theirs)) return true;
    return false;
}
