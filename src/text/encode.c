/* encode.c: text to ids and back. */
#include "tokenizer.h"
#include "units.h"

#include <string.h>

#define NONE UINT32_MAX

/* A byte of a word, and after merges the first byte of a token. */
typedef struct symbol {
    int32_t id;
    uint32_t previous, next; /* of the word's symbols; NONE at its ends */
    uint32_t rank;           /* of merging it with the next one; NO_RANK when they do not merge or it is gone */
} symbol;

typedef struct candidate {
    uint32_t rank, place;
} candidate;

typedef struct qkv__encoder {
    qkv__cutter cutter;
    qkv_text spaced;   /* text with the space that add_prefix_space puts before it */
    qkv_text spelling; /* of a word or character that is looked up */
    symbol *symbols;
    candidate *heap;
    size_t symbols_bytes, heap_bytes, n_heap;
} encoder;

/* ---- results ---- */

void qkv_ids_free(qkv_ids *ids)
{
    if (!ids) return;
    qkv__release(ids->ids, ids->ids_bytes);
    qkv__release(ids->spans, ids->spans_bytes);
    if (ids->encoder) {
        qkv__cutter_free(&ids->encoder->cutter);
        qkv_text_free(&ids->encoder->spaced);
        qkv_text_free(&ids->encoder->spelling);
        qkv__release(ids->encoder->symbols, ids->encoder->symbols_bytes);
        qkv__release(ids->encoder->heap, ids->encoder->heap_bytes);
        qkv__release(ids->encoder, sizeof *ids->encoder);
    }
    *ids = (qkv_ids){ 0 };
}

static qkv_status put_id(qkv_ids *out, int32_t id, size_t begin, size_t end)
{
    if (qkv__grow((void **)&out->ids, &out->ids_bytes, (out->n + 1) * sizeof *out->ids) ||
        qkv__grow((void **)&out->spans, &out->spans_bytes, (out->n + 1) * sizeof *out->spans))
        return QKV_MEMORY;
    out->ids[out->n] = id;
    out->spans[out->n++] = (qkv_span){ begin, end };
    return QKV_OK;
}

/* ---- merging: always the lowest rank, of equal ones the leftmost ---- */

static bool goes_first(candidate a, candidate b) { return a.rank != b.rank ? a.rank < b.rank : a.place < b.place; }

/* Symbols of n bytes make at most 3n candidates: n - 1 at first, and each of at most n - 1 merges adds two. */
static qkv_status make_room(encoder *e, size_t n)
{
    if (qkv__grow((void **)&e->symbols, &e->symbols_bytes, n * sizeof *e->symbols)) return QKV_MEMORY;
    return qkv__grow((void **)&e->heap, &e->heap_bytes, 3 * n * sizeof *e->heap);
}

static void push(encoder *e, candidate c)
{
    size_t at = e->n_heap++;
    for (; at && goes_first(c, e->heap[(at - 1) / 2]); at = (at - 1) / 2) e->heap[at] = e->heap[(at - 1) / 2];
    e->heap[at] = c;
}

static candidate pop(encoder *e)
{
    candidate top = e->heap[0], last = e->heap[--e->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < e->n_heap; at = child) {
        if (child + 1 < e->n_heap && goes_first(e->heap[child + 1], e->heap[child])) child++;
        if (!goes_first(e->heap[child], last)) break;
        e->heap[at] = e->heap[child];
    }
    e->heap[at] = last;
    return top;
}

static void rate(const qkv_tokenizer *t, encoder *e, uint32_t place)
{
    symbol *s = &e->symbols[place];
    s->rank = s->next == NONE ? QKV__NO_RANK : qkv__tokenizer_rank(t, s->id, e->symbols[s->next].id);
    if (s->rank != QKV__NO_RANK) push(e, (candidate){ s->rank, place });
}

