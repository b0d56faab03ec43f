/* json.c: a whole JSON file. */
#include "json.h"

qkv_status qkv__json_read(const char *path, size_t limit, json_t **out)
{
    qkv__bytes file;
    json_error_t error = { 0 }; /* jansson does not set it when memory is out */
    *out = NULL;
    qkv_status status = qkv__file_read(path, limit, &file);
    if (status) return status;
    *out = json_loadb((const char *)file.data, file.size, JSON_REJECT_DUPLICATES, &error);
    qkv__bytes_free(&file);
    if (*out) return QKV_OK;
    if (!error.text[0] || json_error_code(&error) == json_error_out_of_memory)
        return qkv__fail(QKV_MEMORY, "%s: out of memory while reading it", path);
    return qkv__fail(QKV_FORMAT, "%s: line %d: %s", path, error.line, error.text);
}

qkv_status qkv__json_write(const char *path, const json_t *value)
{
    const size_t style = JSON_INDENT(2) | JSON_REAL_PRECISION(9);
    size_t length = value ? json_dumpb(value, NULL, 0, style) : 0;
    char *text = length ? qkv__alloc(length + 1) : NULL;
    qkv_status status;
    if (text && json_dumpb(value, text, length, style) == length) {
        text[length] = '\n';
        status = qkv_file_write(path, text, length + 1);
    } else status = qkv__fail(QKV_MEMORY, "%s: out of memory while writing it", path);
    qkv__release(text, length + 1);
    return status;
}
