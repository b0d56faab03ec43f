/* score_text.c: scores as lines for people, as JSON and as CSV. */
#include "scores.h"
#include "out.h"
#include "correlation.h"
#include "../term/translator.h"

#include <qkv/score.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char call[] = "score";
enum { MOST_SHOWN = 20 }; /* classes whose matrix fits a terminal */

/* ---- classes ---- */

typedef struct confusion {
    const int64_t *counts;
    int64_t classes;
    const char *const *labels;
    const qkv_class_scores *scores;
} confusion;

static int longest_label(const char *const *labels, int64_t n)
{
    int longest = 5;
    for (int64_t i = 0; i < n; i++) {
        int length = qkv__width(labels[i]);
        if (length > longest) longest = length;
    }
    return longest;
}

static void put_class_rows(qkv__out *out, const char *const *labels, const qkv_class_score *each, int64_t n, int width)
{
    for (int64_t i = 0; i < n; i++) {
        qkv__out_name(out, labels[i], width, true);
        qkv__out_printf(out, "     %.4f  %.4f  %.4f  %6lld\n", each[i].precision, each[i].recall, each[i].f1,
                        (long long)each[i].support);
    }
}

/* The members of "classes", and what ends the whole object. */
static void put_class_members(qkv__out *out, const char *const *labels, const qkv_class_score *each, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const qkv_class_score s = each[i];
        qkv__out_printf(out, i ? ", " : "");
        qkv__out_json(out, labels[i], strlen(labels[i]));
        qkv__out_printf(out, ": {\"precision\": %.6f, \"recall\": %.6f, \"f1\": %.6f, \"texts\": %lld}", s.precision, s.recall,
                        s.f1, (long long)s.support);
    }
    qkv__out_printf(out, "}}\n");
}

static void put_matrix(qkv__out *out, const confusion *c, int width)
{
    qkv__out_printf(out, qkv__translated("\nconfusion matrix (rows: true label, columns: prediction)\n%*s"), width, "");
    for (int64_t i = 0; i < c->classes; i++) {
        qkv__out_printf(out, "  ");
        qkv__out_name(out, c->labels[i], width, true);
    }
    qkv__out_printf(out, "\n");
    for (int64_t i = 0; i < c->classes; i++) {
        qkv__out_name(out, c->labels[i], width, true);
        for (int64_t k = 0; k < c->classes; k++)
            qkv__out_printf(out, "  %*lld", width, (long long)c->counts[i * c->classes + k]);
        qkv__out_printf(out, "\n");
    }
}

static void put_classes(qkv__out *out, const confusion *c)
{
    int width = longest_label(c->labels, c->classes);
    qkv__out_printf(
        out, qkv__translated("accuracy %.4f (%lld of %lld), macro F1 %.4f\n\n%*s  precision  recall      F1   texts\n"),
        c->scores->accuracy, (long long)c->scores->correct, (long long)c->scores->n, c->scores->macro_f1, width, "");
    put_class_rows(out, c->labels, c->scores->classes, c->classes, width);
    if (c->classes <= MOST_SHOWN) put_matrix(out, c, width);
}

static void put_classes_json(qkv__out *out, const confusion *c)
{
    qkv__out_printf(out, "{\"texts\": %lld, \"accuracy\": %.6f, \"macro_f1\": %.6f, \"classes\": {", (long long)c->scores->n,
                    c->scores->accuracy, c->scores->macro_f1);
    put_class_members(out, c->labels, c->scores->classes, c->classes);
}

static qkv_status check_names(const char *const *labels, int64_t classes, const qkv_buffer *out)
{
    if (!labels || !out) return qkv__fail(QKV_USAGE, "%s: labels and a place for the text are needed", call);
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < classes && !status; i++)
        if (!labels[i]) status = qkv__fail(QKV_USAGE, "%s: class %lld has no label", call, (long long)i);
    return status;
}

static qkv_status check_labels(const int64_t *counts, int64_t classes, const char *const *labels, const qkv_buffer *out)
{
    qkv_class_scores *scores = NULL; /* which refuses what is no matrix */
    if (!labels || !out) return check_names(labels, classes, out);
    qkv_status status = qkv_score_classes(counts, classes, &scores);
    qkv_free(scores);
    return status ? status : check_names(labels, classes, out);
}

