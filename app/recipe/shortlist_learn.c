/* shortlist_learn.c: which target tokens are likely for a source token: model 1 of Brown et al. 1993, by expectation
 * maximisation. Every sum has one order, whatever the threads: those of a sentence are its own task's, those of a source token
 * its own. */
#include "shortlist_learn.h"
#include "../../src/decode/shortlist.h"

#include "../../src/base/memory.h"
#include "../../src/base/options.h"
#include "../../src/base/pool.h"
#include "../../src/base/size.h"
#include "../../src/data/pairs.h"

#include <stdlib.h>
#include <string.h>

enum { LIKELIEST = 100, FREQUENT = 100, ITERATIONS = 5, MAX_PAIRS = 400000, SENTENCES = 64 /* of a task */ };

/* A source token that is none stands before every sentence: what the other tokens do not explain. Its number is `sources`. */
typedef struct learner {
    const qkv_dataset *pairs;
    qkv_shortlist_opts o;
    int64_t n, every;         /* pairs that are used, and one of how many they are */
    int64_t sources, targets; /* ids of the vocabularies */
    int64_t *uses;            /* (sources + 2): into used_in */
    int32_t *used_in;         /* the pairs of every source token, once for each time it occurs */
    int64_t *begins;          /* (sources + 2): into target and p */
    int32_t *target;          /* those that occur beside a source token, ascending */
    float *p;                 /* p(target | source) */
    int64_t *places;          /* (n + 1): of a pair's first target in sums */
    float *sums;              /* of p(target | source) over the sources of its pair, for every target */
    size_t uses_bytes, used_in_bytes, begins_bytes, target_bytes, p_bytes, places_bytes, sums_bytes;
} learner;

static void free_learner(learner *x)
{
    qkv__release(x->uses, x->uses_bytes);
    qkv__release(x->used_in, x->used_in_bytes);
    qkv__release(x->begins, x->begins_bytes);
    qkv__release(x->target, x->target_bytes);
    qkv__release(x->p, x->p_bytes);
    qkv__release(x->places, x->places_bytes);
    qkv__release(x->sums, x->sums_bytes);
}

/* Evenly spaced where there are more than are used. */
static const int32_t *side_of(const learner *x, int64_t i, int side, int64_t *n)
{
    return qkv__dataset_side(x->pairs, i * x->every, side, n);
}

/* ---- where every source token occurs ---- */

static qkv_status check_sides(const learner *x)
{
    const int64_t sizes[] = { x->sources, x->targets };
    for (int64_t i = 0; i < x->n; i++)
        for (int side = 0; side < 2; side++) {
            int64_t n;
            const int32_t *ids = side_of(x, i, side, &n);
            for (int64_t k = 0; k < n; k++)
                if (ids[k] < 0 || ids[k] >= sizes[side])
                    return qkv__fail(QKV_USAGE, "shortlist: id %d of pair %lld is none of the model's %lld", ids[k],
                                     (long long)(i * x->every), (long long)sizes[side]);
        }
    return QKV_OK;
}

/* The number of a source token at place k, which comes after the token that is none. */
static int64_t source_at(const learner *x, const int32_t *source, int64_t k) { return k ? source[k - 1] : x->sources; }

static qkv_status find_uses(learner *x)
{
    int64_t n, *next;
    x->uses_bytes = sizeof *x->uses * ((size_t)x->sources + 2);
    if (!(x->uses = qkv__alloc_zero(x->uses_bytes)) || !(next = qkv__alloc(x->uses_bytes))) return QKV_MEMORY;
    for (int64_t i = 0; i < x->n; i++) {
        const int32_t *source = side_of(x, i, 0, &n);
        for (int64_t k = 0; k <= n; k++) x->uses[source_at(x, source, k) + 1]++;
    }
    for (int64_t i = 0; i <= x->sources; i++) x->uses[i + 1] += x->uses[i];
    memcpy(next, x->uses, x->uses_bytes);
    x->used_in_bytes = sizeof *x->used_in * (size_t)x->uses[x->sources + 1];
    x->used_in = qkv__alloc(x->used_in_bytes);
    for (int64_t i = 0; x->used_in && i < x->n; i++) {
        const int32_t *source = side_of(x, i, 0, &n);
        for (int64_t k = 0; k <= n; k++) x->used_in[next[source_at(x, source, k)]++] = (int32_t)i;
    }
    qkv__release(next, x->uses_bytes);
    return x->used_in ? QKV_OK : QKV_MEMORY;
}

