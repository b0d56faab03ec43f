/* form.c: application/x-www-form-urlencoded to an object. */
#include "server.h"

#include <string.h>

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static qkv_status decode_form(const char *text, size_t length, qkv_text *out)
{
    qkv__text_clear(out);
    qkv_status status = qkv__text_put(out, "", 0);
    for (size_t i = 0; i < length && !status; i++) {
        char c = text[i] == '+' ? ' ' : text[i];
        if (c == '%') {
            int high = length - i > 2 ? digit(text[i + 1]) : -1, low = length - i > 2 ? digit(text[i + 2]) : -1;
            if (high < 0 || low < 0) return qkv__fail(QKV_FORMAT, "the form has a %% without two hexadecimal digits");
            c = (char)(high * 16 + low);
            i += 2;
        }
        status = qkv__text_put(out, &c, 1);
    }
    return status;
}

static qkv_status add_field(json_t *object, const qkv_text *name, const qkv_text *value)
{
    if (memchr(name->data, '\0', name->length) || qkv_utf8_check(name->data, name->length) < name->length)
        return qkv__fail(QKV_FORMAT, "the form has a field whose name is not text");
    if (qkv_utf8_check(value->data, value->length) < value->length)
        return qkv__fail(QKV_FORMAT, "the form's field \"%s\" is not UTF-8", name->data);
    if (json_object_get(object, name->data)) return qkv__fail(QKV_FORMAT, "the form has the field \"%s\" twice", name->data);
    return json_object_set_new(object, name->data, json_stringn(value->data, value->length))
               ? qkv__fail(QKV_MEMORY, "out of memory")
               : QKV_OK;
}

qkv_status qkv__form_read(const char *text, size_t length, json_t **object)
{
    qkv_text name = { 0 }, value = { 0 };
    qkv_status status = QKV_OK;
    if (!(*object = json_object())) return qkv__fail(QKV_MEMORY, "out of memory");
    for (size_t at = 0, end; at < length && !status; at = end + 1) {
        const char *stop = memchr(text + at, '&', length - at);
        end = stop ? (size_t)(stop - text) : length;
        if (end == at) continue;
        const char *sign = memchr(text + at, '=', end - at);
        size_t middle = sign ? (size_t)(sign - text) : end;
        status = decode_form(text + at, middle - at, &name);
        if (!status) status = decode_form(text + middle + (sign != NULL), end - middle - (sign != NULL), &value);
        if (!status) status = add_field(*object, &name, &value);
    }
    qkv_text_free(&name);
    qkv_text_free(&value);
    return status;
}
