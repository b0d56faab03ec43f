/* config.c: a model's options as keys of config.json. One table says how each option of ours is written and read. */
#include "config.h"

#include "../io/json.h"

#include <math.h>
#include <string.h>

static const qkv__enum_name norm_words[] = { { "layer_norm", QKV_NORM_LAYER }, { "rms_norm", QKV_NORM_RMS }, { NULL, 0 } };
static const qkv__enum_name activation_words[] = { { "relu", QKV_ACTIVATION_RELU },
                                                   { "gelu", QKV_ACTIVATION_GELU },
                                                   { "gelu_tanh", QKV_ACTIVATION_GELU_TANH },
                                                   { "silu", QKV_ACTIVATION_SILU },
                                                   { "silu_gated", QKV_ACTIVATION_SILU_GATED },
                                                   { NULL, 0 } };
static const qkv__enum_name pooling_words[] = { { "mean", QKV_POOLING_MEAN },
                                                { "first", QKV_POOLING_FIRST },
                                                { "last", QKV_POOLING_LAST },
                                                { "attention", QKV_POOLING_ATTENTION },
                                                { NULL, 0 } };
static const qkv__enum_name pooler_words[] = {
    { "none", QKV_POOLER_NONE }, { "tanh", QKV_POOLER_TANH }, { "relu", QKV_POOLER_RELU }, { NULL, 0 }
};
static const qkv__enum_name position_words[] = {
    { "sinusoid", QKV_POSITION_SINUSOID }, { "sinusoid_halves", QKV_POSITION_SINUSOID_HALVES },
    { "learned", QKV_POSITION_LEARNED },   { "rotary", QKV_POSITION_ROTARY },
    { "none", QKV_POSITION_NONE },         { NULL, 0 }
};

/* The optional ones are newer than some models, which without them are what they were. */
static const qkv__config_key keys[] = {
    { "vocabulary", QKV__COUNT, QKV__AT(vocabulary), NULL, false },
    { "target_vocabulary", QKV__COUNT, QKV__AT(target_vocabulary), NULL, false },
    { "encoder_layers", QKV__INT, QKV__AT(encoder_layers), NULL, false },
    { "decoder_layers", QKV__INT, QKV__AT(decoder_layers), NULL, false },
    { "dim", QKV__COUNT, QKV__AT(dim), NULL, false },
    { "heads", QKV__COUNT, QKV__AT(heads), NULL, false },
    { "inner", QKV__COUNT, QKV__AT(d_ff), NULL, false },
    { "kv_heads", QKV__COUNT, QKV__AT(kv_heads), NULL, false },
    { "d_k", QKV__COUNT, QKV__AT(d_k), NULL, false },
    { "pre_norm", QKV__FLAG, QKV__AT(pre_norm), NULL, false },
    { "norm", QKV__WORD, QKV__AT(norm), norm_words, false },
    { "norm_eps", QKV__NUMBER, QKV__AT(norm_eps), NULL, false },
    { "activation", QKV__WORD, QKV__AT(activation), activation_words, false },
    { "positions", QKV__WORD, QKV__AT(positions), position_words, false },
    { "longest", QKV__COUNT, QKV__AT(max_positions), NULL, false },
    { "first_position", QKV__COUNT, QKV__AT(first_position), NULL, false },
    { "rotary_base", QKV__NUMBER, QKV__AT(rotary_base), NULL, false },
    { "no_bias", QKV__FLAG, QKV__AT(no_bias), NULL, false },
    { "untied", QKV__FLAG, QKV__AT(untied), NULL, false },
    { "unscaled", QKV__FLAG, QKV__AT(unscaled), NULL, false },
    { "dropout", QKV__NUMBER, QKV__AT(dropout), NULL, false },
    { "attention_dropout", QKV__NUMBER, QKV__AT(attention_dropout), NULL, false },
    { "inner_dropout", QKV__NUMBER, QKV__AT(ffn_dropout), NULL, false },
    { "classes", QKV__COUNT, QKV__AT(classes), NULL, true },
    { "pooling", QKV__WORD, QKV__AT(pooling), pooling_words, true },
    { "pooler", QKV__WORD, QKV__AT(pooler), pooler_words, true },
    { "embed_norm", QKV__FLAG, QKV__AT(embed_norm), NULL, true },
    { "token_types", QKV__COUNT, QKV__AT(token_types), NULL, true },
    { "head", QKV__FLAG, QKV__AT(head), NULL, true },
    { "output_bias", QKV__FLAG, QKV__AT(output_bias), NULL, true },
    { "qkv_bias", QKV__FLAG, QKV__AT(qkv_bias), NULL, true },
    { "rotary_factor", QKV__NUMBER, QKV__AT(rotary_factor), NULL, true },
    { "rotary_low", QKV__NUMBER, QKV__AT(rotary_low), NULL, true },
    { "rotary_high", QKV__NUMBER, QKV__AT(rotary_high), NULL, true },
    { "rotary_length", QKV__COUNT, QKV__AT(rotary_length), NULL, true },
    { "source_eos", QKV__UNLESS, QKV__AT(no_source_eos), NULL, true },
    { NULL, 0, 0, NULL, false },
};
_Static_assert(sizeof(qkv_norm_kind) == sizeof(int) && sizeof(qkv_activation) == sizeof(int) &&
                   sizeof(qkv_position_kind) == sizeof(int) && sizeof(qkv_pooling) == sizeof(int) &&
                   sizeof(qkv_pooler) == sizeof(int),
               "words are stored through an int");