/* ---- which targets occur beside it ---- */

static void mark_neighbours(const learner *x, int64_t source, uint64_t *bits)
{
    memset(bits, 0, sizeof *bits * (size_t)qkv__ceil_div(x->targets, 64));
    for (int64_t u = x->uses[source]; u < x->uses[source + 1]; u++) {
        int64_t n;
        const int32_t *target = side_of(x, x->used_in[u], 1, &n);
        for (int64_t k = 0; k < n; k++) bits[target[k] / 64] |= (uint64_t)1 << target[k] % 64;
    }
}

static void count_neighbours(void *work, int64_t source, void *bits)
{
    const learner *x = work;
    int64_t n = 0;
    mark_neighbours(x, source, bits);
    for (int64_t i = 0; i < qkv__ceil_div(x->targets, 64); i++) n += __builtin_popcountll(((uint64_t *)bits)[i]);
    x->begins[source + 1] = n;
}

/* All are equally likely at first. */
static void list_neighbours(void *work, int64_t source, void *bits)
{
    const learner *x = work;
    int64_t at = x->begins[source], n = x->begins[source + 1] - at;
    mark_neighbours(x, source, bits);
    for (int64_t i = 0; i < qkv__ceil_div(x->targets, 64); i++)
        for (uint64_t left = ((uint64_t *)bits)[i]; left; left &= left - 1)
            x->target[at++] = (int32_t)(64 * i + __builtin_ctzll(left));
    for (int64_t i = x->begins[source]; i < at; i++) x->p[i] = 1.0f / (float)n;
}

static qkv_status find_neighbours(learner *x)
{
    size_t scratch = sizeof(uint64_t) * (size_t)qkv__ceil_div(x->targets, 64);
    x->begins_bytes = sizeof *x->begins * ((size_t)x->sources + 2);
    if (!(x->begins = qkv__alloc_zero(x->begins_bytes))) return QKV_MEMORY;
    if (qkv__parallel(x->sources + 1, scratch, count_neighbours, x)) return QKV_MEMORY;
    for (int64_t i = 0; i <= x->sources; i++) x->begins[i + 1] += x->begins[i];
    x->target_bytes = x->p_bytes = sizeof *x->p * (size_t)x->begins[x->sources + 1];
    x->target = qkv__alloc(x->target_bytes);
    x->p = qkv__alloc(x->p_bytes);
    return x->target && x->p ? qkv__parallel(x->sources + 1, scratch, list_neighbours, x) : QKV_MEMORY;
}

/* ---- expectation: what all sources of a pair together give each of its targets ---- */

static qkv_status find_places(learner *x)
{
    x->places_bytes = sizeof *x->places * ((size_t)x->n + 1);
    if (!(x->places = qkv__alloc_zero(x->places_bytes))) return QKV_MEMORY;
    for (int64_t i = 0, n; i < x->n; i++) side_of(x, i, 1, &n), x->places[i + 1] = x->places[i] + n;
    x->sums_bytes = sizeof *x->sums * (size_t)x->places[x->n];
    return (x->sums = qkv__alloc(x->sums_bytes)) ? QKV_OK : QKV_MEMORY;
}

/* p(target | source) of two tokens that occur side by side. */
static float probability_of(const learner *x, int64_t source, int32_t target)
{
    int64_t low = x->begins[source], high = x->begins[source + 1] - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (x->target[middle] < target) low = middle + 1;
        else high = middle;
    }
    return x->p[low];
}

