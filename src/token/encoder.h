/* encoder.h: the working memory of encoding, kept from text to text. */
#ifndef QKV_SRC_ENCODER_H
#define QKV_SRC_ENCODER_H

#include "encode.h"
#include "tokenizer.h"
#include "traced_text.h"

#define QKV__NONE UINT32_MAX

/* A byte or character of a word, and after merges the first one of a token. */
typedef struct qkv__symbol {
    int32_t id;              /* negative: no token yet, or one that never merges */
    int32_t made;            /* the id of it and the next one together, where they merge */
    uint32_t previous, next; /* of the word's symbols; NONE at its ends */
    uint32_t rank;           /* of merging it with the next one; NO_RANK when they do not merge or it is gone */
    uint32_t begin;          /* its first byte in the word */
} qkv__symbol;
#define QKV__FROZEN (-2) /* the id of a symbol that never merges */

typedef struct qkv__merge_candidate {
    uint32_t rank, place;
} qkv__merge_candidate;

/* The best way to cut the bytes before a place: its last token, and where that starts. */
typedef struct qkv__best {
    double score;
    uint32_t begin; /* NONE: no way yet */
    uint32_t next;  /* where the token after it ends, on the best way of all */
    int32_t id;
} qkv__best;

typedef struct qkv__encoder {
    qkv__cutter cutter;
    qkv_buffer spaced;   /* text with the space that add_prefix_space puts before it */
    qkv_buffer spelling; /* of a word or character that is looked up */
    qkv__symbol *symbols;
    qkv__merge_candidate *heap;
    size_t symbols_bytes, heap_bytes, n_heap;

    /* of a published tokenizer */
    qkv__traced_text now, next; /* what a step reads, and what it makes */
    qkv__cut *cuts;
    size_t cuts_bytes, n_cuts;
    struct qkv__letter *letters; /* of Unicode's normal forms */
    size_t letters_bytes, n_letters;
    qkv__best *best;
    size_t best_bytes;
    bool specials; /* special tokens may be found in the text */
    size_t unknown_begin,
        unknown_end;            /* the bytes of the traced text that the last id stands for when it is <unk>; else none */
    bool seen_space;            /* decoding: a space at the start was left out */
    size_t last_begin;          /* decoding: where the token before starts, for CTC */
    const qkv_tokenizer *outer; /* whose ids are wanted where another tokenizer cuts the text */
} qkv__encoder;
void qkv__encoder_free(qkv__encoder *e);

/* ---- bpe.c ---- */

/* Room for n symbols and what merging them needs. MEMORY. */
qkv_status qkv__bpe_room(qkv__encoder *e, size_t n);

/* Merges the symbols of a word: always the lowest rank, of equal ones the leftmost. The word's bytes are for a tokenizer whose
 * merges are all pairs of texts that make a token. */
void qkv__bpe_merge(const qkv_tokenizer *t, qkv__encoder *e, size_t n, const char *word, size_t length);

#endif
