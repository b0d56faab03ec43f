/* units.c: splits text into words at white space, into words and punctuation marks, or into characters. */
#include "units.h"

#include <qkv/unstable/util.h>

#include "pipeline.h"
#include "unicode.h"

/* ---- where they are ---- */

/* The end of the stretch from `at` on that is all white space, or has none; with stops_at_punctuation no punctuation either. */
static size_t stretch_end(const char *text, size_t length, size_t at, bool of_space, bool stops_at_punctuation)
{
    for (size_t bytes; at < length; at += bytes) {
        int32_t c = qkv_utf8_next(text + at, length - at, &bytes);
        if (qkv__is_space(c) != of_space || (stops_at_punctuation && qkv__is_punctuation(c))) break;
    }
    return at;
}

bool qkv__next_unit(qkv_token_kind kind, const char *text, size_t length, size_t *begin, size_t *end)
{
    size_t bytes;
    *begin = kind == QKV_TOKEN_CHARACTERS ? *end : stretch_end(text, length, *end, true, false);
    if (*begin == length) return false;
    int32_t c = qkv_utf8_next(text + *begin, length - *begin, &bytes);
    bool is_word = kind == QKV_TOKEN_WORDS || (kind == QKV_TOKEN_WORDPUNCT && !qkv__is_punctuation(c));
    *end = is_word ? stretch_end(text, length, *begin, false, kind == QKV_TOKEN_WORDPUNCT) : *begin + bytes;
    return true;
}

/* ---- lower case ---- */

/* U+0130, a capital I with a dot, is the one character that two stand for in lower case: i and U+0307. */
static qkv_status put_lower(qkv_buffer *out, int32_t c)
{
    utf8proc_uint8_t bytes[4];
    if (c == 0x130) return qkv__buffer_put(out, "i\xCC\x87", 3);
    return qkv__buffer_put(out, bytes, (size_t)utf8proc_encode_char(qkv__to_lower(c), bytes));
}

qkv_status qkv__spell_unit(qkv_token_kind kind, const char *unit, size_t length, qkv_buffer *out)
{
    qkv_status status = QKV_OK;
    qkv__buffer_clear(out);
    if (kind == QKV_TOKEN_CHARACTERS) return qkv__buffer_put(out, unit, length);
    for (size_t at = 0, bytes; at < length && !status; at += bytes) {
        int32_t c = qkv_utf8_next(unit + at, length - at, &bytes);
        status = c < 0 ? qkv__buffer_put(out, unit + at, bytes) : put_lower(out, c);
    }
    return status;
}
