/* config.c: a model's options as keys of config.json. qkv/transformer.def says how each of ours is written and read. */
#include "config.h"

#include "../io/json.h"
#include "../op/quantized.h"
#include "model_info.h"

#include <math.h>
#include <string.h>

enum {
#define QKV_OPTION(member, ...) OPTION_##member,
#include <qkv/transformer.def>
    OPTIONS
};

#define LENGTH_PENALTY "length_penalty"
#define QUANTIZATION "quantization_config"
#define SOURCE_LANGUAGE "source_language"
#define TARGET_LANGUAGE "target_language"

/* Values not used stay without a word, so that each row ends. */
enum { MOST_WORDS = 16 };
static const qkv__enum_name own_words[OPTIONS][MOST_WORDS] = {
#define QKV_OPTION_VALUE(member, value, word, ...) [OPTION_##member][value] = { word, value },
#include <qkv/transformer.def>
};

static const qkv__config_key keys[] = {
#define QKV_OPTION(member, kind, key, presence, ...) QKV__WORD_KEY(key, member, presence, own_words[OPTION_##member]),
#include <qkv/transformer.def>
    { NULL, 0, 0, NULL, false },
};

/* A member without a row, and a row of another type than its member's, are found by the compiler. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wmissing-field-initializers"
static const qkv_transformer_opts a_value_a_row __attribute__((unused)) = {
    sizeof a_value_a_row,
#define QKV_OPTION(...) 0,
#include <qkv/transformer.def>
};
#pragma GCC diagnostic pop

enum { TYPE_OF_COUNT, TYPE_OF_INT, TYPE_OF_FLAG = TYPE_OF_INT, TYPE_OF_UNLESS = TYPE_OF_INT, TYPE_OF_NUMBER, TYPE_OF_WORD };
/* clang-format off */
#define TYPE_OF(x) _Generic(x, int64_t: TYPE_OF_COUNT, int: TYPE_OF_INT, float: TYPE_OF_NUMBER, default: TYPE_OF_WORD)
/* clang-format on */
#define QKV_OPTION(member, kind, ...) \
    _Static_assert(TYPE_OF(a_value_a_row.member) == TYPE_OF_##kind, #member " is not of the kind that transformer.def says");
#include <qkv/transformer.def>
#define QKV_OPTION_VALUE(member, ...) \
    _Static_assert(sizeof a_value_a_row.member == sizeof(int), "words are stored through an int");
#include <qkv/transformer.def>

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
    return !strcmp(name, "model_type") || !strcmp(name, "labels") || !strcmp(name, LENGTH_PENALTY) ||
           !strcmp(name, QKV__SENTENCES) || !strcmp(name, SOURCE_LANGUAGE) || !strcmp(name, TARGET_LANGUAGE) ||
           !strcmp(name, QKV__PROBLEM) || !strcmp(name, QKV__SEPARATOR) || !strcmp(name, QUANTIZATION);
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

static qkv_status read_length_penalty(const char *path, const json_t *value, float *out)
{
    *out = 0;
    if (!value || json_is_null(value)) return QKV_OK;
    float alpha = json_is_number(value) ? (float)json_number_value(value) : 0;
    if (!(alpha > 0 && alpha < QKV__LENGTH_PENALTY_END))
        return qkv__fail(QKV_FORMAT, "%s: key \"" LENGTH_PENALTY "\": expected a number above 0 and below %d", path,
                         QKV__LENGTH_PENALTY_END);
    *out = alpha;
    return QKV_OK;
}

static qkv_status read_sentences(const char *path, const json_t *value, int64_t *out)
{
    *out = 0;
    if (!value || json_is_null(value)) return QKV_OK;
    *out = json_integer_value(value);
    if (*out >= 1) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: key \"" QKV__SENTENCES "\": expected a whole number from 1", path);
}

static qkv_status read_language(const char *path, const char *key, const json_t *value, char out[16])
{
    *out = '\0';
    if (!value || json_is_null(value)) return QKV_OK;
    const char *code = json_string_value(value);
    if (!code || !qkv__is_language_code(code))
        return qkv__fail(QKV_FORMAT, "%s: key \"%s\": expected the code of a language, such as \"en\"", path, key);
    strcpy(out, code);
    return QKV_OK;
}

