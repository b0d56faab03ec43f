/* write.c: values as text: as JSON, and as a template prints them. */
#include "value.h"

#include <qkv/unstable/util.h>

#include "../base/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 200 };

static qkv_status put(qkv_buffer *out, const char *text) { return qkv__buffer_put(out, text, strlen(text)); }

/* ---- numbers ---- */

static qkv_status put_integer(int64_t x, qkv_buffer *out)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%lld", (long long)x);
    return put(out, digits);
}

/* The fewest digits that give the same number back, with a point where it is whole; a locale may write that as a comma. */
static qkv_status put_float(double x, qkv_buffer *out)
{
    char digits[400];
    if (!isfinite(x)) return put(out, isnan(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity");
    if (x == floor(x) && fabs(x) < 1e16) snprintf(digits, sizeof digits, "%.1f", x);
    else
        for (int n = 1; n <= 17; n++) {
            snprintf(digits, sizeof digits, "%.*g", n, x);
            if (strtod(digits, NULL) == x) break;
        }
    for (char *c = digits; *c; c++)
        if (!strchr("0123456789+-e", *c)) *c = '.';
    return put(out, digits);
}

/* ---- strings ---- */

static qkv_status put_unit(uint32_t unit, qkv_buffer *out)
{
    char escaped[16];
    snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)unit);
    return put(out, escaped);
}

static qkv_status put_code_point(const char *at, size_t size, int32_t code, bool ascii, qkv_buffer *out)
{
    static const char named[] = "\b\f\n\r\t\"\\", letters[] = "bfnrt\"\\";
    const char *found = code > 0 && code < 128 ? strchr(named, code) : NULL;
    if (found) return qkv__buffer_put(out, (const char[2]){ '\\', letters[found - named] }, 2);
    if (code >= 0 && code < 0x20) return put_unit((uint32_t)code, out);
    if (!ascii || code < 0x7F) return qkv__buffer_put(out, at, size);
    if (code < 0x10000) return put_unit((uint32_t)code, out);
    qkv_status status = put_unit(0xD800u + ((uint32_t)(code - 0x10000) >> 10), out);
    return status ? status : put_unit(0xDC00u + ((uint32_t)(code - 0x10000) & 0x3FFu), out);
}

static qkv_status put_json_string(jinja_string s, bool ascii, qkv_buffer *out)
{
    qkv_status status = put(out, "\"");
    for (size_t at = 0, size; at < s.length && !status; at += size) {
        int32_t code = qkv_utf8_next(s.data + at, s.length - at, &size);
        status = put_code_point(s.data + at, size, code, ascii, out);
    }
    return status ? status : put(out, "\"");
}

/* ---- lists and mappings ---- */

static qkv_status put_line(const jinja_json_style *style, int depth, qkv_buffer *out)
{
    if (style->indent < 0) return QKV_OK;
    qkv_status status = put(out, "\n");
    for (int64_t i = 0; i < style->indent * depth && !status; i++) status = put(out, " ");
    return status;
}

static qkv_status put_between(const jinja_json_style *style, int64_t i, int depth, qkv_buffer *out)
{
    qkv_status status = i ? qkv__buffer_put(out, style->between.data, style->between.length) : QKV_OK;
    return status ? status : put_line(style, depth, out);
}

static qkv_status put_list(const jinja_list *l, const jinja_json_style *style, int depth, qkv_buffer *out)
{
    qkv_status status = put(out, "[");
    for (int64_t i = 0; i < l->n && !status; i++) {
        status = put_between(style, i, depth + 1, out);
        if (!status) status = qkv__jinja_write_json(l->items[i], style, depth + 1, out);
    }
    if (l->n && !status) status = put_line(style, depth, out);
    return status ? status : put(out, "]");
}

static bool key_is_before(const jinja_entry *a, const jinja_entry *b)
{
    size_t both = a->key.length < b->key.length ? a->key.length : b->key.length;
    int order = memcmp(a->key.data, b->key.data, both);
    return order ? order < 0 : a->key.length < b->key.length;
}

/* The i-th entry to write: by its key where they are sorted, of which the last written is `last`. */
static const jinja_entry *entry_to_write(const jinja_dict *d, bool sorted, int64_t i, const jinja_entry *last)
{
    if (!sorted) return &d->entries[i];
    const jinja_entry *next = NULL;
    for (const jinja_entry *e = d->entries; e < d->entries + d->n; e++)
        if ((!last || key_is_before(last, e)) && (!next || key_is_before(e, next))) next = e;
    return next;
}

static qkv_status put_dict(const jinja_dict *d, const jinja_json_style *style, int depth, qkv_buffer *out)
{
    const jinja_entry *e = NULL;
    qkv_status status = put(out, "{");
    for (int64_t i = 0; i < d->n && !status; i++) {
        e = entry_to_write(d, style->sort_keys, i, e);
        status = put_between(style, i, depth + 1, out);
        if (!status) status = put_json_string(e->key, style->ascii, out);
        if (!status) status = qkv__buffer_put(out, style->behind_key.data, style->behind_key.length);
        if (!status) status = qkv__jinja_write_json(e->value, style, depth + 1, out);
    }
    if (d->n && !status) status = put_line(style, depth, out);
    return status ? status : put(out, "}");
}

/* ---- all ---- */

qkv_status qkv__jinja_write_json(jinja_value v, const jinja_json_style *style, int depth, qkv_buffer *out)
{
    if (depth > MOST_DEPTH) return qkv__fail(QKV_LIMIT, "chat template: a value is more than %d levels deep", MOST_DEPTH);
    if (out->length > JINJA_MOST_TEXT)
        return qkv__fail(QKV_LIMIT, "chat template: a text has more than %d bytes", JINJA_MOST_TEXT);
    switch (v.kind) {
    case JINJA_UNDEFINED:
    case JINJA_NONE: return put(out, "null");
    case JINJA_BOOLEAN: return put(out, v.truth ? "true" : "false");
    case JINJA_INTEGER: return put_integer(v.whole, out);
    case JINJA_FLOAT: return put_float(v.number, out);
    case JINJA_STRING: return put_json_string(v.text, style->ascii, out);
    case JINJA_LIST: return put_list(v.list, style, depth, out);
    case JINJA_DICT:
    case JINJA_NAMESPACE: return put_dict(v.dict, style, depth, out);
    default: return qkv__fail(QKV_FORMAT, "chat template: %s cannot be written", qkv__jinja_kind_name(v));
    }
}

qkv_status qkv__jinja_write(jinja_value v, qkv_buffer *out)
{
    static const jinja_json_style plain = { .indent = -1, .between = { ", ", 2 }, .behind_key = { ": ", 2 } };
    if (v.kind == JINJA_NONE || v.kind == JINJA_UNDEFINED) return QKV_OK;
    if (v.kind == JINJA_STRING) return qkv__buffer_put(out, v.text.data, v.text.length);
    return qkv__jinja_write_json(v, &plain, 0, out);
}
