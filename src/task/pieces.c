/* pieces.c: a text as tokens, and the words that they are of. */
#include "pieces.h"

#include <qkv/unstable/util.h>

#include "../base/buffer.h"
#include "../token/pipeline.h"
#include "../token/tokenizer.h"
#include "../token/unicode.h"

#include <string.h>

/* ---- words ---- */

/* The character that ends before `at`; -1: there is none. */
static int32_t character_before(const char *text, size_t at)
{
    size_t begin = at, bytes;
    while (begin && at - begin < 4 && ((unsigned char)text[--begin] & 0xC0) == 0x80) {}
    return qkv_utf8_next(text + begin, at - begin, &bytes);
}

static bool is_ideograph(int32_t c) { return (c >= 0x2E80 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) || c >= 0x20000; }

/* A letter, a mark or a digit of a script that has spaces between its words. */
static bool is_inside_words(int32_t c)
{
    utf8proc_category_t kind = c < 0 ? UTF8PROC_CATEGORY_CN : qkv__category(c);
    return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_NO && !is_ideograph(c);
}

/* The span without white space around it. */
static qkv_span without_space(const char *text, qkv_span s)
{
    size_t bytes, end = s.begin;
    for (size_t at = s.begin; at < s.end; at += bytes) {
        bool is_space = qkv__is_space(qkv_utf8_next(text + at, s.end - at, &bytes));
        if (is_space && at == s.begin) s.begin = end = at + bytes;
        else if (!is_space) end = at + bytes;
    }
    return (qkv_span){ s.begin, end };
}

static bool begins_word(const qkv_tokenizer *t, const char *text, size_t length, size_t at, int32_t id)
{
    const char *mark = t->pipeline ? t->pipeline->prefix : NULL, *token = qkv_tokenizer_token(t, id);
    if (mark && *mark) return !token || strncmp(token, mark, strlen(mark)) != 0;
    if (((unsigned char)text[at] & 0xC0) == 0x80) return false; /* a part of a character */
    return !is_inside_words(character_before(text, at)) || !is_inside_words(qkv_utf8_next(text + at, length - at, NULL));
}

/* ---- pieces ---- */

/* A space that stands alone is the first token of the word behind it, which has its label: so taggers learn it. */
static void take_space_along(qkv__pieces *p, size_t i)
{
    if (!i || !p->starts[i] || p->spans[i - 1].begin < p->spans[i - 1].end) return;
    p->spans[i - 1] = p->spans[i];
    p->starts[i - 1] = true;
    p->starts[i] = false;
}

static qkv_status keep_pieces(const qkv_tokenizer *t, const qkv__ids *ids, void *result, qkv__pieces *out)
{
    bool is_first = true;
    out->n = (int64_t)ids->n;
    out->spans = qkv__result_alloc(result, sizeof *out->spans * ids->n);
    out->starts = qkv__result_alloc(result, sizeof *out->starts * ids->n);
    if (!out->spans || !out->starts) return QKV_MEMORY;
    for (size_t i = 0; i < ids->n; i++) {
        qkv_span s = out->spans[i] = without_space(out->text.data, ids->spans[i]);
        bool is_empty = s.begin >= s.end;
        out->starts[i] = !is_empty && (is_first || begins_word(t, out->text.data, out->text.length, s.begin, ids->ids[i]));
        is_first = is_first && is_empty;
        take_space_along(out, i);
    }
    return QKV_OK;
}

qkv_status qkv__read_pieces(const qkv_tokenizer *t, qkv_str text, void *result, qkv__reader *r, qkv__pieces *out)
{
    *out = (qkv__pieces){ .begin = r->n };
    qkv_status status = qkv__utf8_repair(text.data, text.length, &r->repaired);
    if (!status) out->text = qkv__result_copy(result, r->repaired.data, r->repaired.length);
    if (!out->text.data) return QKV_MEMORY;
    status = qkv__reader_encode(r, t, out->text.data, out->text.length);
    return status ? status : keep_pieces(t, &r->encoded, result, out);
}
