/* translation.c: POST /translate and GET /languages, as LibreTranslate has them. */
#include "../../src/task/passages.h"
#include "../../src/task/translate.h"
#include "../../src/base/buffer.h"
#include "html.h"
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

/* The code of the source or target language: of the server's options, or recorded in training; NULL: unknown. */
static const char *source_code(const qkv__request *r)
{
    const char *recorded = qkv_model_get_info(r->served->model)->source_language;
    return r->server->source_language ? r->server->source_language : *recorded ? recorded : NULL;
}

static const char *target_code(const qkv__request *r)
{
    const char *recorded = qkv_model_get_info(r->served->model)->target_language;
    return r->server->target_language ? r->server->target_language : *recorded ? recorded : NULL;
}

static const char *code_or(const char *code, const char *other) { return code ? code : other; }

qkv_status qkv__serve_languages(qkv__request *r)
{
    const char *source = code_or(source_code(r), "source"), *target = code_or(target_code(r), "target");
    qkv__put_raw(&r->answer, "[");
    put_language(&r->answer, source, target);
    qkv__put_raw(&r->answer, ",");
    put_language(&r->answer, target, NULL);
    qkv__put_raw(&r->answer, "]\n");
    return QKV_OK;
}

/* ---- POST /translate: the request ---- */

typedef struct wanted {
    qkv__strings texts;
    int64_t alternatives;
    bool is_auto, is_html;
    qkv_split split;
    const char *codes[2]; /* the model's, of source and target; NULL: not chosen */
} wanted;

/* NAME_lang is a code of a model of many languages; NAME may then be missing. Without a known code (ours is NULL) NAME may be any
 * code; a model of many languages takes it as its own. */
static qkv_status get_language(const qkv__request *r, const char *name, const char *ours, const char **own, bool *is_auto)
{
    char own_name[16];
    const char *code = NULL;
    size_t length = 0;
    const bool is_source = !strcmp(name, "source");
    snprintf(own_name, sizeof own_name, "%s_lang", name);
    qkv_status status = qkv__get_string(r->body, own_name, own, &length);
    if (!status) status = qkv__get_string(r->body, name, &code, &length);
    *is_auto = false;
    if (!status && !code && *own) return QKV_OK;
    if (!status && !code) status = qkv__fail(QKV_USAGE, "\"%s\" is missing", name);
    if (status) return status;
    if (!*code || strlen(code) < length) return qkv__fail(QKV_USAGE, "\"%s\" is no code of a language", name);
    *is_auto = is_source && !strcmp(code, "auto");
    if (*is_auto || (ours && !strcmp(code, ours))) return QKV_OK;
    if (ours) return qkv__fail(QKV_USAGE, "\"%s\" is \"%.40s\": this server knows \"%s\"", name, code, ours);
    const qkv__coding coding = r->served->coding;
    if (!*own && (is_source ? coding == QKV__CODED_BOTH : coding != QKV__NOT_CODED)) *own = code;
    return QKV_OK;
}

/* A form and a query have no numbers, only their digits. */
static qkv_status get_alternatives(const qkv__json_value *body, int64_t *n)
{
    const char *digits = NULL;
    size_t length = 0;
    if (!qkv__json_is_string(qkv__json_get(body, "alternatives")))
        return qkv__get_whole(body, "alternatives", 0, MOST_ALTERNATIVES, n);
    qkv_status status = qkv__get_string(body, "alternatives", &digits, &length);
    if (status || !digits) return status;
    *n = length && length < 3 && strspn(digits, "0123456789") == length ? atoi(digits) : -1;
    if (*n < 0 || *n > MOST_ALTERNATIVES)
        return qkv__fail(QKV_USAGE, "\"alternatives\" must be a whole number from 0 to %d", MOST_ALTERNATIVES);
    return QKV_OK;
}

/* true, false or "auto"; a form has them as text. */
static qkv_status get_split(const qkv__json_value *body, qkv_split *split)
{
    static const char *const words[] = { "false", "true", "auto" };
    static const qkv_split meant[] = { QKV_SPLIT_NONE, QKV_SPLIT_SENTENCES, QKV_SPLIT_AUTO };
    const qkv__json_value *value = qkv__json_get(body, "split");
    const char *word = qkv__json_is_bool(value) ? words[qkv__json_is_true(value)] : qkv__json_text(value);
    *split = QKV_SPLIT_AUTO;
    if (!value || qkv__json_is_null(value)) return QKV_OK;
    for (int i = 0; word && i < 3; i++)
        if (!strcmp(word, words[i])) return *split = meant[i], QKV_OK;
    return qkv__fail(QKV_USAGE, "\"split\" must be true, false or \"auto\"");
}