qkv_status qkv_classes_text(const int64_t *counts, int64_t classes, const char *const *labels, int json, qkv_buffer *out)
{
    confusion c = { .counts = counts, .classes = classes, .labels = labels };
    qkv_class_scores *scores = NULL;
    qkv_status status = check_names(labels, 0, out);
    if (!status) status = qkv_score_classes(counts, classes, &scores);
    if (!status) status = check_names(labels, classes, out);
    if (status) {
        qkv_free(scores);
        return status;
    }
    qkv__out text = qkv__out_begin(out);
    c.scores = scores;
    if (json) put_classes_json(&text, &c);
    else put_classes(&text, &c);
    qkv_free(scores);
    return qkv__out_end(&text);
}

static void put_quoted(qkv__out *out, const char *text)
{
    qkv__out_bytes(out, "\"", 1);
    for (; *text; text++) {
        if (*text == '"') qkv__out_bytes(out, "\"", 1);
        qkv__out_bytes(out, text, 1);
    }
    qkv__out_bytes(out, "\"", 1);
}

qkv_status qkv_classes_csv(const int64_t *counts, int64_t classes, const char *const *labels, qkv_buffer *out)
{
    qkv_status status = check_labels(counts, classes, labels, out);
    if (status) return status;
    qkv__out text = qkv__out_begin(out);
    qkv__out_printf(&text, "label,said,texts\n");
    for (int64_t i = 0; i < classes * classes; i++) {
        put_quoted(&text, labels[i / classes]);
        qkv__out_printf(&text, ",");
        put_quoted(&text, labels[i % classes]);
        qkv__out_printf(&text, ",%lld\n", (long long)counts[i]);
    }
    return qkv__out_end(&text);
}

/* ---- several labels, numbers ---- */

static void put_labels(qkv__out *out, const qkv_class_scores *all, const char *const *names, int64_t n, int64_t exact,
                       int64_t texts)
{
    int width = longest_label(names, n);
    qkv__out_printf(
        out,
        qkv__translated("micro F1 %.4f, macro F1 %.4f, exact %.4f (%lld of %lld)\n\n%*s  precision  recall      F1   texts\n"),
        all->micro_f1, all->macro_f1, texts ? (double)exact / (double)texts : 0, (long long)exact, (long long)texts, width, "");
    put_class_rows(out, names, all->classes, n, width);
}

qkv_status qkv_labels_text(const int64_t *said, const int64_t *is, const int64_t *right, int64_t labels,
                           const char *const *names, int64_t exact, int64_t texts, int json, qkv_buffer *out)
{
    qkv_class_scores *all = NULL;
    qkv_status status = qkv_score_multilabel(said, is, right, labels, &all);
    if (!status) status = check_names(names, labels, out);
    if (status) {
        qkv_free(all);
        return status;
    }
    qkv__out text = qkv__out_begin(out);
    if (json) {
        qkv__out_printf(&text, "{\"texts\": %lld, \"exact\": %lld, \"micro_f1\": %.6f, \"macro_f1\": %.6f, \"classes\": {",
                        (long long)texts, (long long)exact, all->micro_f1, all->macro_f1);
        put_class_members(&text, names, all->classes, labels);
    } else {
        put_labels(&text, all, names, labels, exact, texts);
    }
    qkv_free(all);
    return qkv__out_end(&text);
}

void qkv__correlation_text(double x, int json, char out[QKV__CORRELATION])
{
    if (isnan(x)) snprintf(out, QKV__CORRELATION, "%s", json ? "null" : qkv__translated("undefined"));
    else snprintf(out, QKV__CORRELATION, json ? "%.6f" : "%.4f", x);
}

qkv_status qkv_numbers_text(const qkv_regression_score *s, int json, qkv_buffer *out)
{
    if (!s || !out) return qkv__fail(QKV_USAGE, "%s: scores and a place for the text are needed", call);
    char pearson[QKV__CORRELATION], spearman[QKV__CORRELATION];
    qkv__correlation_text(s->pearson, json, pearson);
    qkv__correlation_text(s->spearman, json, spearman);
    qkv__out text = qkv__out_begin(out);
    qkv__out_printf(&text,
                    json ? "{\"texts\": %lld, \"rmse\": %.9g, \"mae\": %.9g, \"pearson\": %s, \"spearman\": %s}\n"
                         : qkv__translated("texts %lld\nRMSE %.6g\nmean absolute error %.6g\nPearson %s\nSpearman %s\n"),
                    (long long)s->n, s->rmse, s->mae, pearson, spearman);
    return qkv__out_end(&text);
}

/* ---- BLEU and chrF ---- */

