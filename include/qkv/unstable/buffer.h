/* qkv/unstable/buffer.h: text that grows.
 *
 * Threads: one thread at a time for each buffer. */
#ifndef QKV_UNSTABLE_BUFFER_H
#define QKV_UNSTABLE_BUFFER_H

#ifndef QKV_UNSTABLE
#error "qkv/unstable/ may change in every release: define QKV_UNSTABLE before including it"
#endif

#include <qkv/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero is an empty buffer. */
typedef struct qkv_buffer {
    char *data; /* length bytes and a NUL; NULL while nothing was ever put there */
    size_t length;
    size_t capacity;
} qkv_buffer;

/* Frees the memory; the buffer is empty then. NULL is allowed. */
QKV_API void qkv_buffer_free(qkv_buffer *t);

#ifdef __cplusplus
}
#endif
#endif