static qkv_status get_wanted(const qkv__request *r, wanted *w)
{
    const char *format = "text";
    size_t length = 4;
    bool not_auto;
    qkv_status status = qkv__need_strings(r->body, "q", &w->texts);
    if (!status) status = get_language(r, "source", source_code(r), &w->codes[0], &w->is_auto);
    if (!status) status = get_language(r, "target", target_code(r), &w->codes[1], &not_auto);
    if (!status) status = qkv__get_string(r->body, "format", &format, &length);
    w->is_html = !strcmp(format, "html");
    if (!status && !w->is_html && strcmp(format, "text"))
        status = qkv__fail(QKV_USAGE, "\"format\" is \"%.40s\": it is \"text\" or \"html\"", format);
    if (!status) status = get_split(r->body, &w->split);
    return status ? status : get_alternatives(r->body, &w->alternatives);
}

/* ---- the answer ---- */

/* Document i has the texts first[i] .. first[i + 1] - 1: several if it is HTML, else one. */
typedef struct translated {
    bool is_array, is_html;
    int64_t n, first[QKV__TEXTS + 1];
    qkv__html html;
    qkv_str *html_texts;
    const qkv_str *texts; /* n_texts of them */
    int64_t n_texts;
    qkv__passages passages;
    qkv_translations t; /* of the part */
    qkv_buffer joined, whole;
} translated;

static qkv_status find_texts(const wanted *w, translated *x)
{
    x->is_array = w->texts.is_array;
    x->is_html = w->is_html;
    x->n = w->texts.n;
    x->texts = w->texts.texts;
    x->n_texts = w->texts.n;
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < x->n && !status; i++) {
        if (x->is_html) status = qkv__html_add(&x->html, w->texts.texts[i].data, w->texts.texts[i].length, MOST_SENTENCES + i);
        x->first[i + 1] = x->is_html ? x->html.n : i + 1;
    }
    if (status || !x->is_html) return status;
    x->html_texts = qkv__alloc((size_t)x->html.n * sizeof *x->html_texts);
    if (!x->html_texts) return QKV_MEMORY;
    for (int64_t i = 0; i < x->html.n; i++)
        x->html_texts[i] = (qkv_str){ x->html.texts.data + x->html.pieces[i].text, x->html.pieces[i].text_length };
    x->texts = x->html_texts;
    x->n_texts = x->html.n;
    return QKV_OK;
}

static void free_translated(translated *x)
{
    qkv__release(x->html_texts, (size_t)x->html.n * sizeof *x->html_texts);
    qkv__html_free(&x->html);
    qkv__passages_free(&x->passages);
    qkv_buffer_free(&x->joined);
    qkv_buffer_free(&x->whole);
}

/* Adds text i to x->whole, with the markup before it and the white space around it. */
static qkv_status add_joined(translated *x, int64_t i, int k)
{
    const char *text = x->texts[i].data;
    const size_t length = x->texts[i].length;
    const qkv_span inner = qkv__trim(text, length);
    const qkv__html_piece *piece = x->is_html ? &x->html.pieces[i] : NULL;
    qkv_status status = qkv__passages_join(&x->passages, i, &x->t, k, false, &x->joined);
    if (!status && piece) status = qkv__buffer_put(&x->whole, piece->markup, piece->markup_length);
    if (!status) status = qkv__buffer_put(&x->whole, text, inner.begin);
    if (!status && piece) status = qkv__html_put_text(&x->whole, x->joined.data, x->joined.length);
    if (!status && !piece) status = qkv__buffer_put(&x->whole, x->joined.data, x->joined.length);
    return status ? status : qkv__buffer_put(&x->whole, text + inner.end, length - inner.end);
}

static void put_joined(qkv__json *j, translated *x, int64_t document, int k)
{
    qkv__buffer_clear(&x->whole);
    qkv_status status = qkv__buffer_put(&x->whole, "", 0);
    for (int64_t i = x->first[document]; i < x->first[document + 1] && !status; i++) status = add_joined(x, i, k);
    if (!j->status) j->status = status;
    qkv__put_string(j, x->whole.data, x->whole.length);
}