static void put_numbers(qkv__out *out, const char *key, const double *numbers, int n)
{
    qkv__out_printf(out, ", \"%s\": [", key);
    for (int i = 0; i < n; i++) qkv__out_printf(out, "%s%.17g", i ? ", " : "", numbers[i]);
    qkv__out_printf(out, "]");
}

static void put_counts(qkv__out *out, const char *key, const int64_t *counts, int n)
{
    qkv__out_printf(out, ", \"%s\": [", key);
    for (int i = 0; i < n; i++) qkv__out_printf(out, "%s%lld", i ? ", " : "", (long long)counts[i]);
    qkv__out_printf(out, "]");
}

qkv_status qkv__bleu_of_lines(const char *const *lines, const char *const *references, int64_t n, qkv_score_tokenizer tokenizer,
                              double *bleu)
{
    size_t bytes = sizeof(qkv_str) * 2 * (size_t)n;
    qkv_str *texts = qkv__alloc(bytes);
    qkv_bleu_score *score = NULL;
    if (!texts) return QKV_MEMORY;
    for (int64_t i = 0; i < n; i++) texts[i] = qkv_cstr(lines[i]), texts[n + i] = qkv_cstr(references[i]);
    const qkv_str *against = texts + n;
    qkv_status status = qkv_bleu(texts, &against, 1, n, &QKV_OPTS(qkv_bleu_opts, .tokenizer = tokenizer), &score);
    if (!status) *bleu = score->score;
    qkv_free(score);
    qkv__release(texts, bytes);
    return status;
}

static double length_ratio(const qkv_bleu_score *s)
{
    return s->ref_length ? (double)s->hyp_length / (double)s->ref_length : 0;
}

static void put_bleu_json(qkv__out *out, const qkv_bleu_score *s)
{
    qkv__out_printf(out, "{\"score\": %.17g, \"signature\": \"%s\"", s->score, s->signature);
    put_numbers(out, "precisions", s->precisions, QKV_BLEU_ORDER);
    put_counts(out, "matches", s->matches, QKV_BLEU_ORDER);
    put_counts(out, "totals", s->totals, QKV_BLEU_ORDER);
    qkv__out_printf(out, ", \"bp\": %.17g, \"ratio\": %.17g, \"hyp_len\": %lld, \"ref_len\": %lld}", s->brevity_penalty,
                    length_ratio(s), (long long)s->hyp_length, (long long)s->ref_length);
}

qkv_status qkv_bleu_text(const qkv_bleu_score *s, int json, qkv_buffer *out)
{
    if (!s || !out) return qkv__fail(QKV_USAGE, "%s: a score and a place for the text are needed", call);
    qkv__out text = qkv__out_begin(out);
    if (json) put_bleu_json(&text, s);
    else
        qkv__out_printf(&text,
                        "BLEU %.1f %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %lld ref_len = %lld)\n     %s\n",
                        s->score, s->precisions[0], s->precisions[1], s->precisions[2], s->precisions[3], s->brevity_penalty,
                        length_ratio(s), (long long)s->hyp_length, (long long)s->ref_length, s->signature);
    return qkv__out_end(&text);
}

static void put_chrf_json(qkv__out *out, const qkv_chrf_score *s, int word_order)
{
    int orders = QKV_CHRF_ORDERS - 2 + word_order;
    qkv__out_printf(out, "{\"score\": %.17g, \"signature\": \"%s\", \"precision\": %.17g, \"recall\": %.17g", s->score,
                    s->signature, s->precision, s->recall);
    put_counts(out, "matches", s->matches, orders);
    put_counts(out, "hyp_totals", s->hyp_totals, orders);
    put_counts(out, "ref_totals", s->ref_totals, orders);
    qkv__out_printf(out, "}");
}

qkv_status qkv_chrf_text(const qkv_chrf_score *s, int word_order, int json, qkv_buffer *out)
{
    if (!s || !out) return qkv__fail(QKV_USAGE, "%s: a score and a place for the text are needed", call);
    if (word_order < 0 || word_order > 2) return qkv__fail(QKV_USAGE, "%s: n-grams of %d words", call, word_order);
    qkv__out text = qkv__out_begin(out);
    if (json) put_chrf_json(&text, s, word_order);
    else
        qkv__out_printf(&text, "chrF2%s %.1f (precision = %.1f recall = %.1f)\n     %s\n", word_order ? "++" : "", s->score,
                        s->precision, s->recall, s->signature);
    return qkv__out_end(&text);
}
