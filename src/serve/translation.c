/* translation.c: POST /translate and GET /languages, as LibreTranslate has them. */
#include "../task/passages.h"
#include "../task/translate.h"
#include "../text/buffer.h"
#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ALTERNATIVES = 15, MOST_SENTENCES = 1024 };

/* ---- GET /languages ---- */

static const char *language_name(const char *code)
{
    static const char *const names[][2] = {
        { "ar", "Arabic" },     { "cs", "Czech" },    { "de", "German" },  { "el", "Greek" },   { "en", "English" },
        { "es", "Spanish" },    { "fi", "Finnish" },  { "fr", "French" },  { "he", "Hebrew" },  { "hi", "Hindi" },
        { "it", "Italian" },    { "ja", "Japanese" }, { "ko", "Korean" },  { "nl", "Dutch" },   { "pl", "Polish" },
        { "pt", "Portuguese" }, { "ru", "Russian" },  { "sv", "Swedish" }, { "tr", "Turkish" }, { "uk", "Ukrainian" },
        { "vi", "Vietnamese" }, { "zh", "Chinese" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i][0], code)) return names[i][1];
    return code;
}

static void put_language(qkv__json *j, const char *code, const char *target)
{
    qkv__put_raw(j, "{\"code\":");
    qkv__put_name(j, code);
    qkv__put_raw(j, ",\"name\":");
    qkv__put_name(j, language_name(code));
    qkv__put_raw(j, ",\"targets\":[");
    if (target) qkv__put_name(j, target);
    qkv__put_raw(j, "]}");
}

qkv_status qkv__serve_languages(qkv__request *r)
{
    const qkv_server *s = r->server;
    qkv__put_raw(&r->answer, "[");
    put_language(&r->answer, s->source_language, s->target_language);
    qkv__put_raw(&r->answer, ",");
    put_language(&r->answer, s->target_language, NULL);
    qkv__put_raw(&r->answer, "]\n");
    return QKV_OK;
}

/* ---- POST /translate: the request ---- */

typedef struct wanted {
    qkv__strings texts;
    int64_t alternatives;
    bool is_auto;
    qkv_split split;
    const char *codes[2]; /* the model's, of source and target; NULL: not chosen */
} wanted;

/* A model of many languages is asked for one by its own code, NAME_lang; then the server's needs not be there. */
static qkv_status get_language(const json_t *body, const char *name, const char *ours, const char **own, bool *is_auto)
{
    char own_name[16];
    const char *code = NULL;
    size_t length = 0;
    snprintf(own_name, sizeof own_name, "%s_lang", name);
    qkv_status status = qkv__get_string(body, own_name, own, &length);
    if (!status) status = qkv__get_string(body, name, &code, &length);
    *is_auto = false;
    if (!status && !code && *own) return QKV_OK;
    if (!status && !code) status = qkv__fail(QKV_USAGE, "\"%s\" is missing", name);
    if (status) return status;
    *is_auto = !strcmp(name, "source") && !strcmp(code, "auto");
    if (*is_auto || (!strcmp(code, ours) && strlen(ours) == length)) return QKV_OK;
    return qkv__fail(QKV_USAGE, "\"%s\" is \"%.40s\": this server knows \"%s\"", name, code, ours);
}

/* A form has no numbers, only their digits. */
static qkv_status get_alternatives(const json_t *body, bool is_form, int64_t *n)
{
    const char *digits = NULL;
    size_t length = 0;
    if (!is_form) return qkv__get_whole(body, "alternatives", 0, MOST_ALTERNATIVES, n);
    qkv_status status = qkv__get_string(body, "alternatives", &digits, &length);
    if (status || !digits) return status;
    *n = length && length < 3 && strspn(digits, "0123456789") == length ? atoi(digits) : -1;
    if (*n < 0 || *n > MOST_ALTERNATIVES)
        return qkv__fail(QKV_USAGE, "\"alternatives\" must be a whole number from 0 to %d", MOST_ALTERNATIVES);
    return QKV_OK;
}

/* true, false or "auto"; a form has them as text. */
static qkv_status get_split(const json_t *body, bool is_form, qkv_split *split)
{
    static const char *const words[] = { "false", "true", "auto" };
    static const qkv_split meant[] = { QKV_SPLIT_NONE, QKV_SPLIT_SENTENCES, QKV_SPLIT_AUTO };
    const json_t *value = json_object_get(body, "split");
    const char *word = json_string_value(value);
    *split = QKV_SPLIT_AUTO;
    if (!value || json_is_null(value)) return QKV_OK;
    if (!is_form && json_is_boolean(value)) word = words[json_is_true(value)];
    else if (!is_form && word && strcmp(word, "auto")) word = NULL;
    for (int i = 0; word && i < 3; i++)
        if (!strcmp(word, words[i])) return *split = meant[i], QKV_OK;
    return qkv__fail(QKV_USAGE, "\"split\" must be true, false or \"auto\"");
}

static qkv_status get_wanted(const qkv__request *r, wanted *w)
{
    const qkv_server *s = r->server;
    const char *format = "text";
    size_t length = 4;
    bool not_auto;
    qkv_status status = qkv__need_strings(r->body, "q", &w->texts);
    if (!status) status = get_language(r->body, "source", s->source_language, &w->codes[0], &w->is_auto);
    if (!status) status = get_language(r->body, "target", s->target_language, &w->codes[1], &not_auto);
    if (!status) status = qkv__get_string(r->body, "format", &format, &length);
    if (!status && strcmp(format, "text"))
        status = qkv__fail(QKV_USAGE, "\"format\" is \"%.40s\": this server translates \"text\" alone", format);
    if (!status) status = get_split(r->body, r->is_form, &w->split);
    return status ? status : get_alternatives(r->body, r->is_form, &w->alternatives);
}