/* ---- labels ---- */

qkv_status qkv__labels_copy(qkv__labels *to, const char *const *names, int64_t n)
{
    size_t bytes = sizeof *to->names * (size_t)n;
    for (int64_t i = 0; i < n; i++) bytes += strlen(names[i]) + 1;
    qkv__labels l = { .n = n, .bytes = bytes, .names = qkv__alloc(bytes) };
    if (!l.names) return QKV_MEMORY;
    char *text = (char *)(l.names + n);
    for (int64_t i = 0; i < n; i++) {
        size_t length = strlen(names[i]) + 1;
        l.names[i] = memcpy(text, names[i], length);
        text += length;
    }
    qkv__labels_free(to);
    *to = l;
    return QKV_OK;
}

void qkv__labels_free(qkv__labels *l)
{
    qkv__release(l->names, l->bytes);
    *l = (qkv__labels){ 0 };
}

/* ---- reading ---- */

static qkv_status wrong(const char *path, const qkv__config_key *k, const char *expected)
{
    return qkv__fail(QKV_FORMAT, "%s: key \"%s\": expected %s", path, k->name, expected);
}

static qkv_status read_word(const char *path, const qkv__config_key *k, const char *word, int *to)
{
    for (const qkv__enum_name *w = k->words; word && w->word; w++)
        if (!strcmp(word, w->word)) return *to = w->value, QKV_OK;
    return qkv__fail(word ? QKV_UNSUPPORTED : QKV_FORMAT,
                     "%s: key \"%s\": expected one of the known words, such as \"%s\", not \"%.40s\"", path, k->name,
                     k->words[0].word, word ? word : "something else");
}

static qkv_status read_key(const char *path, const qkv__config_key *k, const json_t *value, qkv_transformer_opts *o)
{
    void *to = (char *)o + k->at;
    json_int_t whole = json_integer_value(value);
    switch (k->type) {
    case QKV__COUNT:
        if (!json_is_integer(value) || whole < 0) return wrong(path, k, "a whole number, at least 0");
        *(int64_t *)to = whole;
        return QKV_OK;
    case QKV__INT:
        if (!json_is_integer(value) || whole < 0 || whole > 10000) return wrong(path, k, "a whole number from 0 to 10000");
        *(int *)to = (int)whole;
        return QKV_OK;
    case QKV__FLAG:
    case QKV__UNLESS:
        if (!json_is_boolean(value)) return wrong(path, k, "true or false");
        *(int *)to = json_is_true(value) == (k->type == QKV__FLAG);
        return QKV_OK;
    case QKV__NUMBER:
        if (!json_is_number(value) || !isfinite((float)json_number_value(value))) return wrong(path, k, "a finite number");
        *(float *)to = (float)json_number_value(value);
        return QKV_OK;
    default: return read_word(path, k, json_string_value(value), to);
    }
}

