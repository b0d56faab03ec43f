/* walk.h: one attention with everything it computes on the way, to be shown step by step. */
#ifndef QKV_LEARN_WALK_H
#define QKV_LEARN_WALK_H

#include "../report/arrays.h"
#include "../report/results.h"
#include "../term/print.h"

#include <qkv/qkv.h>

/* q, k and v of one attention: finite numbers, equally many dimensions, 2 to 4. */
typedef struct operands {
    qkv_array q, k, v;
} operands;

/* As qkv_array_read() takes them; each reports its error. USAGE for other dimensions, NUMERIC for numbers that are not finite. Free it in any
 * case. */
qkv_status load_operands(operands *o, const char *q, const char *k, const char *v);
void free_operands(operands *o);

/* NUMERIC, reported, unless every number is finite; name says whose they are. */
qkv_status check_finite(const char *name, const float *values, int64_t n);

/* The example of the paper's formula that the tests check to the last digit shown: three tokens, as names of rows with their
 * ids, and of columns. */
extern const operands example_operands;
extern const char *const example_tokens[], *const example_columns[];
extern const char *const example_about; /* a sentence about them, N_() */

/* Everything there is to show. The names are the caller's. */
typedef struct walked {
    qkv_tensor *q, *k, *v, *scores, *scaled, *weights, *output;
    labels queries, keys, key_columns;
} walked;

/* Computes it on the tape from operands of two dimensions. Reports its error. */
qkv_status walk_attention(qkv_tape *t, const operands *o, const qkv_mask *mask, walked *w);

/* Prints a matrix as a table; sums: see print.h. */
void show_matrix(const qkv_tensor *x, labels row, labels column, int decimals, bool sums);

/* The first number of a product, spelled out where it is short: "name = a0 * b0 + a1 * b1 = result"; b in steps. */
void show_sum(const char *name, const float *a, const float *b, int64_t step, int64_t n, float result);

#endif
