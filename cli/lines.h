/* lines.h: the lines of a text file. */
#ifndef QKV_CLI_LINES_H
#define QKV_CLI_LINES_H

#include <qkv/qkv.h>

typedef struct lines {
    const char *name; /* of the file, for sentences */
    char **at;        /* n texts, without their newlines */
    int64_t n, room;
} lines;

/* Reads all lines of a file, of standard input for NULL. A last line without a newline is a line. Reports its error: IO; FORMAT
 * for a line that is not UTF-8 or holds a NUL; MEMORY. free_lines() it in any case. */
qkv_status read_lines(lines *l, const char *path);

/* The same with the texts of the command: see streams.h. */
qkv_status read_texts(lines *l);
void free_lines(lines *l);

#endif
