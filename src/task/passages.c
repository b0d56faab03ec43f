/* passages.c: texts as lines and sentences, and their translations joined again. A translator that was trained on single
 * sentences makes one of several, or loses the later ones. */
#include "passages.h"

#include <qkv/unstable/util.h>

#include "../base/memory.h"
#include "../base/size.h"
#include "../base/status.h"
#include "../model/model_info.h"
#include "../base/buffer.h"
#include "../token/encode.h"

#include <string.h>
#include <utf8proc.h>

/* ---- cutting ---- */

typedef struct cutting {
    qkv__passages *p;
    qkv_split split;
    const qkv_tokenizer *tokenizer;
    int64_t max_sentences, max_tokens; /* of a passage */
    qkv__ids ids;
    qkv_buffer repaired;
} cutting;

static qkv_status add_passage(qkv__passages *p, const char *text, size_t length)
{
    const size_t n = (size_t)p->n + 1;
    if (qkv__grow((void **)&p->passages, &p->bytes[0], n * sizeof *p->passages)) return QKV_MEMORY;
    p->passages[p->n++] = (qkv_str){ text, length };
    return QKV_OK;
}

/* What cannot be encoded is reported where the passage is translated. */
static qkv_status count_tokens(cutting *c, const char *text, size_t length, int64_t *n)
{
    if (qkv_utf8_valid(text, length) < length) {
        if (qkv__utf8_repair(text, length, &c->repaired)) return QKV_MEMORY;
        text = c->repaired.data;
        length = c->repaired.length;
    }
    qkv_status status = qkv__encode(c->tokenizer, text, length, NULL, &c->ids);
    *n = status ? (int64_t)length : (int64_t)c->ids.n;
    return status == QKV_MEMORY ? status : QKV_OK;
}

/* With PARTS a sentence joins the ones before it while they fit; the space between counts as a token. */
static qkv_status cut_sentences(cutting *c, const char *text, size_t length)
{
    qkv__passages *p = c->p;
    const int64_t first = p->n;
    int64_t tokens = 0, more = 0;
    qkv_status status = QKV_OK;
    for (qkv_span s = { 0, 0 }; !status && qkv_sentence_next(text, length, &s);) {
        if (c->split == QKV_SPLIT_PARTS) status = count_tokens(c, text + s.begin, s.end - s.begin, &more);
        bool joins = c->split == QKV_SPLIT_PARTS && p->n > first && tokens + 1 + more <= c->max_tokens;
        if (joins) p->passages[p->n - 1].length = (size_t)(text + s.end - p->passages[p->n - 1].data);
        else if (!status) status = add_passage(p, text + s.begin, s.end - s.begin);
        tokens = joins ? tokens + 1 + more : more;
    }
    return status;
}

static int64_t count_sentences(const char *text, size_t length)
{
    int64_t n = 0;
    for (qkv_span s = { 0, 0 }; qkv_sentence_next(text, length, &s);) n++;
    return n;
}

/* A line that is not cut is translated as it is, white space included. A blank one has no passage. */
static qkv_status cut_line(cutting *c, const char *line, size_t length)
{
    const int64_t n = count_sentences(line, length);
    int64_t tokens = 0;
    qkv_status status = n > 1 && n <= c->max_sentences ? count_tokens(c, line, length, &tokens) : QKV_OK;
    if (status || !n) return status;
    return n > c->max_sentences || tokens > c->max_tokens ? cut_sentences(c, line, length) : add_passage(c->p, line, length);
}

static qkv_status cut_text(cutting *c, const char *text, size_t length)
{
    if (c->split == QKV_SPLIT_NONE) return add_passage(c->p, text, length);
    if (c->split != QKV_SPLIT_AUTO) return cut_sentences(c, text, length);
    qkv_status status = QKV_OK;
    for (size_t at = 0, end; at < length && !status; at = end + 1) {
        for (end = at; end < length && text[end] != '\n' && text[end] != '\r';) end++;
        status = cut_line(c, text + at, end - at);
    }
    return status;
}

/* The limits of a passage; the source prefix takes tokens too. */
static qkv_status find_limits(cutting *c, const qkv_model *m, const qkv_translate_opts *o)
{
    qkv_translations *none = NULL;
    qkv_translate_opts whole = *o;
    whole.split = QKV_SPLIT_NONE;
    qkv_status status = qkv_translate(m, NULL, 0, &whole, &none);
    int64_t before = 0;
    c->tokenizer = qkv_model_tokenizer(m, QKV_SIDE_SOURCE);
    if (!status && o->source_prefix) status = count_tokens(c, o->source_prefix, strlen(o->source_prefix), &before);
    c->max_tokens = status ? 1 : qkv__max(1, none->max_source - before - (before > 0));
    c->max_sentences = qkv__max_sentences(qkv__model_get_info(m));
    if (o->target_prefix && o->split == QKV_SPLIT_AUTO) c->max_sentences = c->max_tokens = INT64_MAX;
    qkv_free(none);
    return status;
}

