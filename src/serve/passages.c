/* passages.c: texts as sentences, and what lies between them. A translator is trained on sentences: several at once become one,
 * or lose what came late. */
#include "passages.h"

#include <string.h>

/* ---- to sentences ---- */

static int64_t count_sentences(const char *text, size_t length)
{
    int64_t n = 0;
    for (qkv_span s = { 0, 0 }; qkv_sentence_next(text, length, &s);) n++;
    return n;
}

qkv_status qkv__passages_cut(qkv__passages *p, const qkv__strings *texts, int64_t most)
{
    p->texts = texts;
    for (int64_t i = 0; i < texts->n; i++) p->first[i + 1] = p->first[i] + count_sentences(texts->texts[i], texts->lengths[i]);
    p->n = p->first[texts->n];
    if (p->n > most)
        return qkv__fail(QKV_USAGE, "there are %lld sentences: at most %lld go in one request", (long long)p->n,
                         (long long)most);
    p->bytes = (size_t)p->n * (sizeof *p->sentences + sizeof *p->lengths);
    if (p->n && !(p->sentences = qkv__alloc(p->bytes))) return QKV_MEMORY;
    p->lengths = (size_t *)(p->sentences + p->n);
    for (int64_t i = 0, k = 0; i < texts->n; i++)
        for (qkv_span s = { 0, 0 }; qkv_sentence_next(texts->texts[i], texts->lengths[i], &s); k++) {
            p->sentences[k] = texts->texts[i] + s.begin;
            p->lengths[k] = s.end - s.begin;
        }
    return QKV_OK;
}

void qkv__passages_free(qkv__passages *p)
{
    qkv__release(p->sentences, p->bytes);
    *p = (qkv__passages){ 0 };
}

/* ---- and back ---- */

static const qkv_translation *translation_of(const qkv_translations *t, int64_t sentence, int k)
{
    while (k > 0 && t->best[sentence * t->n_best + k].n_ids < 0) k--;
    return &t->best[sentence * t->n_best + k];
}

/* Signs of CJK, and full-width forms, fill a square: their space is in them. */
static bool ends_with_square(const qkv_text *t)
{
    size_t at = t->length, bytes;
    while (at && ((unsigned char)t->data[--at] & 0xC0) == 0x80) continue;
    int32_t c = t->length ? qkv_utf8_decode(t->data + at, t->length - at, &bytes) : -1;
    return (c >= 0x3000 && c <= 0x303F) || (c >= 0xFF00 && c <= 0xFF60);
}

static qkv_status put_between(qkv_text *out, const char *gap, size_t length)
{
    if (memchr(gap, '\n', length) || memchr(gap, '\r', length)) return qkv__text_put(out, gap, length);
    if (ends_with_square(out)) return QKV_OK;
    return length ? qkv__text_put(out, gap, length) : qkv__text_put(out, " ", 1);
}

qkv_status qkv__passages_join(const qkv__passages *p, int64_t i, const qkv_translations *t, int k, qkv_text *out)
{
    const char *at = p->texts->texts[i], *end = at + p->texts->lengths[i];
    qkv__text_clear(out);
    qkv_status status = qkv__text_put(out, "", 0);
    for (int64_t s = p->first[i]; s < p->first[i + 1] && !status; s++) {
        const qkv_translation *x = translation_of(t, s, k);
        size_t gap = (size_t)(p->sentences[s] - at);
        status = s == p->first[i] ? qkv__text_put(out, at, gap) : put_between(out, at, gap);
        if (!status) status = qkv__text_put(out, x->text, x->length);
        at = p->sentences[s] + p->lengths[s];
    }
    return status ? status : qkv__text_put(out, at, (size_t)(end - at));
}

bool qkv__passages_have(const qkv__passages *p, int64_t i, const qkv_translations *t, int k)
{
    for (int64_t s = p->first[i]; s < p->first[i + 1]; s++)
        if (t->best[s * t->n_best + k].n_ids >= 0) return true;
    return false;
}
