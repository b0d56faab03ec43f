/* lines.c: the lines of a text file. */
#include "lines.h"

#include "options.h"
#include "streams.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static qkv_status check_line(const lines *l, const char *line, size_t length)
{
    size_t good = qkv_utf8_check(line, length);
    if (good < length) return fail(QKV_FORMAT, "%s: line %lld: byte %zu is not UTF-8", l->name, (long long)l->n + 1, good + 1);
    good = strlen(line);
    if (good < length) return fail(QKV_FORMAT, "%s: line %lld: byte %zu is NUL", l->name, (long long)l->n + 1, good + 1);
    return QKV_OK;
}

static qkv_status keep_line(lines *l, const char *line)
{
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

static qkv_status read_stream(lines *l, FILE *file)
{
    char *line = NULL;
    size_t room = 0;
    qkv_status status = QKV_OK;
    ssize_t length;
    errno = 0;
    while (!status && (length = getline(&line, &room, file)) >= 0) {
        if (length && line[length - 1] == '\n') line[--length] = '\0';
        status = check_line(l, line, (size_t)length);
        if (!status) status = keep_line(l, line);
    }
    if (!status && !feof(file))
        status = fail(errno == ENOMEM ? QKV_MEMORY : QKV_IO, "%s: cannot read: %s", l->name, strerror(errno));
    free(line);
    return status;
}

qkv_status read_lines(lines *l, const char *path)
{
    *l = (lines){ .name = path ? path : "standard input" };
    FILE *file = path ? fopen(path, "re") : stdin;
    if (!file) return fail(QKV_IO, "%s: cannot open: %s", path, strerror(errno));
    qkv_status status = read_stream(l, file);
    if (path) fclose(file);
    return status;
}

qkv_status read_texts(lines *l)
{
    text_stream s;
    qkv_status status = open_texts(&s);
    *l = (lines){ .name = s.name };
    if (!status) status = read_stream(l, s.file);
    close_texts(&s);
    return status;
}

void free_lines(lines *l)
{
    for (int64_t i = 0; i < l->n; i++) free(l->at[i]);
    free(l->at);
    *l = (lines){ 0 };
}
