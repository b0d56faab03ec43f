/* pairs.c: pairs of id sequences, and the batches of an epoch. */
#include <qkv/text.h>

#include "../base/memory.h"
#include "../base/random.h"
#include "../base/size.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SOURCE, TARGET, SIDES };

/* Pair i has the ids from ends[side][i-1] to ends[side][i]. */
typedef struct side {
    int32_t *ids;
    int64_t *ends;
    size_t ids_bytes, ends_bytes;
} side;

struct qkv_pairs {
    side sides[SIDES];
    int64_t n;
};

qkv_pairs *qkv_pairs_new(void) { return qkv__alloc_zero(sizeof(qkv_pairs)); }

void qkv_pairs_free(qkv_pairs *p)
{
    if (!p) return;
    for (int s = 0; s < SIDES; s++) {
        qkv__release(p->sides[s].ids, p->sides[s].ids_bytes);
        qkv__release(p->sides[s].ends, p->sides[s].ends_bytes);
    }
    qkv__release(p, sizeof *p);
}

int64_t qkv_pairs_count(const qkv_pairs *p) { return p ? p->n : 0; }

static int64_t begin_of(const qkv_pairs *p, int s, int64_t i) { return i ? p->sides[s].ends[i - 1] : 0; }

static int64_t length_of(const qkv_pairs *p, int s, int64_t i) { return p->sides[s].ends[i] - begin_of(p, s, i); }

static qkv_status make_room(qkv_pairs *p, int s, size_t more)
{
    side *x = &p->sides[s];
    size_t ids;
    if (!qkv__size_add((size_t)begin_of(p, s, p->n), more, &ids) || !qkv__size_mul(ids, sizeof *x->ids, &ids))
        return qkv__fail(QKV_LIMIT, "pairs: all ids together are larger than memory can be");
    if (qkv__grow((void **)&x->ids, &x->ids_bytes, ids)) return QKV_MEMORY;
    return qkv__grow((void **)&x->ends, &x->ends_bytes, sizeof *x->ends * ((size_t)p->n + 1));
}

qkv_status qkv_pairs_add(qkv_pairs *p, const int32_t *source, size_t n, const int32_t *target, size_t m)
{
    const int32_t *ids[SIDES] = { source, target };
    const size_t counts[SIDES] = { n, m };
    if (!p || (n && !source) || (m && !target))
        return qkv__fail(QKV_USAGE, "pairs: there is nothing to add, or nowhere to add it");
    for (int s = 0; s < SIDES; s++) {
        qkv_status status = make_room(p, s, counts[s]);
        if (status) return status;
    }
    for (int s = 0; s < SIDES; s++) {
        int64_t at = begin_of(p, s, p->n);
        if (counts[s]) memcpy(p->sides[s].ids + at, ids[s], sizeof(int32_t) * counts[s]);
        p->sides[s].ends[p->n] = at + (int64_t)counts[s];
    }
    p->n++;
    return QKV_OK;
}

/* ---- an epoch ---- */

/* A pair in the order of this epoch: by length, and among equals by chance. */
typedef struct place {
    int64_t pair, source, target;
    uint64_t chance;
} place;

struct qkv_epoch {
    const qkv_pairs *pairs;
    qkv_batch_opts o;
    place *places;
    int64_t *starts; /* batch i has the places starts[i] to starts[i+1] - 1 */
    int64_t *order;  /* the i-th batch is number order[i] */
    int64_t n_batches;
    size_t room; /* bytes of all three, one allocation */
};

static int by_length(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->target != y->target) return x->target < y->target ? -1 : 1;
    if (x->source != y->source) return x->source < y->source ? -1 : 1;
    if (x->chance != y->chance) return x->chance < y->chance ? -1 : 1;
    return (x->pair > y->pair) - (x->pair < y->pair);
}

static uint64_t chance_of(qkv__key key, int64_t i)
{
    uint32_t word[2];
    qkv__threefry(key, (uint32_t)i, (uint32_t)((uint64_t)i >> 32), word);
    return (uint64_t)word[0] << 32 | word[1];
}

static void place_pairs(qkv_epoch *e, uint64_t number)
{
    qkv__key key = qkv__key_for(e->o.seed, number, 0);
    for (int64_t i = 0; i < e->pairs->n; i++)
        e->places[i] = (place){ i, length_of(e->pairs, SOURCE, i) + 1, length_of(e->pairs, TARGET, i) + 1, chance_of(key, i) };
    if (!e->o.in_order) qsort(e->places, (size_t)e->pairs->n, sizeof *e->places, by_length);
}

/* As many rows as fit: rows times the longest of each side. */
static void cut(qkv_epoch *e)
{
    int64_t rows = 0, longest = 0;
    e->n_batches = 0;
    for (int64_t i = 0; i < e->pairs->n; i++) {
        int64_t longer = qkv__max(longest, qkv__max(e->places[i].source, e->places[i].target));
        if (rows == 0 || longer > e->o.max_tokens / (rows + 1)) {
            e->starts[e->n_batches++] = i;
            rows = 0;
            longer = qkv__max(e->places[i].source, e->places[i].target);
        }
        rows++;
        longest = longer;
    }
    e->starts[e->n_batches] = e->pairs->n;
}

