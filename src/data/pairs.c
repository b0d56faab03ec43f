/* pairs.c: pairs of id sequences, and the batches of an epoch. */
#include "pairs.h"
#include "repeats.h"

#include "../base/file.h"
#include "../base/hash.h"
#include "../base/options.h"
#include "../base/random.h"
#include "../base/result.h"
#include "../base/size.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SOURCE, TARGET, SIDES };

/* Source, target, source, target, ..: side s of pair i has the ids from ends[2i+s-1] to ends[2i+s]. */
struct qkv_dataset {
    int32_t *ids; /* in memory, or in the file once there are more than limit bytes of them */
    int64_t *ends;
    int64_t n;
    size_t ids_bytes, ends_bytes; /* of the allocations */
    size_t limit;
    qkv__spill file;
    qkv__bytes opened; /* where all of it is mapped */
};

qkv_dataset *qkv__dataset_new_with_limit(size_t bytes)
{
    qkv_dataset *p = qkv__alloc_zero(sizeof *p);
    if (p) p->limit = bytes;
    return p;
}

qkv_dataset *qkv_dataset_new(void) { return qkv__dataset_new_with_limit(QKV_PAIRS_IN_MEMORY); }

static void release_pairs(qkv_dataset *p)
{
    if (p->file.data) qkv__spill_end(&p->file);
    else if (!p->opened.data) qkv__release(p->ids, p->ids_bytes);
    if (!p->opened.data) qkv__release(p->ends, p->ends_bytes);
    qkv__bytes_free(&p->opened);
}

void qkv_dataset_free(qkv_dataset *p)
{
    if (!p) return;
    release_pairs(p);
    qkv__release(p, sizeof *p);
}

int64_t qkv_dataset_size(const qkv_dataset *p) { return p ? p->n : 0; }

static int64_t pair_begin(const qkv_dataset *p, int s, int64_t i) { return i || s ? p->ends[SIDES * i + s - 1] : 0; }

static int64_t length_of(const qkv_dataset *p, int s, int64_t i) { return p->ends[SIDES * i + s] - pair_begin(p, s, i); }

static qkv_status move_to_file(qkv_dataset *p, size_t bytes)
{
    qkv__spill file;
    qkv_status status = qkv__spill_begin(&file);
    if (status) return status;
    status = qkv__spill_grow(&file, bytes);
    if (status) {
        qkv__spill_end(&file);
        return status;
    }
    if (p->ids) memcpy(file.data, p->ids, sizeof *p->ids * (size_t)pair_begin(p, SOURCE, p->n));
    qkv__release(p->ids, p->ids_bytes);
    p->file = file;
    return QKV_OK;
}

/* For so many pairs more, and their ids. */
static qkv_status make_room_for_pairs(qkv_dataset *p, size_t pairs, size_t more)
{
    size_t ids;
    if (!qkv__size_add((size_t)pair_begin(p, SOURCE, p->n), more, &ids) || !qkv__size_mul(ids, sizeof *p->ids, &ids))
        return qkv__fail(QKV_LIMIT, "pairs: all ids together are larger than memory can be");
    if (qkv__grow((void **)&p->ends, &p->ends_bytes, SIDES * sizeof *p->ends * ((size_t)p->n + pairs))) return QKV_MEMORY;
    if (!p->file.data && ids <= p->limit) return qkv__grow((void **)&p->ids, &p->ids_bytes, ids);
    qkv_status status = p->file.data ? qkv__spill_grow(&p->file, ids) : move_to_file(p, ids);
    if (!status) p->ids = p->file.data;
    return status;
}

qkv_status qkv_dataset_add_ids(qkv_dataset *p, const int32_t *source, size_t n, const int32_t *target, size_t m)
{
    const int32_t *ids[SIDES] = { source, target };
    const size_t counts[SIDES] = { n, m };
    if (!p || (n && !source) || (m && !target))
        return qkv__fail(QKV_USAGE, "pairs: there is nothing to add, or nowhere to add it");
    if (p->opened.data) return qkv__fail(QKV_USAGE, "pairs: they were opened from a file, and none can be added");
    if (n >= INT32_MAX || m >= INT32_MAX) /* a batch has lengths of 32 bits, start or end included */
        return qkv__fail(QKV_LIMIT, "pairs: %zu ids are too many for one side of a pair", n > m ? n : m);
    qkv_status status = make_room_for_pairs(p, 1, n + m);
    if (status) return status;
    for (int s = 0; s < SIDES; s++) {
        int64_t at = pair_begin(p, s, p->n);
        if (counts[s]) memcpy(p->ids + at, ids[s], sizeof *p->ids * counts[s]);
        p->ends[SIDES * p->n + s] = at + (int64_t)counts[s];
    }
    p->n++;
    return QKV_OK;
}

