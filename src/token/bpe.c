/* bpe.c: merges the symbols of a word, in time that grows with n * log(n). */
#include "encoder.h"

#include <qkv/unstable/util.h>
#include "pipeline.h"

#include <stddef.h>
#include <string.h>

static bool merges_first(qkv__merge_candidate a, qkv__merge_candidate b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.place < b.place;
}

/* n symbols make at most 3n candidates: n - 1 at first, and each of at most n - 1 merges adds two. */
qkv_status qkv__bpe_room(qkv__encoder *e, size_t n)
{
    if (qkv__grow((void **)&e->symbols, &e->symbols_bytes, n * sizeof *e->symbols)) return QKV_MEMORY;
    return qkv__grow((void **)&e->heap, &e->heap_bytes, 3 * n * sizeof *e->heap);
}

static void push(qkv__encoder *e, qkv__merge_candidate c)
{
    size_t at = e->n_heap++;
    for (; at && merges_first(c, e->heap[(at - 1) / 2]); at = (at - 1) / 2) e->heap[at] = e->heap[(at - 1) / 2];
    e->heap[at] = c;
}

static qkv__merge_candidate pop(qkv__encoder *e)
{
    qkv__merge_candidate top = e->heap[0], last = e->heap[--e->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < e->n_heap; at = child) {
        if (child + 1 < e->n_heap && merges_first(e->heap[child + 1], e->heap[child])) child++;
        if (!merges_first(e->heap[child], last)) break;
        e->heap[at] = e->heap[child];
    }
    e->heap[at] = last;
    return top;
}

typedef struct word {
    const qkv_tokenizer *tokenizer;
    qkv__encoder *e;
    const char *text;
    size_t length;
} word;

/* Of a listed merge. One that makes a special token counts only where text may give special tokens. */
static uint32_t rank_of_merge(const word *w, qkv__symbol *s, const qkv__symbol *next)
{
    if (s->id < 0 || next->id < 0) return QKV__NO_RANK;
    uint32_t rank = qkv__tokenizer_rank(w->tokenizer, s->id, next->id);
    if (rank == QKV__NO_RANK) return rank;
    s->made = w->tokenizer->merges[rank].made;
    return w->e->specials || !w->tokenizer->tokens[s->made].is_special ? rank : QKV__NO_RANK;
}

/* Of the token that both texts together spell. */
static uint32_t rank_of_text(const word *w, qkv__symbol *s, const qkv__symbol *next)
{
    size_t end = next->next == QKV__NONE ? w->length : w->e->symbols[next->next].begin;
    if (s->id == QKV__FROZEN || next->id == QKV__FROZEN) return QKV__NO_RANK;
    s->made = qkv__tokenizer_find(w->tokenizer, w->text + s->begin, end - s->begin);
    return s->made < 0 ? QKV__NO_RANK : w->tokenizer->pipeline->ranks[s->made];
}

static void rate(const word *w, uint32_t place)
{
    qkv__symbol *s = &w->e->symbols[place];
    const qkv__symbol *next = s->next == QKV__NONE ? NULL : &w->e->symbols[s->next];
    const qkv__pipeline *p = w->tokenizer->pipeline;
    if (!next) s->rank = QKV__NO_RANK;
    else s->rank = p && p->ranks ? rank_of_text(w, s, next) : rank_of_merge(w, s, next);
    if (s->rank != QKV__NO_RANK) push(w->e, (qkv__merge_candidate){ s->rank, place });
}

static void merge(const word *w, uint32_t place)
{
    qkv__symbol *s = &w->e->symbols[place], *gone = &w->e->symbols[s->next];
    s->id = s->made;
    s->next = gone->next;
    gone->rank = QKV__NO_RANK;
    if (s->next != QKV__NONE) w->e->symbols[s->next].previous = place;
    rate(w, place);
    if (s->previous != QKV__NONE) rate(w, s->previous);
}

void qkv__bpe_merge(const qkv_tokenizer *t, qkv__encoder *e, size_t n, const char *text, size_t length)
{
    const word w = { t, e, text, length };
    e->n_heap = 0;
    for (size_t i = 0; i < n; i++) {
        e->symbols[i].previous = i ? (uint32_t)(i - 1) : QKV__NONE;
        e->symbols[i].next = i + 1 < n ? (uint32_t)(i + 1) : QKV__NONE;
    }
    for (size_t i = 0; i < n; i++) rate(&w, (uint32_t)i);
    while (e->n_heap) {
        qkv__merge_candidate c = pop(e);
        if (e->symbols[c.place].rank == c.rank) merge(&w, c.place); /* else it has changed since */
    }
}

