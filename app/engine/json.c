/* json.c: JSON out, into text that grows; JSON in, field by field. */
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- out ---- */

void qkv__put_bytes(qkv__json *j, const void *raw, size_t size)
{
    if (!j->status) j->status = qkv__buffer_put(&j->text, raw, size);
}

void qkv__put_raw(qkv__json *j, const char *raw) { qkv__put_bytes(j, raw, strlen(raw)); }

static bool is_plain(unsigned char c) { return c >= 0x20 && c != '"' && c != '\\' && c != '<'; }

void qkv__put_string(qkv__json *j, const char *text, size_t length)
{
    qkv__put_raw(j, "\"");
    for (size_t at = 0, next; at < length; at = next) {
        for (next = at; next < length && is_plain((unsigned char)text[next]);) next++;
        qkv__put_bytes(j, text + at, next - at);
        if (next == length) break;
        char escaped[8];
        unsigned char c = (unsigned char)text[next++];
        if (c == '"' || c == '\\') snprintf(escaped, sizeof escaped, "\\%c", c);
        else snprintf(escaped, sizeof escaped, "\\u%04x", c);
        qkv__put_raw(j, escaped);
    }
    qkv__put_raw(j, "\"");
}

void qkv__put_name(qkv__json *j, const char *name) { qkv__put_string(j, name, strlen(name)); }

void qkv__put_whole(qkv__json *j, int64_t x)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)x);
    qkv__put_raw(j, text);
}

static void put_digits(qkv__json *j, double x, int digits)
{
    char text[64];
    if (!isfinite(x)) {
        qkv__put_raw(j, "null");
        return;
    }
    snprintf(text, sizeof text, "%.*g", digits, x);
    for (char *c = text; *c; c++)
        if (!strchr("0123456789+-e", *c)) *c = '.'; /* which a locale may write as a comma */
    qkv__put_raw(j, text);
}

void qkv__put_float(qkv__json *j, float x) { put_digits(j, (double)x, 9); }
void qkv__put_double(qkv__json *j, double x) { put_digits(j, x, 17); }

void qkv__put_ids(qkv__json *j, const int32_t *ids, int64_t n)
{
    qkv__put_raw(j, "[");
    for (int64_t i = 0; i < n; i++) {
        if (i) qkv__put_raw(j, ",");
        qkv__put_whole(j, ids[i]);
    }
    qkv__put_raw(j, "]");
}

/* Up to 3 bytes as 4 signs. */
static void code_base64(const unsigned char *bytes, size_t n, char signs[4])
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = (uint32_t)bytes[0] << 16 | (n > 1 ? (uint32_t)bytes[1] << 8 : 0) | (n > 2 ? bytes[2] : 0);
    for (size_t i = 0; i < 4; i++) signs[i] = i > n ? '=' : alphabet[bits >> (18 - 6 * i) & 63];
}

enum { PIECE = 768 }; /* bytes, a multiple of 3 and of a float's 4 */

static void put_utf8_piece(qkv__json *j, const unsigned char *bytes, size_t n)
{
    char signs[PIECE / 3 * 4];
    size_t used = 0;
    for (size_t i = 0; i < n; i += 3, used += 4) code_base64(bytes + i, n - i < 3 ? n - i : 3, signs + used);
    qkv__put_bytes(j, signs, used);
}

void qkv__put_base64(qkv__json *j, const void *bytes, size_t size)
{
    qkv__put_raw(j, "\"");
    for (size_t at = 0; at < size; at += PIECE)
        put_utf8_piece(j, (const unsigned char *)bytes + at, size - at < PIECE ? size - at : PIECE);
    qkv__put_raw(j, "\"");
}

void qkv__put_float_base64(qkv__json *j, const float *x, size_t count)
{
    unsigned char bytes[PIECE];
    qkv__put_raw(j, "\"");
    for (size_t at = 0; at < count; at += PIECE / 4) {
        size_t n = count - at < PIECE / 4 ? count - at : PIECE / 4;
        for (size_t i = 0; i < n; i++) {
            uint32_t bits;
            memcpy(&bits, x + at + i, sizeof bits);
            for (size_t k = 0; k < 4; k++) bytes[4 * i + k] = (unsigned char)(bits >> (8 * k));
        }
        put_utf8_piece(j, bytes, 4 * n);
    }
    qkv__put_raw(j, "\"");
}

void qkv__put_array(qkv__json *j, const float *x, int n_dims, const int64_t *dims)
{
    size_t count = 1;
    qkv__put_raw(j, "{\"shape\":[");
    for (int i = 0; i < n_dims; i++) {
        if (i) qkv__put_raw(j, ",");
        qkv__put_whole(j, dims[i]);
        count *= (size_t)dims[i];
    }
    qkv__put_raw(j, "],\"f32\":");
    qkv__put_float_base64(j, x, count);
    qkv__put_raw(j, "}");
}

