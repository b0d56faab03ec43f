/* arena.c: memory that is given out piece by piece and taken back all at once. */
#include "arena.h"

#include "size.h"

enum { LINE = 64, FIRST_BLOCK = 64 << 10 };

struct qkv__block {
    qkv__block *older;
    size_t bytes; /* of the whole block, this header included */
    size_t used;  /* from the start of the block */
};

static size_t total_bytes(const qkv__arena *a)
{
    size_t total = 0;
    for (const qkv__block *b = a->blocks; b; b = b->older) total += b->bytes;
    return total;
}

static qkv__block *add_block(qkv__arena *a, size_t bytes)
{
    qkv__block *b = qkv__alloc(bytes);
    if (!b) return NULL;
    *b = (qkv__block){ .older = a->blocks, .bytes = bytes, .used = LINE };
    a->blocks = b;
    size_t total = total_bytes(a);
    if (total > a->peak) a->peak = total;
    return b;
}

void *qkv__arena_take(qkv__arena *a, size_t bytes)
{
    size_t padded, with_header;
    if (!qkv__size_add(bytes, LINE - 1, &padded)) padded = SIZE_MAX;
    padded &= ~(size_t)(LINE - 1);
    qkv__block *b = a->blocks;
    if (!b || b->bytes - b->used < padded) {
        if (!qkv__size_add(padded, LINE, &with_header)) with_header = SIZE_MAX;
        /* What the last round needed; then by an eighth, so that a first step of gigabytes does not reserve as much again. */
        size_t grow = b ? total_bytes(a) / 8 : a->wanted;
        if (grow < FIRST_BLOCK) grow = FIRST_BLOCK;
        b = add_block(a, with_header > grow ? with_header : grow);
        if (!b) return NULL;
    }
    void *memory = (char *)b + b->used;
    b->used += padded;
    a->used += padded;
    return memory;
}

static void release_blocks(qkv__arena *a)
{
    while (a->blocks) {
        qkv__block *b = a->blocks;
        a->blocks = b->older;
        qkv__release(b, b->bytes);
    }
}

void qkv__arena_reset(qkv__arena *a)
{
    if (a->blocks && a->blocks->older) {
        a->wanted = a->used + LINE;
        release_blocks(a);
    }
    if (a->blocks) a->blocks->used = LINE;
    a->used = 0;
}

void qkv__arena_free(qkv__arena *a)
{
    release_blocks(a);
    *a = (qkv__arena){ 0 };
}
