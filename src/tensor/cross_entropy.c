/* cross_entropy.c: softmax and the cross-entropy against classes in one.
 *   loss_i = -(1-s) log p[target] - s/K sum_k log p[k] = L - (1-s) d[target] - s/K sum_k d[k]
 * where d = x - max x and L = log sum exp(d): the probabilities are never stored. */
#include "parallel_for.h"

#include "../base/options.h"

#include <math.h>

typedef struct row {
    int32_t target;
    float weight; /* w_i / sum w; a row with 0 is not looked at */
    float max, log_sum;
    double loss;
} row;

typedef struct work {
    row *rows;
    const float *x;
    float *dx;
    bool add;
    int64_t k;
    float smoothing, dy;
} work;

/* What backward needs besides the rows, which follow. */
typedef struct saved_rows {
    float smoothing;
    row rows[];
} saved_rows;

static void cross_entropy_forward_rows(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    for (int64_t i = from; i < to; i++) {
        row *r = &w->rows[i];
        r->loss = 0;
        if (r->weight == 0) continue;
        const float *x = w->x + i * w->k;
        float out[3];
        kern->log_sum(out, x, w->k);
        r->max = out[0];
        r->log_sum = out[1];
        r->loss = (double)r->log_sum - (1.0 - w->smoothing) * ((double)x[r->target] - r->max);
        if (w->smoothing > 0) r->loss -= (double)w->smoothing / (double)w->k * out[2];
    }
}

/* d loss_i / dx = p - (1-s) [k = target] - s/K */
static void cross_entropy_backward_rows(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    for (int64_t i = from; i < to; i++) {
        const row *r = &w->rows[i];
        float *dx = w->dx + i * w->k, by = w->dy * r->weight;
        if (r->weight == 0) {
            qkv__piece(dx, w->add, w->k);
            continue;
        }
        kern->cross_entropy_grad(dx, w->x + i * w->k, r->max, r->log_sum, w->smoothing / (float)w->k, by, w->add, w->k);
        dx[r->target] -= by * (1.0f - w->smoothing);
    }
}

static void cross_entropy_backward(qkv_tensor *y)
{
    saved_rows *s = y->saved;
    qkv_tensor *x = y->in[0];
    work w = { .rows = s->rows, .x = qkv_tensor_data(x), .k = qkv__last(x), .smoothing = s->smoothing, .dy = y->grad[0] };
    if ((w.dx = qkv__grad_inplace(x, &w.add)))
        qkv__parallel_for(y->tape, qkv__rows(x), qkv__grain(w.k), cross_entropy_backward_rows, &w);
}

/* Targets and weights, checked; false with the error on the tape. */
static bool read_rows(qkv_tape *t, row *rows, int64_t n, int64_t k, const int32_t *targets, const qkv_cross_entropy_opts *o)
{
    double total = 0;
    for (int64_t i = 0; i < n; i++) {
        bool ignored = targets[i] == QKV_IGNORE;
        if (!ignored && (targets[i] < 0 || targets[i] >= k))
            return qkv__error(t, QKV_USAGE, "cross_entropy: target %ld of row %lld is outside 0..%lld", (long)targets[i],
                              (long long)i, (long long)k - 1);
        float weight = o->weights ? o->weights[i] : 1.0f;
        if (!(weight >= 0 && weight < INFINITY))
            return qkv__error(t, QKV_USAGE, "cross_entropy: the weight of row %lld is %g, it must be finite and not negative",
                              (long long)i, (double)weight);
        rows[i] = (row){ .target = targets[i], .weight = ignored ? 0 : weight };
        total += (double)rows[i].weight;
    }
    for (int64_t i = 0; i < n && total > 0; i++) rows[i].weight = (float)((double)rows[i].weight / total);
    return true;
}

qkv_tensor *qkv_cross_entropy(qkv_tensor *logits, const int32_t *targets, const qkv_cross_entropy_opts *given)
{
    qkv_cross_entropy_opts own, *opts = &own;
    qkv_tape *t = qkv__operands("cross_entropy", 1, &logits);
    if (!t) return NULL;
    if (QKV__READ_OPTIONS(opts, weights, given, "cross_entropy")) return qkv__error_below(t);
    if (!logits->ndim) return qkv__error(t, QKV_USAGE, "cross_entropy: the logits have no dimension of classes");
    if (!targets && qkv__rows(logits)) return qkv__error(t, QKV_USAGE, "cross_entropy: there are no targets");
    if (!(opts->label_smoothing >= 0 && opts->label_smoothing < 1))
        return qkv__error(t, QKV_USAGE, "cross_entropy: the smoothing is %g, it must be in 0 <= s < 1",
                          (double)opts->label_smoothing);
    int64_t n = qkv__rows(logits), k = qkv__last(logits);
    saved_rows *s = qkv__save(t, sizeof *s + sizeof(row) * (size_t)n);
    if (!s || !read_rows(t, s->rows, n, k, targets, opts)) return NULL;
    s->smoothing = opts->label_smoothing;
    qkv_tensor *y = qkv__result(t, 0, NULL, cross_entropy_backward, 1, &logits);
    work w = { .rows = s->rows, .x = qkv_tensor_data(logits), .k = k, .smoothing = s->smoothing };
    if (!y || !qkv__parallel_for(t, n, qkv__grain(k), cross_entropy_forward_rows, &w)) return NULL;
    y->saved = s;
    double loss = 0;
    for (int64_t i = 0; i < n; i++) loss += (double)s->rows[i].weight * s->rows[i].loss;
    y->data[0] = (float)loss;
    return y;
}
