/* traced_text.c: text on its way from what was given to tokens: each byte knows where it comes from. */
#include "traced_text.h"

#include <string.h>
#include <utf8proc.h>

#define DRAFT_MAX ((size_t)INT32_MAX)

void qkv__traced_text_clear(qkv__traced_text *d)
{
    qkv__buffer_clear(&d->text);
    d->n = 0;
}

void qkv__traced_text_free(qkv__traced_text *d)
{
    qkv_buffer_free(&d->text);
    qkv__release(d->from, d->from_bytes);
    qkv__release(d->pieces, d->pieces_bytes);
    *d = (qkv__traced_text){ 0 };
}

static qkv_status make_room_for_text(qkv__traced_text *d, size_t size)
{
    size_t most = d->most && d->most < DRAFT_MAX ? d->most : DRAFT_MAX;
    if (size > most || d->text.length > most - size)
        return qkv__fail(QKV_LIMIT, "tokenizer: the text grows to more than %zu bytes before it is cut into tokens", most);
    return qkv__grow((void **)&d->from, &d->from_bytes, (d->text.length + size) * sizeof *d->from);
}

qkv_status qkv__traced_text_put(qkv__traced_text *d, const void *bytes, size_t size, qkv__range from)
{
    size_t at = d->text.length;
    qkv_status status = make_room_for_text(d, size);
    if (!status) status = qkv__buffer_put(&d->text, bytes, size);
    for (size_t i = 0; i < size && !status; i++) d->from[at + i] = from;
    return status;
}

qkv_status qkv__traced_text_put_code(qkv__traced_text *d, int32_t code, qkv__range from)
{
    utf8proc_uint8_t bytes[4];
    return qkv__traced_text_put(d, bytes, (size_t)utf8proc_encode_char(code, bytes), from);
}

qkv_status qkv__traced_text_copy(qkv__traced_text *d, const qkv__traced_text *other, size_t begin, size_t end)
{
    size_t at = d->text.length, size = end - begin;
    qkv_status status = make_room_for_text(d, size);
    if (!status) status = qkv__buffer_put(&d->text, other->text.data + begin, size);
    if (!status && size) memcpy(d->from + at, other->from + begin, size * sizeof *d->from);
    return status;
}

qkv_status qkv__traced_text_end(qkv__traced_text *d, size_t begin, int32_t id)
{
    if (begin == d->text.length) return QKV_OK;
    if (qkv__grow((void **)&d->pieces, &d->pieces_bytes, (d->n + 1) * sizeof *d->pieces)) return QKV_MEMORY;
    d->pieces[d->n++] = (qkv__piece){ begin, d->text.length, id };
    return QKV_OK;
}

qkv_status qkv__traced_text_keep(qkv__traced_text *d, const qkv__traced_text *other, qkv__piece piece)
{
    size_t begin = d->text.length;
    qkv_status status = qkv__traced_text_copy(d, other, piece.begin, piece.end);
    return status ? status : qkv__traced_text_end(d, begin, piece.id);
}

/* A space or a sign is found by its first byte; only for longer texts does it pay to be clever. */
enum { SHORT = 8 };

size_t qkv__traced_text_find(const qkv__traced_text *d, size_t begin, size_t end, const char *wanted)
{
    const char *text = d->text.data, *at = text + begin;
    size_t n = strlen(wanted);
    if (end - begin < n) return end;
    if (n > SHORT) return (at = memmem(at, end - begin, wanted, n)) ? (size_t)(at - text) : end;
    const char *last = text + end - n; /* where it can start */
    for (; at <= last && (at = memchr(at, wanted[0], (size_t)(last - at) + 1)); at++)
        if (!memcmp(at, wanted, n)) return (size_t)(at - text);
    return end;
}

/* Marks may have changed their order, so that the last byte need not be the last one's. */
qkv__range qkv__traced_text_from(const qkv__traced_text *d, size_t begin, size_t end)
{
    qkv__range all = d->from[begin];
    for (size_t i = begin + 1; i < end; i++) {
        if (d->from[i].begin < all.begin) all.begin = d->from[i].begin;
        if (d->from[i].end > all.end) all.end = d->from[i].end;
    }
    return all;
}