static void merge(const qkv_tokenizer *t, encoder *e, uint32_t place)
{
    symbol *s = &e->symbols[place], *gone = &e->symbols[s->next];
    s->id = t->merges[s->rank].made;
    s->next = gone->next;
    gone->rank = QKV__NO_RANK;
    if (s->next != NONE) e->symbols[s->next].previous = place;
    rate(t, e, place);
    if (s->previous != NONE) rate(t, e, s->previous);
}

static qkv_status encode_word(const qkv_tokenizer *t, const char *word, size_t length, size_t offset, qkv_ids *out)
{
    encoder *e = out->encoder;
    qkv_status status = make_room(e, length);
    if (status) return status;
    for (size_t i = 0; i < length; i++)
        e->symbols[i] = (symbol){ .id = t->byte_ids[(unsigned char)word[i]],
                                  .previous = i ? (uint32_t)(i - 1) : NONE,
                                  .next = i + 1 < length ? (uint32_t)(i + 1) : NONE };
    e->n_heap = 0;
    for (size_t i = 0; i < length; i++) rate(t, e, (uint32_t)i);
    while (e->n_heap) {
        candidate c = pop(e);
        if (e->symbols[c.place].rank == c.rank) merge(t, e, c.place); /* else it changed since */
    }
    for (uint32_t i = 0; i != NONE && !status; i = e->symbols[i].next) {
        uint32_t next = e->symbols[i].next;
        status = put_id(out, e->symbols[i].id, offset + i, offset + (next == NONE ? length : next));
    }
    return status;
}

/* ---- words ---- */

static qkv_status encode_words(const qkv_tokenizer *t, const char *text, size_t length, size_t offset, qkv_ids *out)
{
    qkv__cutter *c = &out->encoder->cutter;
    if (t->whole_text) return length ? encode_word(t, text, length, offset, out) : QKV_OK;
    qkv__cut_begin(c, text, length);
    for (size_t begin, end;;) {
        qkv_status status = qkv__cut_next(c, t->pattern, &begin, &end);
        if (!status && begin == end) return QKV_OK;
        if (!status) status = encode_word(t, text + begin, end - begin, offset + begin, out);
        if (status) return status;
    }
}

static qkv_status encode_spaced(const qkv_tokenizer *t, const char *text, size_t length, size_t offset, qkv_ids *out)
{
    if (!length || !t->prefix_space || text[0] == ' ') return encode_words(t, text, length, offset, out);
    qkv_text *spaced = &out->encoder->spaced;
    size_t before = out->n;
    qkv__text_clear(spaced);
    qkv_status status = qkv__text_put(spaced, " ", 1);
    if (!status) status = qkv__text_put(spaced, text, length);
    if (!status) status = encode_words(t, spaced->data, spaced->length, offset, out);
    for (qkv_span *s = out->spans + before; !status && s < out->spans + out->n; s++) {
        s->begin -= s->begin > offset; /* the space is no byte of the text */
        s->end--;
    }
    return status;
}

/* Words or characters, each looked up whole. Only where special tokens are asked for may one be found. */
static qkv_status encode_units(const qkv_tokenizer *t, const char *text, size_t length, size_t offset, bool specials,
                               qkv_ids *out)
{
    qkv_text *spelling = &out->encoder->spelling;
    qkv_status status = QKV_OK;
    for (size_t begin, end = 0; !status && qkv__next_unit(t->kind, text, length, &begin, &end);) {
        status = qkv__spell_unit(t->kind, text + begin, end - begin, spelling);
        if (status) break;
        int32_t id = qkv__tokenizer_find(t, spelling->data, spelling->length);
        if (id < 0 || (t->tokens[id].is_special && !specials)) id = t->unknown;
        status = put_id(out, id, offset + begin, offset + end);
    }
    return status;
}

/* Text between added tokens. */
static qkv_status encode_piece(const qkv_tokenizer *t, const char *text, size_t length, size_t offset, bool specials,
                               qkv_ids *out)
{
    return t->kind == QKV_BYTE_PAIRS ? encode_spaced(t, text, length, offset, out)
                                     : encode_units(t, text, length, offset, specials, out);
}

