/* start.h: what a file is by its first bytes, and UTF-16 to UTF-8. */
#ifndef QKV_SRC_START_H
#define QKV_SRC_START_H

#include "../base/buffer.h"

typedef enum qkv__encoding { QKV__UTF8, QKV__UTF16_LE, QKV__UTF16_BE } qkv__encoding;

typedef struct qkv__start {
    size_t mark; /* bytes of a byte order mark */
    qkv__encoding encoding;
} qkv__start;

/* As qkv_text_start(), but UTF-16 with a byte order mark is an encoding and no error. */
qkv_status qkv__text_start(const char *name, const char *start, size_t length, qkv__start *out);

/* Appends n bytes of UTF-16, without the mark, to out as UTF-8. *used is how many were taken: the first half of a character at
 * the end stays, unless is_end. A surrogate without its other half and an odd last byte become a byte 0xFF, which is not UTF-8:
 * the caller repairs or refuses it like any other. MEMORY. */
qkv_status qkv__utf16_put(qkv_buffer *out, qkv__encoding encoding, const unsigned char *bytes, size_t n, bool is_end,
                          size_t *used);

#endif
