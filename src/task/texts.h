/* texts.h: texts through an encoder, a row of numbers for each. */
#ifndef QKV_SRC_TEXTS_H
#define QKV_SRC_TEXTS_H

#include <qkv/task.h>

#include "../base/memory.h"

#include <stdbool.h>

/* Ids of one text, and what reading it needs. Zero is ready; used again and again. */
typedef struct qkv__reader {
    int32_t *ids;
    int64_t n;
    size_t bytes;
    qkv_ids encoded;
    qkv_text repaired;
} qkv__reader;
void qkv__reader_free(qkv__reader *r);
void qkv__reader_clear(qkv__reader *r);

/* Adds one id; adds the ids of a text, with U+FFFD for what is not UTF-8. */
qkv_status qkv__reader_put(qkv__reader *r, int32_t id);
qkv_status qkv__reader_encode(qkv__reader *r, const qkv_tokenizer *t, const char *text, size_t length);

/* Leaves the first max_length ids, 0 meaning 512. USAGE for a negative number. */
qkv_status qkv__reader_cut(qkv__reader *r, int64_t max_length);

/* The ids of <s> and </s>. USAGE when the tokenizer is NULL or lacks one. */
qkv_status qkv__find_ends(const qkv_tokenizer *t, int32_t *start, int32_t *end);

/* From hidden states (rows, length, dim) to (rows, width). */
typedef qkv_tensor *qkv__head(const qkv_model *m, qkv_tensor *hidden, const int32_t *lengths, const void *data);

/* Every text through the encoder and the head, averaged over its windows. Errors as in qkv_classify(). */
qkv_status qkv__read_texts(const qkv_model *m, const qkv_texts *texts, const qkv_reading_opts *opts, qkv__head *head,
                           const void *data, int64_t width, qkv_rows *out);

#endif
