/* classes.c: precision, recall and F1 of classes, from a confusion matrix or from counts of each label. */
#include <qkv/score.h>

#include "../base/memory.h"
#include "../base/result.h"
#include "../base/size.h"

static const qkv__result_kind class_scores_kind = { sizeof(qkv_class_scores), NULL };

static double ratio(int64_t a, int64_t b) { return b ? (double)a / (double)b : 0; }

static double f1_of(int64_t correct, int64_t predicted, int64_t actual)
{
    return predicted || actual ? 2 * (double)correct / ((double)predicted + (double)actual) : 0;
}

/* The sum of n counts. */
static qkv_status add_counts(const int64_t *counts, int64_t n, int64_t *sum)
{
    *sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (counts[i] < 0) return qkv__fail(QKV_USAGE, "score: count %lld is negative", (long long)i);
        if (__builtin_add_overflow(*sum, counts[i], sum)) return qkv__fail(QKV_LIMIT, "score: too many texts to count");
    }
    return QKV_OK;
}

/* Room for the scores of n classes. NULL with the error set. */
static qkv_class_score *begin_classes(qkv_class_scores *s, int64_t n)
{
    size_t bytes;
    if (!qkv__size_mul((size_t)n, sizeof(qkv_class_score), &bytes)) {
        qkv__fail(QKV_LIMIT, "score: too many classes");
        return NULL;
    }
    qkv_class_score *each = qkv__result_alloc(s, bytes);
    if (!each) return NULL;
    s->classes = each;
    s->n_classes = n;
    return each;
}

qkv_status qkv_score_classes(const int64_t *confusion, int64_t classes, qkv_class_scores **out)
{
    int64_t cells, n;
    if (!out) return qkv__fail(QKV_USAGE, "score: a place for the result is needed");
    qkv_class_scores *s = qkv__result_begin(*out, &class_scores_kind);
    if (!s) return qkv_error_status();
    *out = s;
    if (!confusion || classes < 1 || __builtin_mul_overflow(classes, classes, &cells))
        return qkv__fail(QKV_USAGE, "score: counts of at least one class are needed");
    qkv_status status = add_counts(confusion, cells, &n);
    if (status) return status;
    qkv_class_score *each = begin_classes(s, classes);
    if (!each) return qkv_error_status();
    s->n = n;
    for (int64_t k = 0; k < classes; k++) { /* row and column are sums of some of the counts, so they fit */
        int64_t predicted = 0, actual = 0, correct = confusion[k * classes + k];
        for (int64_t i = 0; i < classes; i++) predicted += confusion[i * classes + k], actual += confusion[k * classes + i];
        each[k] = (qkv_class_score){ ratio(correct, predicted), ratio(correct, actual), f1_of(correct, predicted, actual),
                                     actual };
        s->correct += correct;
        s->macro_f1 += each[k].f1 / (double)classes;
    }
    s->accuracy = s->micro_f1 = ratio(s->correct, n); /* each text has one class and is said to be of one */
    return QKV_OK;
}

qkv_status qkv_score_multilabel(const int64_t *predicted, const int64_t *actual, const int64_t *correct, int64_t labels,
                                qkv_class_scores **out)
{
    int64_t all_predicted, all_actual, all_correct;
    if (!out) return qkv__fail(QKV_USAGE, "score: a place for the result is needed");
    qkv_class_scores *s = qkv__result_begin(*out, &class_scores_kind);
    if (!s) return qkv_error_status();
    *out = s;
    if (!predicted || !actual || !correct || labels < 1)
        return qkv__fail(QKV_USAGE, "score: counts of at least one label are needed");
    qkv_status status = add_counts(predicted, labels, &all_predicted);
    if (!status) status = add_counts(actual, labels, &all_actual);
    if (!status) status = add_counts(correct, labels, &all_correct);
    if (status) return status;
    qkv_class_score *each = begin_classes(s, labels);
    if (!each) return qkv_error_status();
    s->n = all_actual;
    s->correct = all_correct;
    s->micro_f1 = f1_of(all_correct, all_predicted, all_actual);
    for (int64_t k = 0; k < labels; k++) {
        each[k] = (qkv_class_score){ ratio(correct[k], predicted[k]), ratio(correct[k], actual[k]),
                                     f1_of(correct[k], predicted[k], actual[k]), actual[k] };
        s->macro_f1 += each[k].f1 / (double)labels;
    }
    return QKV_OK;
}
