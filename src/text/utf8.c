/* utf8.c: UTF-8, by table 3-7 of the Unicode standard. */
#include "buffer.h"

int32_t qkv_utf8_decode(const char *text, size_t length, size_t *bytes)
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

size_t qkv_utf8_check(const char *text, size_t length)
{
    if (!text) return 0;
    for (size_t at = 0, bytes; at < length; at += bytes)
        if (qkv_utf8_decode(text + at, length - at, &bytes) < 0) return at;
    return length;
}

enum { MOST_JOINED = 8 };

int64_t qkv_utf8_join(const char *text, size_t begin, const size_t *ends, int64_t n)
{
    size_t at = begin, bytes = 0;
    if (!text || !ends || n < 1) return 0;
    for (int64_t i = 0; i < n && i < MOST_JOINED; i++) {
        for (; at < ends[i]; at += bytes)
            if (qkv_utf8_decode(text + at, ends[i] - at, &bytes) < 0) break;
        if (at == ends[i] && at > begin) return i + 1;
        if (at + bytes < ends[i]) break; /* a mistake that no further bytes can mend */
    }
    return 1;
}

qkv_status qkv_utf8_repair(const char *text, size_t length, qkv_text *out)
{
    if (!out || (!text && length)) return qkv__fail(QKV_USAGE, "utf8: a text and a place for the result are needed");
    qkv__text_clear(out);
    qkv_status status = qkv__text_put(out, "", 0);
    while (!status && length) {
        size_t good = qkv_utf8_check(text, length), bad = 0;
        if (good < length) qkv_utf8_decode(text + good, length - good, &bad);
        status = qkv__text_put(out, text, good);
        if (!status && bad) status = qkv__text_put(out, "\xEF\xBF\xBD", 3);
        text += good + bad;
        length -= good + bad;
    }
    if (status) qkv__text_clear(out);
    return status;
}

bool qkv__is_space(int32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
           c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool qkv__is_blank(const char *text, size_t length)
{
    for (size_t at = 0, bytes; at < length; at += bytes)
        if (!qkv__is_space(qkv_utf8_decode(text + at, length - at, &bytes))) return false;
    return true;
}