static void sum_pairs(void *work, int64_t task, void *scratch)
{
    (void)scratch;
    const learner *x = work;
    int64_t end = qkv__min(x->n, (task + 1) * SENTENCES), n, m;
    for (int64_t i = task * SENTENCES; i < end; i++) {
        const int32_t *source = side_of(x, i, 0, &n), *target = side_of(x, i, 1, &m);
        for (int64_t j = 0; j < m; j++) {
            double sum = 0;
            for (int64_t k = 0; k <= n; k++) sum += (double)probability_of(x, source_at(x, source, k), target[j]);
            x->sums[x->places[i] + j] = (float)sum;
        }
    }
}

/* ---- maximisation: each source token's share of its targets, which then add up to 1 ---- */

static void share_targets(void *work, int64_t source, void *scratch)
{
    const learner *x = work;
    double *count = scratch, total = 0;       /* by target */
    float *p = (float *)(count + x->targets); /* the same */
    int64_t from = x->begins[source], to = x->begins[source + 1];
    for (int64_t i = from; i < to; i++) count[x->target[i]] = 0, p[x->target[i]] = x->p[i];
    for (int64_t u = x->uses[source]; u < x->uses[source + 1]; u++) {
        int64_t n;
        const int32_t *target = side_of(x, x->used_in[u], 1, &n);
        const float *sums = x->sums + x->places[x->used_in[u]];
        for (int64_t j = 0; j < n; j++)
            if (sums[j] > 0) count[target[j]] += (double)(p[target[j]] / sums[j]);
    }
    for (int64_t i = from; i < to; i++) total += count[x->target[i]];
    for (int64_t i = from; i < to && total > 0; i++) x->p[i] = (float)(count[x->target[i]] / total);
}

static qkv_status learn_probabilities(learner *x)
{
    size_t scratch = (sizeof(double) + sizeof(float)) * (size_t)x->targets;
    qkv_status status = QKV_OK;
    for (int i = 0; i < x->o.iterations && !status; i++) {
        if (x->o.each_step) status = x->o.each_step(x->o.each_step_data);
        if (!status) status = qkv__parallel(qkv__ceil_div(x->n, SENTENCES), 0, sum_pairs, x);
        if (!status) status = qkv__parallel(x->sources + 1, scratch, share_targets, x);
    }
    return status;
}

/* ---- the lists ---- */

typedef struct rated {
    double rate;
    int32_t id;
} rated;

