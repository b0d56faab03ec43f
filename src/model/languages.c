/* languages.c: which language a text is in, as a token beside it. */
#include "languages.h"

#include "../base/status.h"
#include "../base/buffer.h"
#include "model_info.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- codes ---- */

typedef enum form { NO_CODE, PLAIN, WITH_SCRIPT, UNDERLINED, ARROWS } form;

static size_t count_lower(const char *s) { return strspn(s, "abcdefghijklmnopqrstuvwxyz"); }

static form form_of(const char *s)
{
    size_t n = strlen(s), language = count_lower(s);
    if (n > 4 && !strncmp(s, ">>", 2) && !strcmp(s + n - 2, "<<")) return ARROWS;
    if (n > 5 && !strncmp(s, "__", 2) && !strcmp(s + n - 2, "__") && count_lower(s + 2) == n - 4) return UNDERLINED;
    if (language < 2 || language > 3 || s[language] != '_' || !isupper((unsigned char)s[language + 1])) return NO_CODE;
    const char *more = s + language + 1;
    size_t length = strlen(more);
    if (length == 4 && count_lower(more + 1) == 3) return WITH_SCRIPT;
    return length == 2 && isupper((unsigned char)more[1]) ? PLAIN : NO_CODE;
}

static form language_form(const qkv_tokenizer *t, int32_t id)
{
    const char *spelling = qkv_tokenizer_token(t, id);
    form f = spelling ? form_of(spelling) : NO_CODE;
    return f == ARROWS || qkv_tokenizer_is_special(t, id) ? f : NO_CODE; /* a text may have those with arrows */
}

/* As it is spelled, or without what its family puts around it. -1: there is none. */
static int32_t find_language(const qkv_tokenizer *t, const char *code)
{
    static const char *const around[] = { "%.40s", "__%.40s__", ">>%.40s<<" };
    for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
        char spelling[64];
        snprintf(spelling, sizeof spelling, around[i], code);
        int32_t id = qkv_tokenizer_id(t, spelling);
        if (id >= 0 && language_form(t, id)) return id;
    }
    return -1;
}

/* How many there are; the first of them as a sentence's part. */
static int list_languages(const qkv_tokenizer *t, char *list, size_t room)
{
    int n = 0;
    size_t used = 0;
    *list = '\0';
    for (int32_t id = 0; id < qkv_tokenizer_vocab_size(t); id++) {
        if (!language_form(t, id)) continue;
        int length = snprintf(list + used, room - used, "%s%s", n ? ", " : "", qkv_tokenizer_token(t, id));
        if (length > 0 && (size_t)length < room - used) used += (size_t)length;
        else list[used] = '\0', room = used + 1; /* the rest is not named */
        n++;
    }
    return n;
}

static qkv_status refuse_language(const qkv_tokenizer *t, const char *which, const char *code)
{
    char list[2048];
    int n = list_languages(t, list, sizeof list);
    if (!n) return qkv__fail(QKV_USAGE, "the model has no codes of languages: %s cannot be chosen", which);
    if (code) return qkv__fail(QKV_USAGE, "%s: the model has no language \"%.40s\"; of its %d: %s", which, code, n, list);
    return qkv__fail(QKV_USAGE, "the model writes several languages: %s says which; of its %d: %s", which, n, list);
}

qkv__coding qkv__language_coding(const qkv_model *m)
{
    const qkv_tokenizer *t = qkv_model_tokenizer(m, QKV_SIDE_TARGET);
    int n = 0, n_arrows = 0;
    for (int32_t id = 0; id < qkv_tokenizer_vocab_size(t); id++) {
        const form f = language_form(t, id);
        n += f != NO_CODE;
        n_arrows += f == ARROWS;
    }
    return n < 2 ? QKV__NOT_CODED : n_arrows ? QKV__CODED_TARGET : QKV__CODED_BOTH;
}

/* ---- places ---- */

static void remove_at(qkv__id_run *r, int i) { memmove(r->ids + i, r->ids + i + 1, sizeof *r->ids * (size_t)(--r->n - i)); }

/* The code of a run, taken out of it; -1 when it has none. */
static int32_t take_language(const qkv_tokenizer *t, qkv__id_run *r)
{
    for (int i = 0; i < r->n; i++) {
        int32_t id = r->ids[i];
        if (language_form(t, id)) return remove_at(r, i), id;
    }
    return -1;
}

static void put_first(qkv__id_run *r, int32_t id)
{
    if (r->n == QKV__ID_RUN) r->n--;
    memmove(r->ids + 1, r->ids, sizeof *r->ids * (size_t)r->n++);
    r->ids[0] = id;
}

void qkv__place_language(qkv__special_tokens *f)
{
    qkv__id_run *after = &f->single.after;
    for (int i = 0; i < after->n; i++)
        if (language_form(f->source, after->ids[i]) == WITH_SCRIPT)
            put_first(&f->single.before, take_language(f->source, after));
}

/* Where the code was that the tokenizer's file has, or first. */
static void put_source_language(qkv__special_tokens *f, int32_t id)
{
    qkv__id_run *after = &f->single.after;
    bool stands_last = take_language(f->source, after) >= 0;
    take_language(f->source, &f->single.before);
    if (stands_last && after->n < QKV__ID_RUN) after->ids[after->n++] = id;
    else put_first(&f->single.before, id);
}

static qkv_status choose_target(qkv__special_tokens *f, const char *target, int32_t *first)
{
    int32_t id = find_language(f->target, target);
    if (id < 0) return refuse_language(f->target, "target_lang", target);
    if (language_form(f->target, id) == ARROWS) put_source_language(f, id);
    else if (language_form(f->target, f->ids.start)) f->ids.start = id;
    else *first = id;
    return QKV_OK;
}

/* Whether a translation has no language unless one is chosen. */
static bool needs_target(const qkv__special_tokens *f, int32_t first)
{
    bool is_of_many = !strcmp(f->info->family, "mbart") || !strcmp(f->info->family, "m2m_100");
    char list[8];
    return is_of_many && first < 0 && !language_form(f->target, f->ids.start) &&
           list_languages(f->target, list, sizeof list) > 1;
}

qkv_status qkv__choose_languages(qkv__special_tokens *f, const char *source, const char *target, int32_t *first)
{
    *first = f->info->forced_first;
    if (source) {
        int32_t id = find_language(f->source, source);
        if (id < 0 || language_form(f->source, id) == ARROWS) return refuse_language(f->source, "source_lang", source);
        put_source_language(f, id);
    }
    if (target) return choose_target(f, target, first);
    return needs_target(f, *first) ? refuse_language(f->target, "target_lang", NULL) : QKV_OK;
}
