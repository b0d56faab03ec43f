/* lines.h: the lines of a file, plain or gzip, one at a time, or all of it. */
#ifndef QKV_SRC_LINES_H
#define QKV_SRC_LINES_H

#include <qkv/data.h>

#include "../base/buffer.h"

#include <stdbool.h>

typedef struct qkv__lines {
    const char *path;
    int64_t number; /* of the last line given, from 1 */
    struct qkv__stream *stream;
    qkv_buffer line, spare;
    int64_t repaired, first_repaired; /* lines that were not UTF-8, and the number of the first one */
} qkv__lines;

/* path is kept, not copied. IO, MEMORY. */
qkv_status qkv__lines_open(qkv__lines *l, const char *path);

/* Another file with the memory of the one before, which ends, and nothing counted yet. A zero struct may start so. IO, MEMORY:
 * close is needed after an error too. */
qkv_status qkv__lines_reopen(qkv__lines *l, const char *path);

/* Directly behind open or reopen: the first bytes of the text, `limit` or all, which are still to be read; they live until the next
 * call. *is_whole: there are no others. The errors of qkv__lines_next(). */
qkv_status qkv__lines_peek(qkv__lines *l, size_t limit, const char **start, size_t *length, bool *is_whole);

/* The next line, without its newline, in l->line; *more is false after the last. A last line without a newline is a line, an
 * empty file has none. A byte order mark at the start of the file is no part of it. FORMAT for damaged gzip, UNSUPPORTED as in
 * qkv_text_start(), IO, MEMORY. */
qkv_status qkv__lines_next(qkv__lines *l, bool *more);

/* The same for lines of UTF-8: others are repaired, or FORMAT with their number when strict. */
qkv_status qkv__lines_next_utf8(qkv__lines *l, int strict, bool *more);

/* The same without a carriage return at the end of the line. */
qkv_status qkv__lines_next_text(qkv__lines *l, int strict, bool *more);

/* A whole file just opened, its newlines with it, in l->line: UTF-8 as above. LIMIT for more than `limit` bytes. */
qkv_status qkv__lines_whole_utf8(qkv__lines *l, int strict, size_t limit);
void qkv__lines_close(qkv__lines *l);

/* Copies as much as the caller's struct has; nothing for NULL. USAGE for a size that no struct has. */
qkv_status qkv__read_stats_write(qkv_read_stats *to, const qkv_read_stats *from);

#endif
