/* ngrams.c: counts of tokens and of pairs of tokens beside attention. */
#include "ngrams.h"

#include "../base/memory.h"
#include "../tensor/tape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ORDERS = 2, MOST_SLOTS = 1 << 24 };
static const double strength[ORDERS] = { 1.4, 0.7 };

/* ---- making ---- */

/* Vectors, so that nothing quantizes or decays them. */
void qkv__ngrams_make(qkv_params *p, qkv__transformer *m)
{
    const qkv_config *o = &m->o;
    int64_t counts = (o->vocab_size + o->ngrams) * o->classes, totals = ORDERS * (o->classes + 1) + 1, orders = ORDERS;
    m->ngram_counts = qkv_params_add(p, "ngrams.counts", 1, &counts, QKV_INIT_ZERO, 0);
    m->ngram_totals = qkv_params_add(p, "ngrams.totals", 1, &totals, QKV_INIT_ZERO, 0);
    m->ngram_weights = qkv_params_add(p, "ngrams.weight", 1, &orders, QKV_INIT_ONE, 0);
}

const char *qkv__ngrams_check(const qkv_config *o)
{
    int64_t counts;
    if (!o->ngrams) return NULL;
    if (o->ngrams < 0 || o->ngrams > MOST_SLOTS) return "ngrams must be 0 to 16777216";
    if (o->classes < 2 || o->classes_of || !o->encoder_layers || o->decoder_layers)
        return "ngrams are of an encoder that has 2 classes of texts or more";
    if (o->vocab_size > INT32_MAX - o->ngrams) return "ngrams and tokens are too many";
    return __builtin_mul_overflow(o->vocab_size + o->ngrams, o->classes, &counts) ? "ngrams times classes are too many" : NULL;
}

/* ---- the slots of a text ---- */

/* splitmix64's mixing: every bit of both ids decides about every bit. */
static int32_t slot_of_pair(const qkv_config *o, int32_t a, int32_t b)
{
    uint64_t x = (uint64_t)(uint32_t)a << 32 | (uint32_t)b;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (int32_t)(o->vocab_size + (int64_t)((x ^ x >> 31) % (uint64_t)o->ngrams));
}

