/* normalize.c: the normalizers of a published tokenizer but Unicode's forms: what text is turned into before it is cut. */
#include "pipeline.h"

#include <qkv/unstable/util.h>
#include "unicode.h"

#include <string.h>

/* ---- kinds of characters ---- */

static bool in(utf8proc_category_t c, utf8proc_category_t first, utf8proc_category_t last) { return c >= first && c <= last; }

/* Circled and squared letters count as letters, though they are symbols. */
static bool is_letter_in_a_frame(int32_t c)
{
    return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
           (c >= 0x1F170 && c <= 0x1F189);
}

bool qkv__is_word(int32_t c)
{
    utf8proc_category_t k = qkv__category(c);
    return in(k, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_NL) || k == UTF8PROC_CATEGORY_PC || c == 0x200C || c == 0x200D ||
           is_letter_in_a_frame(c);
}

/* As Unicode 8 had it: two of them are something else now. */
bool qkv__is_punctuation(int32_t c)
{
    if (c < 0x80) return (c > 0x20 && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') || (c > 'z' && c < 0x7F);
    if (c == 0x166D || c == 0x111C9) return true;
    return in(utf8proc_category(c), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO) && !qkv__came_after(c, 8);
}

bool qkv__is_number(int32_t c) { return in(qkv__category(c), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO); }

/* As Unicode 9 had it. */
static bool is_mark(int32_t c)
{
    if (c == 0x1CF2 || c == 0x1CF3 || c == 0x111C9) return c != 0x111C9;
    return in(utf8proc_category(c), UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME) && !qkv__came_after(c, 9);
}

int qkv__lower(int32_t code, int32_t out[2])
{
    out[0] = code == 0x130 ? 'i' : qkv__to_lower(code);
    out[1] = 0x307;
    return code == 0x130 ? 2 : 1;
}

/* ---- one character at a time ---- */

qkv_status qkv__lowercase(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    (void)s;
    size_t begin = e->next.text.length;
    qkv_status status = QKV_OK;
    for (size_t at = piece.begin, bytes; at < piece.end && !status; at += bytes) {
        int32_t lower[2], code = qkv_utf8_next(e->now.text.data + at, piece.end - at, &bytes);
        int n = qkv__lower(code, lower);
        for (int i = 0; i < n && !status; i++)
            status = qkv__traced_text_put_code(&e->next, lower[i], qkv__traced_text_from(&e->now, at, at + bytes));
    }
    return status ? status : qkv__traced_text_end(&e->next, begin, -1);
}

static void keep_letters(qkv__encoder *e, bool (*leave_out)(int32_t code))
{
    size_t n = 0;
    for (size_t i = 0; i < e->n_letters; i++)
        if (!leave_out(e->letters[i].code)) e->letters[n++] = e->letters[i];
    e->n_letters = n;
}

qkv_status qkv__strip_accents(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    (void)s;
    qkv_status status = qkv__letters_of(e, piece);
    if (!status) keep_letters(e, is_mark);
    return status ? status : qkv__letters_end(e);
}

/* ---- the rules of machine translation of old ---- */

static bool is_nmt_space(int32_t c)
{
    return c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 ||
           c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
}

static bool is_nmt_control(int32_t c) { return (c > 0 && c < 0x20) || c == 0x7F || c == 0x8F || c == 0x9F; }

qkv_status qkv__nmt(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    (void)s;
    qkv_status status = qkv__letters_of(e, piece);
    for (size_t i = 0; i < e->n_letters && !status; i++)
        if (is_nmt_space(e->letters[i].code)) e->letters[i].code = ' ';
    if (!status) keep_letters(e, is_nmt_control);
    return status ? status : qkv__letters_end(e);
}

/* ---- BERT ---- */

/* Controls, formats of Unicode 8 and private use. */
static bool is_unwanted(int32_t c)
{
    utf8proc_category_t k = utf8proc_category(c);
    if (c == '\t' || c == '\n' || c == '\r') return false;
    if (c == 0xFFFD || k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CO) return true;
    return k == UTF8PROC_CATEGORY_CF && !qkv__came_after(c, 8);
}

/* The blocks of Chinese characters as the published tokenizers have them; one of the bounds is odd there. */
static bool is_chinese(int32_t c)
{
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
           (c >= 0x2F800 && c <= 0x2FA1F);
}

/* As Unicode 8 had it. */
static bool is_accent(int32_t c)
{
    if (c == 0x1734) return true;
    if (c == 0x1885 || c == 0x1886 || c == 0xA9BD || c == 0x111C9) return false;
    return utf8proc_category(c) == UTF8PROC_CATEGORY_MN && !qkv__came_after(c, 8);
}

/* The characters of a piece, cleaned and with spaces around Chinese ones. */
static qkv_status bert_letters(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    qkv_status status = QKV_OK;
    e->n_letters = 0;
    for (size_t at = piece.begin, bytes; at < piece.end && !status; at += bytes) {
        int32_t code = qkv_utf8_next(e->now.text.data + at, piece.end - at, &bytes);
        qkv__range from = qkv__traced_text_from(&e->now, at, at + bytes);
        if (s->clean && is_unwanted(code)) continue;
        if (s->clean && qkv__is_space(code)) code = ' ';
        bool spaced = s->chinese && is_chinese(code);
        if (spaced) status = qkv__letter_put(e, ' ', (qkv__range){ from.begin, from.begin });
        if (!status) status = qkv__letter_put(e, code, from);
        if (spaced && !status) status = qkv__letter_put(e, ' ', (qkv__range){ from.end, from.end });
    }
    return status;
}

static qkv_status put_lower_letters(qkv__encoder *e)
{
    size_t begin = e->next.text.length;
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < e->n_letters && !status; i++) {
        int32_t lower[2];
        int n = qkv__lower(e->letters[i].code, lower);
        for (int k = 0; k < n && !status; k++) status = qkv__traced_text_put_code(&e->next, lower[k], e->letters[i].from);
    }
    return status ? status : qkv__traced_text_end(&e->next, begin, -1);
}

