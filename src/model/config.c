/* config.c: a model's options as keys of config.json. qkv/transformer.def says how each of ours is written and read. */
#include "config.h"

#include "../tensor/quantized.h"
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
static const qkv_config a_value_a_row __attribute__((unused)) = {
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

static qkv_status read_key(const char *path, const qkv__config_key *k, const qkv__json_value *value, qkv_config *o)
{
    void *to = (char *)o + k->at;
    int64_t whole = qkv__json_int(value);
    switch (k->type) {
    case QKV__COUNT:
        if (!qkv__json_is_int(value) || whole < 0) return wrong(path, k, "a whole number, at least 0");
        *(int64_t *)to = whole;
        return QKV_OK;
    case QKV__INT:
        if (!qkv__json_is_int(value) || whole < 0 || whole > 10000) return wrong(path, k, "a whole number from 0 to 10000");
        *(int *)to = (int)whole;
        return QKV_OK;
    case QKV__FLAG:
    case QKV__UNLESS:
        if (!qkv__json_is_bool(value)) return wrong(path, k, "true or false");
        *(int *)to = qkv__json_is_true(value) == (k->type == QKV__FLAG);
        return QKV_OK;
    case QKV__NUMBER:
        if (!qkv__json_is_number(value) || !isfinite((float)qkv__json_number(value))) return wrong(path, k, "a finite number");
        *(float *)to = (float)qkv__json_number(value);
        return QKV_OK;
    default: return read_word(path, k, qkv__json_text(value), to);
    }
}

qkv_status qkv__keys_read(const char *path, const qkv__config_key *k, const qkv__json_value *config, qkv_config *o)
{
    qkv_status status = QKV_OK;
    for (; k->name && !status; k++) {
        const qkv__json_value *value = qkv__json_get(config, k->name);
        if (k->optional && (!value || qkv__json_is_null(value))) continue;
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
static qkv_status read_labels(const char *path, const qkv__json_value *list, int64_t classes, qkv__labels *out)
{
    size_t n = qkv__json_size(list), bytes = sizeof(const char *) * n;
    if (!list) return QKV_OK;
    if (!qkv__json_is_array(list) || (int64_t)n != classes)
        return qkv__fail(QKV_FORMAT, "%s: key \"labels\": expected a list of %lld names", path, (long long)classes);
    if (!n) return QKV_OK;
    const char **names = qkv__alloc(bytes);
    qkv_status status = names ? QKV_OK : QKV_MEMORY;
    for (size_t i = 0; i < n && !status; i++) {
        names[i] = qkv__json_text(qkv__json_at(list, i));
        if (!names[i] || !*names[i] || strpbrk(names[i], "\t\r\n"))
            status = qkv__fail(QKV_FORMAT, "%s: key \"labels\": name %zu is empty, not text, or has a TAB or newline", path, i);
    }
    if (!status) status = qkv__labels_copy(out, names, (int64_t)n);
    qkv__release(names, bytes);
    return status;
}

static qkv_status read_length_penalty(const char *path, const qkv__json_value *value, float *out)
{
    *out = 0;
    if (!value || qkv__json_is_null(value)) return QKV_OK;
    float alpha = qkv__json_is_number(value) ? (float)qkv__json_number(value) : 0;
    if (!(alpha > 0 && alpha < QKV__LENGTH_PENALTY_END))
        return qkv__fail(QKV_FORMAT, "%s: key \"" LENGTH_PENALTY "\": expected a number above 0 and below %d", path,
                         QKV__LENGTH_PENALTY_END);
    *out = alpha;
    return QKV_OK;
}

static qkv_status read_sentences(const char *path, const qkv__json_value *value, int64_t *out)
{
    *out = 0;
    if (!value || qkv__json_is_null(value)) return QKV_OK;
    *out = qkv__json_int(value);
    if (*out >= 1) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: key \"" QKV__SENTENCES "\": expected a whole number from 1", path);
}

static qkv_status read_language(const char *path, const char *key, const qkv__json_value *value, char out[16])
{
    *out = '\0';
    if (!value || qkv__json_is_null(value)) return QKV_OK;
    const char *code = qkv__json_text(value);
    if (!code || !qkv__is_language_code(code))
        return qkv__fail(QKV_FORMAT, "%s: key \"%s\": expected the code of a language, such as \"en\"", path, key);
    strcpy(out, code);
    return QKV_OK;
}

qkv_status qkv__quantization_read(const char *path, const qkv__json_value *config, int *bits)
{
    const qkv__json_value *all = qkv__json_get(config, QUANTIZATION), *group = qkv__json_get(all, "group_size");
    const char *method = qkv__json_get_text(all, "quant_method");
    *bits = (int)qkv__json_int(qkv__json_get(all, "bits"));
    if (!all || qkv__json_is_null(all)) return QKV_OK;
    if (!method) return qkv__fail(QKV_FORMAT, "%s: key \"" QUANTIZATION "\": \"quant_method\" is missing or not text", path);
    if (strcmp(method, QKV__OWN_TYPE) != 0)
        return qkv__fail(QKV_UNSUPPORTED,
                         "%s: weights that were quantized by \"%.40s\" are not read: take the model that they were made of",
                         path, method);
    if ((*bits != 8 && *bits != 4) || (group && qkv__json_int(group) != QKV__GROUP))
        return qkv__fail(QKV_FORMAT, "%s: key \"" QUANTIZATION "\": expected 8 bits, or 4 in groups of %d", path, QKV__GROUP);
    return QKV_OK;
}

void qkv__quantization_write(int bits, qkv__json_writer *w)
{
    if (!bits) return;
    qkv__json_open_object(w, QUANTIZATION);
    qkv__json_put_text(w, "quant_method", QKV__OWN_TYPE);
    qkv__json_put_int(w, "bits", bits);
    if (bits == 4) qkv__json_put_int(w, "group_size", QKV__GROUP);
    qkv__json_close(w);
}

qkv_status qkv__config_read(const char *path, const qkv__json_value *config, qkv_config *o, qkv__labels *labels,
                            qkv__config_extras *extras)
{
    const char *name;
    *o = QKV_OPTS(qkv_config);
    for (size_t i = 0; (name = qkv__json_key(config, i)); i++)
        if (!is_key(name)) return qkv__fail(QKV_FORMAT, "%s: key \"%.60s\" is unknown", path, name);
    qkv_status status = qkv__keys_read(path, keys, config, o);
    if (!status) status = read_length_penalty(path, qkv__json_get(config, LENGTH_PENALTY), &extras->length_penalty);
    if (!status) status = read_sentences(path, qkv__json_get(config, QKV__SENTENCES), &extras->sentences);
    const char *const language_keys[] = { SOURCE_LANGUAGE, TARGET_LANGUAGE };
    char *const languages[] = { extras->source_language, extras->target_language };
    for (int i = 0; i < 2 && !status; i++)
        status = read_language(path, language_keys[i], qkv__json_get(config, language_keys[i]), languages[i]);
    return status ? status : read_labels(path, qkv__json_get(config, "labels"), o->classes, labels);
}

/* ---- writing ---- */

static void put_word(qkv__json_writer *w, const qkv__config_key *k, int value)
{
    const qkv__enum_name *name = k->words;
    while (name->word && name->value != value) name++;
    if (name->word) qkv__json_put_text(w, k->name, name->word);
    else if (!w->status) w->status = qkv__fail(QKV_UNSUPPORTED, "key \"%s\": there is no word for %d", k->name, value);
}

void qkv__keys_write(const qkv__config_key *k, const qkv_config *o, qkv__json_writer *w)
{
    for (; k->name; k++) {
        const void *from = (const char *)o + k->at;
        switch (k->type) {
        case QKV__COUNT: qkv__json_put_int(w, k->name, *(const int64_t *)from); break;
        case QKV__INT: qkv__json_put_int(w, k->name, *(const int *)from); break;
        case QKV__FLAG: qkv__json_put_bool(w, k->name, *(const int *)from); break;
        case QKV__UNLESS: qkv__json_put_bool(w, k->name, !*(const int *)from); break;
        case QKV__NUMBER: qkv__json_put_real(w, k->name, (double)*(const float *)from, QKV__JSON_FLOAT); break;
        default: put_word(w, k, *(const int *)from);
        }
    }
}

qkv_status qkv__config_write(const char *path, const qkv_config *o, const qkv__labels *labels, const qkv__model_info *info,
                             int bits)
{
    qkv__json_writer w = { .style = QKV__JSON_LINES };
    qkv__json_open_object(&w, NULL);
    qkv__json_put_text(&w, "model_type", QKV__OWN_TYPE);
    qkv__keys_write(keys, o, &w);
    if (labels->n) qkv__json_open_array(&w, "labels");
    for (int64_t i = 0; i < labels->n; i++) qkv__json_put_text(&w, NULL, labels->names[i]);
    if (labels->n) qkv__json_close(&w);
    qkv__problem_write(info, &w);
    qkv__quantization_write(bits, &w);
    float length_penalty = qkv__info_is_published(info) ? 0 : info->length_penalty; /* by another formula */
    if (length_penalty > 0) qkv__json_put_real(&w, LENGTH_PENALTY, (double)length_penalty, QKV__JSON_FLOAT);
    if (info->sentences > 1 && !qkv__info_is_published(info)) qkv__json_put_int(&w, QKV__SENTENCES, info->sentences);
    const char *const languages[] = { info->source_language, info->target_language };
    for (int i = 0; i < 2; i++)
        if (*languages[i] && !qkv__info_is_published(info))
            qkv__json_put_text(&w, i ? TARGET_LANGUAGE : SOURCE_LANGUAGE, languages[i]);
    qkv__json_close(&w);
    return qkv__json_save(&w, path);
}
