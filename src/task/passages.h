/* passages.h: texts as sentences, and what lies between them. */
#ifndef QKV_SRC_TASK_PASSAGES_H
#define QKV_SRC_TASK_PASSAGES_H

#include <qkv/task.h>

#include <stdbool.h>

/* The sentences of texts, which must outlive them; their lengths must be there. Starts as zero. */
typedef struct qkv__passages {
    const qkv_texts *texts;
    const char **sentences; /* n of them, side by side for a text */
    size_t *lengths;
    int64_t n, *first; /* text i has the sentences first[i] .. first[i + 1] - 1 */
    size_t bytes;
} qkv__passages;

/* Sentences, or with QKV_SPLIT_NONE whole texts. USAGE for more than `most`; MEMORY. Free it in any case. */
qkv_status qkv__passages_cut(qkv__passages *p, const qkv_texts *texts, qkv_split split, int64_t most);
void qkv__passages_free(qkv__passages *p);

/* Joins sentences that follow each other in a text to parts of at most `most` tokens, those between two counted as one. A
 * sentence of more stays alone. MEMORY. */
qkv_status qkv__passages_gather(qkv__passages *p, const qkv_tokenizer *t, int64_t most);

/* Text i with the k-th translation of each sentence in its place; of one that has fewer, its last. Lines and the white space
 * around the text stay. Two sentences of a line have between them what they had, or a space where they had nothing; nothing
 * where the first one ends with a sign that has its space in itself, such as 。 in_line: lines are not kept. MEMORY. */
qkv_status qkv__passages_join(const qkv__passages *p, int64_t i, const qkv_translations *t, int k, bool in_line, qkv_text *out);

/* Whether any sentence of text i has a k-th translation. */
bool qkv__passages_have(const qkv__passages *p, int64_t i, const qkv_translations *t, int k);

#endif