const int32_t *qkv__dataset_side(const qkv_dataset *p, int64_t i, int side, int64_t *n)
{
    *n = length_of(p, side, i);
    return p->ids + pair_begin(p, side, i);
}

int64_t qkv__dataset_target_ids(const qkv_dataset *p)
{
    int64_t n = 0;
    for (int64_t i = 0; i < qkv_dataset_size(p); i++) n += length_of(p, TARGET, i);
    return n;
}

qkv_status qkv__dataset_split(const qkv_dataset *p, int64_t every, qkv_dataset *kept, qkv_dataset *held)
{
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < qkv_dataset_size(p) && !status; i++)
        status = qkv_dataset_add_ids((i + 1) % every ? kept : held, p->ids + pair_begin(p, SOURCE, i),
                                     (size_t)length_of(p, SOURCE, i), p->ids + pair_begin(p, TARGET, i),
                                     (size_t)length_of(p, TARGET, i));
    return status;
}

/* ---- a file of them: how many, where they end, and the ids ---- */

static const char *const pairs_sign = "qkvpairs";

qkv_status qkv__dataset_write(const qkv_dataset *p, const char *path)
{
    qkv__writer w;
    qkv_status status = qkv__write_begin(&w, path);
    if (!status) status = qkv__write_put(&w, pairs_sign, sizeof p->n);
    if (!status) status = qkv__write_put(&w, &p->n, sizeof p->n);
    if (!status && p->n) status = qkv__write_put(&w, p->ends, SIDES * sizeof *p->ends * (size_t)p->n);
    if (!status && p->n) status = qkv__write_put(&w, p->ids, sizeof *p->ids * (size_t)pair_begin(p, SOURCE, p->n));
    if (!status) status = qkv__write_end(&w);
    if (status) qkv__write_abandon(&w);
    return status;
}

/* Whether what the file says of itself fits its bytes. */
static bool is_whole(const qkv__bytes *file)
{
    int64_t n, before = 0;
    size_t head = 2 * sizeof n;
    if (file->size < head || memcmp(file->data, pairs_sign, sizeof n)) return false;
    memcpy(&n, file->data + sizeof n, sizeof n);
    if (n < 0 || (size_t)n > (file->size - head) / (SIDES * sizeof n)) return false;
    const int64_t *ends = (const int64_t *)(const void *)(file->data + head);
    for (int64_t i = 0; i < SIDES * n; before = ends[i++])
        if (ends[i] < before || ends[i] - before >= INT32_MAX) return false;
    return (size_t)before == (file->size - head - SIDES * sizeof n * (size_t)n) / sizeof(int32_t);
}

qkv_status qkv__dataset_open(qkv_dataset *p, const char *path)
{
    qkv__bytes file;
    qkv_status status = qkv__file_map(path, &file);
    if (status) return status;
    if (!is_whole(&file)) {
        qkv__bytes_free(&file);
        return qkv__fail(QKV_FORMAT, "%s: it is no file of pairs, or cut", path);
    }
    release_pairs(p);
    *p = (qkv_dataset){ .limit = p->limit, .opened = file };
    memcpy(&p->n, file.data + sizeof p->n, sizeof p->n);
    p->ends = (int64_t *)(void *)(file.data + 2 * sizeof p->n);
    p->ids = (int32_t *)(p->ends + SIDES * p->n);
    return QKV_OK;
}

bool qkv__dataset_are_opened(const qkv_dataset *p) { return p->opened.data != NULL; }

/* ---- what they are made of ---- */

qkv__pair_arrays qkv__dataset_arrays(const qkv_dataset *p)
{
    return (qkv__pair_arrays){ p->n, pair_begin(p, SOURCE, p->n), p->ends, p->ids };
}

qkv_status qkv__dataset_make_room(qkv_dataset *p, int64_t n, int64_t n_ids)
{
    release_pairs(p);
    *p = (qkv_dataset){ .limit = p->limit };
    qkv_status status = make_room_for_pairs(p, (size_t)n, (size_t)n_ids);
    if (status) return status;
    if (n) memset(p->ends, 0, p->ends_bytes); /* pairs without ids until they are written */
    p->n = n;
    return QKV_OK;
}

/* ---- pairs that occur twice ---- */

/* FNV-1a over the ids, and the length of each side. */
static uint64_t hash_of_pair(const qkv_dataset *p, int64_t i)
{
    uint64_t h = QKV__HASH_START;
    for (int s = 0; s < SIDES; s++) {
        const int32_t *ids = p->ids + pair_begin(p, s, i);
        int64_t n = length_of(p, s, i);
        for (int64_t k = 0; k < n; k++) h = qkv__hash_add(h, (uint32_t)ids[k]);
        h = qkv__hash_add(h, (uint64_t)n ^ 0x80000000u);
    }
    return h ^ (h >> 29);
}

