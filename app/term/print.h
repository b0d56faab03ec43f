/* print.h: paragraphs and tables of numbers for people. */
#ifndef QKV_TERM_PRINT_H
#define QKV_TERM_PRINT_H

#include <stdbool.h>
#include <stdio.h>
#include <stddef.h>
#include <stdint.h>

/* Columns that UTF-8 text takes on a terminal: an East Asian character takes two. */
int display_width(const char *text);

/* How many bytes of text, whole characters, fit into so many columns. */
size_t fitting_bytes(const char *text, int columns);

/* Columns of the terminal that standard output is; else what COLUMNS says, or 80. 24 at least. */
int terminal_width(void);

/* Prints a name and spaces that fill it up to width columns, before it when right. */
void print_name(const char *name, int width, bool right);

/* Bytes of the piece that text starts with, which stays on one line: a line may end at a space, and between Chinese characters
 * but not before one that closes or after one that opens. */
size_t piece_bytes(const char *text);

/* The last part of a folder's path, valid until the next call; "qkv" where it has no name. */
const char *last_part(const char *folder);

/* Writes text that starts at a column, broken into lines of at most width columns, all but the first after a margin; and prints it,
 * the margin being spaces. */
void write_wrapped(FILE *f, const char *text, int column, const char *margin, int width);
void print_wrapped(const char *text, int column, int indent, int width);

/* Names of rows or columns: names[i], or prefix and number where there are none. */
typedef struct labels {
    const char *const *names;
    const char *prefix;
} labels;

/* How a table that is wider than the terminal is shown: as it is, without its last columns, or as several below each other. */
typedef enum table_fit { FIT_NOT, FIT_CUT, FIT_PANELS } table_fit;

typedef struct table {
    const float *values; /* row-major */
    int64_t rows, columns;
    labels row, column;
    int decimals;
    bool sums; /* a last column with the sum of each row */
    table_fit fit;
    int64_t most_rows;     /* those that follow are left out; 0: none */
    const uint8_t *hidden; /* (rows, columns): 1 for what a mask hides, which is shown as ///; NULL: nothing */
} table;

void print_table(const table *t);

#endif
