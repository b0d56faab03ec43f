/* train_bpe.c: learns the merges of a byte-level BPE.
 *
 * Every distinct word is laid out once as a linked list of symbols. A pair of symbols knows its count and the places where it
 * was seen. The pair with the largest count is merged at its places, which changes the counts of the neighbours only. */
#include "train.h"

#include <qkv/unstable/util.h>

#include "../base/size.h"
#include "alphabet.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
enum { GONE = -1 };

typedef struct symbol {
    int32_t id; /* GONE: part of the symbol before it */
    uint32_t previous, next;
    uint32_t word;
} symbol;

typedef struct pair {
    int32_t left, right;
    int64_t count;
    size_t seen;     /* the newest of its places, plus 1; 0: none */
    bool is_learned; /* it is in the merges already */
    bool is_touched; /* its count grew in this step */
} pair;

typedef struct place {
    uint32_t symbol;
    size_t before; /* as pair.seen */
} place;

/* A count when it was put into the heap: the pair may have changed since. */
typedef struct entry {
    int64_t count;
    size_t pair;
} entry;

/* An array that grows. */
#define LIST(type)       \
    struct {             \
        type *items;     \
        size_t n, bytes; \
    }
#define ROOM(list, wanted) qkv__grow((void **)&(list).items, &(list).bytes, (wanted) * sizeof *(list).items)
#define FREE(list) qkv__release((list).items, (list).bytes)

typedef struct trainer {
    const qkv__bag *bag;
    int64_t min_count;
    symbol *symbols;
    size_t n_symbols;
    LIST(pair) pairs;
    LIST(place) places;
    LIST(entry) heap;
    LIST(size_t) touched;
    LIST(uint32_t) work; /* the places of the pair that is merged */
    LIST(qkv__merge) merges;
    size_t *table; /* of pairs, as in a bag */
    size_t table_places;
    qkv__bag tokens; /* spellings, numbered by id */
    size_t n_specials;
} trainer;

static void free_trainer(trainer *r)
{
    qkv__release(r->symbols, r->n_symbols * sizeof *r->symbols);
    FREE(r->pairs);
    FREE(r->places);
    FREE(r->heap);
    FREE(r->touched);
    FREE(r->work);
    FREE(r->merges);
    qkv__release(r->table, r->table_places * sizeof *r->table);
    qkv__bag_free(&r->tokens);
}

/* ---- the heap: largest count first, then smaller ids ---- */

static bool entry_goes_first(const trainer *r, entry a, entry b)
{
    const pair *p = &r->pairs.items[a.pair], *q = &r->pairs.items[b.pair];
    if (a.count != b.count) return a.count > b.count;
    return p->left != q->left ? p->left < q->left : p->right < q->right;
}

