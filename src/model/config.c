/* config.c: a model's options as config.json. One table says how each option is written and read. */
#include "config.h"

#include "../base/file.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define CONFIG_MAX ((size_t)64 << 20) /* bytes; ours has less than 2,000, and the names of the classes */
#define MODEL_TYPE "qkv"

typedef enum type { COUNT, INT, FLAG, NUMBER, WORD } type; /* int64_t, int, int as true or false, float, an enum */

static const char *const norm_words[] = { "layer_norm", "rms_norm", NULL };
static const char *const activation_words[] = { "relu", "gelu", "gelu_tanh", "silu", "silu_gated", NULL };
static const char *const pooling_words[] = { "mean", "first", "last", "attention", NULL };
static const char *const position_words[] = { "sinusoid", "sinusoid_halves", "learned", "rotary", "none", NULL };

#define AT(member) offsetof(qkv_transformer_opts, member)
static const struct key {
    const char *name;
    type type;
    size_t at;
    const char *const *words;
} keys[] = {
    { "vocabulary", COUNT, AT(vocabulary), NULL },
    { "target_vocabulary", COUNT, AT(target_vocabulary), NULL },
    { "encoder_layers", INT, AT(encoder_layers), NULL },
    { "decoder_layers", INT, AT(decoder_layers), NULL },
    { "dim", COUNT, AT(dim), NULL },
    { "heads", COUNT, AT(heads), NULL },
    { "inner", COUNT, AT(inner), NULL },
    { "kv_heads", COUNT, AT(kv_heads), NULL },
    { "d_k", COUNT, AT(d_k), NULL },
    { "pre_norm", FLAG, AT(pre_norm), NULL },
    { "norm", WORD, AT(norm), norm_words },
    { "norm_eps", NUMBER, AT(norm_eps), NULL },
    { "activation", WORD, AT(activation), activation_words },
    { "positions", WORD, AT(positions), position_words },
    { "longest", COUNT, AT(longest), NULL },
    { "first_position", COUNT, AT(first_position), NULL },
    { "rotary_base", NUMBER, AT(rotary_base), NULL },
    { "no_bias", FLAG, AT(no_bias), NULL },
    { "untied", FLAG, AT(untied), NULL },
    { "unscaled", FLAG, AT(unscaled), NULL },
    { "dropout", NUMBER, AT(dropout), NULL },
    { "attention_dropout", NUMBER, AT(attention_dropout), NULL },
    { "inner_dropout", NUMBER, AT(inner_dropout), NULL },
    { "classes", COUNT, AT(classes), NULL },
    { "pooling", WORD, AT(pooling), pooling_words },
};
enum { N_KEYS = sizeof keys / sizeof *keys };
_Static_assert(sizeof(qkv_norm_kind) == sizeof(int) && sizeof(qkv_activation) == sizeof(int) &&
                   sizeof(qkv_position_kind) == sizeof(int) && sizeof(qkv_pooling) == sizeof(int),
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

static qkv_status wrong(const char *path, const struct key *k, const char *expected)
{
    return qkv__fail(QKV_FORMAT, "%s: key \"%s\": expected %s", path, k->name, expected);
}

static qkv_status read_word(const char *path, const struct key *k, const char *word, int *to)
{
    for (int i = 0; word && k->words[i]; i++)
        if (!strcmp(word, k->words[i])) return *to = i, QKV_OK;
    return qkv__fail(word ? QKV_UNSUPPORTED : QKV_FORMAT,
                     "%s: key \"%s\": expected one of the known words, such as \"%s\", not \"%.40s\"", path, k->name,
                     k->words[0], word ? word : "something else");
}

static qkv_status read_key(const char *path, const struct key *k, const json_t *value, qkv_transformer_opts *o)
{
    void *to = (char *)o + k->at;
    json_int_t whole = json_integer_value(value);
    switch (k->type) {
    case COUNT:
        if (!json_is_integer(value) || whole < 0) return wrong(path, k, "a whole number, at least 0");
        *(int64_t *)to = whole;
        return QKV_OK;
    case INT:
        if (!json_is_integer(value) || whole < 0 || whole > 10000) return wrong(path, k, "a whole number from 0 to 10000");
        *(int *)to = (int)whole;
        return QKV_OK;
    case FLAG:
        if (!json_is_boolean(value)) return wrong(path, k, "true or false");
        *(int *)to = json_is_true(value);
        return QKV_OK;
    case NUMBER:
        if (!json_is_number(value) || !isfinite((float)json_number_value(value))) return wrong(path, k, "a finite number");
        *(float *)to = (float)json_number_value(value);
        return QKV_OK;
    default: return read_word(path, k, json_string_value(value), to);
    }
}

static qkv_status check_type(const char *path, const json_t *name)
{
    if (!json_is_string(name)) return qkv__fail(QKV_FORMAT, "%s: key \"model_type\" is missing or not text", path);
    if (!strcmp(json_string_value(name), MODEL_TYPE)) return QKV_OK;
    return qkv__fail(QKV_UNSUPPORTED, "%s: unsupported architecture \"%.60s\": the supported one is " MODEL_TYPE, path,
                     json_string_value(name));
}

static bool is_key(const char *name)
{
    for (int i = 0; i < N_KEYS; i++)
        if (!strcmp(keys[i].name, name)) return true;
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

/* Models without a classifier may have been written before there were any. */
static bool is_new(const struct key *k) { return k->at == AT(classes) || k->at == AT(pooling); }

static qkv_status read_all(const char *path, json_t *config, qkv_transformer_opts *o)
{
    const char *name;
    json_t *value;
    if (!json_is_object(config)) return qkv__fail(QKV_FORMAT, "%s: expected a JSON object", path);
    qkv_status status = check_type(path, json_object_get(config, "model_type"));
    json_object_foreach (config, name, value)
        if (!status && !is_key(name)) status = qkv__fail(QKV_FORMAT, "%s: key \"%.60s\" is unknown", path, name);
    for (int i = 0; i < N_KEYS && !status; i++) {
        value = json_object_get(config, keys[i].name);
        if (value) status = read_key(path, &keys[i], value, o);
        else if (!is_new(&keys[i])) status = qkv__fail(QKV_FORMAT, "%s: key \"%s\" is missing", path, keys[i].name);
    }
    return status;
}

qkv_status qkv__config_read(const char *path, qkv_transformer_opts *o, qkv__labels *labels)
{
    qkv__bytes file;
    json_error_t error;
    qkv_status status = qkv__file_read(path, CONFIG_MAX, &file);
    if (status) return status;
    *o = (qkv_transformer_opts){ 0 };
    json_t *config = json_loadb((const char *)file.data, file.size, JSON_REJECT_DUPLICATES, &error);
    if (config) {
        status = read_all(path, config, o);
        if (!status) status = read_labels(path, json_object_get(config, "labels"), o->classes, labels);
    } else status = qkv__fail(QKV_FORMAT, "%s: line %d: %s", path, error.line, error.text);
    json_decref(config);
    qkv__bytes_free(&file);
    return status;
}

/* ---- writing ---- */

static json_t *value_of(const struct key *k, const qkv_transformer_opts *o)
{
    const void *from = (const char *)o + k->at;
    switch (k->type) {
    case COUNT: return json_integer(*(const int64_t *)from);
    case INT: return json_integer(*(const int *)from);
    case FLAG: return json_boolean(*(const int *)from);
    case NUMBER: return json_real((double)*(const float *)from);
    default: return json_string(k->words[*(const int *)from]);
    }
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

static json_t *describe(const qkv_transformer_opts *o, const qkv__labels *labels)
{
    json_t *config = json_pack("{s:s}", "model_type", MODEL_TYPE);
    bool ok = config != NULL;
    for (int i = 0; ok && i < N_KEYS; i++) ok = !json_object_set_new(config, keys[i].name, value_of(&keys[i], o));
    if (ok && labels->n) ok = !json_object_set_new(config, "labels", list_of(labels));
    if (ok) return config;
    json_decref(config);
    return NULL;
}

static qkv_status write_file(const char *path, const char *text, size_t length)
{
    qkv__writer w;
    qkv_status status = qkv__write_begin(&w, path);
    if (!status) status = qkv__write_put(&w, text, length);
    if (!status) status = qkv__write_put(&w, "\n", 1);
    if (!status) status = qkv__write_end(&w);
    if (status) qkv__write_abandon(&w);
    return status;
}

qkv_status qkv__config_write(const char *path, const qkv_transformer_opts *o, const qkv__labels *labels)
{
    const size_t style = JSON_INDENT(2) | JSON_REAL_PRECISION(9);
    json_t *config = describe(o, labels);
    size_t length = config ? json_dumpb(config, NULL, 0, style) : 0;
    char *text = length ? qkv__alloc(length) : NULL;
    qkv_status status;
    if (text && json_dumpb(config, text, length, style) == length) status = write_file(path, text, length);
    else status = qkv__fail(QKV_MEMORY, "%s: out of memory while writing it", path);
    if (text) qkv__release(text, length);
    json_decref(config);
    return status;
}