qkv_status qkv__keys_read(const char *path, const qkv__config_key *k, const json_t *config, qkv_transformer_opts *o)
{
    qkv_status status = QKV_OK;
    for (; k->name && !status; k++) {
        const json_t *value = json_object_get(config, k->name);
        if (k->optional && (!value || json_is_null(value))) continue;
        if (value) status = read_key(path, k, value, o);
        else status = qkv__fail(QKV_FORMAT, "%s: key \"%s\" is missing", path, k->name);
    }
    return status;
}

static bool is_key(const char *name)
{
    for (const qkv__config_key *k = keys; k->name; k++)
        if (!strcmp(k->name, name)) return true;
    return !strcmp(name, "model_type") || !strcmp(name, "labels");
}

/* "labels": one name for each class; it may be missing. */
static qkv_status read_labels(const char *path, const json_t *list, int64_t classes, qkv__labels *out)
{
    size_t n = json_array_size(list), bytes = sizeof(const char *) * n;
    if (!list) return QKV_OK;
    if (!json_is_array(list) || (int64_t)n != classes)
        return qkv__fail(QKV_FORMAT, "%s: key \"labels\": expected a list of %lld names", path, (long long)classes);
    if (!n) return QKV_OK;
    const char **names = qkv__alloc(bytes);
    qkv_status status = names ? QKV_OK : QKV_MEMORY;
    for (size_t i = 0; i < n && !status; i++) {
        names[i] = json_string_value(json_array_get(list, i));
        if (!names[i] || !*names[i])
            status = qkv__fail(QKV_FORMAT, "%s: key \"labels\": name %zu is empty or not text", path, i);
    }
    if (!status) status = qkv__labels_copy(out, names, (int64_t)n);
    qkv__release(names, bytes);
    return status;
}

qkv_status qkv__config_read(const char *path, json_t *config, qkv_transformer_opts *o, qkv__labels *labels)
{
    const char *name;
    json_t *value;
    *o = (qkv_transformer_opts){ 0 };
    json_object_foreach (config, name, value)
        if (!is_key(name)) return qkv__fail(QKV_FORMAT, "%s: key \"%.60s\" is unknown", path, name);
    qkv_status status = qkv__keys_read(path, keys, config, o);
    return status ? status : read_labels(path, json_object_get(config, "labels"), o->classes, labels);
}

/* ---- writing ---- */

static json_t *word_of(const qkv__enum_name *words, int value)
{
    while (words->word && words->value != value) words++;
    return words->word ? json_string(words->word) : NULL;
}

static json_t *value_of(const qkv__config_key *k, const qkv_transformer_opts *o)
{
    const void *from = (const char *)o + k->at;
    switch (k->type) {
    case QKV__COUNT: return json_integer(*(const int64_t *)from);
    case QKV__INT: return json_integer(*(const int *)from);
    case QKV__FLAG: return json_boolean(*(const int *)from);
    case QKV__UNLESS: return json_boolean(!*(const int *)from);
    case QKV__NUMBER: return json_real((double)*(const float *)from);
    default: return word_of(k->words, *(const int *)from);
    }
}

bool qkv__keys_write(const qkv__config_key *k, const qkv_transformer_opts *o, json_t *config)
{
    for (; k->name; k++)
        if (json_object_set_new(config, k->name, value_of(k, o))) return false;
    return true;
}

static json_t *list_of(const qkv__labels *labels)
{
    json_t *list = json_array();
    for (int64_t i = 0; list && i < labels->n; i++)
        if (json_array_append_new(list, json_string(labels->names[i]))) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

qkv_status qkv__config_write(const char *path, const qkv_transformer_opts *o, const qkv__labels *labels)
{
    json_t *config = json_pack("{s:s}", "model_type", QKV__OWN_TYPE);
    bool ok = config && qkv__keys_write(keys, o, config);
    if (ok && labels->n) ok = !json_object_set_new(config, "labels", list_of(labels));
    qkv_status status = qkv__json_write(path, ok ? config : NULL);
    json_decref(config);
    return status;
}
