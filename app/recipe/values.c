/* values.c: the options of a training, set and told as text. */
#include "values.h"

#include "../../src/base/memory.h"
#include "../../src/base/buffer.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { FLAG, COUNT, WHOLE, NUMBER, WORD, TEXT, FILES, INT = COUNT, INPUT = FILES, OUTPUT = TEXT } kind;

static const struct option_row {
    const char *name;
    int jobs;
    kind kind;
    size_t place; /* in the values */
} rows[] = {
#define QKV_TRAINING_OPTION(member, kind_, name_, value, job, ...) \
    [QKV__SET_##member] = { name_, QKV__##job, kind_, offsetof(qkv__training_values, member) },
#include "training.def"
#define QKV_TRAIN_OPTION(member, kind_, name_, value, job, ...) \
    [QKV__SET_##member] = { name_, QKV__##job, kind_, offsetof(qkv__training_values, member) },
#include <qkv/transformer.def>
};

/* The words of all options, those of each in their order. */
static const struct option_word {
    int option;
    const char *word;
} words[] = {
#define QKV_TRAINING_WORD(member, word_) { QKV__SET_##member, word_ },
#include "training.def"
#define QKV__SET_pooler QKV__SET_OPTIONS /* options without a name on the command line */
#define QKV__SET_classes_of QKV__SET_OPTIONS
#define QKV__SET_rope_scaling QKV__SET_OPTIONS
#define QKV_OPTION_VALUE(member, value, word_, name, ...) { QKV__SET_##member, name },
#include <qkv/transformer.def>
#undef QKV__SET_pooler
#undef QKV__SET_classes_of
#undef QKV__SET_rope_scaling
};

enum { WORDS = sizeof words / sizeof *words };

const char *qkv__options_word(qkv__option i, int value)
{
    for (int k = 0; k < WORDS; k++)
        if (words[k].option == (int)i && !value--) return words[k].word;
    return NULL;
}

void qkv__options_new(qkv__options *o, int job) { *o = (qkv__options){ .job = job }; }

static void *place_of(const qkv__options *o, qkv__option i) { return (char *)(uintptr_t)&o->v + rows[i].place; }

static void free_files(qkv__paths *f)
{
    for (int i = 0; i < f->n; i++) qkv__release_text(f->at[i]);
    qkv__release(f->at, f->bytes);
}

void qkv__options_free(qkv__options *o)
{
    for (int i = 0; i < QKV__SET_OPTIONS; i++) {
        if (rows[i].kind == TEXT) qkv__release_text(*(char **)place_of(o, (qkv__option)i));
        if (rows[i].kind == FILES) free_files(place_of(o, (qkv__option)i));
    }
    *o = (qkv__options){ 0 };
}

/* ---- by name ---- */

const char *qkv__options_name(qkv__option i) { return rows[i].name; }

bool qkv__options_has(const qkv__options *o, qkv__option i) { return (rows[i].jobs & o->job) != 0; }

qkv__option qkv__options_find(const qkv__options *o, const char *name)
{
    for (int i = 0; i < QKV__SET_OPTIONS; i++)
        if (qkv__options_has(o, (qkv__option)i) && !strcmp(rows[i].name, name)) return (qkv__option)i;
    return QKV__SET_OPTIONS;
}

bool qkv__options_is_path(qkv__option i) { return rows[i].kind == TEXT || rows[i].kind == FILES; }

const qkv__paths *qkv__options_paths(const qkv__options *o, qkv__option i)
{
    return rows[i].kind == FILES ? place_of(o, i) : NULL;
}

/* ---- from text ---- */

static qkv_status read_option_count(const char *name, const char *text, int *out)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || n < 1 || n > INT_MAX)
        return qkv__fail(QKV_USAGE, "--%s: \"%s\" is not a whole number from 1", name, text);
    *out = (int)n;
    return QKV_OK;
}

static qkv_status read_option_whole(const char *name, const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno)
        return qkv__fail(QKV_USAGE, "--%s: \"%s\" is not a whole number from 0", name, text);
    *out = n;
    return QKV_OK;
}

static qkv_status read_option_number(const char *name, const char *text, float *out)
{
    char *end;
    float x = strtof(text, &end);
    if (end == text || *end || !isfinite(x)) return qkv__fail(QKV_USAGE, "--%s: \"%s\" is not a finite number", name, text);
    *out = x;
    return QKV_OK;
}

static qkv_status read_option_word(qkv__option i, const char *text, int *out)
{
    char list[256] = "";
    const char *word;
    for (int k = 0; (word = qkv__options_word(i, k)); k++) {
        if (!strcmp(text, word)) return *out = k, QKV_OK;
        size_t length = strlen(list);
        snprintf(list + length, sizeof list - length, "%s%s", k ? ", " : "", word);
    }
    return qkv__fail(QKV_USAGE, "--%s: \"%s\" is not one of %s", rows[i].name, text, list);
}

