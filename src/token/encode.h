/* encode.h: text to ids and back, into memory that grows and is used again. */
#ifndef QKV_SRC_ENCODE_H
#define QKV_SRC_ENCODE_H

#include <qkv/tokenizer.h>
#include <qkv/unstable/buffer.h>

struct qkv__encoder;

/* As qkv_encoding. A zero struct is empty. */
typedef struct qkv__ids {
    int32_t *ids, *types;
    qkv_span *spans;
    size_t n, second;
    size_t ids_bytes, spans_bytes, types_bytes; /* of the allocations */
    struct qkv__encoder *encoder;               /* working memory */
} qkv__ids;
void qkv__ids_free(qkv__ids *ids);

/* Adds an id. MEMORY: nothing has changed. */
qkv_status qkv__put_id(qkv__ids *out, int32_t id, size_t begin, size_t end);

/* As qkv_tokenizer_encode() and qkv_tokenizer_decode(); opts of this library's size, or NULL. */
qkv_status qkv__encode(const qkv_tokenizer *t, const char *text, size_t length, const qkv_encode_opts *opts, qkv__ids *out);
qkv_status qkv__decode(const qkv_tokenizer *t, const int32_t *ids, size_t n, unsigned flags, qkv_buffer *out);

/* A result: an empty one, which keeps the memory of *out; then what its ids say, or for a status that is not OK nothing. The
 * status is returned. NULL with the error set: USAGE, MEMORY. */
qkv__ids *qkv__encoding_begin(qkv_encoding **out);
qkv_status qkv__encoding_end(qkv_encoding *encoding, qkv_status status);

#endif
