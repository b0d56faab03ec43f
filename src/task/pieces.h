/* pieces.h: a text as tokens, and the words that they are of. */
#ifndef QKV_SRC_PIECES_H
#define QKV_SRC_PIECES_H

#include "texts.h"

/* All of it lies in a result. */
typedef struct qkv__pieces {
    qkv_str text;     /* with a NUL behind it: what was not UTF-8 has become U+FFFD */
    int64_t begin, n; /* its ids in the reader */
    qkv_span
        *spans;   /* (n): of each in the text, without white space around it; empty: it is of no character. A space alone before
                         a word has the span of the piece behind it */
    bool *starts; /* (n): whether it begins a word */
} qkv__pieces;

/* Adds the ids of a text to the reader. A piece begins a word unless a tokenizer that marks those which go on (WordPiece's ##)
 * marks it; of other tokenizers unless letters, marks or digits stand right before and at its place, and none of both is an
 * ideograph or a kana, which have no spaces between words. Errors as of qkv_tokenizer_encode(). */
qkv_status qkv__read_pieces(const qkv_tokenizer *t, qkv_str text, void *result, qkv__reader *r, qkv__pieces *out);

#endif