void qkv__put_key(qkv__json *j, const char *name)
{
    qkv__put_raw(j, ",");
    qkv__put_name(j, name);
    qkv__put_raw(j, ":");
}

void qkv__put_named_whole(qkv__json *j, const char *name, int64_t x)
{
    qkv__put_key(j, name);
    qkv__put_whole(j, x);
}

void qkv__put_named_double(qkv__json *j, const char *name, double x)
{
    qkv__put_key(j, name);
    qkv__put_double(j, x);
}

/* ---- in ---- */

static const qkv__json_value *member(const qkv__json_value *o, const char *name)
{
    const qkv__json_value *x = qkv__json_get(o, name);
    return qkv__json_is_null(x) ? NULL : x;
}

qkv_status qkv__get_whole(const qkv__json_value *o, const char *name, int64_t least, int64_t most, int64_t *x)
{
    const qkv__json_value *given = member(o, name);
    if (!given) return QKV_OK;
    if (!qkv__json_is_int(given)) return qkv__fail(QKV_USAGE, "\"%s\" must be a whole number", name);
    int64_t value = qkv__json_int(given);
    if (value < least && most == INT64_MAX)
        return qkv__fail(QKV_USAGE, "\"%s\" is %lld: it must be at least %lld", name, (long long)value, (long long)least);
    if (value < least || value > most)
        return qkv__fail(QKV_USAGE, "\"%s\" is %lld: it must be from %lld to %lld", name, (long long)value, (long long)least,
                         (long long)most);
    *x = value;
    return QKV_OK;
}

qkv_status qkv__get_number(const qkv__json_value *o, const char *name, double least, double most, float *x)
{
    const qkv__json_value *given = member(o, name);
    if (!given) return QKV_OK;
    if (!qkv__json_is_number(given)) return qkv__fail(QKV_USAGE, "\"%s\" must be a number", name);
    double value = qkv__json_number(given);
    if (!(value >= least && value <= most))
        return qkv__fail(QKV_USAGE, "\"%s\" is %g: it must be from %g to %g", name, value, least, most);
    *x = (float)value;
    return QKV_OK;
}

qkv_status qkv__get_flag(const qkv__json_value *o, const char *name, bool *x)
{
    const qkv__json_value *given = member(o, name);
    if (!given) return QKV_OK;
    if (!qkv__json_is_bool(given)) return qkv__fail(QKV_USAGE, "\"%s\" must be true or false", name);
    *x = qkv__json_is_true(given);
    return QKV_OK;
}

qkv_status qkv__get_string(const qkv__json_value *o, const char *name, const char **text, size_t *length)
{
    const qkv__json_value *given = member(o, name);
    if (!given) return QKV_OK;
    if (!qkv__json_is_string(given)) return qkv__fail(QKV_USAGE, "\"%s\" must be a string", name);
    *text = qkv__json_text(given);
    *length = qkv__json_length(given);
    return QKV_OK;
}

static void add_string(qkv__strings *x, const qkv__json_value *string)
{
    x->texts[x->n++] = (qkv_str){ qkv__json_text(string), qkv__json_length(string) };
}

qkv_status qkv__get_strings(const qkv__json_value *o, const char *name, qkv__strings *x)
{
    const qkv__json_value *given = member(o, name);
    x->n = 0;
    x->is_array = qkv__json_is_array(given);
    if (qkv__json_is_string(given)) add_string(x, given);
    else if (given && !x->is_array) return qkv__fail(QKV_USAGE, "\"%s\" must be a string or an array of strings", name);
    size_t n = x->is_array ? qkv__json_size(given) : 0;
    if (n > QKV__TEXTS) return qkv__fail(QKV_USAGE, "\"%s\" has %zu texts: at most %d go in one request", name, n, QKV__TEXTS);
    for (size_t i = 0; i < n; i++) {
        const qkv__json_value *string = qkv__json_at(given, i);
        if (!qkv__json_is_string(string)) return qkv__fail(QKV_USAGE, "\"%s\": element %zu is not a string", name, i);
        add_string(x, string);
    }
    return QKV_OK;
}

qkv_status qkv__need_strings(const qkv__json_value *o, const char *name, qkv__strings *x)
{
    qkv_status status = qkv__get_strings(o, name, x);
    if (!status && !x->n) status = qkv__fail(QKV_USAGE, "\"%s\" is %s", name, x->is_array ? "empty" : "missing");
    return status;
}
