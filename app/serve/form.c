/* form.c: fields of a query and of the two kinds of forms, as an object of strings. */
#include "server.h"

#include <qkv/unstable/util.h>

#include <string.h>
#include <strings.h>

/* ---- name=value&name=value ---- */

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static qkv_status decode_form(const char *text, size_t length, qkv_buffer *out)
{
    qkv__buffer_clear(out);
    qkv_status status = qkv__buffer_put(out, "", 0);
    for (size_t i = 0; i < length && !status; i++) {
        char c = text[i] == '+' ? ' ' : text[i];
        if (c == '%') {
            int high = length - i > 2 ? digit(text[i + 1]) : -1, low = length - i > 2 ? digit(text[i + 2]) : -1;
            if (high < 0 || low < 0) return qkv__fail(QKV_FORMAT, "the form has a %% without two hexadecimal digits");
            c = (char)(high * 16 + low);
            i += 2;
        }
        status = qkv__buffer_put(out, &c, 1);
    }
    return status;
}

static qkv_status add_field(qkv__json_writer *object, const qkv_buffer *name, const qkv_buffer *value)
{
    if (memchr(name->data, '\0', name->length) || qkv_utf8_valid(name->data, name->length) < name->length)
        return qkv__fail(QKV_FORMAT, "the form has a field whose name is not text");
    if (qkv_utf8_valid(value->data, value->length) < value->length)
        return qkv__fail(QKV_FORMAT, "the form's field \"%s\" is not UTF-8", name->data);
    qkv__json_put_string(object, name->data, value->data, value->length);
    return object->status;
}

static qkv_status add_encoded(qkv__json_writer *object, const char *name, size_t name_length, const char *value,
                              size_t value_length)
{
    qkv_buffer own_name = { 0 }, own_value = { 0 };
    qkv_status status = decode_form(name, name_length, &own_name);
    if (!status) status = decode_form(value, value_length, &own_value);
    if (!status) status = add_field(object, &own_name, &own_value);
    qkv_buffer_free(&own_name);
    qkv_buffer_free(&own_value);
    return status;
}

qkv_status qkv__form_read(const char *text, size_t length, qkv__json_writer *object)
{
    qkv_status status = QKV_OK;
    for (size_t at = 0, end; at < length && !status; at = end + 1) {
        const char *stop = memchr(text + at, '&', length - at);
        end = stop ? (size_t)(stop - text) : length;
        if (end == at) continue;
        const char *sign = memchr(text + at, '=', end - at);
        size_t middle = sign ? (size_t)(sign - text) : end, value = middle + (sign != NULL);
        status = add_encoded(object, text + at, middle - at, text + value, end - value);
    }
    return status;
}

typedef struct query {
    qkv__json_writer *object;
    qkv_status status;
} query;

/* The library has turned "+" into spaces, and nothing else. */
static enum MHD_Result add_argument(void *data, enum MHD_ValueKind kind, const char *name, const char *value)
{
    query *q = data;
    (void)kind;
    q->status = add_encoded(q->object, name, strlen(name), value ? value : "", value ? strlen(value) : 0);
    return q->status ? MHD_NO : MHD_YES;
}

qkv_status qkv__query_read(struct MHD_Connection *c, qkv__json_writer *object)
{
    query q = { .object = object };
    MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, add_argument, &q);
    return q.status;
}

/* ---- multipart/form-data ---- */

enum { MOST_BOUNDARY = 70 };

/* "\r\n--boundary" of a type such as multipart/form-data; boundary="x", to `line`; its length, 0: there is none. */
static size_t find_boundary(const char *type, char line[MOST_BOUNDARY + 8])
{
    static const char key[] = "boundary=";
    const char *at = strchr(type, ';');
    while (at && strncasecmp(at + 1 + strspn(at + 1, " \t"), key, strlen(key))) at = strchr(at + 1, ';');
    if (!at) return 0;
    at += 1 + strspn(at + 1, " \t") + strlen(key);
    const bool is_quoted = *at == '"';
    const size_t length = strcspn(at + is_quoted, is_quoted ? "\"" : "; \t");
    if (!length || length > MOST_BOUNDARY || (is_quoted && at[1 + length] != '"')) return 0;
    memcpy(line, "\r\n--", 4);
    memcpy(line + 4, at + is_quoted, length);
    return 4 + length;
}

