/* labels.c: F1 of texts that have several labels; how far numbers are off, and how they go together. */
#include <qkv/score.h>

#include "../base/memory.h"

#include <math.h>
#include <stdlib.h>

/* ---- labels ---- */

static double f1_of(double right, double said, double is) { return said + is > 0 ? 2 * right / (said + is) : 0; }

static qkv_class_score score_label(int64_t said, int64_t is, int64_t right)
{
    return (qkv_class_score){ .precision = said ? (double)right / (double)said : 0,
                              .recall = is ? (double)right / (double)is : 0,
                              .f1 = f1_of((double)right, (double)said, (double)is),
                              .texts = is };
}

/* Adds the counts of all labels up. */
static qkv_status add_counts(const int64_t *counts, int64_t n, int64_t *sum)
{
    *sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (counts[i] < 0) return qkv__fail(QKV_USAGE, "labels: count %lld is negative", (long long)i);
        if (__builtin_add_overflow(*sum, counts[i], sum)) return qkv__fail(QKV_LIMIT, "labels: too many texts to count");
    }
    return QKV_OK;
}

qkv_status qkv_score_multilabel(const int64_t *said, const int64_t *is, const int64_t *right, int64_t labels,
                                qkv_class_score *each, qkv_labels_score *out)
{
    int64_t all_said, all_is, all_right;
    if (!said || !is || !right || !out || labels < 1)
        return qkv__fail(QKV_USAGE, "labels: counts of at least one label and a place for the result are needed");
    qkv_status status = add_counts(said, labels, &all_said);
    if (!status) status = add_counts(is, labels, &all_is);
    if (!status) status = add_counts(right, labels, &all_right);
    if (status) return status;
    *out = (qkv_labels_score){ .micro_f1 = f1_of((double)all_right, (double)all_said, (double)all_is) };
    for (int64_t k = 0; k < labels; k++) {
        qkv_class_score one = score_label(said[k], is[k], right[k]);
        if (each) each[k] = one;
        out->macro_f1 += one.f1 / (double)labels;
    }
    return QKV_OK;
}

/* ---- numbers ---- */

typedef struct ranked {
    double value;
    int64_t place;
} ranked;

static int by_value(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static void rank_numbers(const double *x, int64_t n, ranked *sorted, double *ranks)
{
    for (int64_t i = 0; i < n; i++) sorted[i] = (ranked){ x[i], i };
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && sorted[end].value == sorted[i].value;) end++;
        for (int64_t k = i; k < end; k++) ranks[sorted[k].place] = (double)(i + end - 1) / 2;
    }
}

static double mean_of(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    return sum / (double)n;
}

static double correlation(const double *a, const double *b, int64_t n)
{
    double mean_a = mean_of(a, n), mean_b = mean_of(b, n), ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = a[i] - mean_a, y = b[i] - mean_b;
        ab += x * y, aa += x * x, bb += y * y;
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa) / sqrt(bb) : (double)NAN;
}

static qkv_status spearman(const double *a, const double *b, int64_t n, double *out)
{
    size_t bytes = (size_t)n * (sizeof(ranked) + 2 * sizeof(double));
    ranked *sorted = qkv__alloc(bytes);
    if (!sorted) return QKV_MEMORY;
    double *ranks = (double *)(sorted + n);
    rank_numbers(a, n, sorted, ranks);
    rank_numbers(b, n, sorted, ranks + n);
    *out = correlation(ranks, ranks + n, n);
    qkv__release(sorted, bytes);
    return QKV_OK;
}

qkv_status qkv_score_regression(const double *said, const double *is, int64_t n, qkv_regression_score *out)
{
    qkv_regression_score s = { .texts = n };
    if (!said || !is || !out || n < 1) return qkv__fail(QKV_USAGE, "numbers: two lists and a place for the result are needed");
    for (int64_t i = 0; i < n; i++) {
        double off = said[i] - is[i];
        if (!isfinite(off)) return qkv__fail(QKV_NUMERIC, "numbers: number %lld is not finite", (long long)i);
        s.rmse += off * off / (double)n;
        s.mae += fabs(off) / (double)n;
    }
    s.rmse = sqrt(s.rmse);
    s.pearson = correlation(said, is, n);
    qkv_status status = spearman(said, is, n, &s.spearman);
    if (!status) *out = s;
    return status;
}