qkv_status qkv__dataset_repeats(const qkv_dataset *a, const qkv_dataset *b, int64_t *repeated, int64_t *shared)
{
    qkv__hashes first = { 0 }, second = { 0 };
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < qkv_dataset_size(a) && !status; i++) status = qkv__hashes_add(&first, hash_of_pair(a, i));
    for (int64_t i = 0; i < qkv_dataset_size(b) && !status; i++) status = qkv__hashes_add(&second, hash_of_pair(b, i));
    qkv__hashes_count(&first, &second, repeated, shared);
    qkv__hashes_free(&first);
    qkv__hashes_free(&second);
    return status;
}

/* FNV-1a over each run of ids, mixed so that no id decides which is least. */
static uint64_t least_run(const int32_t *ids, int64_t n, int64_t run)
{
    uint64_t least = UINT64_MAX;
    for (int64_t from = 0; from == 0 || from + run <= n; from++) {
        uint64_t h = QKV__HASH_START;
        for (int64_t k = from; k < from + run && k < n; k++) h = qkv__hash_add(h, (uint32_t)ids[k]);
        h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        least = (h ^ h >> 27) < least ? h ^ h >> 27 : least;
    }
    return least;
}

qkv_status qkv__dataset_shared_runs(const qkv_dataset *p, int64_t run, double *share)
{
    int64_t n = qkv_dataset_size(p), shared = 0;
    *share = 0;
    if (!n) return QKV_OK;
    size_t bytes = sizeof(uint64_t) * (size_t)n;
    uint64_t *least = qkv__alloc(bytes);
    if (!least) return QKV_MEMORY;
    for (int64_t i = 0; i < n; i++) least[i] = least_run(p->ids + pair_begin(p, SOURCE, i), length_of(p, SOURCE, i), run);
    qsort(least, (size_t)n, sizeof *least, qkv__compare_hashes);
    for (int64_t i = 0; i < n; i++) shared += (i > 0 && least[i] == least[i - 1]) || (i + 1 < n && least[i] == least[i + 1]);
    *share = (double)shared / (double)n;
    qkv__release(least, bytes);
    return QKV_OK;
}

/* ---- an epoch ---- */

/* A pair in the order of this epoch: by length, and among equals by chance. */
typedef struct place {
    int64_t pair;
    int32_t source, target; /* lengths, start or end included */
    uint64_t chance;
} place;

struct qkv_loader {
    const qkv_dataset *pairs;
    qkv_batch_opts o;
    place *places;
    int64_t *starts; /* batch i has the places starts[i] to starts[i+1] - 1 */
    int64_t *order;  /* the i-th batch is number order[i] */
    int64_t n_batches;
    size_t room; /* bytes of all three, one allocation */
};

static int by_pair_length(const void *a, const void *b)
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

/* Ids that the decoder reads: with the start in front, or, of a target that has both, without the last. */
static int32_t target_length(const qkv_loader *e, int64_t i)
{
    int64_t n = length_of(e->pairs, TARGET, i);
    return (int32_t)(e->o.target_has_both ? qkv__max(n - 1, 1) : n + 1);
}

/* Ids that the encoder reads: with the end behind them, unless they have it or there are none. */
static int32_t source_length(const qkv_loader *e, int64_t i)
{
    int64_t n = length_of(e->pairs, SOURCE, i);
    return (int32_t)(e->o.source_has_end && n ? n : n + 1);
}

static void place_pairs(qkv_loader *e, uint64_t number)
{
    qkv__key key = qkv__key_for(e->o.seed, number, 0);
    for (int64_t i = 0; i < e->pairs->n; i++)
        e->places[i] = (place){ i, source_length(e, i), target_length(e, i), chance_of(key, i) };
    if (!e->o.sequential) qsort(e->places, (size_t)e->pairs->n, sizeof *e->places, by_pair_length);
}

/* As many rows as fit: rows times the longest of each side. */
static void cut(qkv_loader *e)
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
static void shuffle(qkv_loader *e, uint64_t number)
{
    qkv__key key = qkv__key_for(e->o.seed, number, 1);
    for (int64_t i = 0; i < e->n_batches; i++) e->order[i] = i;
    for (int64_t i = e->n_batches - 1; i > 0 && !e->o.sequential; i--) {
        int64_t j = (int64_t)(chance_of(key, i) % (uint64_t)(i + 1)), other = e->order[j];
        e->order[j] = e->order[i];
        e->order[i] = other;
    }
}