static bool has_alternative(const translated *x, int64_t document, int k)
{
    for (int64_t i = x->first[document]; i < x->first[document + 1]; i++)
        if (qkv__passages_have(&x->passages, i, &x->t, k)) return true;
    return false;
}

static void put_alternatives(qkv__json *j, translated *x, int64_t document)
{
    qkv__put_raw(j, "[");
    for (int k = 1; k < x->t.n_best && has_alternative(x, document, k); k++) {
        if (k > 1) qkv__put_raw(j, ",");
        put_joined(j, x, document, k);
    }
    qkv__put_raw(j, "]");
}

static void put_best(qkv__json *j, translated *x, int64_t document) { put_joined(j, x, document, 0); }

/* One for each text: an array where the request had one. */
static void put_each(qkv__json *j, translated *x, void (*put_one)(qkv__json *, translated *, int64_t))
{
    if (x->is_array) qkv__put_raw(j, "[");
    for (int64_t i = 0; i < x->n; i++) {
        if (i) qkv__put_raw(j, ",");
        put_one(j, x, i);
    }
    if (x->is_array) qkv__put_raw(j, "]");
}

/* There is one source language to detect: nothing was measured, and the confidence says so. */
static void put_detected(qkv__json *j, const char *code, const wanted *w)
{
    qkv__put_raw(j, ",\"detectedLanguage\":");
    if (w->texts.is_array) qkv__put_raw(j, "[");
    for (int64_t i = 0; i < w->texts.n; i++) {
        qkv__put_raw(j, i ? "," : "");
        qkv__put_raw(j, "{\"confidence\":0,\"language\":");
        qkv__put_name(j, code);
        qkv__put_raw(j, "}");
    }
    if (w->texts.is_array) qkv__put_raw(j, "]");
}

static void put_translations(qkv__json *j, const char *code, const wanted *w, translated *x)
{
    qkv__put_raw(j, "{\"translatedText\":");
    put_each(j, x, put_best);
    if (w->alternatives) {
        qkv__put_raw(j, ",\"alternatives\":");
        put_each(j, x, put_alternatives);
    }
    if (w->is_auto) put_detected(j, code, w);
    qkv__put_raw(j, "}\n");
}

static qkv_status check_text_lengths(const translated *x)
{
    const int64_t *first = x->passages.first;
    char name[80];
    for (int64_t s = 0, i = 0, document = 0; s < x->t.n; s++) {
        while (s >= first[i + 1]) i++;
        while (i >= x->first[document + 1]) document++;
        if (!x->t.status[s]) continue;
        snprintf(name, sizeof name, "passage %lld of text %lld", (long long)(s - first[x->first[document]] + 1),
                 (long long)document);
        return qkv__refuse_source(&x->t, s, name);
    }
    return QKV_OK;
}

static qkv_status translate_texts(const qkv_model *m, const qkv__joint_texts *texts, const qkv__part *first,
                                  const qkv_hooks *hooks, qkv__joint_result *out)
{
    const qkv_translate_opts opts = { .size = sizeof opts,
                                      .n_best = first->n_best,
                                      .source_lang = first->source_lang,
                                      .target_lang = first->target_lang,
                                      .hooks = hooks };
    return qkv_translate(m, texts->texts, texts->n, &opts, &out->translations);
}

qkv_status qkv__serve_translation(qkv__request *r)
{
    wanted w = { .alternatives = 0 };
    translated x = { 0 };
    qkv_status status = get_wanted(r, &w);
    if (!status) status = find_texts(&w, &x);
    const qkv_translate_opts opts = {
        .size = sizeof opts, .split = w.split, .source_lang = w.codes[0], .target_lang = w.codes[1]
    };
    if (!status) status = qkv__passages_cut(&x.passages, r->served->model, x.texts, x.n_texts, &opts, MOST_SENTENCES);
    const qkv__passages *p = &x.passages;
    qkv__part part = { .request = r,
                       .run = translate_texts,
                       .n_best = (int)w.alternatives + 1,
                       .source_lang = w.codes[0],
                       .target_lang = w.codes[1],
                       .texts = { .texts = p->passages, .n = p->n } };
    if (!status) status = qkv__join(&r->served->joint, &part);
    if (!status) x.t = qkv__part_translations(&part);
    if (!status) status = check_text_lengths(&x);
    if (!status) put_translations(&r->answer, code_or(source_code(r), "source"), &w, &x);
    qkv__part_free(&r->served->joint, &part);
    free_translated(&x);
    return status;
}
