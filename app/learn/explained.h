/* explained.h: what an explanation is made of, for the files that compute it and show it. */
#ifndef QKV_LEARN_EXPLAINED_H
#define QKV_LEARN_EXPLAINED_H

#include "../term/print.h"
#include "explain.h"

enum { EXPLAIN_ALL = -1, NAME_ROOM = 64, TITLE_ROOM = 256, NOTE_ROOM = 1024, MOST_STEPS = 16, MOST_TABLES = 3 };

/* Names of tokens, each ended by a NUL. */
typedef struct token_list {
    char (*text)[NAME_ROOM];
    const char **names; /* the same as pointers; NULL: there are none */
    int64_t n;
} token_list;

/* Everything there is to show of one attention of H heads. What is NULL is not shown. Tensors are on the tape. */
typedef struct explained {
    qkv_tape *tape;
    const char *about;                       /* what is explained, in a sentence; NULL: the formula alone */
    qkv_tensor *x, *y, *w[PARTS], *b[PARTS]; /* (Tq, dim), (Tk, dim), (in, out), (1, out) */
    const char *x_note;                      /* where X comes from */
    qkv_tensor *q, *k, *v;                   /* (T, H*D) */
    int64_t heads, kv_heads;
    qkv_mask mask;
    bool is_turned, is_self, is_part; /* by rotary positions; keys are of the queries' tokens; one head of several */
    qkv_tensor *split[3];             /* Q, K, V as (H, T, D) */
    qkv_tensor *scores, *scaled, *bias, *masked, *weights; /* (H, Tq, Tk); the bias as it was given */
    qkv_tensor *attended, *concat, *output;                /* (H, Tq, Dv), (Tq, H*Dv), (Tq, out) */
    uint8_t *hidden;                                       /* (H, Tq, Tk): 1 where a mask hides; NULL: nowhere */
    int64_t head, token;                                   /* the one that is shown, or EXPLAIN_ALL */
    labels queries, keys, key_columns;                     /* names of rows and columns */
    const char *const *words, *const *key_words;           /* in sentences; NULL: q0, k0 .. */
    token_list query_list, key_list;
    char about_text[NOTE_ROOM], note_text[NOTE_ROOM], batch_text[64]; /* which of several sequences; "": one alone */
    uint8_t *keep;
} explained;

/* One table of a step. */
typedef struct shown {
    const char *key, *symbol; /* in JSON; in formulas */
    const qkv_tensor *values; /* (rows, columns) or (heads, rows, columns) */
    labels row, column;
    bool is_by_query;         /* a row for each query: the token that was chosen has one of them */
    bool is_between;          /* a column for each key, none of which is left out */
    bool is_masked, has_sums; /* what is hidden is shown as such; rows have their sums */
} shown;

/* A product spelled out: "name = a0 * b0 + .. = result"; n is 0 where there is none. */
typedef struct spelled_sum {
    char name[32];
    const float *a, *b;
    int64_t step, n;
    float result;
} spelled_sum;

typedef struct step {
    char title[TITLE_ROOM], formula[TITLE_ROOM], note[NOTE_ROOM]; /* the formula as LaTeX has it, up to the last table */
    shown tables[MOST_TABLES];
    int n;
    spelled_sum sum;
    bool is_read; /* each row of its table is told in a sentence */
} step;

/* Fills in what follows from q, k, v, the mask and W_O. Reports its error. */
qkv_status compute_explained(explained *e);

/* The same for a model; w[], x and names too. */
qkv_status explain_model(explained *e, const explain_input *in, qkv_model *m);

/* The steps in their order; gives how many. */
int list_steps(const explained *e, step steps[MOST_STEPS]);

/* What row i of head h attends to, as a sentence. */
void read_row(const explained *e, int64_t h, int64_t i, char *text, size_t room);

/* The head of a table's first dimension that is shown first, and how many are. */
void heads_shown(const explained *e, const shown *s, int64_t *first, int64_t *n);

void print_explained(const explained *e, const step *steps, int n);
qkv_status print_explained_json(const explained *e, const step *steps, int n); /* reports its error */
void print_explained_latex(const explained *e, const step *steps, int n);

/* Names as they are shown, from n texts: without the space they start with; false without memory. */
bool make_token_list(token_list *list, const char *const *texts, int64_t n);
void free_token_list(token_list *list);

/* The place of a token that was typed, by its number or its name; reports its error. */
qkv_status find_token(const char *typed, const token_list *list, int64_t n, int64_t *place);

#endif