qkv_loader *qkv_loader_new(const qkv_dataset *p, const qkv_batch_opts *opts, uint64_t number)
{
    qkv_batch_opts o;
    if (QKV__READ_OPTIONS(&o, source_has_end, opts, "batches")) return NULL;
    if (!p || !opts || o.max_tokens < 0) {
        qkv__fail(QKV_USAGE, "batches: pairs and options are needed, and max_tokens cannot be negative");
        return NULL;
    }
    qkv_loader *e = qkv__alloc_zero(sizeof *e);
    if (!e) return NULL;
    size_t n = (size_t)p->n;
    *e = (qkv_loader){ .pairs = p, .o = o, .room = sizeof(place) * n + 2 * sizeof(int64_t) * (n + 1) };
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

void qkv_loader_free(qkv_loader *e)
{
    if (!e) return;
    qkv__release(e->places, e->room);
    qkv__release(e, sizeof *e);
}

int64_t qkv_loader_size(const qkv_loader *e) { return e ? e->n_batches : 0; }

/* ---- a batch ---- */

/* A batch of so many rows, its arrays one block. NULL with the error set. */
static qkv_batch *lay_out_batch(qkv_batch *reused, int64_t rows, int64_t source, int64_t target)
{
    static const qkv__result_kind kind = { sizeof(qkv_batch), NULL };
    qkv_batch *b = qkv__result_begin(reused, &kind);
    int32_t *ids = b ? qkv__result_alloc(b, sizeof *ids * (size_t)rows * (size_t)(source + 2 * target + 2)) : NULL;
    if (!ids) {
        if (!reused) qkv_free(b);
        return NULL;
    }
    int32_t *labels = ids + rows * (source + target), *lengths = labels + rows * target;
    *b = (qkv_batch){ .rows = rows,
                      .source_length = source,
                      .target_length = target,
                      .source = ids,
                      .target = ids + rows * source,
                      .labels = labels,
                      .source_lengths = lengths,
                      .target_lengths = lengths + rows };
    return b;
}

/* What the decoder reads at place i, and what it is to say there. */
static int32_t input_at(const qkv_loader *e, const int32_t *target, int32_t length, int64_t i)
{
    if (i >= length) return e->o.pad;
    return e->o.target_has_both ? target[i] : i == 0 ? e->o.start : target[i - 1];
}

static int32_t label_at(const qkv_loader *e, const int32_t *target, int32_t length, int64_t n, int64_t i)
{
    if (i >= length || (e->o.target_has_both && i + 1 >= n)) return QKV_IGNORED;
    return e->o.target_has_both ? target[i + 1] : i == length - 1 ? e->o.end : target[i];
}

static void fill_row(const qkv_loader *e, const place *at, qkv_batch *b, int64_t row)
{
    const int32_t *source = e->pairs->ids + pair_begin(e->pairs, SOURCE, at->pair);
    const int32_t *target = e->pairs->ids + pair_begin(e->pairs, TARGET, at->pair);
    int64_t n = length_of(e->pairs, TARGET, at->pair), n_source = length_of(e->pairs, SOURCE, at->pair);
    int32_t *to = b->source + row * b->source_length;
    for (int64_t i = 0; i < b->source_length; i++) to[i] = i < n_source ? source[i] : i < at->source ? e->o.end : e->o.pad;
    int32_t *in = b->target + row * b->target_length, *out = b->labels + row * b->target_length;
    for (int64_t i = 0; i < b->target_length; i++) {
        in[i] = n || !e->o.target_has_both ? input_at(e, target, at->target, i) : e->o.pad;
        out[i] = label_at(e, target, at->target, n, i);
        b->tokens += out[i] != QKV_IGNORED;
    }
    b->source_lengths[row] = at->source;
    b->target_lengths[row] = at->target;
}

qkv_status qkv__loader_part(const qkv_loader *e, int64_t i, int64_t part, int64_t parts, qkv_batch **out)
{
    if (out) qkv__result_clear(*out);
    if (!e || !out || i < 0 || i >= e->n_batches)
        return qkv__fail(QKV_USAGE, "batches: there is no batch %lld in %lld", (long long)i, (long long)qkv_loader_size(e));
    const place *all = e->places + e->starts[e->order[i]];
    int64_t rows = e->starts[e->order[i] + 1] - e->starts[e->order[i]], source = 0, target = 0;
    const place *first = all + rows * part / parts, *end = all + rows * (part + 1) / parts;
    for (const place *at = first; at < end; at++) {
        source = qkv__max(source, at->source);
        target = qkv__max(target, at->target);
    }
    qkv_batch *b = lay_out_batch(*out, end - first, source, target);
    if (!b) return qkv_error_status();
    *out = b;
    for (const place *at = first; at < end; at++) fill_row(e, at, b, at - first);
    return QKV_OK;
}

qkv_status qkv_loader_batch(const qkv_loader *e, int64_t i, qkv_batch **out) { return qkv__loader_part(e, i, 0, 1, out); }
