/* traced_text.h: text on its way from what was given to tokens: each byte knows where it comes from. */
#ifndef QKV_SRC_TRACED_TEXT_H
#define QKV_SRC_TRACED_TEXT_H

#include "../base/buffer.h"

/* Bytes of the text as it was given, which has less than 2 GiB. */
typedef struct qkv__range {
    uint32_t begin, end;
} qkv__range;

/* Bytes of a traced text: text that is still to be cut, or (id >= 0) an added token. */
typedef struct qkv__piece {
    size_t begin, end;
    int32_t id;
} qkv__piece;

typedef struct qkv__traced_text {
    qkv_buffer text;
    qkv__range *from; /* of each byte */
    qkv__piece *pieces;
    size_t n;    /* pieces */
    size_t most; /* bytes that the text may have; 0: 2 GiB */
    size_t from_bytes, pieces_bytes;
} qkv__traced_text;

/* What the steps of a tokenizer's file may make of a text. The largest growth of published ones is 22 times: U+FDFA becomes 18
 * characters in compatible form, and its bytes characters of two bytes each. */
#define QKV__MOST_GROWN(length) (1024 + 32 * (size_t)(length))

/* Where a pattern was found in a piece, and what lies between: together all of its bytes. */
typedef struct qkv__cut {
    size_t begin, end; /* bytes of the traced text */
    bool is_match;
} qkv__cut;

void qkv__traced_text_clear(qkv__traced_text *d);
void qkv__traced_text_free(qkv__traced_text *d);

/* Adds bytes that all come from the same place. LIMIT for a text that grows beyond `most`; MEMORY. */
qkv_status qkv__traced_text_put(qkv__traced_text *d, const void *bytes, size_t size, qkv__range from);

/* Adds a code point. */
qkv_status qkv__traced_text_put_code(qkv__traced_text *d, int32_t code, qkv__range from);

/* Adds bytes begin .. end-1 of another. */
qkv_status qkv__traced_text_copy(qkv__traced_text *d, const qkv__traced_text *other, size_t begin, size_t end);

/* Ends a piece that started at begin; an empty one is left out. MEMORY. */
qkv_status qkv__traced_text_end(qkv__traced_text *d, size_t begin, int32_t id);

/* Adds the piece as it is. */
qkv_status qkv__traced_text_keep(qkv__traced_text *d, const qkv__traced_text *other, qkv__piece piece);

/* Where a text that is not empty is found first in bytes begin .. end-1; end where it is not. */
size_t qkv__traced_text_find(const qkv__traced_text *d, size_t begin, size_t end, const char *wanted);

/* Where bytes begin .. end-1 (at least one) come from. */
qkv__range qkv__traced_text_from(const qkv__traced_text *d, size_t begin, size_t end);

#endif
