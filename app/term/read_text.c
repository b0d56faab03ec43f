/* read_text.c: all of a file as one text. */
#include "read_text.h"
#include "../../src/base/file.h"
#include "../../src/data/start.h"

#include <string.h>
#include <unistd.h>

/* A byte order mark, and the newlines at the end, are no part of a text. */
static qkv_status trim_text(const char *name, qkv_buffer *t)
{
    qkv__start start;
    size_t used;
    qkv_status status = qkv__text_start(name, t->data, t->length, &start);
    if (status) return status;
    if (start.encoding) {
        qkv_buffer wide = *t;
        *t = (qkv_buffer){ 0 };
        status = qkv__buffer_put(t, "", 0);
        const unsigned char *bytes = (const unsigned char *)wide.data + start.mark;
        if (!status) status = qkv__utf16_put(t, start.encoding, bytes, wide.length - start.mark, true, &used);
        qkv_buffer_free(&wide);
        if (status) return status;
    } else {
        t->length -= start.mark;
        memmove(t->data, t->data + start.mark, t->length);
    }
    while (t->length && (t->data[t->length - 1] == '\n' || t->data[t->length - 1] == '\r')) t->length--;
    t->data[t->length] = '\0';
    return QKV_OK;
}

static qkv_status read_all(int fd, const char *name, size_t limit, qkv_buffer *out)
{
    char piece[4096];
    size_t got = 1;
    qkv_status status = qkv__buffer_put(out, "", 0);
    while (got && !status) {
        status = qkv__read_some(fd, name, piece, sizeof piece, &got);
        if (!status) status = qkv__buffer_put(out, piece, got);
        if (!status && out->length > limit) status = qkv__fail(QKV_LIMIT, "%s: more than %zu MiB", name, limit >> 20);
    }
    return status;
}

qkv_status qkv_text_read(const char *path, size_t limit, qkv_buffer *out)
{
    int fd = STDIN_FILENO;
    if (!path || !out) return qkv__fail(QKV_USAGE, "read: a path and a place for the text are needed");
    bool is_standard = !strcmp(path, "-");
    const char *name = is_standard ? "standard input" : path;
    qkv__buffer_clear(out);
    qkv_status status = is_standard ? QKV_OK : qkv__read_begin(path, &fd);
    if (status) return status;
    status = read_all(fd, name, limit ? limit : (size_t)64 << 20, out);
    if (!is_standard) qkv__read_end(fd);
    if (!status) status = trim_text(name, out);
    if (status) qkv__buffer_clear(out);
    return status;
}
