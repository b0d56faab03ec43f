/* memory.c: the one door to the allocator. */
#include "memory.h"

#include <pthread.h>
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

/* ---- large blocks ---- */

/* Those that were given back last, for whoever wants as much: a new one is cleared by the system page by page, which takes a
 * twentieth of the time of a call that embeds 64 sentences. None under a sanitizer, which is to see who reads what was freed.
 * A thread that finds the list in use goes without: so may a child of fork(), whose lock is never opened. */
#if defined(__SANITIZE_ADDRESS__)
enum { SPARES = 1, SPARE_BYTES = 0 };
#else
enum { SPARES = 16, SPARE_BYTES = 32 << 20 };
#endif

static struct {
    pthread_mutex_t lock;
    void *blocks[SPARES]; /* the oldest first */
    size_t bytes[SPARES], all_bytes;
    int n;
} spares = { .lock = PTHREAD_MUTEX_INITIALIZER };

static size_t whole_pages(size_t bytes) { return (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE; }

/* Under the lock. */
static void *remove_spare(int i)
{
    void *block = spares.blocks[i];
    spares.all_bytes -= spares.bytes[i];
    for (spares.n--; i < spares.n; i++) spares.blocks[i] = spares.blocks[i + 1], spares.bytes[i] = spares.bytes[i + 1];
    return block;
}

static void *take_spare(size_t bytes)
{
    void *found = NULL;
    if (pthread_mutex_trylock(&spares.lock)) return NULL;
    for (int i = spares.n; i-- > 0 && !found;)
        if (spares.bytes[i] == bytes) found = remove_spare(i);
    pthread_mutex_unlock(&spares.lock);
    return found;
}

static bool keep_spare(void *block, size_t bytes)
{
    if (bytes > SPARE_BYTES || pthread_mutex_trylock(&spares.lock)) return false;
    while (spares.n == SPARES || spares.all_bytes + bytes > SPARE_BYTES) free(remove_spare(0));
    spares.blocks[spares.n] = block;
    spares.bytes[spares.n++] = bytes;
    spares.all_bytes += bytes;
    pthread_mutex_unlock(&spares.lock);
    return true;
}

static void *large_block(size_t bytes)
{
    void *memory = take_spare(bytes);
    if (memory || posix_memalign(&memory, HUGE_PAGE, bytes)) return memory;
#ifdef MADV_HUGEPAGE
    madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
}

static void *default_alloc(size_t bytes, size_t alignment)
{
    (void)alignment; /* both kinds have theirs */
    if (bytes > SIZE_MAX - HUGE_PAGE) return NULL;
    return bytes < HUGE_PAGE ? small_block(bytes) : large_block(whole_pages(bytes));
}

static void default_release(void *memory, size_t bytes)
{
    if (bytes < HUGE_PAGE) free_small_block(memory);
    else if (!keep_spare(memory, whole_pages(bytes))) free(memory);
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

void qkv__release(void *memory, size_t bytes)
{
    if (memory) memory_table.release(memory, bytes);
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
