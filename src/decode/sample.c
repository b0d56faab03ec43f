/* sample.c: from the logits of a model to the id that comes next. */
#include "sample.h"

#include "../base/memory.h"
#include "../base/pool.h"
#include "../base/random.h"
#include "../base/size.h"

#include <math.h>
#include <string.h>

/* ---- options ---- */

qkv_status qkv__sampling_resolve_options(qkv_generate_opts *o)
{
    if (o->top_p == 0) o->top_p = 1;
    if (o->repetition_penalty == 0) o->repetition_penalty = 1;
    if (!(o->temperature >= 0 && o->temperature < INFINITY))
        return qkv__fail(QKV_USAGE, "generate: a temperature of %g: it must be a finite number from 0", (double)o->temperature);
    if (!(o->top_p > 0 && o->top_p <= 1))
        return qkv__fail(QKV_USAGE, "generate: a top_p of %g: it must be above 0 and at most 1", (double)o->top_p);
    if (!(o->min_p >= 0 && o->min_p <= 1))
        return qkv__fail(QKV_USAGE, "generate: a min_p of %g: it must be from 0 to 1", (double)o->min_p);
    if (!(o->repetition_penalty > 0 && o->repetition_penalty < INFINITY))
        return qkv__fail(QKV_USAGE, "generate: a repetition_penalty of %g: it must be a finite number above 0",
                         (double)o->repetition_penalty);
    if (!isfinite(o->presence_penalty) || !isfinite(o->frequency_penalty))
        return qkv__fail(QKV_USAGE, "generate: a presence_penalty of %g and a frequency_penalty of %g: both must be finite",
                         (double)o->presence_penalty, (double)o->frequency_penalty);
    if (o->top_k < 0 || o->no_repeat_ngram < 0)
        return qkv__fail(QKV_USAGE, "generate: top_k %d and no_repeat_ngram %d: neither may be negative", o->top_k,
                         o->no_repeat_ngram);
    return QKV_OK;
}

/* ---- memory ---- */

qkv_status qkv__sampler_start(qkv__sampler *s, const qkv_generate_opts *o, int64_t vocabulary)
{
    size_t n = (size_t)vocabulary, bytes;
    *s = (qkv__sampler){ .o = o, .vocabulary = vocabulary };
    if (!qkv__size_mul(n, sizeof *s->candidates + sizeof *s->scores + sizeof *s->counts + 2 * sizeof *s->seen, &bytes))
        return qkv__fail(QKV_LIMIT, "generate: a vocabulary of %lld ids", (long long)vocabulary);
    if (!(s->memory = qkv__alloc_zero(bytes))) return QKV_MEMORY;
    s->bytes = bytes;
    s->candidates = s->memory;
    s->scores = (double *)(s->candidates + n);
    s->counts = (int32_t *)(s->scores + n);
    s->seen = (bool *)(s->counts + n);
    s->forbidden = s->seen + n;
    return QKV_OK;
}

void qkv__sampler_free(qkv__sampler *s)
{
    qkv__release(s->memory, s->bytes);
    *s = (qkv__sampler){ 0 };
}

/* ---- scores ---- */

static double penalised(const qkv__sampler *s, double z)
{
    double penalty = (double)s->o->repetition_penalty;
    return z > 0 ? z / penalty : z * penalty;
}

static void penalise_new(qkv__sampler *s, qkv__history h)
{
    double presence = (double)s->o->presence_penalty, frequency = (double)s->o->frequency_penalty;
    for (; s->n_counted < h.n_new; s->n_counted++) s->counts[h.ids[h.n - h.n_new + s->n_counted]]++;
    if (presence == 0 && frequency == 0) return;
    for (int64_t i = 0; i < s->vocabulary; i++)
        if (s->counts[i]) s->scores[i] -= presence + s->counts[i] * frequency;
}

static void score(qkv__sampler *s, const float *logits, qkv__history h)
{
    for (; s->n_seen < h.n; s->n_seen++) s->seen[h.ids[s->n_seen]] = true;
    for (int64_t i = 0; i < s->vocabulary; i++) {
        double z = (double)logits[i];
        s->scores[i] = s->forbidden[i] ? -INFINITY : s->seen[i] ? penalised(s, z) : z;
    }
}

/* An id may not follow a run where it has followed the same run before. */
static void forbid_repeats(qkv__sampler *s, qkv__history h)
{
    int64_t before = s->o->no_repeat_ngram - 1;
    if (before < 0) return;
    for (int64_t i = 0; i + before < h.n; i++)
        if (!memcmp(h.ids + i, h.ids + h.n - before, sizeof *h.ids * (size_t)before)) s->scores[h.ids[i + before]] = -INFINITY;
}

