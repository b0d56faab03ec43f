/* charsmap.c: SentencePiece's compiled map of characters, and the two ways text goes through it.
 *
 * The map is a trie in a double array, where a step is one exclusive or, and a list of texts that end with a NUL. A unit of the
 * array has its label in the low 8 bits, whether a value follows in bit 8, and the way to its children in the upper ones. */
#include "pipeline.h"

#include <qkv/unstable/util.h>

#include "../base/number.h"

#include <string.h>
#include <utf8proc.h>

struct qkv__charsmap {
    uint32_t *units;
    size_t n, texts_length;
    char *texts; /* the last one ends with a NUL too */
};

struct qkv__charsmap *qkv__charsmap_new(const char *name, const unsigned char *bytes, size_t size)
{
    size_t trie = size >= 4 ? (size_t)qkv__load(bytes, 4, false) : 0;
    if (size < 4 || trie > size - 4 || trie % 4 || !trie) {
        qkv__fail(QKV_FORMAT, "%s: a trie of %zu bytes does not fit into the %zu bytes of the map", name, trie, size);
        return NULL;
    }
    const char *texts = (const char *)bytes + 4 + trie;
    if (qkv_utf8_valid(texts, size - 4 - trie) < size - 4 - trie) {
        qkv__fail(QKV_FORMAT, "%s: its texts are not UTF-8", name);
        return NULL;
    }
    struct qkv__charsmap *m = qkv__alloc_zero(sizeof *m);
    if (!m) return NULL;
    m->n = trie / 4;
    m->texts_length = size - 4 - trie;
    m->units = qkv__alloc(trie);
    m->texts = qkv__alloc_zero(m->texts_length + 1);
    if (m->units && m->texts) {
        for (size_t i = 0; i < m->n; i++) m->units[i] = (uint32_t)qkv__load(bytes + 4 + 4 * i, 4, false);
        memcpy(m->texts, texts, m->texts_length);
        return m;
    }
    qkv__charsmap_free(m);
    return NULL;
}

void qkv__charsmap_free(struct qkv__charsmap *m)
{
    if (!m) return;
    qkv__release(m->units, m->n * sizeof *m->units);
    qkv__release(m->texts, m->texts_length + 1);
    qkv__release(m, sizeof *m);
}

static uint32_t way(uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }

/* A place outside the array, or a value outside the texts or inside a character, ends the search: the file is not trusted. */
size_t qkv__charsmap_find(const struct qkv__charsmap *m, const char *text, size_t length, bool longest, const char **by,
                          size_t *by_length)
{
    size_t found = 0;
    uint32_t place = way(m->units[0]);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if ((place ^= byte) >= m->n || (m->units[place] & 0x800000FFu) != byte) break;
        uint32_t unit = m->units[place];
        if ((place ^= way(unit)) >= m->n) break;
        if (!(unit >> 8 & 1)) continue;
        uint32_t value = m->units[place] & 0x7FFFFFFFu;
        if (value >= m->texts_length || (m->texts[value] & 0xC0) == 0x80) break;
        *by = m->texts + value;
        found = i + 1;
        if (!longest) break;
    }
    *by_length = found ? strlen(*by) : 0;
    return found;
}

/* ---- as the normalizer Precompiled of a tokenizer.json ---- */

static qkv_status put_mapped(const qkv__step *s, qkv__encoder *e, size_t begin, size_t end, bool *mapped)
{
    const char *by;
    size_t n;
    *mapped = qkv__charsmap_find(s->map, e->now.text.data + begin, end - begin, false, &by, &n) > 0;
    return *mapped ? qkv__traced_text_put(&e->next, by, n, qkv__traced_text_from(&e->now, begin, end)) : QKV_OK;
}

/* What a reader takes for one character goes as a whole when it is short and a rule fits its start; else code by code. */
static qkv_status put_cluster(const qkv__step *s, qkv__encoder *e, size_t begin, size_t end)
{
    bool mapped = false;
    qkv_status status = end - begin < 6 ? put_mapped(s, e, begin, end, &mapped) : QKV_OK;
    for (size_t at = begin, bytes; at < end && !status && !mapped; at += bytes) {
        bool known;
        qkv_utf8_next(e->now.text.data + at, end - at, &bytes);
        status = put_mapped(s, e, at, at + bytes, &known);
        if (!status && !known) status = qkv__traced_text_copy(&e->next, &e->now, at, at + bytes);
    }
    return status;
}