static int by_rate(const void *a, const void *b)
{
    const rated *x = a, *y = b;
    if (x->rate != y->rate) return x->rate > y->rate ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int by_id(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The ids of the `most` highest rates above 0, and `own` unless that is -1, ascending; gives how many. */
static int64_t pick_ids(rated *all, int64_t n, int64_t most, int32_t own, int32_t *to)
{
    int64_t picked = 0;
    bool has_own = own < 0;
    qsort(all, (size_t)n, sizeof *all, by_rate);
    for (int64_t i = 0; i < n && i < most && all[i].rate > 0; i++) {
        to[picked++] = all[i].id;
        has_own = has_own || all[i].id == own;
    }
    if (!has_own) to[picked++] = own;
    qsort(to, (size_t)picked, sizeof *to, by_id);
    return picked;
}

/* What a sentence may always have: the most frequent targets, and the special tokens. */
static qkv_status list_always(const learner *x, const qkv_tokenizer *t, rated *all, qkv_shortlist *s)
{
    int64_t n;
    for (int64_t i = 0; i < x->targets; i++) {
        bool is_special = t && i < qkv_tokenizer_vocab_size(t) && qkv_tokenizer_is_special(t, (int32_t)i);
        all[i] = (rated){ is_special ? 1e300 : 0, (int32_t)i };
        s->n_always += is_special;
    }
    for (int64_t i = 0; i < x->n; i++) {
        const int32_t *target = side_of(x, i, 1, &n);
        for (int64_t k = 0; k < n; k++) all[target[k]].rate++;
    }
    s->n_always = pick_ids(all, x->targets, s->n_always + x->o.frequent, -1, s->always);
    return QKV_OK;
}

/* A token that both sides spell alike, such as a name's, may stay as it is. */
static void list_targets(const learner *x, bool is_shared, rated *all, qkv_shortlist *s)
{
    for (int64_t i = 0; i < x->sources; i++) {
        int64_t from = x->begins[i], n = x->begins[i + 1] - from, at = s->begins[i];
        for (int64_t k = 0; k < n; k++) all[k] = (rated){ (double)x->p[from + k], x->target[from + k] };
        s->begins[i + 1] = at + pick_ids(all, n, x->o.likeliest, is_shared ? (int32_t)i : -1, s->ids + at);
    }
}

static qkv_shortlist *make_lists(const learner *x, const qkv_model *m)
{
    const qkv_tokenizer *source = qkv_model_tokenizer(m, QKV_SIDE_SOURCE), *target = qkv_model_tokenizer(m, QKV_SIDE_TARGET);
    bool is_shared = x->sources == x->targets && source == target;
    int64_t ids = 0;
    for (int64_t i = 0; i < x->sources; i++) ids += 1 + qkv__min(x->o.likeliest, x->begins[i + 1] - x->begins[i]);
    size_t bytes = sizeof(rated) * (size_t)x->targets;
    rated *all = qkv__alloc(bytes);
    qkv_shortlist *s = all ? qkv__shortlist_new(x->sources, x->targets, x->targets, ids) : NULL;
    if (s) s->n_always = 0, list_always(x, target, all, s), list_targets(x, is_shared, all, s);
    if (s) s->tokenizers = qkv__tokenizers_fingerprint(m);
    qkv__release(all, bytes);
    return s;
}

/* ---- the call ---- */

static qkv_status resolve_shortlist_options(learner *x, const qkv_model *m, const qkv_shortlist_opts *opts)
{
    qkv_shortlist_opts *o = &x->o;
    if (QKV__READ_OPTIONS(o, each_step_data, opts, "shortlist")) return QKV_USAGE;
    qkv_config t = { .size = sizeof t };
    qkv_model_config(m, &t);
    if (!m || !t.encoder_layers || !t.decoder_layers || !qkv_dataset_size(x->pairs))
        return qkv__fail(QKV_USAGE, "shortlist: a model with an encoder and a decoder, and pairs, are needed");
    if (o->likeliest < 0 || o->frequent < 0 || o->iterations < 0 || o->max_pairs < 0)
        return qkv__fail(QKV_USAGE, "shortlist: its options are at least 0");
    if (!o->likeliest) o->likeliest = LIKELIEST;
    if (!o->frequent) o->frequent = FREQUENT;
    if (!o->iterations) o->iterations = ITERATIONS;
    if (!o->max_pairs) o->max_pairs = MAX_PAIRS;
    x->every = qkv__ceil_div(qkv_dataset_size(x->pairs), qkv__min(o->max_pairs, INT32_MAX));
    x->n = qkv__ceil_div(qkv_dataset_size(x->pairs), x->every);
    x->sources = t.vocab_size;
    x->targets = t.target_vocab_size ? t.target_vocab_size : t.vocab_size;
    return check_sides(x);
}

qkv_shortlist *qkv_shortlist_learn(const qkv_model *m, const qkv_dataset *pairs, const qkv_shortlist_opts *opts)
{
    learner x = { .pairs = pairs };
    qkv_status status = resolve_shortlist_options(&x, m, opts);
    if (!status) status = find_uses(&x);
    if (!status) status = find_neighbours(&x);
    if (!status) status = find_places(&x);
    if (!status) status = learn_probabilities(&x);
    qkv_shortlist *s = status ? NULL : make_lists(&x, m);
    free_learner(&x);
    return s;
}
