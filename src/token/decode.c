/* decode.c: the decoders of a published tokenizer: what its tokens become as text. Their pieces are the tokens. */
#include "alphabet.h"

#include <qkv/unstable/util.h>
#include "pipeline.h"

#include <string.h>

#define SPACE_SIGN "\xE2\x96\x81"

static bool is_first(qkv__piece piece) { return !piece.begin; }

static const char *text_of(const qkv__encoder *e, qkv__piece piece) { return e->now.text.data + piece.begin; }

static qkv_status put_decoded(qkv__encoder *e, const void *bytes, size_t n)
{
    return qkv__traced_text_put(&e->next, bytes, n, (qkv__range){ 0 });
}

/* Each character stands for a byte; a token with another one means itself. */
qkv_status qkv__decode_byte_level(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    (void)s;
    const char *text = text_of(e, piece);
    size_t begin = e->next.text.length, length = piece.end - piece.begin;
    qkv_status status = QKV_OK;
    for (size_t at = 0, bytes; at < length && !status; at += bytes) {
        int byte = qkv__character_to_byte(qkv_utf8_next(text + at, length - at, &bytes));
        if (byte < 0) {
            e->next.text.length = begin;
            return qkv__traced_text_keep(&e->next, &e->now, piece);
        }
        status = put_decoded(e, &(char){ (char)byte }, 1);
    }
    return status ? status : qkv__traced_text_end(&e->next, begin, piece.id);
}

/* Everywhere from begin on; nothing gets longer by it. */
static void shorten(qkv_buffer *text, size_t begin, const char *from, const char *to)
{
    size_t out = begin, n = strlen(from), m = strlen(to);
    for (size_t at = begin; at < text->length;) {
        bool found = text->length - at >= n && !memcmp(text->data + at, from, n);
        memmove(text->data + out, found ? to : text->data + at, found ? m : 1);
        out += found ? m : 1;
        at += found ? n : 1;
    }
    text->length = out;
    text->data[out] = '\0';
}

