/* label_list.c: a label field that holds several labels, or a number. */
#include "label_list.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_blank_byte(char c) { return c == ' ' || c == '\t'; }

const char *qkv__first_label(const qkv_labelled *x) { return x->label[strspn(x->label, " \t")] ? x->label : NULL; }

bool qkv__next_label(const qkv_labelled *x, const char **at, const char *separator, char label[QKV__LABEL_MAX])
{
    const char *from = *at, *found = strstr(from, separator), *end = found ? found : from + strlen(from);
    *at = found ? found + strlen(separator) : NULL;
    while (from < end && is_blank_byte(*from)) from++;
    while (from < end && is_blank_byte(end[-1])) end--;
    size_t n = (size_t)(end - from);
    const char *what = !n ? "is empty" : n >= QKV__LABEL_MAX ? "has more than 255 bytes" : NULL;
    if (what) {
        qkv__fail(QKV_FORMAT, "%s: line %lld: one of the labels \"%.60s\" %s", x->path, (long long)x->line, x->label, what);
        return false;
    }
    memcpy(label, from, n);
    label[n] = '\0';
    return true;
}

qkv_status qkv__label_number(const qkv_labelled *x, double *number)
{
    char *end;
    *number = strtod(x->label, &end);
    bool is_number = end > x->label && !isalpha((unsigned char)end[-1]); /* "inf" and "nan" are none */
    while (is_number && is_blank_byte(*end)) end++;
    if (is_number && !*end && isfinite((float)*number)) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: line %lld: \"%.60s\" is not a number", x->path, (long long)x->line, x->label);
}