static qkv_status read_option_flag(const char *name, const char *text, bool *out)
{
    if (*text && strcmp(text, "yes")) return qkv__fail(QKV_USAGE, "--%s: \"%s\" is neither \"yes\" nor \"\"", name, text);
    *out = *text != '\0';
    return QKV_OK;
}

static qkv_status copy_option_text(const char *name, const char *text, char **out)
{
    if (!*text) return qkv__fail(QKV_USAGE, "--%s: its value is empty", name);
    char *copy = qkv__copy_text(text);
    if (!copy) return qkv_error_status();
    qkv__release_text(*out);
    *out = copy;
    return QKV_OK;
}

static qkv_status add_option_file(const char *name, const char *text, qkv__paths *f)
{
    qkv_status status = qkv__grow((void **)&f->at, &f->bytes, ((size_t)f->n + 1) * sizeof *f->at);
    if (status) return status;
    f->at[f->n] = NULL;
    status = copy_option_text(name, text, &f->at[f->n]);
    if (!status) f->n++;
    return status;
}

static qkv_status read_option(qkv__option i, const char *text, void *to)
{
    const char *name = rows[i].name;
    switch (rows[i].kind) {
    case FLAG: return read_option_flag(name, text, to);
    case COUNT: return read_option_count(name, text, to);
    case WHOLE: return read_option_whole(name, text, to);
    case NUMBER: return read_option_number(name, text, to);
    case WORD: return read_option_word(i, text, to);
    case TEXT: return copy_option_text(name, text, to);
    case FILES: return add_option_file(name, text, to);
    }
    return QKV_USAGE; /* there is no other kind */
}

qkv_status qkv__options_set(qkv__options *o, const char *name, const char *value, qkv__origin origin)
{
    qkv__option i = qkv__options_find(o, name);
    if (i == QKV__SET_OPTIONS) return qkv__fail(QKV_USAGE, "training: there is no option \"%.100s\"", name);
    if (origin == QKV__CHOSEN && o->origin[i] == QKV__SET) return QKV_OK;
    qkv_status status = read_option(i, value, place_of(o, i));
    if (!status) o->origin[i] = (unsigned char)origin;
    return status;
}

static size_t bytes_of_kind(kind k)
{
    static const size_t bytes[] = { [FLAG] = sizeof(bool),    [COUNT] = sizeof(int), [WHOLE] = sizeof(int64_t),
                                    [NUMBER] = sizeof(float), [WORD] = sizeof(int),  [FILES] = 0 };
    return bytes[k];
}

void qkv__options_fill(qkv__options *o, const qkv__training_values *defaults)
{
    for (int i = 0; i < QKV__SET_OPTIONS; i++)
        if (o->origin[i] == QKV__NOT_SET)
            memcpy(place_of(o, (qkv__option)i), (const char *)defaults + rows[i].place, bytes_of_kind(rows[i].kind));
}

void qkv__options_unset(qkv__options *o, qkv__option i)
{
    if (o->origin[i] == QKV__SET) return;
    memset(place_of(o, i), 0, bytes_of_kind(rows[i].kind));
    o->origin[i] = QKV__NOT_SET;
}

void qkv__options_forget_choices(qkv__options *o)
{
    for (int i = 0; i < QKV__SET_OPTIONS; i++) qkv__options_unset(o, (qkv__option)i);
}

/* ---- to text ---- */

static qkv_status files_text(const qkv__paths *f, qkv_buffer *out)
{
    qkv_status status = qkv__buffer_put(out, "", 0);
    for (int i = 0; i < f->n && !status; i++) {
        if (i) status = qkv__buffer_put(out, " ", 1);
        if (!status) status = qkv__buffer_put(out, f->at[i], strlen(f->at[i]));
    }
    return status;
}

qkv_status qkv__options_text(const qkv__options *o, qkv__option i, qkv_buffer *out)
{
    const void *at = place_of(o, i);
    char text[64] = "";
    const char *is = text;
    out->length = 0;
    switch (rows[i].kind) {
    case FLAG: is = *(const bool *)at ? "yes" : ""; break;
    case COUNT: snprintf(text, sizeof text, "%d", *(const int *)at); break;
    case WHOLE: snprintf(text, sizeof text, "%lld", (long long)*(const int64_t *)at); break;
    case NUMBER: snprintf(text, sizeof text, "%.7g", (double)*(const float *)at); break;
    case WORD: is = qkv__options_word(i, *(const int *)at); break;
    case TEXT: is = *(char *const *)at ? *(char *const *)at : ""; break;
    case FILES: return files_text(at, out);
    }
    return qkv__buffer_put(out, is, strlen(is));
}
