/* buffer.h: text that grows, and memory for libraries that do not say how much they give back. */
#ifndef QKV_SRC_BUFFER_H
#define QKV_SRC_BUFFER_H

#include "memory.h"

#include <qkv/unstable/buffer.h>

#include <stdbool.h>

/* Adds bytes, and keeps a NUL after them. MEMORY: nothing has changed. */
qkv_status qkv__buffer_put(qkv_buffer *t, const void *bytes, size_t size);
void qkv__buffer_clear(qkv_buffer *t);

/* Adds each of n bytes as two digits, such as 0A, between two texts. MEMORY. */
qkv_status qkv__buffer_put_hex(qkv_buffer *t, const char *before, const void *bytes, size_t n, const char *after);

/* White space as the Unicode standard has it: a code point, and whether UTF-8 text has nothing else. */
bool qkv__is_space(int32_t c);
bool qkv__is_blank(const char *text, size_t length);

/* malloc and free on the library's own memory. The size is kept in front of what is handed out. */
void *qkv__lend(size_t bytes);
void qkv__take_back(void *memory);

/* As qkv_utf8_repair(); text is not out's own. */
qkv_status qkv__utf8_repair(const char *text, size_t length, qkv_buffer *out);

#endif