/* Fisher and Yates */
static void shuffle(qkv_epoch *e, uint64_t number)
{
    qkv__key key = qkv__key_for(e->o.seed, number, 1);
    for (int64_t i = 0; i < e->n_batches; i++) e->order[i] = i;
    for (int64_t i = e->n_batches - 1; i > 0 && !e->o.in_order; i--) {
        int64_t j = (int64_t)(chance_of(key, i) % (uint64_t)(i + 1)), other = e->order[j];
        e->order[j] = e->order[i];
        e->order[i] = other;
    }
}

qkv_epoch *qkv_epoch_new(const qkv_pairs *p, const qkv_batch_opts *opts, uint64_t number)
{
    if (!p || !opts || opts->max_tokens < 0) {
        qkv__fail(QKV_USAGE, "batches: pairs and options are needed, and max_tokens cannot be negative");
        return NULL;
    }
    qkv_epoch *e = qkv__alloc_zero(sizeof *e);
    if (!e) return NULL;
    size_t n = (size_t)p->n;
    *e = (qkv_epoch){ .pairs = p, .o = *opts, .room = sizeof(place) * n + 2 * sizeof(int64_t) * (n + 1) };
    if (!e->o.max_tokens) e->o.max_tokens = 2048;
    if (!(e->places = qkv__alloc(e->room))) {
        qkv__release(e, sizeof *e);
        return NULL;
    }
    e->starts = (int64_t *)(e->places + n);
    e->order = e->starts + n + 1;
    place_pairs(e, number);
    cut(e);
    shuffle(e, number);
    return e;
}

void qkv_epoch_free(qkv_epoch *e)
{
    if (!e) return;
    qkv__release(e->places, e->room);
    qkv__release(e, sizeof *e);
}

int64_t qkv_epoch_batches(const qkv_epoch *e) { return e ? e->n_batches : 0; }

/* ---- a batch ---- */

static qkv_status lay_out(qkv_batch *b, int64_t rows, int64_t source, int64_t target)
{
    size_t ids = (size_t)rows * (size_t)(source + 2 * target + 2);
    if (qkv__grow(&b->memory, &b->bytes, sizeof(int32_t) * ids)) return QKV_MEMORY;
    b->rows = rows;
    b->source_length = source;
    b->target_length = target;
    b->source = b->memory;
    b->target = b->source + rows * source;
    b->labels = b->target + rows * target;
    b->source_lengths = b->labels + rows * target;
    b->target_lengths = b->source_lengths + rows;
    return QKV_OK;
}

static void fill_row(const qkv_epoch *e, const place *at, qkv_batch *b, int64_t row)
{
    const int32_t *source = e->pairs->sides[SOURCE].ids + begin_of(e->pairs, SOURCE, at->pair);
    const int32_t *target = e->pairs->sides[TARGET].ids + begin_of(e->pairs, TARGET, at->pair);
    int32_t *to = b->source + row * b->source_length;
    for (int64_t i = 0; i < b->source_length; i++)
        to[i] = i < at->source - 1 ? source[i] : i == at->source - 1 ? e->o.end : e->o.pad;
    int32_t *in = b->target + row * b->target_length, *out = b->labels + row * b->target_length;
    for (int64_t i = 0; i < b->target_length; i++) {
        in[i] = i == 0 ? e->o.start : i < at->target ? target[i - 1] : e->o.pad;
        out[i] = i < at->target - 1 ? target[i] : i == at->target - 1 ? e->o.end : QKV_IGNORED;
    }
    b->source_lengths[row] = (int32_t)at->source;
    b->target_lengths[row] = (int32_t)at->target;
    b->tokens += at->target;
}

qkv_status qkv_epoch_batch(const qkv_epoch *e, int64_t i, qkv_batch *out)
{
    if (!e || !out || i < 0 || i >= e->n_batches)
        return qkv__fail(QKV_USAGE, "batches: there is no batch %lld in %lld", (long long)i, (long long)qkv_epoch_batches(e));
    const place *first = e->places + e->starts[e->order[i]], *end = e->places + e->starts[e->order[i] + 1];
    int64_t source = 0, target = 0;
    for (const place *at = first; at < end; at++) {
        source = qkv__max(source, at->source);
        target = qkv__max(target, at->target);
    }
    if (lay_out(out, end - first, source, target)) return QKV_MEMORY;
    out->tokens = 0;
    for (const place *at = first; at < end; at++) fill_row(e, at, out, at - first);
    return QKV_OK;
}

void qkv_batch_free(qkv_batch *b)
{
    if (!b) return;
    qkv__release(b->memory, b->bytes);
    *b = (qkv_batch){ 0 };
}
