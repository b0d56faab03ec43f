/* result.c: results begin with a hidden header that names their kind and owns their memory. */
#include "result.h"

#include "arena.h"

#define QKV_RESULT_MAGIC 0x746c7573657276ccU

typedef struct header {
    _Alignas(64) uint64_t magic;
    const qkv__result_kind *kind;
    qkv__arena arena;
} header;

static header *header_of(void *result)
{
    header *h = (header *)result - 1;
    if (h->magic == QKV_RESULT_MAGIC) return h;
    qkv__fail(QKV_USAGE, "the pointer is not a result of the library");
    return NULL;
}

static void empty(header *h)
{
    if (h->kind->release) h->kind->release(h + 1);
    qkv__arena_reset(&h->arena);
    memset(h + 1, 0, h->kind->size);
}

bool qkv__result_is(const void *result, const qkv__result_kind *kind)
{
    const header *h = result ? (const header *)result - 1 : NULL;
    return h && h->magic == QKV_RESULT_MAGIC && h->kind == kind;
}

void *qkv__result_begin(void *result, const qkv__result_kind *kind)
{
    header *h = result ? header_of(result) : qkv__alloc_zero(sizeof *h + kind->size);
    if (!h) return NULL;
    if (!result) h->magic = QKV_RESULT_MAGIC, h->kind = kind;
    if (h->kind != kind) {
        qkv__fail(QKV_USAGE, "the result is of another type");
        return NULL;
    }
    empty(h);
    return h + 1;
}

void qkv__result_clear(void *result)
{
    header *h = result ? header_of(result) : NULL;
    if (h) empty(h);
}

void qkv_free(void *result)
{
    header *h = result ? header_of(result) : NULL;
    if (!h) return;
    empty(h);
    qkv__arena_free(&h->arena);
    h->magic = 0;
    qkv__release(h, sizeof *h + h->kind->size);
}

void *qkv__result_alloc(void *result, size_t bytes)
{
    header *h = header_of(result);
    return h ? qkv__arena_take(&h->arena, bytes) : NULL;
}

qkv_str qkv__result_copy(void *result, const char *data, size_t length)
{
    char *copy = qkv__result_alloc(result, length + 1);
    if (!copy) return (qkv_str){ NULL, 0 };
    if (length) memcpy(copy, data, length);
    copy[length] = '\0';
    return (qkv_str){ copy, length };
}

/* ---- text ---- */

typedef struct text {
    qkv_text shown; /* first: what the caller sees */
    qkv_buffer buffer;
} text;

static void release_text(void *result) { qkv_buffer_free(&((text *)result)->buffer); }

static const qkv__result_kind text_kind = { sizeof(text), release_text };

qkv_buffer *qkv__text_begin(qkv_text **out)
{
    if (!out) {
        qkv__fail(QKV_USAGE, "no place for the text");
        return NULL;
    }
    text *t = qkv__result_begin(*out, &text_kind);
    if (!t) return NULL;
    t->shown.data = "";
    *out = &t->shown;
    return &t->buffer;
}

qkv_status qkv__text_end(qkv_text *result, qkv_status status)
{
    text *t = (text *)result;
    if (status) qkv__buffer_clear(&t->buffer);
    if (t->buffer.length) t->shown.data = t->buffer.data;
    t->shown.length = t->buffer.length;
    return status;
}

/* ---- hooks ---- */

qkv_status qkv__cancelled(const qkv_hooks *hooks, const char *call)
{
    if (!hooks || !hooks->cancel || !hooks->cancel(hooks->data)) return QKV_OK;
    return qkv__fail(QKV_CANCELLED, "%s: cancelled", call);
}