/* The value of name="value" in a header, which quotes it. */
static bool find_parameter(const char *header, size_t length, const char *name, const char **value, size_t *value_length)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i + n + 2 < length; i++) {
        const bool begins = i && (header[i - 1] == ' ' || header[i - 1] == ';' || header[i - 1] == '\t');
        if (!begins || strncasecmp(header + i, name, n) || header[i + n] != '=' || header[i + n + 1] != '"') continue;
        *value = header + i + n + 2;
        const char *end = memchr(*value, '"', length - (i + n + 2));
        *value_length = end ? (size_t)(end - *value) : 0;
        return end != NULL;
    }
    return false;
}

/* One part: its headers, an empty line and its value. */
static qkv_status add_part(qkv__json_writer *object, const char *part, size_t length)
{
    static const char disposition[] = "Content-Disposition:";
    const char *headers_end = memmem(part, length, "\r\n\r\n", 4), *name = NULL, *file;
    size_t name_length = 0, file_length;
    if (!headers_end) return qkv__fail(QKV_FORMAT, "a part of the form has no empty line behind its headers");
    const size_t headers = (size_t)(headers_end - part);
    for (size_t at = 0, end; at < headers && !name; at = end + 2) {
        const char *stop = memmem(part + at, headers - at, "\r\n", 2);
        end = stop ? (size_t)(stop - part) : headers;
        if (end - at < strlen(disposition) || strncasecmp(part + at, disposition, strlen(disposition))) continue;
        if (find_parameter(part + at, end - at, "filename", &file, &file_length))
            return qkv__fail(QKV_FORMAT, "the form has a file: its fields must be text");
        find_parameter(part + at, end - at, "name", &name, &name_length);
    }
    if (!name) return qkv__fail(QKV_FORMAT, "a part of the form has no name");
    qkv_buffer own_name = { 0 }, value = { 0 };
    qkv_status status = qkv__buffer_put(&own_name, name, name_length);
    if (!status) status = qkv__buffer_put(&value, headers_end + 4, length - headers - 4);
    if (!status) status = add_field(object, &own_name, &value);
    qkv_buffer_free(&own_name);
    qkv_buffer_free(&value);
    return status;
}

qkv_status qkv__multipart_read(const char *type, const char *text, size_t length, qkv__json_writer *object)
{
    char line[MOST_BOUNDARY + 8];
    const size_t n = find_boundary(type, line);
    const char *at = text, *end = text + length;
    qkv_status status = QKV_OK;
    if (!n) return qkv__fail(QKV_FORMAT, "multipart/form-data needs a boundary of 1 to %d characters", MOST_BOUNDARY);
    bool begins = length >= n - 2 && !memcmp(text, line + 2, n - 2); /* the first one needs no line before it */
    if (!begins) at = memmem(text, length, line, n);
    at = !at ? NULL : at + (begins ? n - 2 : n);
    while (at && !status && !(end - at >= 2 && !memcmp(at, "--", 2))) {
        const char *next = end - at >= 2 && !memcmp(at, "\r\n", 2) ? memmem(at, (size_t)(end - at), line, n) : NULL;
        if (next == at) return qkv__fail(QKV_FORMAT, "a part of the form is empty");
        if (next) status = add_part(object, at + 2, (size_t)(next - at) - 2);
        at = next ? next + n : NULL;
    }
    return status || at ? status : qkv__fail(QKV_FORMAT, "the form does not end with its boundary");
}
