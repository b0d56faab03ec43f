/* label_list.c: a label field that holds several labels, or a number. */
#include "label_list.h"

#include <qkv/unstable/util.h>

#include "../base/buffer.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static bool is_blank_byte(char c) { return c == ' ' || c == '\t'; }

const char *qkv__first_label(const qkv_labelled *x)
{
    const char *label = x->label.data;
    return label[strspn(label, " \t")] ? label : NULL;
}

bool qkv__next_label(const qkv_labelled *x, const char **at, const char *separator, char label[QKV__LABEL_MAX])
{
    const char *from = *at, *found = strstr(from, separator), *end = found ? found : from + strlen(from);
    *at = found ? found + strlen(separator) : NULL;
    while (from < end && is_blank_byte(*from)) from++;
    while (from < end && is_blank_byte(end[-1])) end--;
    size_t n = (size_t)(end - from);
    const char *what = !n ? "is empty" : n >= QKV__LABEL_MAX ? "has more than 255 bytes" : NULL;
    if (what) {
        qkv__fail(QKV_FORMAT, "%s: line %lld: one of the labels \"%.60s\" %s", x->path, (long long)x->line, x->label.data,
                  what);
        return false;
    }
    memcpy(label, from, n);
    label[n] = '\0';
    return true;
}

qkv_status qkv__label_key(const char *label, qkv_buffer *key)
{
    enum { MOST_PARTS = 18 }; /* of what folding makes of one character */
    utf8proc_int32_t parts[MOST_PARTS];
    utf8proc_uint8_t bytes[4];
    size_t length = strlen(label);
    bool after_space = true;
    qkv__buffer_clear(key);
    qkv_status status = qkv__buffer_put(key, "", 0);
    for (size_t at = 0, used; at < length && !status; at += used) {
        int32_t c = qkv_utf8_next(label + at, length - at, &used);
        int boundary = 0;
        bool is_space = c < 0 || qkv__is_space(c);
        if (is_space && !after_space) status = qkv__buffer_put(key, " ", 1);
        after_space = is_space;
        utf8proc_ssize_t n = is_space ? 0
                                      : utf8proc_decompose_char(c, parts, MOST_PARTS, UTF8PROC_CASEFOLD | UTF8PROC_DECOMPOSE,
                                                                &boundary);
        for (utf8proc_ssize_t i = 0; i < n && !status; i++)
            status = qkv__buffer_put(key, bytes, (size_t)utf8proc_encode_char(parts[i], bytes));
    }
    while (key->length && key->data[key->length - 1] == ' ') key->data[--key->length] = '\0';
    return status;
}

qkv_status qkv__label_number(const qkv_labelled *x, double *number)
{
    char *end;
    *number = strtod(x->label.data, &end);
    bool is_number = end > x->label.data && !isalpha((unsigned char)end[-1]); /* "inf" and "nan" are none */
    while (is_number && is_blank_byte(*end)) end++;
    if (is_number && !*end && isfinite((float)*number)) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: line %lld: \"%.60s\" is not a number", x->path, (long long)x->line, x->label.data);
}