/* ---- a piece of a published tokenizer's traced text ---- */

/* A character that no token spells: its bytes' tokens, where all are there, or one that stands for it. */
static size_t put_missing(const qkv_tokenizer *t, const char *character, size_t bytes, qkv__symbol *symbols, uint32_t begin)
{
    const qkv__pipeline *p = t->pipeline;
    bool all = p->byte_fallback && !p->is_spm;
    for (size_t i = 0; i < bytes && all; i++) all = p->byte_ids[(unsigned char)character[i]] >= 0;
    for (size_t i = 0; i < bytes && all; i++)
        symbols[i] = (qkv__symbol){ .id = p->byte_ids[(unsigned char)character[i]], .begin = begin + (uint32_t)i };
    if (all) return bytes;
    symbols[0] = (qkv__symbol){ .id = -1, .begin = begin };
    return t->unknown >= 0; /* without <unk> it is left out */
}

/* The token of a character with what the model puts before all but a word's first and after its last; -1: none. */
static int32_t find_affixed(const qkv_tokenizer *t, const char *text, size_t length, size_t at, size_t bytes)
{
    const qkv__pipeline *p = t->pipeline;
    char spelling[2 * QKV__AFFIX_MAX + 4];
    size_t before = at && p->prefix ? strlen(p->prefix) : 0, after = at + bytes == length && p->suffix ? strlen(p->suffix) : 0;
    if (before) memcpy(spelling, p->prefix, before);
    memcpy(spelling + before, text + at, bytes);
    if (after) memcpy(spelling + before + bytes, p->suffix, after);
    return qkv__tokenizer_find(t, spelling, before + bytes + after);
}

static int32_t find_character(const qkv_tokenizer *t, const char *text, size_t length, size_t at, size_t bytes)
{
    if (t->pipeline->prefix || t->pipeline->suffix) return find_affixed(t, text, length, at, bytes);
    return qkv__tokenizer_find(t, text + at, bytes);
}

/* The symbols that a word starts with, before any merge. */
static size_t lay_out_symbols(const qkv_tokenizer *t, qkv__encoder *e, const char *text, size_t length)
{
    size_t n = 0;
    for (size_t at = 0, bytes; at < length; at += bytes) {
        if (qkv__added_at(&t->pipeline->user_defined, text + at, length - at, &bytes) >= 0) {
            e->symbols[n++] = (qkv__symbol){ .id = QKV__FROZEN, .begin = (uint32_t)at };
            continue;
        }
        qkv_utf8_next(text + at, length - at, &bytes);
        int32_t id = find_character(t, text, length, at, bytes);
        if (qkv__may_give(t, e, id)) e->symbols[n++] = (qkv__symbol){ .id = id, .begin = (uint32_t)at };
        else n += put_missing(t, text + at, bytes, e->symbols + n, (uint32_t)at);
    }
    return n;
}

static qkv_status put_symbol(const qkv_tokenizer *t, const qkv__symbol *s, size_t begin, size_t end, qkv__ids *out)
{
    int32_t id = s->id;
    if (id == QKV__FROZEN) id = qkv__tokenizer_find(t, out->encoder->now.text.data + begin, end - begin);
    return id >= 0 ? qkv__put_token(t, id, begin, end, out) : qkv__put_unknown(t, begin, end, out);
}

qkv_status qkv__bpe_encode(const qkv_tokenizer *t, qkv__piece piece, qkv__ids *out)
{
    qkv__encoder *e = out->encoder;
    const char *text = e->now.text.data + piece.begin;
    size_t length = piece.end - piece.begin;
    int32_t whole = t->pipeline->ignore_merges ? qkv__tokenizer_find(t, text, length) : -1;
    if (qkv__may_give(t, e, whole)) return qkv__put_token(t, whole, piece.begin, piece.end, out);
    qkv_status status = qkv__bpe_room(e, length);
    if (status) return status;
    size_t n = lay_out_symbols(t, e, text, length);
    qkv__bpe_merge(t, e, n, text, length);
    for (uint32_t i = n ? 0 : QKV__NONE; i != QKV__NONE && !status; i = e->symbols[i].next) {
        const qkv__symbol *s = &e->symbols[i];
        size_t end = s->next == QKV__NONE ? length : e->symbols[s->next].begin;
        status = put_symbol(t, s, piece.begin + s->begin, piece.begin + end, out);
    }
    return status;
}
