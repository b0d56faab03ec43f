/* config.c: a model's options as config.json. One table says how each option is written and read. */
#include "config.h"

#include "../base/file.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define CONFIG_MAX ((size_t)1 << 20) /* bytes; ours has less than 2,000 */
#define MODEL_TYPE "qkv"

typedef enum type { COUNT, INT, FLAG, NUMBER, WORD } type; /* int64_t, int, int as true or false, float, an enum */

static const char *const norm_words[] = { "layer_norm", "rms_norm", NULL };
static const char *const activation_words[] = { "relu", "gelu", "gelu_tanh", "silu", "silu_gated", NULL };
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
};
enum { N_KEYS = sizeof keys / sizeof *keys };
_Static_assert(sizeof(qkv_norm_kind) == sizeof(int) && sizeof(qkv_activation) == sizeof(int) &&
                   sizeof(qkv_position_kind) == sizeof(int),
               "words are stored through an int");

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
    return !strcmp(name, "model_type");
}

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
        status = value ? read_key(path, &keys[i], value, o)
                       : qkv__fail(QKV_FORMAT, "%s: key \"%s\" is missing", path, keys[i].name);
    }
    return status;
}

qkv_status qkv__config_read(const char *path, qkv_transformer_opts *o)
{
    qkv__bytes file;
    json_error_t error;
    qkv_status status = qkv__file_read(path, CONFIG_MAX, &file);
    if (status) return status;
    *o = (qkv_transformer_opts){ 0 };
    json_t *config = json_loadb((const char *)file.data, file.size, JSON_REJECT_DUPLICATES, &error);
    if (config) status = read_all(path, config, o);
    else status = qkv__fail(QKV_FORMAT, "%s: line %d: %s", path, error.line, error.text);
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

static json_t *describe(const qkv_transformer_opts *o)
{
    json_t *config = json_pack("{s:s}", "model_type", MODEL_TYPE);
    for (int i = 0; config && i < N_KEYS; i++)
        if (json_object_set_new(config, keys[i].name, value_of(&keys[i], o))) {
            json_decref(config);
            config = NULL;
        }
    return config;
}

qkv_status qkv__config_write(const char *path, const qkv_transformer_opts *o)
{
    char text[4096]; /* the keys and their longest values are less than half of it */
    const size_t style = JSON_INDENT(2) | JSON_REAL_PRECISION(9);
    json_t *config = describe(o);
    size_t length = config ? json_dumpb(config, text, sizeof text - 1, style) : 0;
    json_decref(config);
    if (!length || length >= sizeof text) return qkv__fail(QKV_MEMORY, "%s: out of memory while writing it", path);
    text[length++] = '\n';
    qkv__writer w;
    qkv_status status = qkv__write_begin(&w, path);
    if (!status) status = qkv__write_put(&w, text, length);
    if (!status) status = qkv__write_end(&w);
    if (status) qkv__write_abandon(&w);
    return status;
}