static qkv_status push(trainer *r, size_t number)
{
    entry e = { r->pairs.items[number].count, number };
    if (e.count < r->min_count) return QKV_OK;
    if (ROOM(r->heap, r->heap.n + 1)) return QKV_MEMORY;
    entry *heap = r->heap.items;
    size_t at = r->heap.n++;
    for (; at && entry_goes_first(r, e, heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = e;
    return QKV_OK;
}

static entry pop(trainer *r)
{
    entry *heap = r->heap.items, top = heap[0], last = heap[--r->heap.n];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < r->heap.n; at = child) {
        if (child + 1 < r->heap.n && entry_goes_first(r, heap[child + 1], heap[child])) child++;
        if (!entry_goes_first(r, heap[child], last)) break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

/* ---- pairs ---- */

static size_t *table_place(const trainer *r, int32_t left, int32_t right)
{
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    for (size_t i = (size_t)(h ^ h >> 32);; i++) {
        size_t *found = &r->table[i & (r->table_places - 1)];
        if (!*found) return found;
        const pair *p = &r->pairs.items[*found - 1];
        if (p->left == left && p->right == right) return found;
    }
}

static qkv_status grow_table(trainer *r)
{
    size_t *old = r->table, old_places = r->table_places, places = old_places ? 2 * old_places : 4096;
    size_t *larger = qkv__alloc_zero(places * sizeof *larger);
    if (!larger) return QKV_MEMORY;
    r->table = larger;
    r->table_places = places;
    for (size_t i = 0; i < r->pairs.n; i++) *table_place(r, r->pairs.items[i].left, r->pairs.items[i].right) = i + 1;
    qkv__release(old, old_places * sizeof *old);
    return QKV_OK;
}

static qkv_status pair_number(trainer *r, int32_t left, int32_t right, size_t *number)
{
    if (r->pairs.n >= r->table_places / 2 && grow_table(r)) return QKV_MEMORY;
    size_t *found = table_place(r, left, right);
    if (!*found) {
        if (ROOM(r->pairs, r->pairs.n + 1)) return QKV_MEMORY;
        r->pairs.items[r->pairs.n] = (pair){ .left = left, .right = right };
        *found = ++r->pairs.n;
    }
    *number = *found - 1;
    return QKV_OK;
}

static int64_t count_at(const trainer *r, uint32_t at) { return r->bag->words[r->symbols[at].word].count; }

/* One more place of the pair that starts at a symbol. */
static qkv_status add_place(trainer *r, uint32_t at)
{
    size_t number;
    const symbol *s = &r->symbols[at];
    if (pair_number(r, s->id, r->symbols[s->next].id, &number) || ROOM(r->places, r->places.n + 1) ||
        ROOM(r->touched, r->touched.n + 1))
        return QKV_MEMORY;
    pair *p = &r->pairs.items[number];
    r->places.items[r->places.n] = (place){ at, p->seen };
    p->seen = ++r->places.n;
    p->count += count_at(r, at);
    if (!p->is_touched) r->touched.items[r->touched.n++] = number;
    p->is_touched = true;
    return QKV_OK;
}

/* The pair that starts at a symbol is about to go. Its place stays listed and is passed over later. */
static void drop_place(trainer *r, uint32_t at)
{
    const symbol *s = &r->symbols[at];
    r->pairs.items[*table_place(r, s->id, r->symbols[s->next].id) - 1].count -= count_at(r, at);
}

static qkv_status push_touched(trainer *r)
{
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < r->touched.n && !status; i++) {
        r->pairs.items[r->touched.items[i]].is_touched = false;
        status = push(r, r->touched.items[i]);
    }
    r->touched.n = 0;
    return status;
}

/* ---- the start: bytes ---- */

static void lay_out_word(trainer *r, uint32_t word, uint32_t start, const int32_t byte_ids[256])
{
    const qkv__word_count *w = &r->bag->words[word];
    const char *bytes = r->bag->text.data + w->start;
    for (uint32_t i = 0; i < w->length; i++)
        r->symbols[start + i] = (symbol){ .id = byte_ids[(unsigned char)bytes[i]],
                                          .previous = i ? start + i - 1 : NONE,
                                          .next = i + 1 < w->length ? start + i + 1 : NONE,
                                          .word = word };
}

static qkv_status lay_out_words(trainer *r, const int32_t byte_ids[256])
{
    r->n_symbols = r->bag->text.length;
    if (r->n_symbols >= NONE) return qkv__fail(QKV_LIMIT, "tokenizer: the distinct words have more than 4 GiB together");
    if (!(r->symbols = qkv__alloc(r->n_symbols * sizeof *r->symbols))) return QKV_MEMORY;
    for (size_t w = 0; w < r->bag->n; w++) lay_out_word(r, (uint32_t)w, (uint32_t)r->bag->words[w].start, byte_ids);
    for (uint32_t i = 0; i < r->n_symbols; i++)
        if (r->symbols[i].next != NONE && add_place(r, i)) return QKV_MEMORY;
    return push_touched(r);
}

/* ---- one merge ---- */

static int by_place(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The places of a pair from left to right: of "aaa", the first two are merged. */
static qkv_status collect_places(trainer *r, const pair *p)
{
    r->work.n = 0;
    for (size_t at = p->seen; at; at = r->places.items[at - 1].before) {
        if (ROOM(r->work, r->work.n + 1)) return QKV_MEMORY;
        r->work.items[r->work.n++] = r->places.items[at - 1].symbol;
    }
    qsort(r->work.items, r->work.n, sizeof *r->work.items, by_place);
    return QKV_OK;
}

static qkv_status merge_at(trainer *r, uint32_t at, int32_t left, int32_t right, int32_t made)
{
    symbol *s = &r->symbols[at], *gone = s->next == NONE ? NULL : &r->symbols[s->next];
    if (s->id != left || !gone || gone->id != right) return QKV_OK; /* changed since */
    if (s->previous != NONE) drop_place(r, s->previous);
    if (gone->next != NONE) drop_place(r, s->next);
    s->id = made;
    s->next = gone->next;
    gone->id = GONE;
    if (s->next != NONE) r->symbols[s->next].previous = at;
    if (s->previous != NONE && add_place(r, s->previous)) return QKV_MEMORY;
    return s->next != NONE ? add_place(r, at) : QKV_OK;
}

static qkv_status merge_everywhere(trainer *r, size_t number, int32_t made)
{
    const pair p = r->pairs.items[number];
    qkv_status status = collect_places(r, &p);
    r->pairs.items[number].seen = 0;
    for (size_t i = 0; i < r->work.n && !status; i++) status = merge_at(r, r->work.items[i], p.left, p.right, made);
    r->pairs.items[number].count = 0;
    return status ? status : push_touched(r);
}

/* The id of left and right together, a new one unless it is spelled already. */
static qkv_status spell(trainer *r, const pair *p, size_t *id)
{
    const qkv__word_count *a = &r->tokens.words[p->left], *b = &r->tokens.words[p->right];
    qkv_buffer both = { 0 };
    qkv_status status = qkv__buffer_put(&both, r->tokens.text.data + a->start, a->length);
    if (!status) status = qkv__buffer_put(&both, r->tokens.text.data + b->start, b->length);
    if (!status) status = qkv__bag_number(&r->tokens, both.data, both.length, id);
    qkv_buffer_free(&both);
    return status;
}

static qkv_status learn_pair(trainer *r, size_t number)
{
    pair *p = &r->pairs.items[number];
    size_t id;
    if (ROOM(r->merges, r->merges.n + 1) || spell(r, p, &id)) return QKV_MEMORY;
    if (id < r->n_specials) { /* no text may turn into a special token */
        p->count = 0;
        return QKV_OK;
    }
    if (!p->is_learned) r->merges.items[r->merges.n++] = (qkv__merge){ p->left, p->right, (int32_t)id };
    p->is_learned = true;
    return merge_everywhere(r, number, (int32_t)id);
}

static qkv_status learn_merges(trainer *r, size_t size)
{
    qkv_status status = QKV_OK;
    while (!status && r->tokens.n < size && r->heap.n) {
        entry e = pop(r);
        int64_t count = r->pairs.items[e.pair].count;
        if (count == e.count) status = learn_pair(r, e.pair);
        else if (count < e.count) status = push(r, e.pair);
        /* else it grew, and was put into the heap again then */
    }
    return status;
}

/* ---- the vocabulary ---- */

/* A byte's spelling must not be a special token's too. */
static qkv_status add_special(trainer *r, const char *special)
{
    size_t bytes, length = special ? strlen(special) : 0;
    int32_t c = qkv_utf8_next(special, length, &bytes);
    if (bytes == length && qkv__character_to_byte(c) >= 0)
        return qkv__fail(QKV_USAGE, "tokenizer: the special token \"%s\" is the spelling of a byte", special);
    return qkv__add_special(&r->tokens, special);
}

static qkv_status add_bytes(trainer *r, int32_t byte_ids[256])
{
    for (int i = 0; i < 256; i++) {
        char spelling[QKV__SPELLED_MAX];
        int byte = qkv__byte_in_order(i);
        size_t number;
        if (qkv__bag_number(&r->tokens, spelling, qkv__spell_byte(byte, spelling), &number)) return QKV_MEMORY;
        byte_ids[byte] = (int32_t)number;
    }
    return QKV_OK;
}

static qkv_status train_merges(trainer *r, const qkv_tokenizer_opts *o)
{
    int32_t byte_ids[256];
    qkv_status status = QKV_OK;
    if (o->vocab_size < o->n_specials + 256)
        return qkv__fail(QKV_USAGE, "tokenizer: a vocabulary of %d has no room for 256 bytes and %d special tokens",
                         o->vocab_size, o->n_specials);
    for (int i = 0; i < o->n_specials && !status; i++) status = add_special(r, o->specials[i]);
    r->n_specials = r->tokens.n;
    if (!status) status = add_bytes(r, byte_ids);
    if (!status) status = lay_out_words(r, byte_ids);
    return status ? status : learn_merges(r, (size_t)o->vocab_size);
}

qkv_tokenizer *qkv__train_byte_pairs(const qkv__bag *words, const qkv_tokenizer_opts *o)
{
    trainer r = { .bag = words, .min_count = o->min_count };
    qkv_tokenizer *t = train_merges(&r, o)
                           ? NULL
                           : qkv__make_tokenizer(QKV_TOKEN_BPE, &r.tokens, r.n_specials, r.merges.items, r.merges.n);
    free_trainer(&r);
    return t;
}
