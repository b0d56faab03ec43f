/* explain.h: one attention with every number on the way: from arrays that were typed, or inside a model. */
#ifndef QKV_LEARN_EXPLAIN_H
#define QKV_LEARN_EXPLAIN_H

#include <qkv/qkv.h>

#include <stdbool.h>

enum { PART_Q, PART_K, PART_V, PART_O, PARTS };
typedef enum explain_format { EXPLAIN_TEXT, EXPLAIN_JSON, EXPLAIN_LATEX } explain_format;

/* What is to be explained, as it was typed; NULL and 0: not given. Arrays are as qkv_array_read() takes them. With nothing
 * given it is the example of three tokens. */
typedef struct explain_input {
    const char *q, *k, *v;            /* queries, keys and values themselves; */
    const char *x, *y, *embed, *ids;  /* or what they are projected from: X, or rows of a table; Y of keys and values; */
    const char *w[PARTS], *b[PARTS];  /* and by what: (in, out), and (out) */
    int64_t sequence;                 /* which of a batch, where arrays are (B, T, D) */
    int heads;                        /* that the columns hold side by side; 0: 1 */
    const char *mask, *bias, *tokens; /* "causal", "padding:3,5" or both with a + between; added scores; names of the tokens */
    bool causal;
    const char *model, *text, *target; /* a model's folder and what it reads */
    const char *layer, *head, *token;  /* numbers from 0; a head may be "all", a token its text */
    int kind;                          /* of qkv_attention_kind; -1: the first that the model has */
} explain_input;

/* Computes and prints it. Reports its error. before_printing is called once nothing but printing is left; it reports too. */
qkv_status explain(const explain_input *in, explain_format format, qkv_status (*before_printing)(void));

#endif
