/* passages.h: texts as sentences, and what lies between them. */
#ifndef QKV_SRC_SERVE_PASSAGES_H
#define QKV_SRC_SERVE_PASSAGES_H

#include "json.h"

#include <qkv/task.h>

/* The sentences of texts, which must outlive them. Starts as zero. */
typedef struct qkv__passages {
    const qkv__strings *texts;
    const char **sentences; /* n of them, side by side for a text */
    size_t *lengths;
    int64_t n, first[QKV__TEXTS + 1]; /* text i has the sentences first[i] .. first[i + 1] - 1 */
    size_t bytes;
} qkv__passages;

/* USAGE for more than `most` sentences; MEMORY. Free it in any case. */
qkv_status qkv__passages_cut(qkv__passages *p, const qkv__strings *texts, int64_t most);
void qkv__passages_free(qkv__passages *p);

/* Text i with the k-th translation of each sentence in its place; of one that has fewer, its last. Lines and the white space
 * around the text stay. Two sentences of a line have between them what they had, or a space where they had nothing; nothing
 * where the first one ends with a sign that has its space in itself, such as 。 MEMORY. */
qkv_status qkv__passages_join(const qkv__passages *p, int64_t i, const qkv_translations *t, int k, qkv_text *out);

/* Whether any sentence of text i has a k-th translation. */
bool qkv__passages_have(const qkv__passages *p, int64_t i, const qkv_translations *t, int k);

#endif