qkv_status qkv__bert_normalize(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    qkv_status status = bert_letters(s, e, piece);
    if (!status && s->strip_accents) {
        status = qkv__decompose(e, false);
        keep_letters(e, is_accent);
    }
    if (status) return status;
    return s->lowercase ? put_lower_letters(e) : qkv__letters_end(e);
}

/* ---- pieces of text ---- */

/* The next place from `at` on where what the step looks for is found; begin == end: nowhere. */
static qkv_status find_next(const qkv__step *s, qkv__encoder *e, qkv__piece piece, size_t at, size_t *begin, size_t *end)
{
    if (s->pattern) return qkv__cut_find(&e->cutter, s->pattern, at, begin, end);
    *begin = qkv__traced_text_find(&e->now, at, piece.end, s->text);
    *end = *begin < piece.end ? *begin + strlen(s->text) : piece.end;
    return QKV_OK;
}

qkv_status qkv__replace(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    size_t start = e->next.text.length, at = piece.begin, length = piece.end - piece.begin;
    qkv_status status = QKV_OK;
    if (s->pattern && qkv_utf8_valid(e->now.text.data + at, length) < length) /* bytes that a decoder put there */
        return qkv__traced_text_keep(&e->next, &e->now, piece);
    if (s->pattern) qkv__cut_begin_at(&e->cutter, e->now.text.data, piece.begin, piece.end);
    while (at < piece.end && !status) {
        size_t begin, end;
        status = find_next(s, e, piece, at, &begin, &end);
        if (!status) status = qkv__traced_text_copy(&e->next, &e->now, at, begin);
        if (!status && begin < end)
            status = qkv__traced_text_put(&e->next, s->content, strlen(s->content), qkv__traced_text_from(&e->now, begin, end));
        at = end;
    }
    return status ? status : qkv__traced_text_end(&e->next, start, -1);
}

qkv_status qkv__prepend_text(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    size_t start = e->next.text.length;
    uint32_t begin = e->now.from[piece.begin].begin;
    qkv_status status = qkv__traced_text_put(&e->next, s->text, strlen(s->text), (qkv__range){ begin, begin });
    if (!status) status = qkv__traced_text_copy(&e->next, &e->now, piece.begin, piece.end);
    return status ? status : qkv__traced_text_end(&e->next, start, -1);
}

qkv_status qkv__strip(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    const char *text = e->now.text.data;
    size_t begin = piece.begin, end = piece.begin, bytes;
    while (s->left && begin < piece.end && qkv__is_space(qkv_utf8_next(text + begin, piece.end - begin, &bytes)))
        begin += bytes;
    for (size_t at = begin; at < piece.end; at += bytes)
        if (!qkv__is_space(qkv_utf8_next(text + at, piece.end - at, &bytes)) || !s->right) end = at + bytes;
    return begin < end ? qkv__traced_text_keep(&e->next, &e->now, (qkv__piece){ begin, end, -1 }) : QKV_OK;
}
