/* regression.c: how far numbers are off, and how they go together. */
#include <qkv/score.h>

#include "../base/memory.h"
#include "../base/result.h"

#include <math.h>
#include <stdlib.h>

static const qkv__result_kind regression_score_kind = { sizeof(qkv_regression_score), NULL };

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

qkv_status qkv_score_regression(const double *predicted, const double *actual, int64_t n, qkv_regression_score **out)
{
    if (!out) return qkv__fail(QKV_USAGE, "score: a place for the result is needed");
    qkv_regression_score *s = qkv__result_begin(*out, &regression_score_kind);
    if (!s) return qkv_error_status();
    *out = s;
    if (!predicted || !actual || n < 1) return qkv__fail(QKV_USAGE, "score: two lists of numbers are needed");
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < n && !status; i++) {
        double off = predicted[i] - actual[i];
        if (!isfinite(off)) status = qkv__fail(QKV_NUMERIC, "score: number %lld is not finite", (long long)i);
        s->rmse += off * off / (double)n;
        s->mae += fabs(off) / (double)n;
    }
    s->n = n;
    s->rmse = sqrt(s->rmse);
    s->pearson = correlation(predicted, actual, n);
    if (!status) status = spearman(predicted, actual, n, &s->spearman);
    if (status) qkv__result_clear(s);
    return status;
}
