/* jansson_file.c: a whole JSON file as jansson values. */
#include "jansson_file.h"

#include <qkv/unstable/util.h>

#include <string.h>

bool qkv__json_out_of_memory(const json_error_t *error, const char *text, size_t size)
{
    if (!error->text[0] || json_error_code(error) == json_error_out_of_memory) return true;
    /* A string that was read to its closing quote is right: what is then called invalid, or no string, had no memory. */
    bool blames_token = !strncmp(error->text, "invalid token", 13) || !strncmp(error->text, "string or '}' expected", 22);
    size_t end = error->position > 0 ? (size_t)error->position : 0;
    return blames_token && end && end <= size && text[end - 1] == '"';
}

qkv_status qkv__json_read(const char *path, size_t limit, json_t **out)
{
    qkv__bytes file;
    json_error_t error;
    *out = NULL;
    qkv_status status = qkv__file_read(path, limit, &file);
    if (status) return status;
    *out = json_loadb((const char *)file.data, file.size, JSON_REJECT_DUPLICATES, &error);
    bool no_memory = !*out && qkv__json_out_of_memory(&error, (const char *)file.data, file.size);
    qkv__bytes_free(&file);
    if (*out) return QKV_OK;
    if (no_memory) return qkv__fail(QKV_MEMORY, "%s: out of memory while reading it", path);
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
