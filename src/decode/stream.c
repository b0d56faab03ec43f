/* stream.c: bytes that come a few at a time become pieces of text. */
#include "stream.h"

#include <qkv/unstable/util.h>

#include "../base/buffer.h"

#include <string.h>

static void drop_front(qkv_buffer *t, size_t size)
{
    memmove(t->data, t->data + size, t->length - size + 1);
    t->length -= size;
}

static size_t longer(size_t a, size_t b) { return a > b ? a : b; }

static bool text_ends_with(const qkv_buffer *t, const char *piece, size_t size)
{
    return size <= t->length && !memcmp(t->data + t->length - size, piece, size);
}

/* ---- stop strings ---- */

/* The longest stop string at the very end of what is held; 0: none. */
static size_t stop_at_end(const qkv__stream *s)
{
    size_t found = 0;
    for (int i = 0; i < s->n_stops; i++) {
        size_t size = strlen(s->stops[i]);
        if (text_ends_with(&s->held, s->stops[i], size)) found = longer(found, size);
    }
    return found;
}

/* How much of the end of what is held may be the beginning of a stop string. */
static size_t may_begin(const qkv__stream *s)
{
    size_t most = 0;
    for (int i = 0; i < s->n_stops; i++)
        for (size_t size = strlen(s->stops[i]) - 1; size > most; size--)
            if (text_ends_with(&s->held, s->stops[i], size)) most = size;
    return most;
}

/* ---- pieces ---- */

static qkv_status give_out(qkv__stream *s, size_t size)
{
    if (!size) return QKV_OK;
    qkv_status status = qkv__buffer_put(s->text, s->held.data, size);
    if (!status && s->each) status = s->each(s->data, s->held.data, size);
    if (!status) drop_front(&s->held, size);
    return status;
}

/* Character by character: where a text stops must not depend on how it is cut into tokens. */
static qkv_status hold(qkv__stream *s, const char *character, size_t size)
{
    qkv_status status = qkv__buffer_put(&s->held, character, size);
    size_t stop = status ? 0 : stop_at_end(s);
    if (!stop) return status;
    s->is_stopped = true;
    return give_out(s, s->held.length - stop);
}

/* Holds every character that is complete; what is left in s->bytes may go on. */
static qkv_status cut_characters(qkv__stream *s, bool ended)
{
    size_t at = 0, size;
    qkv_status status = QKV_OK;
    for (; at < s->bytes.length && !s->is_stopped && !status; at += size) {
        size_t left = s->bytes.length - at;
        bool whole = qkv_utf8_next(s->bytes.data + at, left, &size) >= 0;
        if (!whole && size == left && !ended) break;
        status = whole ? hold(s, s->bytes.data + at, size) : hold(s, "\xEF\xBF\xBD", 3);
    }
    if (at) drop_front(&s->bytes, at);
    return status;
}

qkv_status qkv__stream_put(qkv__stream *s, const char *bytes, size_t size)
{
    if (s->is_stopped) return QKV_OK;
    qkv_status status = qkv__buffer_put(&s->bytes, bytes, size);
    if (!status) status = cut_characters(s, false);
    return status || s->is_stopped ? status : give_out(s, s->held.length - may_begin(s));
}

qkv_status qkv__stream_end(qkv__stream *s)
{
    qkv_status status = cut_characters(s, true);
    return status || s->is_stopped ? status : give_out(s, s->held.length);
}

void qkv__stream_free(qkv__stream *s)
{
    qkv_buffer_free(&s->bytes);
    qkv_buffer_free(&s->held);
}
