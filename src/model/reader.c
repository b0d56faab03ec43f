/* reader.c: texts as the ids that a model reads. */
#include "reader.h"

#include <qkv/unstable/util.h>

#include "../base/buffer.h"
#include "../base/memory.h"
#include "../base/size.h"

#include <string.h>

enum { DEFAULT_LENGTH = 512 };

void qkv__reader_clear(qkv__reader *r) { r->n = 0; }

void qkv__reader_free(qkv__reader *r)
{
    qkv__release(r->ids, r->bytes);
    qkv__ids_free(&r->encoded);
    qkv_buffer_free(&r->repaired);
    *r = (qkv__reader){ 0 };
}

qkv_status qkv__reader_add(qkv__reader *r, const int32_t *ids, size_t n)
{
    size_t bytes;
    if (!qkv__size_add((size_t)r->n, n, &bytes) || !qkv__size_mul(bytes, sizeof *ids, &bytes))
        return qkv__fail(QKV_LIMIT, "texts: too many tokens");
    if (qkv__grow((void **)&r->ids, &r->bytes, bytes)) return QKV_MEMORY;
    if (n) memcpy(r->ids + r->n, ids, sizeof *ids * n);
    r->n += (int64_t)n;
    return QKV_OK;
}

qkv_status qkv__reader_put(qkv__reader *r, const qkv__id_run *ids) { return qkv__reader_add(r, ids->ids, (size_t)ids->n); }

qkv_status qkv__reader_encode(qkv__reader *r, const qkv_tokenizer *t, const char *text, size_t length)
{
    if (qkv_utf8_valid(text, length) < length) {
        if (qkv__utf8_repair(text, length, &r->repaired)) return QKV_MEMORY;
        text = r->repaired.data;
        length = r->repaired.length;
    }
    qkv_status status = qkv__encode(t, text, length, NULL, &r->encoded);
    return status ? status : qkv__reader_add(r, r->encoded.ids, r->encoded.n);
}

qkv_status qkv__reader_room(const qkv__special_tokens *f, int64_t max_length, int64_t *room)
{
    *room = 0;
    if (max_length < 0) return qkv__fail(QKV_USAGE, "texts: max_length is negative");
    if (!max_length) max_length = DEFAULT_LENGTH;
    if (f->max_tokens) max_length = qkv__min(max_length, qkv__max(f->max_tokens - 1, 1));
    *room = max_length - (f->around - 1);
    return QKV_OK;
}

/* As Hugging Face's tokenizers cut: the longer one, until both are as long, then both. */
static void share_room(int64_t room, int64_t *first, int64_t *second)
{
    int64_t *shorter = *first <= *second ? first : second, *longer = shorter == first ? second : first;
    if (*first <= room - *second) return;
    *shorter = qkv__min(*shorter, room / 2);
    *longer = room - *shorter;
}

qkv_status qkv__reader_body(qkv__reader *r, const qkv__special_tokens *f, const qkv__given *x, int64_t room, qkv__body *out)
{
    const qkv__id_run *between = &f->pair.between;
    int64_t begin = r->n;
    qkv_status status = qkv__reader_encode(r, f->source, x->text, x->length);
    *out = (qkv__body){ begin, r->n - begin, r->n, false };
    if (status || !x->pair) return status;
    if (!(status = qkv__reader_put(r, between))) status = qkv__reader_encode(r, f->source, x->pair, x->pair_length);
    if (status) return status;
    int64_t first = out->length, second = r->n - begin - first - between->n, both = r->n - begin;
    const int32_t *from = r->ids + begin + first;
    if (room && f->is_published) share_room(qkv__max(room - between->n, 0), &first, &second);
    int64_t length = first + between->n + second;
    if (length < both) memmove(r->ids + begin + first, from, sizeof *r->ids * (size_t)(between->n + second));
    r->n = begin + length;
    *out = (qkv__body){ begin, length, begin + first + between->n, length < both };
    return QKV_OK;
}

/* The last id of all is left out. */
static qkv_status put_training_example(qkv__reader *r, const qkv__special_tokens *f, const qkv__given *x, int64_t room)
{
    const qkv__wrap *w = x->pair ? &f->pair : &f->single;
    qkv__id_run after = w->after;
    qkv__body body;
    qkv_status status = qkv__reader_put(r, &w->before);
    if (!status) status = qkv__reader_body(r, f, x, qkv__max(room, 1), &body);
    if (status) return status;
    r->n = qkv__min(r->n, w->before.n + qkv__max(room, 0));
    if (after.n) after.n--;
    return qkv__reader_put(r, &after);
}

qkv_status qkv__reader_training_example(qkv__reader *r, const qkv_model *m, const qkv__given *x, int64_t max_length)
{
    qkv__special_tokens f;
    int64_t room;
    qkv_status status = qkv__special_tokens_needed(m, &f);
    if (!status) status = qkv__reader_room(&f, max_length, &room);
    return status ? status : put_training_example(r, &f, x, room);
}

qkv_status qkv__reader_document(qkv__reader *r, const qkv_model *m, const char *text, size_t length)
{
    qkv__special_tokens f;
    qkv__id_run begin, end;
    qkv_status status = qkv__document_tokens(m, &f, &begin, &end);
    if (!status) status = qkv__reader_put(r, &begin);
    if (!status) status = qkv__reader_encode(r, f.source, text, length);
    return status ? status : qkv__reader_put(r, &end);
}
