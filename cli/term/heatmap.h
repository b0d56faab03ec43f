/* heatmap.h: numbers as coloured blocks in a terminal, as shades elsewhere. */
#ifndef QKV_TERM_HEATMAP_H
#define QKV_TERM_HEATMAP_H

#include <qkv/qkv.h>

#include <stdbool.h>

/* Whether standard output is a terminal that may show colours: NO_COLOR is not set, and TERM is not "dumb". */
bool shows_colours(void);

/* A table of numbers; zero means the default shown. */
typedef struct named_map {
    const float *values; /* (rows, columns) */
    int64_t rows, columns;
    const char *const *row_names, *const *column_names; /* NULL: none, and one block may stand for several numbers */
    qkv_colours colours;
    float low, high; /* values at the ends of the colours, as qkv_heatmap_opts has them */
} named_map;

/* Prints it, and what the colours or shades mean, no wider than terminal_width(): names that do not fit are shortened or
 * written from top to bottom, and columns that do not fit follow in further panels. Only a map of thousands of lines loses its
 * names. Shades show the sizes of numbers, without their signs. Reports its error: MEMORY. */
qkv_status print_named_map(const named_map *m);

/* Tokens along one side. */
typedef struct token_side {
    const qkv_tokenizer *tokenizer;
    const int32_t *ids;
    int64_t n;
} token_side;

/* The same for weights (row.n, column.n), none negative, between tokens. Tokens that are parts of a character are shown as one:
 * their columns added, their rows averaged. */
qkv_status print_heatmap(token_side row, token_side column, const float *values);

#endif
