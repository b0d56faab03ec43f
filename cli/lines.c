/* lines.c: the lines of a text file, one at a time or all of them. */
#include "lines.h"

#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- one at a time ---- */

qkv_status open_lines(text_stream *r, const char *path)
{
    *r = (text_stream){ .name = path ? path : _("standard input"), .file = path ? fopen(path, "re") : stdin };
    return r->file ? QKV_OK : fail(QKV_IO, "%s: cannot open: %s", path, strerror(errno));
}

/* Of the first line, with its newline. */
static qkv_status drop_mark(const text_stream *r, char *line, size_t *length)
{
    size_t mark;
    if (qkv_text_start(r->name, line, *length, &mark)) return library_failed();
    *length -= mark;
    memmove(line, line + mark, *length + 1);
    return QKV_OK;
}

qkv_status next_line(text_stream *r, char **line, size_t *room, size_t *length, bool *more)
{
    errno = 0;
    ssize_t got = getline(line, room, r->file);
    *length = got < 0 ? 0 : (size_t)got;
    *more = got >= 0;
    if (!*more && feof(r->file)) return QKV_OK;
    if (!*more) return fail(errno == ENOMEM ? QKV_MEMORY : QKV_IO, "%s: cannot read: %s", r->name, strerror(errno));
    qkv_status status = r->number++ ? QKV_OK : drop_mark(r, *line, length);
    *more = *length > 0; /* a file of a byte order mark alone has no line, as an empty one has none */
    if (*length && (*line)[*length - 1] == '\n') (*line)[--*length] = '\0';
    return status;
}

qkv_status check_line(const text_stream *r, const char *line, size_t length, bool strict, bool quiet)
{
    size_t good = qkv_utf8_check(line, length);
    long long number = (long long)r->number;
    if (good == length) return QKV_OK;
    if (strict) return fail(QKV_FORMAT, "%s: line %lld: byte %zu is not UTF-8", r->name, number, good + 1);
    if (!quiet)
        fprintf(stderr, _("qkv: %s: line %lld: byte %zu is not UTF-8: U+FFFD stands in for it\n"), r->name, number, good + 1);
    return QKV_OK;
}

void tell_repaired(const char *path, int64_t n, int64_t first)
{
    if (n == 1) fprintf(stderr, _("qkv: %s: line %lld is not UTF-8: U+FFFD stands in\n"), path, (long long)first);
    if (n > 1)
        fprintf(stderr, _("qkv: %s: %lld lines are not UTF-8, the first is line %lld: U+FFFD stands in\n"), path, (long long)n,
                (long long)first);
}

/* ---- all of them ---- */

static qkv_status keep_line(lines *l, const text_stream *r, const char *line, size_t length)
{
    qkv_status status = check_line(r, line, length, true, false);
    size_t good = strlen(line);
    if (!status && good < length)
        status = fail(QKV_FORMAT, "%s: line %lld: byte %zu is NUL", l->name, (long long)r->number, good + 1);
    if (status) return status;
    if (l->n == l->room) {
        int64_t room = l->room ? 2 * l->room : 1024;
        char **larger = realloc(l->at, (size_t)room * sizeof *larger);
        if (!larger) return fail(QKV_MEMORY, "%s: out of memory", l->name);
        l->at = larger;
        l->room = room;
    }
    if (!(l->at[l->n] = strdup(line))) return fail(QKV_MEMORY, "%s: out of memory", l->name);
    l->n++;
    return QKV_OK;
}

/* All lines of what was opened, which it closes. */
static qkv_status read_all_lines(lines *l, text_stream *in, qkv_status status)
{
    char *line = NULL;
    size_t room = 0, length;
    bool more = true;
    *l = (lines){ .name = in->name };
    while (!status && !(status = next_line(in, &line, &room, &length, &more)) && more) status = keep_line(l, in, line, length);
    free(line);
    close_texts(in);
    return status;
}

qkv_status read_lines(lines *l, const char *path)
{
    text_stream in;
    qkv_status status = open_lines(&in, path);
    return read_all_lines(l, &in, status);
}

qkv_status read_texts(lines *l)
{
    text_stream in;
    qkv_status status = open_texts(&in);
    return read_all_lines(l, &in, status);
}

void free_lines(lines *l)
{
    for (int64_t i = 0; i < l->n; i++) free(l->at[i]);
    free(l->at);
    *l = (lines){ 0 };
}
