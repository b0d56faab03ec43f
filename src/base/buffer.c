/* buffer.c: text that grows, and memory for libraries that do not say how much they give back. */
#include "buffer.h"

#include "size.h"

#include <stdio.h>
#include <string.h>

qkv_status qkv__buffer_put(qkv_buffer *t, const void *bytes, size_t size)
{
    size_t wanted;
    if (!qkv__size_add(t->length, size, &wanted) || !qkv__size_add(wanted, 1, &wanted))
        return qkv__fail(QKV_MEMORY, "out of memory: a text of more bytes than can be counted");
    if (qkv__grow((void **)&t->data, &t->capacity, wanted)) return QKV_MEMORY;
    if (size) memcpy(t->data + t->length, bytes, size);
    t->length += size;
    t->data[t->length] = '\0';
    return QKV_OK;
}

void qkv__buffer_clear(qkv_buffer *t)
{
    t->length = 0;
    if (t->data) t->data[0] = '\0';
}

qkv_status qkv__buffer_put_hex(qkv_buffer *t, const char *before, const void *bytes, size_t n, const char *after)
{
    char digits[4];
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < n && !status; i++) {
        snprintf(digits, sizeof digits, "%02X", ((const unsigned char *)bytes)[i]);
        status = qkv__buffer_put(t, before, strlen(before));
        if (!status) status = qkv__buffer_put(t, digits, 2);
        if (!status) status = qkv__buffer_put(t, after, strlen(after));
    }
    return status;
}

void qkv_buffer_free(qkv_buffer *t)
{
    if (!t) return;
    qkv__release(t->data, t->capacity);
    *t = (qkv_buffer){ 0 };
}

enum { SIZE_ROOM = 64 }; /* what is lent stays at a multiple of 64 bytes */

void *qkv__lend(size_t bytes)
{
    size_t all;
    char *memory = qkv__size_add(bytes, SIZE_ROOM, &all) ? qkv__alloc(all) : NULL;
    if (!memory) return NULL;
    memcpy(memory, &all, sizeof all);
    return memory + SIZE_ROOM;
}

void qkv__take_back(void *memory)
{
    if (!memory) return;
    char *start = (char *)memory - SIZE_ROOM;
    size_t all;
    memcpy(&all, start, sizeof all);
    qkv__release(start, all);
}
