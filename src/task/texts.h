/* texts.h: texts through an encoder, a row of numbers for each. */
#ifndef QKV_SRC_TEXTS_H
#define QKV_SRC_TEXTS_H

#include <qkv/task.h>

#include "../base/result.h"
#include "../model/reader.h"
#include "../nn/layer.h"

#include <stdbool.h>

/* What is read: texts or ids, as in qkv_encoder_opts. */
typedef struct qkv__texts {
    const qkv_str *texts, *pairs;
    int64_t n;
    const int32_t *const *ids;
    const int64_t *n_ids;
} qkv__texts;

/* From the encoder's hidden states (rows, length, dim) of x, whose lengths are there, to (rows, width), or for each token to (rows,
 * length, width). */
typedef qkv_tensor *qkv__head(const qkv_model *m, qkv_tensor *hidden, const qkv_tokens *x, const void *data);

/* A stretch of ids, which a batch gives what is before and after. */
typedef struct qkv__window {
    int64_t text, begin, length, second; /* second: ids from this place on are of the second text */
    bool is_pair;
    int64_t result; /* its first number among the results */
} qkv__window;

/* Texts on their way through the encoder and a head. Starts as zero but for m, head, head_data, width and is_of_tokens. */
typedef struct qkv__reading {
    const qkv_model *m;
    qkv__head *head;
    const void *head_data;
    int64_t width;
    bool is_of_tokens; /* the head gives a row for each token of a window, those around it too */
    qkv__special_tokens f;
    bool windows;
    const qkv_hooks *hooks;
    int64_t room;    /* ids of a text in a window */
    qkv__reader all; /* the ids of every text, one after the other */
    qkv__window *all_windows;
    int64_t n_windows;
    size_t windows_bytes;
    int64_t truncated;
    int64_t *first; /* window of every batch, and behind the last one */
    int64_t n_batches;
    float *results; /* of each window (width), or (tokens, width) */
    size_t results_bytes;
} qkv__reading;

/* Begins one: options, and what is around the model's texts. USAGE. Free it in any case. */
qkv_status qkv__reading_start(qkv__reading *r, const qkv_encoder_opts *opts);
void qkv__reading_free(qkv__reading *r);

/* Adds a window of ids that are among r->all. MEMORY. */
qkv_status qkv__reading_add(qkv__reading *r, qkv__window w);

/* Runs all windows, in batches of like lengths, which the windows are then in the order of. NUMERIC, LIMIT, MEMORY. */
qkv_status qkv__reading_run(qkv__reading *r);

/* The order that windows were added in: by text, then by place. */
void qkv__reading_sort(qkv__reading *r);

/* Every text through the encoder and the head, averaged over its windows; *rows are the result's own. Errors as in
 * qkv_classify(). */
qkv_status qkv__read_texts(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_encoder_opts *opts, qkv__head *head,
                           const void *data, int64_t width, qkv_matrix **out, float **rows);

/* What the target ids of qkv_pairs_add_text_labels() and of qkv_pairs_add_text_number() say. */
bool qkv__target_has(const int32_t *target, int64_t label);
float qkv__target_number(const int32_t *target);

/* The class of the largest of n numbers, of equals the first. */
int64_t qkv__likeliest_class(const float *row, int64_t n);

#endif
