/* print_maps.h: what the library gives as text, shown as this terminal can show it. */
#ifndef QKV_APP_PRINT_MAPS_H
#define QKV_APP_PRINT_MAPS_H

#include <qkv/qkv.h>
#include <qkv/unstable/buffer.h>
#include "view.h"

#include <stdbool.h>

/* Whether standard output is a terminal that may show colours: NO_COLOR is not set, and TERM is not "dumb". */
bool shows_colours(void);

/* The terminal that standard output is: its size, its colours, and the words of a map. */
qkv_screen_opts this_screen(void);

/* Prints what a call that gave this status has put into text, and frees it; reports its error. */
qkv_status print_text(qkv_status status, qkv_buffer *text);

/* Prints values (rows, columns) as blocks, as wide as the terminal is, in colours where it has them. Reports its error. */
qkv_status print_map(const float *values, const qkv_heatmap_opts *o);

/* Tokens along one side. */
typedef struct token_side {
    const qkv_tokenizer *tokenizer;
    const int32_t *ids;
    int64_t n;
} token_side;

/* The same for weights (row.n, column.n), none negative, between tokens. Tokens that are parts of a character are shown as one:
 * their columns added, their rows averaged. */
qkv_status print_token_map(token_side row, token_side column, const float *values);

#endif