/* The spaces that English does not have. */
static void clean_up(qkv_buffer *text, size_t begin)
{
    static const char *const pairs[][2] = {
        { " .", "." },   { " ?", "?" },           { " !", "!" },   { " ,", "," },     { " ' ", "'" },    { " n't", "n't" },
        { " 'm", "'m" }, { " do not", " don't" }, { " 's", "'s" }, { " 've", "'ve" }, { " 're", "'re" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) shorten(text, begin, pairs[i][0], pairs[i][1]);
}

qkv_status qkv__decode_wordpiece(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    size_t begin = e->next.text.length, n = strlen(s->text), length = piece.end - piece.begin;
    bool continues = length >= n && !memcmp(text_of(e, piece), s->text, n);
    qkv_status status = QKV_OK;
    if (!is_first(piece) && continues) piece.begin += n;
    else if (!is_first(piece)) status = put_decoded(e, " ", 1);
    if (!status) status = qkv__traced_text_copy(&e->next, &e->now, piece.begin, piece.end);
    if (!status && s->cleanup) clean_up(&e->next.text, begin);
    return status ? status : qkv__traced_text_end(&e->next, begin, piece.id);
}

/* A piece with a space for each sign, or nothing where signs are dropped. */
static qkv_status put_spaced(const char *sign, bool drops_signs, qkv__encoder *e, qkv__piece piece)
{
    const char *text = text_of(e, piece);
    size_t begin = e->next.text.length, length = piece.end - piece.begin, n = strlen(sign);
    qkv_status status = QKV_OK;
    for (size_t at = 0; at < length && !status;) {
        bool is_sign = length - at >= n && !memcmp(text + at, sign, n);
        if (!is_sign || !drops_signs) status = put_decoded(e, is_sign ? " " : text + at, 1);
        at += is_sign ? n : 1;
    }
    return status ? status : qkv__traced_text_end(&e->next, begin, piece.id);
}

/* The sign is a space; in the first token it is what was put before the text, where that is done. */
qkv_status qkv__decode_metaspace(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    return put_spaced(s->text, is_first(piece) && s->prepend != QKV__NEVER, e, piece);
}

/* The byte that a whole token is; -1 for others. */
static int byte_of(const char *text, size_t length)
{
    return length == QKV__BYTE_LENGTH ? qkv__byte_of_token(text, length) : -1;
}

qkv_status qkv__decode_byte_fallback(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    (void)s;
    size_t begin = e->next.text.length;
    int byte = byte_of(text_of(e, piece), piece.end - piece.begin);
    if (byte < 0) return qkv__traced_text_keep(&e->next, &e->now, piece);
    qkv_status status = put_decoded(e, &(char){ (char)byte }, 1);
    return status ? status : qkv__traced_text_end(&e->next, begin, piece.id);
}

/* All tokens become one. */
qkv_status qkv__decode_fuse(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    (void)s;
    qkv_status status = qkv__traced_text_copy(&e->next, &e->now, piece.begin, piece.end);
    return status || piece.end < e->now.text.length ? status : qkv__traced_text_end(&e->next, 0, -1);
}

/* The end of a word is a space, but for that of the last. */
qkv_status qkv__decode_suffix(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    return put_spaced(s->text, piece.end == e->now.text.length, e, piece);
}

qkv_status qkv__decode_strip(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    const char *text = e->now.text.data;
    size_t n = strlen(s->text);
    for (int64_t i = 0; i < s->start && piece.end - piece.begin >= n && !memcmp(text + piece.begin, s->text, n); i++)
        piece.begin += n;
    for (int64_t i = 0; i < s->stop && piece.end - piece.begin >= n && !memcmp(text + piece.end - n, s->text, n); i++)
        piece.end -= n;
    return qkv__traced_text_keep(&e->next, &e->now, piece);
}

/* Speech: a token that comes twice in a row counts once, padding is nothing, and a sign is the space between words. */
qkv_status qkv__decode_ctc(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    const char *text = e->now.text.data;
    size_t begin = e->next.text.length, length = piece.end - piece.begin, last = e->last_begin;
    bool is_again = !is_first(piece) && piece.begin - last == length && !memcmp(text + last, text + piece.begin, length);
    e->last_begin = piece.begin;
    if (is_again) return QKV_OK;
    qkv_status status = qkv__traced_text_copy(&e->next, &e->now, piece.begin, piece.end);
    if (status) return status;
    shorten(&e->next.text, begin, s->text, "");
    if (s->cleanup) clean_up(&e->next.text, begin);
    if (s->cleanup) shorten(&e->next.text, begin, s->content, " ");
    return qkv__traced_text_end(&e->next, begin, piece.id);
}

/* ---- SentencePiece ---- */

/* A space at the start of the text is the one that was put there, or one of those that are removed. */
static bool drops_space(const qkv__step *s, qkv__encoder *e, const char *text, size_t length)
{
    if (e->next.text.length || e->seen_space || !(s->dummy_prefix || s->remove_extra)) return false;
    bool drops = length >= 3 && !memcmp(text, SPACE_SIGN, 3);
    e->seen_space = drops && !s->remove_extra;
    return drops;
}

qkv_status qkv__decode_spm(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    const char *text = text_of(e, piece);
    size_t begin = e->next.text.length, length = piece.end - piece.begin;
    int type = s->tokenizer->pipeline->types[piece.id], byte = type == QKV__BYTE ? byte_of(text, length) : -1;
    qkv_status status = QKV_OK;
    if (type == QKV__CONTROL) return QKV_OK;
    if (type == QKV__UNKNOWN_PIECE) status = put_decoded(e, s->text, strlen(s->text));
    else if (byte >= 0) status = put_decoded(e, &(char){ (char)byte }, 1);
    else {
        for (size_t at = drops_space(s, e, text, length) ? 3 : 0; at < length && !status;) {
            bool sign = length - at >= 3 && !memcmp(text + at, SPACE_SIGN, 3);
            status = put_decoded(e, sign ? " " : text + at, 1);
            at += sign ? 3 : 1;
        }
    }
    return status ? status : qkv__traced_text_end(&e->next, begin, piece.id);
}