qkv_status qkv__passages_cut(qkv__passages *p, const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_translate_opts *o,
                             int64_t most)
{
    cutting c = { .p = p, .split = o->split };
    qkv_status status = qkv__grow((void **)&p->first, &p->bytes[1], (size_t)(n + 1) * sizeof *p->first);
    if (!status && o->split > QKV_SPLIT_SENTENCES) status = find_limits(&c, m, o);
    for (int64_t i = 0; i < n && !status; i++) {
        p->first[i] = p->n;
        status = cut_text(&c, texts[i].data, texts[i].length);
    }
    if (!status) p->first[n] = p->n;
    qkv__ids_free(&c.ids);
    qkv_buffer_free(&c.repaired);
    if (status || p->n <= most) return status;
    return qkv__fail(QKV_USAGE, "the texts have %lld sentences: at most %lld go in one request", (long long)p->n,
                     (long long)most);
}

void qkv__passages_free(qkv__passages *p)
{
    qkv__release(p->passages, p->bytes[0]);
    qkv__release(p->first, p->bytes[1]);
    *p = (qkv__passages){ 0 };
}

/* ---- joining ---- */

qkv_span qkv__trim(const char *text, size_t length)
{
    qkv_span s = { length, length };
    for (size_t at = 0, bytes; at < length; at += bytes) {
        if (qkv__is_space(qkv_utf8_next(text + at, length - at, &bytes))) continue;
        if (s.begin == length) s.begin = at;
        s.end = at + bytes;
    }
    if (s.begin == length) s.end = length;
    return s;
}

static const qkv_translation *translation_of(const qkv_translations *t, int64_t passage, int k)
{
    while (k > 0 && t->best[passage * t->n_best + k].n_ids < 0) k--;
    return &t->best[passage * t->n_best + k];
}

/* Letters of Chinese, Japanese and Thai, which are written without spaces. */
static bool is_unspaced(int32_t c)
{
    return (c >= 0x0E01 && c <= 0x0E4E) || (c >= 0x3040 && c <= 0x312F) || (c >= 0x31A0 && c <= 0x31FF) ||
           (c >= 0x3400 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFF66 && c <= 0xFF9F) ||
           (c >= 0x20000 && c <= 0x3FFFF);
}

/* CJK punctuation and full-width forms have their space inside. */
static bool is_square(int32_t c) { return (c >= 0x3000 && c <= 0x303F) || (c >= 0xFF00 && c <= 0xFF60); }

static bool is_letter(int32_t c)
{
    utf8proc_category_t category = utf8proc_category(c < 0 ? 0 : c);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

/* The last letter of a text; -1: none. *last is its last character. */
static int32_t last_letter(const char *text, size_t length, int32_t *last)
{
    size_t at = length, bytes;
    for (*last = -1; at;) {
        do at--;
        while (at && ((unsigned char)text[at] & 0xC0) == 0x80);
        int32_t c = qkv_utf8_next(text + at, length - at, &bytes);
        if (*last < 0) *last = c;
        if (is_letter(c)) return c;
    }
    return -1;
}

static int32_t first_letter(const char *text, size_t length)
{
    for (size_t at = 0, bytes; at < length; at += bytes) {
        int32_t c = qkv_utf8_next(text + at, length - at, &bytes);
        if (is_letter(c)) return c;
    }
    return -1;
}

/* By the letters on both sides. A side without letters, such as a number, follows the other one. */
static bool joins_without_space(const qkv_buffer *before, const qkv_translation *next)
{
    int32_t last, left = last_letter(before->data, before->length, &last),
                  right = first_letter(next->text.data, next->text.length);
    if (is_square(last)) return true;
    return is_unspaced(left < 0 ? right : left) && is_unspaced(right < 0 ? left : right);
}

static qkv_status put_between(qkv_buffer *out, const char *gap, size_t length, const qkv_translation *next, bool in_line)
{
    bool ends_line = memchr(gap, '\n', length) || memchr(gap, '\r', length);
    if (ends_line && !in_line) return qkv__buffer_put(out, gap, length);
    if (!out->length || !next->text.length || joins_without_space(out, next)) return QKV_OK;
    bool is_kept = length && !ends_line && (unsigned char)*gap < 0x80;
    return is_kept ? qkv__buffer_put(out, gap, length) : qkv__buffer_put(out, " ", 1);
}

qkv_status qkv__passages_join(const qkv__passages *p, int64_t i, const qkv_translations *t, int k, bool in_line,
                              qkv_buffer *out)
{
    const char *at = NULL;
    qkv__buffer_clear(out);
    qkv_status status = qkv__buffer_put(out, "", 0);
    for (int64_t s = p->first[i]; s < p->first[i + 1] && !status; s++) {
        const qkv_translation *x = translation_of(t, s, k);
        const qkv_str passage = p->passages[s];
        const qkv_span inner = qkv__trim(passage.data, passage.length);
        const char *begin = passage.data + inner.begin;
        if (at) status = put_between(out, at, (size_t)(begin - at), x, in_line);
        if (!status) status = qkv__buffer_put(out, x->text.data, x->text.length);
        at = passage.data + inner.end;
    }
    return status;
}

bool qkv__passages_have(const qkv__passages *p, int64_t i, const qkv_translations *t, int k)
{
    for (int64_t s = p->first[i]; s < p->first[i + 1]; s++)
        if (t->best[s * t->n_best + k].n_ids >= 0) return true;
    return false;
}