/* The longest added token that text starts with, -1 when there is none. */
static int32_t added_at(const qkv_tokenizer *t, const char *text, size_t length, bool specials)
{
    unsigned char byte = (unsigned char)text[0];
    for (size_t i = t->added_first[byte]; i < t->added_first[byte + 1]; i++) {
        const qkv__token *token = &t->tokens[t->added[i]];
        if ((specials || !token->is_special) && token->spelling_length <= length &&
            !memcmp(text, t->pool.data + token->spelling, token->spelling_length))
            return t->added[i];
    }
    return -1;
}

static qkv_status encode_all(const qkv_tokenizer *t, const char *text, size_t length, bool specials, qkv_ids *out)
{
    size_t done = 0;
    for (size_t at = 0; at < length;) {
        int32_t id = added_at(t, text + at, length - at, specials);
        if (id < 0) {
            at++;
            continue;
        }
        size_t end = at + t->tokens[id].spelling_length;
        qkv_status status = encode_piece(t, text + done, at - done, done, specials, out);
        if (!status) status = put_id(out, id, at, end);
        if (status) return status;
        done = at = end;
    }
    return encode_piece(t, text + done, length - done, done, specials, out);
}

qkv_status qkv_tokenizer_encode(const qkv_tokenizer *t, const char *text, size_t length, const qkv_encode_opts *opts,
                                qkv_ids *out)
{
    const qkv_encode_opts o = opts ? *opts : (qkv_encode_opts){ 0 };
    if (!t || !out || (!text && length)) return qkv__fail(QKV_USAGE, "tokenizer: tokenizer, text or result is NULL");
    out->n = 0;
    if (length > INT32_MAX)
        return qkv__fail(QKV_LIMIT, "tokenizer: a text of %zu bytes, at most %d are taken", length, INT32_MAX);
    size_t good = o.any_bytes ? length : qkv_utf8_check(text, length);
    if (good < length) return qkv__fail(QKV_FORMAT, "tokenizer: the text is not UTF-8 at offset %zu", good);
    if (!out->encoder && !(out->encoder = qkv__alloc_zero(sizeof *out->encoder))) return QKV_MEMORY;
    qkv_status status = encode_all(t, text, length, o.specials, out);
    if (status) out->n = 0;
    return status;
}

/* ---- ids to text ---- */

static qkv_status check_ids(const qkv_tokenizer *t, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= t->n)
            return qkv__fail(QKV_USAGE, "tokenizer: id %d at place %zu is outside 0..%zu", ids[i], i, t->n - 1);
    return QKV_OK;
}

static qkv_status put_tokens(const qkv_tokenizer *t, const int32_t *ids, size_t n, int skip_specials, qkv_text *out)
{
    qkv_status status = qkv__text_put(out, "", 0);
    bool is_first = true;
    for (size_t i = 0; i < n && !status; i++) {
        const qkv__token *token = &t->tokens[ids[i]];
        if (skip_specials && token->is_special) continue;
        if (t->kind == QKV_WORDS && !is_first) status = qkv__text_put(out, " ", 1);
        if (!status) status = qkv__text_put(out, t->pool.data + token->bytes, token->bytes_length);
        is_first = false;
    }
    return status;
}

qkv_status qkv_tokenizer_decode(const qkv_tokenizer *t, const int32_t *ids, size_t n, int skip_specials, qkv_text *out)
{
    if (!t || !out || (!ids && n)) return qkv__fail(QKV_USAGE, "tokenizer: tokenizer, ids or result is NULL");
    qkv__text_clear(out);
    qkv_status status = check_ids(t, ids, n);
    if (!status) status = put_tokens(t, ids, n, skip_specials, out);
    if (status) qkv__text_clear(out);
    return status;
}