qkv_status qkv__quantization_read(const char *path, const json_t *config, int *bits)
{
    const json_t *all = json_object_get(config, QUANTIZATION), *group = json_object_get(all, "group_size");
    const char *method = json_string_value(json_object_get(all, "quant_method"));
    *bits = (int)json_integer_value(json_object_get(all, "bits"));
    if (!all || json_is_null(all)) return QKV_OK;
    if (!method) return qkv__fail(QKV_FORMAT, "%s: key \"" QUANTIZATION "\": \"quant_method\" is missing or not text", path);
    if (strcmp(method, QKV__OWN_TYPE) != 0)
        return qkv__fail(QKV_UNSUPPORTED,
                         "%s: weights that were quantized by \"%.40s\" are not read: take the model that they were made of",
                         path, method);
    if ((*bits != 8 && *bits != 4) || (group && json_integer_value(group) != QKV__GROUP))
        return qkv__fail(QKV_FORMAT, "%s: key \"" QUANTIZATION "\": expected 8 bits, or 4 in groups of %d", path, QKV__GROUP);
    return QKV_OK;
}

bool qkv__quantization_write(int bits, json_t *config)
{
    if (!bits) return true;
    json_t *all = json_pack("{s:s, s:i}", "quant_method", QKV__OWN_TYPE, "bits", bits);
    if (all && bits == 4) json_object_set_new(all, "group_size", json_integer(QKV__GROUP));
    return !json_object_set_new(config, QUANTIZATION, all);
}

qkv_status qkv__config_read(const char *path, json_t *config, qkv_transformer_opts *o, qkv__labels *labels,
                            qkv__config_extras *extras)
{
    const char *name;
    json_t *value;
    *o = QKV_OPTS(qkv_transformer_opts);
    json_object_foreach (config, name, value)
        if (!is_key(name)) return qkv__fail(QKV_FORMAT, "%s: key \"%.60s\" is unknown", path, name);
    qkv_status status = qkv__keys_read(path, keys, config, o);
    if (!status) status = read_length_penalty(path, json_object_get(config, LENGTH_PENALTY), &extras->length_penalty);
    if (!status) status = read_sentences(path, json_object_get(config, QKV__SENTENCES), &extras->sentences);
    const char *const language_keys[] = { SOURCE_LANGUAGE, TARGET_LANGUAGE };
    char *const languages[] = { extras->source_language, extras->target_language };
    for (int i = 0; i < 2 && !status; i++)
        status = read_language(path, language_keys[i], json_object_get(config, language_keys[i]), languages[i]);
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

qkv_status qkv__config_write(const char *path, const qkv_transformer_opts *o, const qkv__labels *labels,
                             const qkv_model_info *info, int bits)
{
    json_t *config = json_pack("{s:s}", "model_type", QKV__OWN_TYPE);
    bool ok = config && qkv__keys_write(keys, o, config);
    if (ok && labels->n) ok = !json_object_set_new(config, "labels", list_of(labels));
    ok = ok && qkv__problem_write(info, config) && qkv__quantization_write(bits, config);
    float length_penalty = qkv__info_is_published(info) ? 0 : info->length_penalty; /* by another formula */
    if (ok && length_penalty > 0) ok = !json_object_set_new(config, LENGTH_PENALTY, json_real((double)length_penalty));
    bool has_sentences = info->sentences > 1 && !qkv__info_is_published(info);
    if (ok && has_sentences) ok = !json_object_set_new(config, QKV__SENTENCES, json_integer(info->sentences));
    const char *const languages[] = { info->source_language, info->target_language };
    for (int i = 0; i < 2; i++)
        if (ok && *languages[i] && !qkv__info_is_published(info))
            ok = !json_object_set_new(config, i ? TARGET_LANGUAGE : SOURCE_LANGUAGE, json_string(languages[i]));
    qkv_status status = qkv__json_write(path, ok ? config : NULL);
    json_decref(config);
    return status;
}
