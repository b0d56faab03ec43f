/* word_counts.h: distinct words with their counts. */
#ifndef QKV_SRC_WORD_COUNTS_H
#define QKV_SRC_WORD_COUNTS_H

#include "../base/buffer.h"

#include <qkv/tokenizer.h>
#include "split.h"

typedef struct qkv__word_count {
    size_t start, length; /* in text */
    uint64_t hash;
    int64_t count;
} qkv__word_count;

/* Words by number, and a table of numbers by hash. Zero is an empty one. */
typedef struct qkv__bag {
    qkv_buffer text;
    qkv__word_count *words;
    size_t n, words_bytes;
    size_t *table; /* a number plus 1; 0 is free; a power of two of places, at most half of them taken */
    size_t places;
} qkv__bag;

/* The number of a word, which is added with count 0 when it is new. MEMORY: nothing was added. */
qkv_status qkv__bag_number(qkv__bag *b, const char *word, size_t length, size_t *number);
void qkv__bag_free(qkv__bag *b);

struct qkv_word_counts {
    qkv_token_kind kind;
    qkv__bag bag;
    qkv__pattern *pattern; /* for byte pairs */
    qkv__cutter cutter;
    qkv_buffer spelling; /* of the unit that is added, for the other kinds */
};

/* How many different words; 0 for NULL. */
int64_t qkv__word_counts_size(const qkv_word_counts *w);

#endif
