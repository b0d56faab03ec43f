/* texts.h: texts through an encoder, a row of numbers for each. */
#ifndef QKV_SRC_TEXTS_H
#define QKV_SRC_TEXTS_H

#include <qkv/task.h>

#include "../base/memory.h"
#include "../model/special_tokens.h"
#include "../nn/layer.h"

#include <stdbool.h>

/* Ids of one text, and what reading it needs. Zero is ready; used again and again. */
typedef struct qkv__reader {
    int32_t *ids;
    int64_t n;
    size_t bytes;
    qkv_ids encoded;
    qkv_buffer repaired;
} qkv__reader;
void qkv__reader_free(qkv__reader *r);
void qkv__reader_clear(qkv__reader *r);

/* Adds ids; adds the ids of a text, with U+FFFD for what is not UTF-8. */
qkv_status qkv__reader_add(qkv__reader *r, const int32_t *ids, size_t n);
qkv_status qkv__reader_put(qkv__reader *r, const qkv__id_run *ids);
qkv_status qkv__reader_encode(qkv__reader *r, const qkv_tokenizer *t, const char *text, size_t length);

/* One text as the caller gave it, and the second of a pair; data NULL: none. */
typedef struct qkv__given {
    const char *text, *pair;
    size_t length, pair_length;
} qkv__given;

/* A text's ids in a reader, without what is before and after them. */
typedef struct qkv__body {
    int64_t begin, length, second; /* second: place of the second text's first id; where there is none, the end */
    bool is_cut;
} qkv__body;

/* Adds one text or a pair. A pair of a published model is cut to `room` ids unless that is 0. */
qkv_status qkv__reader_body(qkv__reader *r, const qkv__special_tokens *f, const qkv__given *x, int64_t room, qkv__body *out);

/* How many ids of a text fit with what is around them, the last id of all not counted; max_length 0 means 512. USAGE for a
 * negative number. */
qkv_status qkv__buffer_room(const qkv__special_tokens *f, int64_t max_length, int64_t *room);

/* One text or a pair, as an encoder alone is to learn it: without its last id, which batches add. */
qkv_status qkv__reader_training_example(qkv__reader *r, const qkv_model *m, const qkv__given *x, int64_t max_length);

/* From the encoder's hidden states (rows, length, dim) of x, whose lengths are there, to (rows, width), or for each token to (rows,
 * length, width). */
typedef qkv_tensor *qkv__head(const qkv_model *m, qkv_tensor *hidden, const qkv__sources *x, const void *data);

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
    qkv_each_step each_step;
    void *each_step_data;
    int64_t room;    /* ids of a text in a window */
    qkv__reader all; /* the ids of every text, one after the other */
    qkv__window *all_windows;
    int64_t n_windows;
    size_t windows_bytes;
    int64_t cut;
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

/* Every text through the encoder and the head, averaged over its windows. Errors as in qkv_classify(). */
qkv_status qkv__read_texts(const qkv_model *m, const qkv_texts *texts, const qkv_encoder_opts *opts, qkv__head *head,
                           const void *data, int64_t width, qkv_matrix *out);

/* The same where all ranks have the same texts: each reads its share, and all get all rows. MEMORY, IO too. */
qkv_status qkv__read_shared_texts(const qkv_model *m, const qkv_texts *texts, const qkv_encoder_opts *opts, qkv__head *head,
                                  const void *data, int64_t width, qkv_matrix *out);

/* What the target ids of qkv_pairs_add_text_labels() and of qkv_pairs_add_text_number() say. */
bool qkv__target_has(const int32_t *target, int64_t label);
float qkv__target_number(const int32_t *target);

/* The class of the largest of n numbers, of equals the first. */
int64_t qkv__likeliest_class(const float *row, int64_t n);

#endif