qkv_status qkv__precompiled(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    size_t start = e->next.text.length, begin = piece.begin, bytes;
    int32_t before = -1, state = 0;
    qkv_status status = QKV_OK;
    for (size_t at = piece.begin; at < piece.end && !status; at += bytes) {
        int32_t code = qkv_utf8_next(e->now.text.data + at, piece.end - at, &bytes);
        if (before >= 0 && utf8proc_grapheme_break_stateful(before, code, &state)) {
            status = put_cluster(s, e, begin, at);
            begin = at;
        }
        before = code;
    }
    if (!status) status = put_cluster(s, e, begin, piece.end);
    return status ? status : qkv__traced_text_end(&e->next, start, -1);
}

/* ---- as SentencePiece itself ---- */

#define SPACE_SIGN "\xE2\x96\x81"

/* The longest rule, user-defined symbol or character at `at`: its bytes, and what it becomes. */
static size_t next_part(const qkv__step *s, const qkv__encoder *e, size_t at, size_t end, const char **by, size_t *n)
{
    const char *text = e->now.text.data + at;
    size_t bytes;
    *by = text;
    if (qkv__added_at(&s->tokenizer->pipeline->user_defined, text, end - at, &bytes) >= 0) return *n = bytes;
    if (s->map && (bytes = qkv__charsmap_find(s->map, text, end - at, true, by, n))) return bytes;
    qkv_utf8_next(text, end - at, &bytes);
    *by = text;
    return *n = bytes;
}

static qkv_status put_space(const qkv__step *s, qkv__encoder *e, qkv__range from)
{
    return qkv__traced_text_put(&e->next, s->escape ? SPACE_SIGN : " ", s->escape ? 3 : 1, from);
}

static qkv_status put_mapped_part(const qkv__step *s, qkv__encoder *e, const char *by, size_t n, qkv__range from)
{
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < n && !status; i++)
        status = by[i] == ' ' ? put_space(s, e, from) : qkv__traced_text_put(&e->next, by + i, 1, from);
    return status;
}

static void drop_spaces_at_end(const qkv__step *s, qkv__encoder *e, size_t start)
{
    qkv_buffer *text = &e->next.text;
    size_t n = s->escape ? 3 : 1;
    while (text->length - start >= n && !memcmp(text->data + text->length - n, s->escape ? SPACE_SIGN : " ", n))
        text->length -= n;
}

/* Spaces at the start and the end go, and all but one of several, where extra ones are removed. */
static qkv_status put_parts(const qkv__step *s, qkv__encoder *e, size_t at, size_t end)
{
    bool after_space = s->remove_extra;
    qkv_status status = QKV_OK;
    for (size_t bytes, n; at < end && !status; at += bytes) {
        const char *by;
        bytes = next_part(s, e, at, end, &by, &n);
        for (; after_space && n && *by == ' '; by++) n--;
        status = put_mapped_part(s, e, by, n, qkv__traced_text_from(&e->now, at, at + bytes));
        if (n) after_space = s->remove_extra && by[n - 1] == ' ';
    }
    return status;
}

qkv_status qkv__spm_normalize(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    size_t start = e->next.text.length, at = piece.begin, n = 1, bytes = 0;
    const char *by = " ";
    while (s->remove_extra && at < piece.end && n == 1 && *by == ' ') {
        at += bytes;
        if (at < piece.end) bytes = next_part(s, e, at, piece.end, &by, &n);
    }
    if (at >= piece.end) return QKV_OK;
    qkv__range first = { e->now.from[at].begin, e->now.from[at].begin }, last = e->now.from[piece.end - 1];
    qkv_status status = s->dummy_prefix && !s->suffix ? put_space(s, e, first) : QKV_OK;
    if (!status) status = put_parts(s, e, at, piece.end);
    if (!status && s->remove_extra) drop_spaces_at_end(s, e, start);
    if (!status && s->dummy_prefix && s->suffix) status = put_space(s, e, (qkv__range){ last.end, last.end });
    return status ? status : qkv__traced_text_end(&e->next, start, -1);
}
