/* memory.c: the one door to the allocator. */
#include "memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE = 64, HUGE_PAGE = 2 << 20 };

/* Small blocks lie inside what malloc gives, whose address is kept in front of them. posix_memalign cuts a block of its own out
 * of the heap each time and before glibc 2.38 never finds it again: a server would grow for as long as it runs. Sanitizers
 * watch the ends of what they give themselves. */
#if defined(__SANITIZE_ADDRESS__)
static void *small_block(size_t bytes)
{
    void *memory = NULL;
    return posix_memalign(&memory, LINE, bytes ? bytes : 1) ? NULL : memory;
}

static void free_small_block(void *memory) { free(memory); }
#else
static void *small_block(size_t bytes)
{
    char *given = malloc(sizeof given + LINE + bytes);
    if (!given) return NULL;
    char *memory = given + sizeof given;
    memory += LINE - (uintptr_t)memory % LINE;
    memcpy(memory - sizeof given, &given, sizeof given);
    return memory;
}

static void free_small_block(void *memory)
{
    char *given;
    memcpy(&given, (char *)memory - sizeof given, sizeof given);
    free(given);
}
#endif

static void *default_alloc(size_t bytes, size_t alignment)
{
    void *memory = NULL;
    if (bytes < HUGE_PAGE) return small_block(bytes);
    if (posix_memalign(&memory, alignment, bytes)) return NULL;
#ifdef MADV_HUGEPAGE
    madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
}

static void default_release(void *memory, size_t bytes)
{
    if (bytes < HUGE_PAGE) free_small_block(memory);
    else free(memory);
}

static qkv__memory memory_table = { default_alloc, default_release };

void qkv__set_memory(const qkv__memory *table)
{
    memory_table = table ? *table : (qkv__memory){ default_alloc, default_release };
}

void *qkv__alloc(size_t bytes)
{
    /* Page faults on 4 KiB pages cost a third of a training step; large blocks sit on huge pages instead. */
    void *memory = memory_table.alloc(bytes, bytes >= HUGE_PAGE ? HUGE_PAGE : LINE);
    if (!memory) qkv__fail(QKV_MEMORY, "out of memory: %zu bytes could not be had", bytes);
    return memory;
}

void *qkv__alloc_zero(size_t bytes)
{
    void *memory = qkv__alloc(bytes);
    if (memory) memset(memory, 0, bytes);
    return memory;
}

static atomic_bool is_kept;

void qkv__keep_memory(void) { atomic_store(&is_kept, true); }

void qkv__release(void *memory, size_t bytes)
{
    if (memory && !atomic_load_explicit(&is_kept, memory_order_relaxed)) memory_table.release(memory, bytes);
}

qkv_status qkv__grow(void **memory, size_t *bytes, size_t wanted)
{
    if (wanted <= *bytes) return QKV_OK;
    size_t grown = *bytes > wanted / 2 && *bytes <= SIZE_MAX / 2 ? *bytes * 2 : wanted;
    void *larger = qkv__alloc(grown);
    if (!larger) return QKV_MEMORY;
    if (*memory) memcpy(larger, *memory, *bytes);
    qkv__release(*memory, *bytes);
    *memory = larger;
    *bytes = grown;
    return QKV_OK;
}

char *qkv__copy_text(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = qkv__alloc(bytes);
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

void qkv__release_text(char *text)
{
    if (text) qkv__release(text, strlen(text) + 1);
}
