/* reader.h: texts as the ids that a model reads. */
#ifndef QKV_SRC_READER_H
#define QKV_SRC_READER_H

#include "../token/encode.h"

#include <qkv/unstable/buffer.h>
#include "special_tokens.h"

#include <stdbool.h>

/* Ids of one text, and what reading it needs. Zero is ready; used again and again. */
typedef struct qkv__reader {
    int32_t *ids;
    int64_t n;
    size_t bytes;
    qkv__ids encoded;
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
qkv_status qkv__reader_room(const qkv__special_tokens *f, int64_t max_length, int64_t *room);

/* One text or a pair, as an encoder alone is to learn it: without its last id, which batches add. */
qkv_status qkv__reader_training_example(qkv__reader *r, const qkv_model *m, const qkv__given *x, int64_t max_length);

/* Adds a document: what the model's documents begin with, the text, what they end with. */
qkv_status qkv__reader_document(qkv__reader *r, const qkv_model *m, const char *text, size_t length);

#endif