/* ---- the answer ---- */

typedef struct translated {
    bool is_array;
    qkv_texts texts;
    qkv__passages passages;
    qkv_translations t; /* of the part */
    qkv_text joined, whole;
} translated;

/* With the white space around the text. */
static void put_joined(qkv__json *j, translated *x, int64_t i, int k)
{
    const char *text = x->texts.texts[i];
    const size_t length = x->texts.lengths[i];
    const qkv_span inner = qkv__trim(text, length);
    qkv_status status = qkv__passages_join(&x->passages, i, &x->t, k, false, &x->joined);
    qkv__text_clear(&x->whole);
    if (!status) status = qkv__text_put(&x->whole, text, inner.begin);
    if (!status) status = qkv__text_put(&x->whole, x->joined.data, x->joined.length);
    if (!status) status = qkv__text_put(&x->whole, text + inner.end, length - inner.end);
    if (!j->status) j->status = status;
    qkv__put_string(j, x->whole.data, x->whole.length);
}

static void put_alternatives(qkv__json *j, translated *x, int64_t i)
{
    qkv__put_raw(j, "[");
    for (int k = 1; k < x->t.n_best && qkv__passages_have(&x->passages, i, &x->t, k); k++) {
        if (k > 1) qkv__put_raw(j, ",");
        put_joined(j, x, i, k);
    }
    qkv__put_raw(j, "]");
}

static void put_best(qkv__json *j, translated *x, int64_t i) { put_joined(j, x, i, 0); }

/* One for each text: an array where the request had one. */
static void put_each(qkv__json *j, translated *x, void (*put_one)(qkv__json *, translated *, int64_t))
{
    if (x->is_array) qkv__put_raw(j, "[");
    for (int64_t i = 0; i < x->texts.n; i++) {
        if (i) qkv__put_raw(j, ",");
        put_one(j, x, i);
    }
    if (x->is_array) qkv__put_raw(j, "]");
}

/* There is one source language to detect: nothing was measured, and the confidence says so. */
static void put_detected(qkv__json *j, const qkv_server *s, const wanted *w)
{
    qkv__put_raw(j, ",\"detectedLanguage\":");
    if (w->texts.is_array) qkv__put_raw(j, "[");
    for (int64_t i = 0; i < w->texts.n; i++) {
        qkv__put_raw(j, i ? "," : "");
        qkv__put_raw(j, "{\"confidence\":0,\"language\":");
        qkv__put_name(j, s->source_language);
        qkv__put_raw(j, "}");
    }
    if (w->texts.is_array) qkv__put_raw(j, "]");
}

static void put_translations(qkv__json *j, const qkv_server *s, const wanted *w, translated *x)
{
    qkv__put_raw(j, "{\"translatedText\":");
    put_each(j, x, put_best);
    if (w->alternatives) {
        qkv__put_raw(j, ",\"alternatives\":");
        put_each(j, x, put_alternatives);
    }
    if (w->is_auto) put_detected(j, s, w);
    qkv__put_raw(j, "}\n");
}

static qkv_status check_text_lengths(const translated *x)
{
    const int64_t *first = x->passages.first;
    char name[80];
    for (int64_t s = 0, i = 0; s < x->t.n; s++) {
        while (s >= first[i + 1]) i++;
        if (!x->t.status[s]) continue;
        snprintf(name, sizeof name, "passage %lld of text %lld", (long long)(s - first[i] + 1), (long long)i);
        return qkv__refuse_source(&x->t, s, name);
    }
    return QKV_OK;
}

static qkv_status translate_texts(const qkv_model *m, const qkv_texts *texts, const qkv__part *first, qkv_each_step each_step,
                                  void *data, qkv__joint_result *out)
{
    const qkv_translate_opts opts = { .size = sizeof opts,
                                      .n_best = first->n_best,
                                      .source_lang = first->source_lang,
                                      .target_lang = first->target_lang,
                                      .each_step = each_step,
                                      .each_step_data = data };
    return qkv_translate(m, texts->texts, texts->lengths, texts->n, &opts, &out->translations);
}

qkv_status qkv__serve_translation(qkv__request *r)
{
    wanted w = { .alternatives = 0 };
    translated x = { 0 };
    qkv_status status = get_wanted(r, &w);
    x.is_array = w.texts.is_array;
    x.texts = (qkv_texts){ .texts = w.texts.texts, .lengths = w.texts.lengths, .n = w.texts.n };
    const qkv_translate_opts opts = {
        .size = sizeof opts, .split = w.split, .source_lang = w.codes[0], .target_lang = w.codes[1]
    };
    if (!status) status = qkv__passages_cut(&x.passages, r->served->model, &x.texts, &opts, MOST_SENTENCES);
    const qkv__passages *p = &x.passages;
    qkv__part part = { .request = r,
                       .run = translate_texts,
                       .n_best = (int)w.alternatives + 1,
                       .source_lang = w.codes[0],
                       .target_lang = w.codes[1],
                       .texts = { .texts = p->passages, .lengths = p->lengths, .n = p->n } };
    if (!status) status = qkv__join(&r->served->joint, &part);
    if (!status) x.t = qkv__part_translations(&part);
    if (!status) status = check_text_lengths(&x);
    if (!status) put_translations(&r->answer, r->server, &w, &x);
    qkv__part_free(&r->served->joint, &part);
    qkv__passages_free(&x.passages);
    qkv_text_free(&x.joined);
    qkv_text_free(&x.whole);
    return status;
}
