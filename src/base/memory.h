/* memory.h: the one door to the allocator. */
#ifndef QKV_SRC_MEMORY_H
#define QKV_SRC_MEMORY_H

#include "status.h"

/* Every allocation goes through one table, so that a test can count, limit or fail it. alloc(bytes, alignment) gives memory at
 * a multiple of alignment (a power of two) or NULL; it may be called from any thread. bytes is handed back to release. */
typedef struct qkv__memory {
    void *(*alloc)(size_t bytes, size_t alignment);
    void (*release)(void *memory, size_t bytes);
} qkv__memory;

/* Replaces the table; NULL puts the default back. Only while the library holds no memory: before the first call that allocates,
 * or after everything is freed and qkv_shutdown() was called. */
void qkv__set_memory(const qkv__memory *table);

/* Memory at a multiple of 64 bytes (2 MiB for large blocks, which then ask for huge pages), not cleared; NULL with the error
 * set when there is none. 0 bytes give a pointer too. */
void *qkv__alloc(size_t bytes);
void *qkv__alloc_zero(size_t bytes);

/* The same bytes that were asked for; NULL is allowed. */
void qkv__release(void *memory, size_t bytes);

/* From here on nothing is given back: somebody else may still write to what was asked for, until the process ends. */
void qkv__keep_memory(void);

/* Makes *memory (of *bytes) hold at least `wanted` bytes, keeping its contents; grows by doubling. MEMORY when it cannot: then
 * nothing has changed. */
qkv_status qkv__grow(void **memory, size_t *bytes, size_t wanted);

char *qkv__copy_text(const char *text);
void qkv__release_text(char *text);

#endif