static int by_slot(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Writes the slots of n tokens and their pairs, each once and rising, to `to`, which has room for 2 n. Gives how many. */
static int64_t find_slots(const qkv_config *o, const int32_t *ids, int64_t n, int32_t *to)
{
    int64_t all = 0, distinct = 0;
    for (int64_t i = 0; i < n; i++) to[all++] = ids[i];
    for (int64_t i = 1; i < n; i++) to[all++] = slot_of_pair(o, ids[i - 1], ids[i]);
    qsort(to, (size_t)all, sizeof *to, by_slot);
    for (int64_t i = 0; i < all; i++)
        if (!i || to[i] != to[i - 1]) to[distinct++] = to[i];
    return distinct;
}

/* ---- counting ---- */

void qkv__ngrams_clear(const qkv__transformer *m)
{
    if (m->o.ngrams) memset(qkv__tensor_data(m->ngram_counts), 0, sizeof(float) * (size_t)qkv_tensor_count(m->ngram_counts));
}

qkv_status qkv__ngrams_count(const qkv__transformer *m, const int32_t *ids, int64_t n, int32_t class_id)
{
    size_t bytes = sizeof(int32_t) * 2 * (size_t)n;
    int32_t *slots = m->o.ngrams && n ? qkv__alloc(bytes) : NULL;
    if (!m->o.ngrams || !n) return QKV_OK;
    if (!slots) return QKV_MEMORY;
    int64_t found = find_slots(&m->o, ids, n, slots);
    float *counts = qkv__tensor_data(m->ngram_counts);
    for (int64_t i = 0; i < found; i++) counts[slots[i] * m->o.classes + class_id]++;
    qkv__release(slots, bytes);
    return QKV_OK;
}

void qkv__ngrams_finish(const qkv__transformer *m, double overlap)
{
    const qkv_config *o = &m->o;
    if (!o->ngrams) return;
    const float *counts = qkv_tensor_data(m->ngram_counts);
    float *totals = qkv__tensor_data(m->ngram_totals);
    totals[ORDERS * (o->classes + 1)] = (float)overlap;
    for (int order = 0; order < ORDERS; order++) {
        int64_t from = order ? o->vocab_size : 0, to = order ? o->vocab_size + o->ngrams : o->vocab_size, used = 0;
        for (int64_t k = 0; k < o->classes; k++) {
            double sum = 0;
            for (int64_t s = from; s < to; s++) sum += (double)counts[s * o->classes + k];
            totals[order * o->classes + k] = (float)sum;
        }
        for (int64_t s = from; s < to; s++) {
            float any = 0;
            for (int64_t k = 0; k < o->classes; k++) any += counts[s * o->classes + k];
            used += any > 0;
        }
        totals[ORDERS * o->classes + order] = (float)used;
    }
}

float qkv__ngrams_overlap(const qkv__transformer *m)
{
    return m->o.ngrams ? qkv_tensor_data(m->ngram_totals)[ORDERS * (m->o.classes + 1)] : 0;
}

/* ---- what they say ---- */

/* How many texts of class k have it, but one of class `own`. */
static double left_out(const float *of, int64_t k, int32_t own) { return (double)of[k] - (k == own && of[k] >= 1 ? 1 : 0); }

/* The sums of one row, (classes, ORDERS). own: the class of a text that is left out of the counts; -1: it is not in them. */
static void judge_row(const qkv__transformer *m, const int32_t *slots, int64_t n_slots, int64_t n, int32_t own, double *sums,
                      float *to)
{
    const qkv_config *o = &m->o;
    const float *counts = qkv_tensor_data(m->ngram_counts), *totals = qkv_tensor_data(m->ngram_totals);
    int64_t seen[ORDERS] = { 0 };
    memset(sums, 0, sizeof *sums * ORDERS * (size_t)o->classes);
    for (int64_t i = 0; i < n_slots; i++) {
        const float *of = counts + slots[i] * o->classes;
        int order = slots[i] >= o->vocab_size;
        double any = 0;
        for (int64_t k = 0; k < o->classes; k++) any += left_out(of, k, own);
        if (!(any > 0)) continue;
        seen[order]++;
        for (int64_t k = 0; k < o->classes; k++) sums[order * o->classes + k] += log(1 + left_out(of, k, own));
    }
    for (int order = 0; order < ORDERS; order++) {
        double mean = 0, scale = strength[order] / sqrt((double)n), *sum = sums + order * o->classes;
        for (int64_t k = 0; k < o->classes; k++) {
            double all = (double)totals[order * o->classes + k] + (double)totals[ORDERS * o->classes + order];
            if (seen[order]) sum[k] -= (double)seen[order] * log(all);
            mean += sum[k] / (double)o->classes;
        }
        for (int64_t k = 0; k < o->classes; k++) to[k * ORDERS + order] = (float)(scale * (sum[k] - mean));
    }
}

qkv_status qkv__ngrams_judge(const qkv__transformer *m, const int32_t *ids, int64_t n, int32_t own, float *to)
{
    size_t slots_bytes = sizeof(int32_t) * 2 * (size_t)n, sums_bytes = sizeof(double) * ORDERS * (size_t)m->o.classes;
    int32_t *slots = qkv__alloc(slots_bytes);
    double *sums = qkv__alloc(sums_bytes);
    if (slots && sums) judge_row(m, slots, find_slots(&m->o, ids, n, slots), n, own, sums, to);
    qkv_status status = slots && sums ? QKV_OK : QKV_MEMORY;
    qkv__release(slots, slots_bytes);
    qkv__release(sums, sums_bytes);
    return status;
}

/* Newton's method: the weights w that minimize sum_i (log sum_k exp(w s_ik) - w s_iy) + PRIOR |w - 1|^2 / 2. The prior keeps them near 1
 * where texts are few. */
void qkv__ngrams_fit(const qkv__transformer *m, const float *said, const int32_t *classes, int64_t n)
{
    enum { MOST_STEPS = 40, PRIOR = 20 };
    const double least = 0.25, most = 4, longest = 0.5;
    double w[ORDERS] = { 1, 1 };
    for (int step = 0; step < MOST_STEPS; step++) {
        double g[ORDERS] = { PRIOR * (w[0] - 1), PRIOR * (w[1] - 1) }; /* gradient */
        double h[3] = { PRIOR, 0, PRIOR };                             /* Hessian: 00, 01, 11 */
        for (int64_t i = 0; i < n; i++) {
            const float *s = said + i * m->o.classes * ORDERS, *own = s + classes[i] * ORDERS;
            double top = -HUGE_VAL, sum = 0, a = 0, b = 0, aa = 0, ab = 0, bb = 0; /* moments of s under the softmax */
            for (int64_t k = 0; k < m->o.classes; k++) top = fmax(top, w[0] * (double)s[2 * k] + w[1] * (double)s[2 * k + 1]);
            for (int64_t k = 0; k < m->o.classes; k++) {
                double x = (double)s[2 * k], y = (double)s[2 * k + 1], e = exp(w[0] * x + w[1] * y - top);
                sum += e, a += e * x, b += e * y, aa += e * x * x, ab += e * x * y, bb += e * y * y;
            }
            a /= sum, b /= sum;
            g[0] += a - (double)own[0];
            g[1] += b - (double)own[1];
            h[0] += aa / sum - a * a;
            h[1] += ab / sum - a * b;
            h[2] += bb / sum - b * b;
        }
        double det = h[0] * h[2] - h[1] * h[1],
               by[ORDERS] = { (h[2] * g[0] - h[1] * g[1]) / det, (h[0] * g[1] - h[1] * g[0]) / det };
        for (int o = 0; o < ORDERS; o++) w[o] = fmin(fmax(w[o] - fmin(fmax(by[o], -longest), longest), least), most);
    }
    for (int o = 0; o < ORDERS; o++) qkv__tensor_data(m->ngram_weights)[o] = (float)w[o];
}

qkv_tensor *qkv__ngrams_add(const qkv__transformer *m, qkv_tensor *logits, const qkv_tokens *x, const int32_t *classes)
{
    if (!logits || !m->o.ngrams) return logits;
    qkv_tape *t = logits->tape;
    int64_t of_row = m->o.classes * ORDERS;
    int32_t *slots = qkv__save(t, sizeof *slots * 2 * (size_t)x->length);
    double *sums = qkv__save(t, sizeof *sums * (size_t)of_row);
    qkv_tensor *said = qkv_constant(t, 3, (int64_t[]){ x->rows, m->o.classes, ORDERS }, NULL);
    if (!slots || !sums || !said) return NULL;
    for (int64_t i = 0; i < x->rows; i++) {
        const int32_t *ids = x->ids + i * x->length;
        int64_t n = x->lengths ? x->lengths[i] : x->length, n_slots = find_slots(&m->o, ids, n, slots);
        bool is_counted = classes && qkv__is_training(t);
        if (n) judge_row(m, slots, n_slots, n, is_counted ? classes[i] : -1, sums, qkv__tensor_data(said) + i * of_row);
    }
    return qkv_add(logits, qkv_sum(qkv_mul(said, m->ngram_weights), 2));
}
