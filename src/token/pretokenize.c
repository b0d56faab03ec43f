/* pretokenize.c: the pre-tokenizers of a published tokenizer: where text is cut before the model sees it. */
#include "alphabet.h"

#include <qkv/unstable/util.h>
#include "pipeline.h"
#include "unicode.h"

#include <string.h>

/* ---- cuts ---- */

static qkv_status put_cut(qkv__encoder *e, size_t begin, size_t end, bool is_match)
{
    if (begin == end) return QKV_OK;
    if (qkv__grow((void **)&e->cuts, &e->cuts_bytes, (e->n_cuts + 1) * sizeof *e->cuts)) return QKV_MEMORY;
    e->cuts[e->n_cuts++] = (qkv__cut){ begin, end, is_match };
    return QKV_OK;
}

/* Each character of a kind is a match of its own; the others between them lie together. */
static qkv_status cut_by_kind(qkv__encoder *e, qkv__piece piece, bool (*is_kind)(int32_t c))
{
    size_t done = piece.begin;
    qkv_status status = QKV_OK;
    e->n_cuts = 0;
    for (size_t at = piece.begin, bytes; at < piece.end && !status; at += bytes) {
        if (!is_kind(qkv_utf8_next(e->now.text.data + at, piece.end - at, &bytes))) continue;
        status = put_cut(e, done, at, false);
        if (!status) status = put_cut(e, at, at + bytes, true);
        done = at + bytes;
    }
    return status ? status : put_cut(e, done, piece.end, false);
}

static qkv_status cut_by_text(qkv__encoder *e, qkv__piece piece, const char *wanted)
{
    size_t at = piece.begin, length = strlen(wanted), begin;
    qkv_status status = QKV_OK;
    e->n_cuts = 0;
    while (!status && (begin = qkv__traced_text_find(&e->now, at, piece.end, wanted)) < piece.end) {
        status = put_cut(e, at, begin, false);
        if (!status) status = put_cut(e, begin, begin + length, true);
        at = begin + length;
    }
    return status ? status : put_cut(e, at, piece.end, false);
}

static qkv_status cut_by_pattern(qkv__encoder *e, qkv__piece piece, const qkv__pattern *pattern)
{
    size_t at = piece.begin;
    qkv_status status = QKV_OK;
    e->n_cuts = 0;
    qkv__cut_begin_at(&e->cutter, e->now.text.data, piece.begin, piece.end);
    while (at < piece.end && !status) {
        size_t begin, end;
        status = qkv__cut_find(&e->cutter, pattern, at, &begin, &end);
        if (!status) status = put_cut(e, at, begin, false);
        if (!status) status = put_cut(e, begin, end, true);
        at = end;
    }
    return status;
}

/* ---- what becomes of them ---- */

/* Joins cut i to the one before it, by what is done with matches. */
static bool joins(const qkv__encoder *e, size_t i, qkv__behavior behavior)
{
    const qkv__cut *c = e->cuts;
    if (!i) return false;
    if (behavior == QKV__CONTIGUOUS) return c[i].is_match == c[i - 1].is_match;
    if (behavior == QKV__MERGED_WITH_PREVIOUS) return c[i].is_match && !c[i - 1].is_match;
    return behavior == QKV__MERGED_WITH_NEXT && c[i - 1].is_match && !c[i].is_match;
}

static qkv_status put_cuts(qkv__encoder *e, qkv__behavior behavior, bool invert)
{
    qkv_status status = QKV_OK;
    size_t begin = e->next.text.length;
    for (size_t i = 0; i < e->n_cuts; i++) e->cuts[i].is_match ^= invert;
    for (size_t i = 0; i < e->n_cuts && !status; i++) {
        if (behavior == QKV__REMOVED && e->cuts[i].is_match) continue;
        if (!joins(e, i, behavior)) {
            status = qkv__traced_text_end(&e->next, begin, -1);
            begin = e->next.text.length;
        }
        if (!status) status = qkv__traced_text_copy(&e->next, &e->now, e->cuts[i].begin, e->cuts[i].end);
    }
    return status ? status : qkv__traced_text_end(&e->next, begin, -1);
}

qkv_status qkv__split(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    qkv_status status = s->pattern ? cut_by_pattern(e, piece, s->pattern) : cut_by_text(e, piece, s->text);
    return status ? status : put_cuts(e, s->behavior, s->invert);
}

/* ---- by kinds of characters ---- */

static bool is_blank(int32_t c) { return qkv__is_space(c); }

qkv_status qkv__whitespace_split(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    (void)s;
    qkv_status status = cut_by_kind(e, piece, is_blank);
    return status ? status : put_cuts(e, QKV__REMOVED, false);
}

qkv_status qkv__digits(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    qkv_status status = cut_by_kind(e, piece, qkv__is_number);
    return status ? status : put_cuts(e, s->individual ? QKV__ISOLATED : QKV__CONTIGUOUS, false);
}