/* -1 when all scores are -inf. */
static int32_t find_largest(const qkv__sampler *s)
{
    int32_t largest = -1;
    for (int32_t i = 0; i < s->vocabulary; i++)
        if (s->scores[i] > (largest < 0 ? -INFINITY : s->scores[largest])) largest = i;
    return largest;
}

/* ---- candidates ---- */

static bool is_likelier(qkv__sample_candidate a, qkv__sample_candidate b)
{
    return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
}

static void weigh(qkv__sampler *s, double largest)
{
    s->n = 0;
    for (int32_t i = 0; i < s->vocabulary; i++) {
        double weight = exp((s->scores[i] - largest) / (double)s->o->temperature);
        if (weight > 0) s->candidates[s->n++] = (qkv__sample_candidate){ weight, i };
    }
}

static double total(const qkv__sampler *s)
{
    double sum = 0;
    for (int64_t i = 0; i < s->n; i++) sum += s->candidates[i].weight;
    return sum;
}

/* Lets the candidate at place `at` of a heap of n sink to where it belongs. */
static void sink(qkv__sample_candidate *heap, int64_t n, int64_t at)
{
    qkv__sample_candidate c = heap[at];
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_likelier(heap[child + 1], heap[child])) child++;
        if (!is_likelier(heap[child], c)) break;
        heap[at] = heap[child];
    }
    heap[at] = c;
}

/* Keeps the likeliest until there are `most` or they weigh `enough`. Sorts no more than what it keeps: a heap gives them one by
 * one, from the front of the array to its end. */
static void keep_likeliest(qkv__sampler *s, int64_t most, double enough)
{
    qkv__sample_candidate *heap = s->candidates;
    int64_t left = s->n;
    double weight = 0;
    for (int64_t at = left / 2; at-- > 0;) sink(heap, left, at);
    while (left && s->n - left < most && weight < enough) {
        qkv__sample_candidate first = heap[0];
        heap[0] = heap[--left];
        sink(heap, left, 0);
        heap[left] = first;
        weight += first.weight;
    }
    s->n -= left;
    memmove(heap, heap + left, sizeof *heap * (size_t)s->n);
}

/* The likeliest weighs 1. */
static void keep_above(qkv__sampler *s, double least)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < s->n; i++)
        if (s->candidates[i].weight >= least) s->candidates[kept++] = s->candidates[i];
    s->n = kept;
}

/* ---- the draw ---- */

/* Uniform in (0, 1), with all the bits a double has: an id of probability 1e-9 must come once in 1e9 draws. */
static double uniform(const qkv_generate_opts *o, uint64_t step)
{
    uint32_t word[2];
    qkv__threefry(qkv__key_for(o->seed, (uint64_t)o->sample, step), 0, 0, word);
    return ((word[0] >> 6) * 67108864.0 + (word[1] >> 6) + 0.5) * (1.0 / 4503599627370496.0);
}

static int32_t draw_token(const qkv__sampler *s, uint64_t step)
{
    double target = uniform(s->o, step) * total(s), sum = 0;
    int64_t i = 0;
    while (i + 1 < s->n && (sum += s->candidates[i].weight) <= target) i++;
    return s->candidates[i].id;
}

static int32_t keep_candidates(qkv__sampler *s)
{
    const qkv_generate_opts *o = s->o;
    int32_t largest = find_largest(s);
    s->n = largest >= 0;
    s->candidates[0] = (qkv__sample_candidate){ 1, largest };
    if (largest < 0 || o->temperature == 0) return largest;
    weigh(s, s->scores[largest]);
    if (o->top_k && o->top_k < s->n) keep_likeliest(s, o->top_k, INFINITY);
    if (o->top_p < 1) keep_likeliest(s, s->n, (double)o->top_p * total(s));
    if (o->min_p > 0) keep_above(s, (double)o->min_p);
    return largest;
}

static int32_t choose_token(qkv__sampler *s, uint64_t step)
{
    int32_t largest = keep_candidates(s);
    return largest < 0 || s->o->temperature == 0 ? largest : draw_token(s, step);
}

/* ---- the log-probability ---- */

static qkv_status refuse_logits(void) { return qkv__fail(QKV_NUMERIC, "generate: the model's logits are not finite numbers"); }

static double largest_of(const float *logits, int64_t n)
{
    float largest = -INFINITY;
    for (int64_t i = 0; i < n; i++) largest = logits[i] > largest ? logits[i] : largest;
    return (double)largest;
}

typedef struct exponentials {
    const float *logits;
    int64_t n;
    double largest, *to;
} exponentials;

enum { EXPONENTIALS = 2048 }; /* of a task */

