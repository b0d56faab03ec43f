/* passages.c: texts as sentences, and what lies between them. A translator is trained on sentences: several at once become one,
 * or lose what came late. */
#include "passages.h"

#include "../base/memory.h"
#include "../base/status.h"
#include "../text/buffer.h"

#include <string.h>

/* ---- to sentences ---- */

static int64_t count_sentences(const char *text, size_t length)
{
    int64_t n = 0;
    for (qkv_span s = { 0, 0 }; qkv_sentence_next(text, length, &s);) n++;
    return n;
}

static int64_t count_passages(const qkv_texts *texts, int64_t i, qkv_split split)
{
    return split ? count_sentences(texts->texts[i], texts->lengths[i]) : 1;
}

static void place_passages(qkv__passages *p, int64_t i, qkv_split split)
{
    const char *text = p->texts->texts[i];
    size_t length = p->texts->lengths[i];
    int64_t k = p->first[i];
    if (!split) p->sentences[k] = text, p->lengths[k++] = length;
    for (qkv_span s = { 0, 0 }; split && qkv_sentence_next(text, length, &s); k++) {
        p->sentences[k] = text + s.begin;
        p->lengths[k] = s.end - s.begin;
    }
    p->first[i + 1] = k;
}

qkv_status qkv__passages_cut(qkv__passages *p, const qkv_texts *texts, qkv_split split, int64_t most)
{
    p->texts = texts;
    for (int64_t i = 0; i < texts->n; i++) p->n += count_passages(texts, i, split);
    if (p->n > most)
        return qkv__fail(QKV_USAGE, "there are %lld sentences: at most %lld go in one request", (long long)p->n,
                         (long long)most);
    p->bytes = (size_t)p->n * (sizeof *p->sentences + sizeof *p->lengths) + (size_t)(texts->n + 1) * sizeof *p->first;
    if (!(p->first = qkv__alloc_zero(p->bytes))) return QKV_MEMORY;
    p->lengths = (size_t *)(p->first + texts->n + 1);
    p->sentences = (const char **)(p->lengths + p->n);
    for (int64_t i = 0; i < texts->n; i++) place_passages(p, i, split);
    return QKV_OK;
}

/* ---- to parts ---- */

static qkv_status count_tokens(const qkv_tokenizer *t, const char *text, size_t length, qkv_ids *ids, int64_t *n)
{
    qkv_status status = qkv_tokenizer_encode(t, text, length, NULL, ids);
    *n = status ? (int64_t)length : (int64_t)ids->n;
    return status == QKV_MEMORY ? status : QKV_OK; /* others are told where the part is read */
}

qkv_status qkv__passages_gather(qkv__passages *p, const qkv_tokenizer *t, int64_t most)
{
    qkv_ids ids = { 0 };
    qkv_status status = QKV_OK;
    int64_t to = 0;
    for (int64_t i = 0, s = 0; i < p->texts->n; i++) {
        int64_t start = to, end = p->first[i + 1], tokens = 0, more;
        for (; s < end && !status; s++) {
            status = count_tokens(t, p->sentences[s], p->lengths[s], &ids, &more);
            bool joins = to > start && tokens + 1 + more <= most;
            if (joins) p->lengths[to - 1] = (size_t)(p->sentences[s] + p->lengths[s] - p->sentences[to - 1]);
            else p->sentences[to] = p->sentences[s], p->lengths[to++] = p->lengths[s];
            tokens = joins ? tokens + 1 + more : more;
        }
        p->first[i] = start;
    }
    p->n = p->first[p->texts->n] = to;
    qkv_ids_free(&ids);
    return status;
}

void qkv__passages_free(qkv__passages *p)
{
    qkv__release(p->first, p->bytes);
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

static qkv_status put_between(qkv_text *out, const char *gap, size_t length, bool in_line)
{
    bool ends_line = memchr(gap, '\n', length) || memchr(gap, '\r', length);
    if (ends_line && !in_line) return qkv__text_put(out, gap, length);
    if (ends_with_square(out)) return QKV_OK;
    return length && !ends_line ? qkv__text_put(out, gap, length) : qkv__text_put(out, " ", 1);
}

qkv_status qkv__passages_join(const qkv__passages *p, int64_t i, const qkv_translations *t, int k, bool in_line, qkv_text *out)
{
    const char *at = p->texts->texts[i], *end = at + p->texts->lengths[i];
    qkv__text_clear(out);
    qkv_status status = qkv__text_put(out, "", 0);
    for (int64_t s = p->first[i]; s < p->first[i + 1] && !status; s++) {
        const qkv_translation *x = translation_of(t, s, k);
        size_t gap = (size_t)(p->sentences[s] - at);
        status = s > p->first[i] ? put_between(out, at, gap, in_line) : in_line ? QKV_OK : qkv__text_put(out, at, gap);
        if (!status) status = qkv__text_put(out, x->text, x->length);
        at = p->sentences[s] + p->lengths[s];
    }
    return status || in_line ? status : qkv__text_put(out, at, (size_t)(end - at));
}

bool qkv__passages_have(const qkv__passages *p, int64_t i, const qkv_translations *t, int k)
{
    for (int64_t s = p->first[i]; s < p->first[i + 1]; s++)
        if (t->best[s * t->n_best + k].n_ids >= 0) return true;
    return false;
}
