/* tokenizer.h: what a tokenizer is made of. Load, train and save meet here; encode and decode only read it. */
#ifndef QKV_SRC_TOKENIZER_H
#define QKV_SRC_TOKENIZER_H

#include "../base/buffer.h"

#include <qkv/tokenizer.h>
#include "split.h"

/* Places are offsets into the tokenizer's pool of text, which moves while it grows. */
typedef struct qkv__token {
    size_t spelling, spelling_length; /* a NUL follows; there may be others inside */
    size_t bytes, bytes_length;
    bool is_set, is_added, is_special;                        /* not set: published ids may have gaps */
    bool single_word, takes_left, takes_right, is_normalized; /* of an added token: only between other characters than those of
                                                                 words; the white space beside it too; after the normalizer */
} qkv__token;

typedef struct qkv__merge {
    int32_t left, right, made;
} qkv__merge;

/* The merges that start with one token, sorted by the other: found by bisection, so that no file can make lookups slow. */
typedef struct qkv__pair {
    int32_t right;
    uint32_t rank;
} qkv__pair;

/* A place of the hash table. Spellings of up to 8 bytes are compared without leaving it. */
typedef struct qkv__slot {
    uint64_t start; /* the first 8 bytes; zeros after the end */
    uint32_t length;
    int32_t id; /* -1: free */
} qkv__slot;

struct qkv_tokenizer {
    qkv_token_kind kind;            /* words and characters have no merges, and use nothing below but by_spelling and added */
    struct qkv__pipeline *pipeline; /* what text goes through, of a published tokenizer; NULL for the kinds that are trained */
    qkv__token *tokens;
    size_t n;
    qkv_buffer pool;
    qkv__merge *merges; /* by rank */
    size_t n_merges;
    bool prefix_space, whole_text; /* whole_text: text is one word, the pattern is not used */
    int32_t unknown;               /* the id of the file's unk_token; with byte pairs it is kept for saving only, -1: none */

    /* made by qkv__tokenizer_sort() */
    int32_t *by_spelling; /* the n_spelled ids that have a token, sorted by spelling */
    size_t n_spelled;
    size_t by_first[257]; /* where those with a first byte start among them */
    qkv__slot *table;     /* hash table of the spellings */
    size_t places;        /* a power of two */

    /* made by qkv__tokenizer_finish() */
    size_t *first; /* pairs[first[left]] .. pairs[first[left + 1] - 1] */
    qkv__pair *pairs;
    int32_t byte_ids[256];
    int32_t *added; /* ids of added tokens by first byte, then longest first */
    size_t n_added;
    size_t added_first[257]; /* as first, by byte */
    qkv__pattern *pattern;
};

#define QKV__NO_RANK UINT32_MAX

/* Room for n tokens and n_merges merges, nothing set. NULL with the error set. */
qkv_tokenizer *qkv__tokenizer_new(qkv_token_kind kind, size_t n, size_t n_merges);

/* Sets a token by its spelling: its bytes are what the spelling stands for; those of an added token, a word or a character are
 * the spelling itself. */
qkv_status qkv__tokenizer_set(qkv_tokenizer *t, int32_t id, const char *spelling, bool is_added, bool is_special);
qkv_status qkv__tokenizer_set_bytes(qkv_tokenizer *t, int32_t id, const char *spelling, size_t length, bool is_added,
                                    bool is_special);

/* Sorts the tokens by spelling, so that qkv__tokenizer_find works. When two have the same one, *twice is its id, else -1. */
qkv_status qkv__tokenizer_sort(qkv_tokenizer *t, int32_t *twice);

/* After all merges are set: what encoding needs. name (a file, or a call) starts the sentences of errors. FORMAT when a merge
 * is there twice, UNSUPPORTED when a byte has no token or text could give a special token, MEMORY. */
qkv_status qkv__tokenizer_finish(qkv_tokenizer *t, const char *name);

/* Whether qkv_tokenizer_save() can write it: SentencePiece's are no tokenizer.json. */
bool qkv__tokenizer_is_json(const qkv_tokenizer *t);

/* As that does; of a tokenizer that was trained here with this "post_processor", which is JSON. */
qkv_status qkv__tokenizer_save_framed(const qkv_tokenizer *t, const char *path, const char *post_processor);

/* The bytes of its tokenizer.json in *out, which was empty; free it after an error too. Reading them gives it back, and `name`
 * starts the sentences of errors. As qkv_tokenizer_save() and qkv_tokenizer_load(). */
qkv_status qkv__tokenizer_write(const qkv_tokenizer *t, qkv_buffer *out);
qkv_tokenizer *qkv__tokenizer_read(const char *name, const qkv_buffer *text);

/* The rank of merging left and right, or QKV__NO_RANK. */
uint32_t qkv__tokenizer_rank(const qkv_tokenizer *t, int32_t left, int32_t right);

/* Its merges, sorted. FORMAT when one is there twice, MEMORY. */
qkv_status qkv__tokenizer_index_merges(qkv_tokenizer *t, const char *name);

/* The tokens that a text starts with, byte by byte: those that start with the bytes walked so far lie side by side. */
typedef struct qkv__walk {
    size_t low, high, depth;
} qkv__walk;
qkv__walk qkv__walk_begin(const qkv_tokenizer *t);
bool qkv__walk_step(const qkv_tokenizer *t, qkv__walk *w, unsigned char byte); /* false: no token starts so */
int32_t qkv__walk_token(const qkv_tokenizer *t, const qkv__walk *w);           /* the one that is just these bytes; or -1 */

/* The id of a spelling, which may have any bytes; -1 when there is none. */
int32_t qkv__tokenizer_find(const qkv_tokenizer *t, const char *spelling, size_t length);

const char *qkv__tokenizer_spelling(const qkv_tokenizer *t, int32_t id);

#endif
