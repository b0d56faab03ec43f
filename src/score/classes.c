/* classes.c: accuracy, precision, recall and F1 of a confusion matrix. */
#include <qkv/score.h>

#include "../base/status.h"

static double ratio(int64_t a, int64_t b) { return b ? (double)a / (double)b : 0; }

/* Row and column of one class are sums of some of the counts, so they fit where all of them do. */
static qkv_class_score score_class(const int64_t *counts, int64_t classes, int64_t k)
{
    int64_t said = 0, is = 0, right = counts[k * classes + k];
    for (int64_t i = 0; i < classes; i++) said += counts[i * classes + k], is += counts[k * classes + i];
    return (qkv_class_score){ .precision = ratio(right, said),
                              .recall = ratio(right, is),
                              .f1 = said || is ? 2 * (double)right / ((double)said + (double)is) : 0,
                              .texts = is };
}

static qkv_status count_texts(const int64_t *counts, int64_t cells, int64_t *texts)
{
    *texts = 0;
    for (int64_t i = 0; i < cells; i++) {
        if (counts[i] < 0) return qkv__fail(QKV_USAGE, "classes: count %lld is negative", (long long)i);
        if (__builtin_add_overflow(*texts, counts[i], texts)) return qkv__fail(QKV_LIMIT, "classes: too many texts to count");
    }
    return QKV_OK;
}

qkv_status qkv_score_classes(const int64_t *counts, int64_t classes, qkv_class_score *each, qkv_class_scores *out)
{
    int64_t cells;
    qkv_class_scores all = { 0 };
    if (!counts || !out) return qkv__fail(QKV_USAGE, "classes: counts and a place for the result are needed");
    if (classes < 1 || __builtin_mul_overflow(classes, classes, &cells))
        return qkv__fail(QKV_USAGE, "classes: %lld classes", (long long)classes);
    qkv_status status = count_texts(counts, cells, &all.texts);
    if (status) return status;
    for (int64_t k = 0; k < classes; k++) {
        qkv_class_score one = score_class(counts, classes, k);
        if (each) each[k] = one;
        all.right += counts[k * classes + k];
        all.macro_f1 += one.f1 / (double)classes;
    }
    all.accuracy = ratio(all.right, all.texts);
    *out = all;
    return QKV_OK;
}
