/* memory.h: the one door to the allocator. */
#ifndef QKV_SRC_MEMORY_H
#define QKV_SRC_MEMORY_H

#include "status.h"

/* Memory at a multiple of 64 bytes (2 MiB for large blocks, which then ask for huge pages), not cleared; NULL with the error
 * set when there is none. 0 bytes give a pointer too. */
void *qkv__alloc(size_t bytes);
void *qkv__alloc_zero(size_t bytes);

/* The same bytes that were asked for; NULL is allowed. */
void qkv__release(void *memory, size_t bytes);

/* Makes *memory (of *bytes) hold at least `wanted` bytes, keeping its contents; grows by doubling. MEMORY when it cannot: then
 * nothing has changed. */
qkv_status qkv__grow(void **memory, size_t *bytes, size_t wanted);

char *qkv__copy_text(const char *text);
void qkv__release_text(char *text);

#endif
