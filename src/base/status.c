/* status.c: the error sentence of each thread. */
#include "status.h"

#include <stdio.h>
#include <string.h>

static _Thread_local char sentence[QKV_SENTENCE_MAX];
static _Thread_local qkv_status last_status;

const char *qkv_version(void) { return QKV_VERSION_STRING; }

const char *qkv_error(void) { return sentence; }

qkv_status qkv_error_status(void) { return last_status; }

const char *qkv_status_string(qkv_status status)
{
#define WORDS(name, number, words) [number] = words,
    static const char *const table[] = { QKV_STATUS_LIST(WORDS) };
#undef WORDS
    return (unsigned)status < QKV_STATUS_COUNT ? table[status] : "unknown status";
}

/* A sentence that was cut in the middle of a UTF-8 character loses the piece of it. */
static void drop_partial_character(char *text, size_t length)
{
    size_t start = length, first;
    while (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0x80) start--;
    if (!start || (first = (unsigned char)text[start - 1]) < 0xC0) return;
    size_t whole = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (length - start + 1 < whole) text[start - 1] = '\0';
}

qkv_status qkv__fail_with(qkv_status status, const char *format, va_list args)
{
    int length = vsnprintf(sentence, sizeof sentence, format, args);
    if (length >= (int)sizeof sentence) drop_partial_character(sentence, sizeof sentence - 1);
    return last_status = status;
}

qkv_status qkv__fail(qkv_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    qkv__fail_with(status, format, args);
    va_end(args);
    return status;
}

qkv_status qkv_set_error(qkv_status status, const char *text) { return qkv__fail(status, "%s", text ? text : ""); }

qkv_status qkv__fail_again(qkv_status status, const char *text)
{
    if (text != sentence) return qkv__fail(status, "%s", text);
    return last_status = status;
}

const char *qkv__shape_text(char text[QKV_SHAPE_TEXT], int ndim, const int64_t *shape)
{
    int at = snprintf(text, QKV_SHAPE_TEXT, "(");
    for (int i = 0; shape && i < ndim && at < QKV_SHAPE_TEXT - 24; i++)
        at += snprintf(text + at, (size_t)(QKV_SHAPE_TEXT - at), "%s%lld", i ? ", " : "", (long long)shape[i]);
    snprintf(text + at, (size_t)(QKV_SHAPE_TEXT - at), ")");
    return text;
}

const char *qkv__shown(char text[QKV__SHOWN_BYTES], const void *bytes, size_t n)
{
    size_t length = n < QKV__SHOWN_BYTES - 1 ? n : QKV__SHOWN_BYTES - 1;
    const unsigned char *from = bytes;
    for (size_t i = 0; i < length; i++) text[i] = from[i] >= 0x20 && from[i] < 0x7F ? (char)from[i] : '?';
    text[length] = '\0';
    return text;
}
