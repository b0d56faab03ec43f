/* heatmap.h: weights between tokens, as shades for people. */
#ifndef QKV_CLI_HEATMAP_H
#define QKV_CLI_HEATMAP_H

#include <qkv/qkv.h>

/* Tokens along one side. */
typedef struct token_side {
    const qkv_tokenizer *tokenizer;
    const int32_t *ids;
    int64_t n;
} token_side;

/* Prints values (row.n, column.n), none negative, as a heatmap. Tokens that are parts of a character are shown as one: their
 * columns added, their rows averaged. Wide ones have the names of their columns written from top to bottom. Reports its error:
 * MEMORY. */
qkv_status print_heatmap(token_side row, token_side column, const float *values);

#endif
