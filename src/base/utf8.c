/* utf8.c: UTF-8, by table 3-7 of the Unicode standard. */
#include "result.h"

#include <qkv/unstable/util.h>

int32_t qkv_utf8_next(const char *text, size_t length, size_t *bytes)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t unwanted;
    if (!bytes) bytes = &unwanted;
    *bytes = length > 0;
    if (!length || !text) return -1;
    unsigned lead = s[0];
    if (lead < 0x80) return (int32_t)lead;
    if (lead < 0xC2 || lead > 0xF4) return -1;
    size_t wanted = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    int32_t code = (int32_t)(lead & (0x7Fu >> wanted));
    /* The second byte's range keeps out overlong forms (E0, F0), surrogates (ED) and what is above U+10FFFF (F4). */
    unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80, high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    for (; *bytes < wanted; ++*bytes, low = 0x80, high = 0xBF) {
        if (*bytes == length || s[*bytes] < low || s[*bytes] > high) return -1;
        code = code << 6 | (s[*bytes] & 0x3F);
    }
    return code;
}

size_t qkv_utf8_valid(const char *text, size_t length)
{
    if (!text) return 0;
    for (size_t at = 0, bytes; at < length; at += bytes)
        if (qkv_utf8_next(text + at, length - at, &bytes) < 0) return at;
    return length;
}

typedef struct range {
    int32_t first, last;
} range;

static bool is_in_ranges(int32_t c, const range *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (c >= ranges[i].first && c <= ranges[i].last) return true;
    return false;
}

static int character_width(int32_t c)
{
    /* what Unicode's EastAsianWidth.txt calls wide and full-width, in few ranges; marks that stand on the letter before them */
    static const range wide[] = { { 0x1100, 0x115F },  { 0x2E80, 0x303E },   { 0x3041, 0xA4CF },   { 0xA960, 0xA97F },
                                  { 0xAC00, 0xD7A3 },  { 0xF900, 0xFAFF },   { 0xFE30, 0xFE6F },   { 0xFF00, 0xFF60 },
                                  { 0xFFE0, 0xFFE6 },  { 0x1F300, 0x1F64F }, { 0x1F680, 0x1F6FF }, { 0x1F900, 0x1FAFF },
                                  { 0x20000, 0x3FFFD } };
    static const range none[] = { { 0x300, 0x36F }, { 0x200B, 0x200F }, { 0x20D0, 0x20FF }, { 0xFE00, 0xFE0F } };
    if (is_in_ranges(c, none, sizeof none / sizeof *none)) return 0;
    return is_in_ranges(c, wide, sizeof wide / sizeof *wide) ? 2 : 1;
}

int64_t qkv_utf8_width(const char *text, size_t length)
{
    int64_t width = 0;
    for (size_t bytes; text && length; text += bytes, length -= bytes)
        width += character_width(qkv_utf8_next(text, length, &bytes));
    return width;
}

enum { MOST_JOINED = 8 };

int64_t qkv_utf8_join(const char *text, size_t begin, const size_t *ends, int64_t n)
{
    size_t at = begin, bytes = 0;
    if (!text || !ends || n < 1) return 0;
    for (int64_t i = 0; i < n && i < MOST_JOINED; i++) {
        for (; at < ends[i]; at += bytes)
            if (qkv_utf8_next(text + at, ends[i] - at, &bytes) < 0) break;
        if (at == ends[i] && at > begin) return i + 1;
        if (at + bytes < ends[i]) break; /* a mistake that no further bytes can mend */
    }
    return 1;
}

qkv_status qkv__utf8_repair(const char *text, size_t length, qkv_buffer *out)
{
    if (!out || (!text && length)) return qkv__fail(QKV_USAGE, "utf8: a text and a place for the result are needed");
    qkv__buffer_clear(out);
    qkv_status status = qkv__buffer_put(out, "", 0);
    while (!status && length) {
        size_t good = qkv_utf8_valid(text, length), bad = 0;
        if (good < length) qkv_utf8_next(text + good, length - good, &bad);
        status = qkv__buffer_put(out, text, good);
        if (!status && bad) status = qkv__buffer_put(out, "\xEF\xBF\xBD", 3);
        text += good + bad;
        length -= good + bad;
    }
    if (status) qkv__buffer_clear(out);
    return status;
}

qkv_status qkv_utf8_repair(qkv_str text, qkv_text **out)
{
    qkv_buffer *to = qkv__text_begin(out);
    return to ? qkv__text_end(*out, qkv__utf8_repair(text.data, text.length, to)) : qkv_error_status();
}

bool qkv__is_space(int32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
           c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool qkv__is_blank(const char *text, size_t length)
{
    for (size_t at = 0, bytes; at < length; at += bytes)
        if (!qkv__is_space(qkv_utf8_next(text + at, length - at, &bytes))) return false;
    return true;
}
