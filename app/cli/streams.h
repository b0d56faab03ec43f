/* streams.h: where the texts of a command come from, and where its results go. */
#ifndef QKV_CLI_STREAMS_H
#define QKV_CLI_STREAMS_H

#include "options.h"

#include <stdio.h>

/* ---- options ---- */
typedef struct stream_values {
    value_list texts;
    const char *input, *out;
} stream_values;
extern stream_values streams;

/* Rows for a command that reads lines, and for one that prints; in_group is the heading they stand under. */
/* clang-format off */
#define TEXT_ROWS(in_group) \
    { "text", .value = "TEXT..", .help = "texts; --text may be left out (default: read lines)", .group = in_group, \
      .plain = true, .may_be_empty = true, .list = &streams.texts }, \
    { "input", 'i', .value = "FILE", .help = "read lines from FILE (default: standard input)", .group = in_group, \
      .text = &streams.input }
#define RESULT_ROW(in_group) \
    { "out", 'o', .value = "FILE", .help = "write results to FILE (default: standard output)", .group = in_group, \
      .text = &streams.out }
/* clang-format on */

/* ---- texts in ---- */
typedef struct text_stream {
    FILE *file;
    const char *name; /* for sentences */
    char *memory;     /* of the texts among the arguments; NULL for a file */
    int64_t number;   /* of the last line that was read, from 1 */
} text_stream;

/* Opens the texts among the arguments as a file that has each on a line of its own; without any --input, or standard input,
 * which "-" names too. USAGE for both; IO; MEMORY; reported. close_texts() it in any case. */
qkv_status open_texts(text_stream *s);
void close_texts(text_stream *s);
bool is_typed(const text_stream *s); /* line by line, at a terminal */

/* Tells on stderr, unless --quiet is given, that a text is also the name of a file, which is not read. */
void tell_if_file(const char *text);

/* ---- results out ---- */

/* From now on all that is printed goes to --out; does nothing without one. Called when nothing but the computing can go wrong
 * any more: until then a file of that name stays as it was. USAGE when it is the file that s reads, which may be NULL; IO;
 * reported. */
qkv_status open_results(const text_stream *s);
const char *results_name(void);

#endif