static void exponentiate(void *work, int64_t task, void *scratch)
{
    (void)scratch;
    const exponentials *w = work;
    int64_t from = task * EXPONENTIALS, to = qkv__min(w->n, from + EXPONENTIALS);
    for (int64_t i = from; i < to; i++) w->to[i] = exp((double)w->logits[i] - w->largest);
}

/* log sum exp(z), added up in the order of the ids; room: for n numbers, so that threads share the work, or NULL. NUMERIC unless
 * it is finite. */
static qkv_status sum_up(const float *logits, int64_t n, double *room, double *log_sum)
{
    exponentials w = { logits, n, largest_of(logits, n), room };
    double sum = 0;
    if (room && qkv__parallel(qkv__ceil_div(n, EXPONENTIALS), 0, exponentiate, &w)) return QKV_MEMORY;
    for (int64_t i = 0; i < n; i++) sum += room ? room[i] : exp((double)logits[i] - w.largest);
    *log_sum = w.largest + log(sum);
    return isfinite(*log_sum) ? QKV_OK : refuse_logits();
}

/* What sum_up() refuses, for those who do not ask for the sum. No branch inside the loop, so that a compiler takes several at
 * once. */
static qkv_status check_logits(const float *logits, int64_t n)
{
    int bad = 0;
    for (int64_t i = 0; i < n; i++) bad |= !(logits[i] < INFINITY);
    return bad || largest_of(logits, n) == -INFINITY ? refuse_logits() : QKV_OK;
}

/* ---- greedy, and nothing to change in the logits ---- */

static bool takes_largest(const qkv_generate_opts *o)
{
    return o->temperature == 0 && o->repetition_penalty == 1 && o->presence_penalty == 0 && o->frequency_penalty == 0 &&
           !o->no_repeat_ngram;
}

static bool any_above(const float *logits, int64_t n, float top)
{
    int found = 0;
    for (int64_t i = 0; i < n; i++) found |= logits[i] > top;
    return found != 0;
}

/* What choose_token() gives then. */
static int32_t largest_logit(const qkv__sampler *s, const float *logits)
{
    enum { GLANCE = 128 };
    float top = -INFINITY;
    int32_t id = -1;
    for (int64_t from = 0; from < s->vocabulary; from += GLANCE) {
        int64_t end = qkv__min(from + GLANCE, s->vocabulary);
        if (!any_above(logits + from, end - from, top)) continue;
        for (int64_t i = from; i < end; i++)
            if (logits[i] > top && !s->forbidden[i]) top = logits[i], id = (int32_t)i;
    }
    return id;
}

/* ---- all of it ---- */

static void score_all(qkv__sampler *s, const float *logits, qkv__history h)
{
    score(s, logits, h);
    penalise_new(s, h);
    forbid_repeats(s, h);
}

qkv_status qkv__sample_candidates(qkv__sampler *s, const float *logits, qkv__history h)
{
    qkv_status status = check_logits(logits, s->vocabulary);
    if (status) return status;
    score_all(s, logits, h);
    keep_candidates(s);
    return QKV_OK;
}

qkv_status qkv__sample(qkv__sampler *s, const float *logits, qkv__history h, uint64_t step, int32_t *id, double *log_p)
{
    double log_sum = NAN;
    bool scored = !s->o->no_log_p;
    qkv_status status = scored ? sum_up(logits, s->vocabulary, s->scores, &log_sum) : check_logits(logits, s->vocabulary);
    if (status) return status;
    if (takes_largest(s->o)) *id = largest_logit(s, logits);
    else {
        score_all(s, logits, h);
        *id = choose_token(s, step);
    }
    *log_p = !scored ? NAN : *id < 0 ? -INFINITY : (double)logits[*id] - log_sum;
    return QKV_OK;
}

static void offer_likely(qkv_likely *top, int n, qkv_likely x)
{
    int at = n;
    while (at > 0 && (top[at - 1].id < 0 || x.log_p > top[at - 1].log_p)) at--;
    for (int i = n - 1; i > at; i--) top[i] = top[i - 1];
    if (at < n) top[at] = x;
}

qkv_status qkv__score_logits(const float *logits, int64_t vocabulary, int32_t id, double *log_p, qkv_likely *top, int n)
{
    double log_sum;
    qkv_status status = sum_up(logits, vocabulary, NULL, &log_sum);
    if (status) return status;
    *log_p = (double)logits[id] - log_sum;
    for (int i = 0; i < n; i++) top[i] = (qkv_likely){ -1, -INFINITY };
    for (int32_t i = 0; n && i < vocabulary; i++) offer_likely(top, n, (qkv_likely){ i, (double)logits[i] - log_sum });
    return QKV_OK;
}
