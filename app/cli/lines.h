/* lines.h: the lines of a text file, one at a time or all of them. */
#ifndef QKV_CLI_LINES_H
#define QKV_CLI_LINES_H

#include "streams.h"

/* Opens a file, or takes standard input for NULL. Reports its error: IO. close_texts() it in any case. */
qkv_status open_lines(text_stream *r, const char *path);

/* The next line, without its newline and with a NUL after it, in the memory of getline(3); *more is false after the last. A
 * byte order mark at the start of the file is no part of it. Reports its error: UNSUPPORTED as in qkv_text_start(); IO;
 * MEMORY. */
qkv_status next_line(text_stream *r, char **line, size_t *room, size_t *length, bool *more);

/* Reports where the last line is not UTF-8, unless quiet, for the first ten such lines; an error when strict: FORMAT. */
qkv_status check_line(const text_stream *r, const char *line, size_t length, bool strict, bool quiet);

/* Calls handle with every line until it gives an error, which it has reported, or nothing can be printed any more. The errors of
 * next_line(). */
typedef qkv_status (*line_handler)(void *data, const text_stream *in, char *line, size_t length);
qkv_status each_line(text_stream *in, line_handler handle, void *data);

/* Lines that are worked on together, without their newlines and carriage returns. */
typedef struct line_group {
    const char *name; /* of the stream, for sentences */
    char **at;        /* n of them; memory of getline(3), used again */
    size_t *lengths, *rooms;
    int64_t n, before; /* before: lines before these */
    int64_t tokens;    /* a handler may add those that it read and wrote: the ranks' balance is told by them */
} line_group;

/* Calls handle, which reports its errors, with groups of at most `most` lines: of one line each where they are typed at a
 * terminal, so that every line is answered at once. What was read before an error is handled all the same. The errors of
 * next_line() and check_line(); MEMORY. */
typedef qkv_status (*group_handler)(void *data, line_group *g);
qkv_status each_group(text_stream *in, int most, bool strict, bool quiet, group_handler handle, void *data);

/* Tells that so many lines of a file, of which this is the first, were not UTF-8; nothing for none. */
void tell_repaired(const char *path, int64_t n, int64_t first);

/* A note of the library about text that it read: for its options. data means nothing. */
void tell_note(void *data, const char *text);

typedef struct lines {
    const char *name; /* of the file, for sentences */
    char **at;        /* n texts, without their newlines */
    int64_t n, room;
    bool is_strict;
} lines;

/* Reads all lines of a file, of standard input for NULL. A last line without a newline is a line. Reports its error: those of
 * next_line(); FORMAT for a line that holds a NUL and, where it is strict, for one that is not UTF-8; else U+FFFD stands in, and
 * it is told. free_lines() it in any case. */
qkv_status read_lines(lines *l, const char *path, bool strict);

/* The same with the texts of the command, not strict: see streams.h. */
qkv_status read_texts(lines *l);
void free_lines(lines *l);

#endif