qkv_status qkv__punctuation(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    qkv_status status = cut_by_kind(e, piece, qkv__is_punctuation);
    return status ? status : put_cuts(e, s->behavior, false);
}

/* Pieces of so many characters; the last may have fewer. */
qkv_status qkv__fixed_length(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    size_t begin = piece.begin;
    int64_t n = 0;
    qkv_status status = QKV_OK;
    e->n_cuts = 0;
    for (size_t at = piece.begin, bytes; at < piece.end && !status; at += bytes) {
        qkv_utf8_next(e->now.text.data + at, piece.end - at, &bytes);
        if (++n < s->start) continue;
        status = put_cut(e, begin, at + bytes, true);
        begin = at + bytes;
        n = 0;
    }
    if (!status) status = put_cut(e, begin, piece.end, true);
    return status ? status : put_cuts(e, QKV__ISOLATED, false);
}

/* Words, and stretches of what is neither word nor white space: \w+|[^\w\s]+ */
qkv_status qkv__whitespace(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    (void)s;
    size_t begin = e->next.text.length;
    int before = 0; /* 0: white space, 1: a word, 2: signs */
    qkv_status status = QKV_OK;
    for (size_t at = piece.begin, bytes; at < piece.end && !status; at += bytes) {
        int32_t c = qkv_utf8_next(e->now.text.data + at, piece.end - at, &bytes);
        int kind = qkv__is_word(c) ? 1 : qkv__is_space(c) ? 0 : 2;
        if (kind != before) {
            status = qkv__traced_text_end(&e->next, begin, -1);
            begin = e->next.text.length;
        }
        if (kind && !status) status = qkv__traced_text_copy(&e->next, &e->now, at, at + bytes);
        before = kind;
    }
    return status ? status : qkv__traced_text_end(&e->next, begin, -1);
}

/* White space goes, and each sign of punctuation stands alone. */
qkv_status qkv__bert_split(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    (void)s;
    size_t begin = e->next.text.length;
    qkv_status status = QKV_OK;
    for (size_t at = piece.begin, bytes; at < piece.end && !status; at += bytes) {
        int32_t c = qkv_utf8_next(e->now.text.data + at, piece.end - at, &bytes);
        bool space = qkv__is_space(c), sign = qkv__is_punctuation(c);
        if (space || sign) status = qkv__traced_text_end(&e->next, begin, -1), begin = e->next.text.length;
        if (!space && !status) status = qkv__traced_text_copy(&e->next, &e->now, at, at + bytes);
        if (sign && !status) status = qkv__traced_text_end(&e->next, begin, -1), begin = e->next.text.length;
    }
    return status ? status : qkv__traced_text_end(&e->next, begin, -1);
}

/* Stretches of one script. Spaces, and what has none, belong to any: they stay with what is before them, and nothing is before the
 * first. */
qkv_status qkv__unicode_scripts(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    (void)s;
    size_t begin = e->next.text.length;
    int before = 0;
    qkv_status status = QKV_OK;
    for (size_t at = piece.begin, bytes; at < piece.end && !status; at += bytes) {
        int32_t c = qkv_utf8_next(e->now.text.data + at, piece.end - at, &bytes);
        int script = c == ' ' ? 0 : qkv__script(c);
        if (script && script != before) {
            status = qkv__traced_text_end(&e->next, begin, -1);
            begin = e->next.text.length;
            before = script;
        }
        if (before && !status) status = qkv__traced_text_copy(&e->next, &e->now, at, at + bytes);
    }
    return status ? status : qkv__traced_text_end(&e->next, begin, -1);
}

/* ---- bytes and spaces that can be seen ---- */

qkv_status qkv__byte_level(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    (void)s;
    size_t begin = e->next.text.length;
    qkv_status status = QKV_OK;
    for (size_t at = piece.begin; at < piece.end && !status; at++) {
        char spelled[QKV__SPELLED_MAX];
        size_t n = qkv__spell_byte((unsigned char)e->now.text.data[at], spelled);
        status = qkv__traced_text_put(&e->next, spelled, n, e->now.from[at]);
    }
    return status ? status : qkv__traced_text_end(&e->next, begin, -1);
}

/* A piece that does not start with the text gets it: every piece, or the one that starts the whole text. */
qkv_status qkv__prepend_missing(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    size_t length = strlen(s->text);
    bool has_it = piece.end - piece.begin >= length && !memcmp(e->now.text.data + piece.begin, s->text, length);
    bool wanted = s->prepend == QKV__ALWAYS || (s->prepend == QKV__FIRST && !e->now.from[piece.begin].begin);
    return wanted && !has_it ? qkv__prepend_text(s, e, piece) : qkv__traced_text_keep(&e->next, &e->now, piece);
}
