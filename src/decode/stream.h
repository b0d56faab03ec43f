/* stream.h: bytes that come a few at a time become pieces of text: whole characters that belong to no stop string. */
#ifndef QKV_SRC_STREAM_H
#define QKV_SRC_STREAM_H

#include <qkv/task.h>
#include <qkv/unstable/buffer.h>

#include <stdbool.h>

typedef qkv_status (*qkv__stream_each)(void *data, const char *piece, size_t length);

typedef struct qkv__stream {
    const char *const *stops; /* not empty, UTF-8; the one that is complete first ends the text, of two at once the longer */
    int n_stops;
    qkv__stream_each each; /* may be NULL */
    void *data;
    qkv_buffer *text; /* every piece given out, one after the other */
    qkv_buffer bytes; /* that are not yet a character */
    qkv_buffer held;  /* characters that may belong to a stop string */
    bool is_stopped;  /* a stop string came: nothing follows */
} qkv__stream;

/* Adds bytes, gives out what can be. MEMORY, or what each() gave. */
qkv_status qkv__stream_put(qkv__stream *s, const char *bytes, size_t size);

/* No more will come: gives out the rest, U+FFFD for the start of a character that has no end. */
qkv_status qkv__stream_end(qkv__stream *s);
void qkv__stream_free(qkv__stream *s);

#endif
