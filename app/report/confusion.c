/* confusion.c: what labelled texts are, and what a classifier says they are. */
#include "scores.h"
#include "results.h"
#include "labelled_texts.h"

#include "../../src/base/options.h"
#include "../../src/data/label_list.h"

#include <string.h>

static const char call[] = "classify labelled";

/* ---- one label ---- */

/* merges: case and white space may differ. -1: the model does not have it. MEMORY. */
static qkv_status find_label(const qkv_model *m, const char *label, bool merges, int64_t *out)
{
    const char *name;
    qkv_buffer key = { 0 }, other = { 0 };
    for (*out = 0; (name = qkv_model_label(m, *out)); ++*out)
        if (!strcmp(name, label)) return QKV_OK;
    qkv_status status = merges ? qkv__label_key(label, &key) : QKV_OK;
    for (*out = 0; merges && !status && (name = qkv_model_label(m, *out)); ++*out)
        if ((status = qkv__label_key(name, &other)) || !strcmp(key.data, other.data)) break;
    if (!merges || !name) *out = -1;
    qkv_buffer_free(&key);
    qkv_buffer_free(&other);
    return status;
}

typedef struct one_label {
    const qkv_model *model;
    qkv_confusion *out;
    bool merges;
} one_label;

static qkv_status read_class(void *data, const qkv_labelled *x, double *target, const char **unknown)
{
    const one_label *one = data;
    int64_t class_id = 0;
    qkv_status status = find_label(one->model, x->label.data, one->merges, &class_id);
    if (class_id < 0) *unknown = x->label.data;
    *target = (double)class_id;
    return status;
}

static qkv_status count_class(void *data, const float *row, int64_t n, const double *target)
{
    qkv_confusion *c = ((one_label *)data)->out;
    c->counts[(int64_t)*target * c->classes + qkv__likeliest_class(row, n)]++;
    return QKV_OK;
}

static int64_t count_labels(const qkv_model *m)
{
    int64_t n = 0;
    while (qkv_model_label(m, n)) n++;
    return n;
}

static qkv_status begin_confusion(const qkv_model *m, qkv_confusion *c)
{
    int64_t classes = count_labels(m);
    if (classes < 2)
        return qkv__fail(QKV_UNSUPPORTED, "%s: the model has %s", call,
                         classes ? "one label, and scores texts" : "no labels: it is not a classifier");
    if (qkv_model_get_info(m)->problem)
        return qkv__fail(QKV_UNSUPPORTED, "%s: a text of this model may have several labels", call);
    size_t counts = sizeof *c->counts * (size_t)(classes * classes), labels = sizeof *c->labels * (size_t)classes;
    qkv_status status = qkv__grow((void **)&c->counts, &c->counts_bytes, counts);
    if (!status) status = qkv__grow((void **)&c->labels, &c->labels_bytes, labels);
    if (status) return status;
    memset(c->counts, 0, counts);
    for (int64_t i = 0; i < classes; i++) c->labels[i] = qkv_model_label(m, i);
    c->classes = classes;
    c->texts = c->cut = 0;
    return QKV_OK;
}

static qkv_status read_labelled_opts(const qkv_model *m, const char *path, const void *out,
                                     const qkv_classify_labelled_opts *opts, qkv_classify_labelled_opts *o)
{
    qkv_status status = QKV__READ_OPTIONS(o, note_data, opts, call);
    if (status || (m && path && out && o->batch >= 0)) return status;
    return qkv__fail(QKV_USAGE, "%s: a model, a file and a place for the result are needed", call);
}

qkv_status qkv_classify_labelled(const qkv_model *m, const char *path, const qkv_classify_labelled_opts *opts,
                                 qkv_confusion *out)
{
    qkv_classify_labelled_opts o;
    one_label data = { m, out, false };
    qkv__labelled_counts counts = { 0 };
    const qkv__labelled_use use = { .width = 1, .read = read_class, .count = count_class, .data = &data };
    qkv_status status = read_labelled_opts(m, path, out, opts, &o);
    if (status) return status;
    data.merges = o.merge_labels;
    status = begin_confusion(m, out);
    if (!status) status = qkv__classify_each(m, path, &o, &use, &counts);
    out->texts = counts.texts;
    out->cut = counts.cut;
    out->unknown = counts.unknown;
    if (status) qkv_confusion_free(out);
    return status;
}

void qkv_confusion_free(qkv_confusion *c)
{
    if (!c) return;
    qkv__release(c->counts, c->counts_bytes);
    qkv__release(c->labels, c->labels_bytes);
    *c = (qkv_confusion){ 0 };
}

/* ---- several labels ---- */

typedef struct several_labels {
    const qkv_model *model;
    const char *separator, **names;
    int64_t labels, exact;
    int64_t *said, *is, *right; /* (labels) texts */
    double threshold;
    bool merges;
    char label[QKV__LABEL_MAX]; /* that was read last */
} several_labels;

static qkv_status read_labels(void *data, const qkv_labelled *x, double *target, const char **unknown)
{
    several_labels *s = data;
    qkv_status status = QKV_OK;
    for (const char *at = qkv__first_label(x); at && !status;) {
        int64_t class_id = 0;
        if (!qkv__next_label(x, &at, s->separator, s->label)) return QKV_FORMAT;
        status = find_label(s->model, s->label, s->merges, &class_id);
        if (class_id < 0) return *unknown = s->label, status;
        target[class_id] = 1;
    }
    return status;
}

static qkv_status count_said(void *data, const float *row, int64_t n, const double *target)
{
    several_labels *s = data;
    bool is_exact = true;
    for (int64_t k = 0; k < n; k++) {
        bool said = (double)row[k] >= s->threshold, is = target[k] > 0;
        s->said[k] += said;
        s->is[k] += is;
        s->right[k] += said && is;
        is_exact = is_exact && said == is;
    }
    s->exact += is_exact;
    return QKV_OK;
}

static void set_counts(qkv_labelled_score *out, const qkv__labelled_counts *counts)
{
    out->texts = counts->texts;
    out->cut = counts->cut;
    out->unknown = counts->unknown;
}

static qkv_status score_several(const qkv_model *m, const char *path, const qkv_classify_labelled_opts *o, int json,
                                qkv_labelled_score *out, qkv_buffer *text)
{
    several_labels s = {
        .model = m, .labels = count_labels(m), .threshold = qkv__label_threshold(o->threshold), .merges = o->merge_labels
    };
    qkv__labelled_counts counts = { 0 };
    s.separator = o->labelled->separator;
    const qkv__labelled_use use = { .width = s.labels, .read = read_labels, .count = count_said, .data = &s };
    size_t n = (size_t)s.labels, bytes = n * (3 * sizeof *s.said + sizeof *s.names);
    if (!(s.said = qkv__alloc_zero(bytes))) return QKV_MEMORY;
    s.is = s.said + n;
    s.right = s.is + n;
    s.names = (const char **)(s.right + n);
    for (int64_t i = 0; i < s.labels; i++) s.names[i] = qkv_model_label(m, i);
    qkv_status status = qkv__classify_each(m, path, o, &use, &counts);
    set_counts(out, &counts);
    out->exact = s.exact;
    qkv_class_scores *scores = NULL;
    if (!status) status = qkv_score_multilabel(s.said, s.is, s.right, s.labels, &scores);
    if (!status) out->micro_f1 = scores->micro_f1, out->macro_f1 = scores->macro_f1;
    qkv_free(scores);
    if (!status) status = qkv_labels_text(s.said, s.is, s.right, s.labels, s.names, s.exact, out->texts, json, text);
    qkv__release(s.said, bytes);
    return status;
}

/* ---- numbers ---- */

typedef struct told_numbers {
    double *both; /* what was said and what it is, in turn */
    size_t bytes;
    int64_t n;
} told_numbers;

static qkv_status read_number(void *data, const qkv_labelled *x, double *target, const char **unknown)
{
    (void)data, (void)unknown;
    return qkv__label_number(x, target);
}

static qkv_status keep_number(void *data, const float *row, int64_t n, const double *target)
{
    told_numbers *t = data;
    (void)n;
    qkv_status status = qkv__grow((void **)&t->both, &t->bytes, sizeof *t->both * 2 * (size_t)(t->n + 1));
    if (status) return status;
    t->both[2 * t->n] = (double)*row;
    t->both[2 * t->n++ + 1] = *target;
    return QKV_OK;
}

static qkv_status score_told(const told_numbers *t, qkv_regression_score *out)
{
    size_t bytes = sizeof *t->both * 2 * (size_t)t->n;
    double *said = qkv__alloc(bytes), *is = said + t->n;
    if (!said) return QKV_MEMORY;
    for (int64_t i = 0; i < t->n; i++) said[i] = t->both[2 * i], is[i] = t->both[2 * i + 1];
    qkv_regression_score *score = NULL;
    qkv_status status = qkv_score_regression(said, is, t->n, &score);
    if (!status) *out = *score;
    qkv_free(score);
    qkv__release(said, bytes);
    return status;
}

static qkv_status score_numbers(const qkv_model *m, const char *path, const qkv_classify_labelled_opts *o, int json,
                                qkv_labelled_score *out, qkv_buffer *text)
{
    told_numbers t = { 0 };
    const qkv__labelled_use use = { .width = 1, .read = read_number, .count = keep_number, .data = &t };
    qkv__labelled_counts counts = { 0 };
    qkv_status status = qkv__classify_each(m, path, o, &use, &counts);
    set_counts(out, &counts);
    if (!status) status = score_told(&t, &out->numbers);
    if (!status) status = qkv_numbers_text(&out->numbers, json, text);
    qkv__release(t.both, t.bytes);
    return status;
}

qkv_status qkv_score_labelled(const qkv_model *m, const char *path, const qkv_classify_labelled_opts *opts, int json,
                              qkv_labelled_score *out, qkv_buffer *text)
{
    qkv_classify_labelled_opts o;
    qkv_labelled_opts labelled;
    qkv_status status = read_labelled_opts(m, path, text ? out : NULL, opts, &o);
    if (!status) status = QKV__READ_OPTIONS(&labelled, header, o.labelled, call);
    if (status) return status;
    labelled.size = sizeof labelled;
    labelled.numbers = 1;
    const char *learned = qkv_model_get_info(m)->label_separator;
    if (!labelled.separator || !*labelled.separator) labelled.separator = *learned ? learned : ",";
    if (qkv_model_get_info(m)->problem == QKV_PROBLEM_REGRESSION)
        labelled.separator = NULL; /* a text without a number is none */
    o.labelled = &labelled;
    *out = (qkv_labelled_score){ .problem = qkv_model_get_info(m)->problem };
    if (out->problem == QKV_PROBLEM_REGRESSION) return score_numbers(m, path, &o, json, out, text);
    if (out->problem == QKV_PROBLEM_MULTILABEL) return score_several(m, path, &o, json, out, text);
    return qkv__fail(QKV_UNSUPPORTED, "%s: a text of this model has one label", call);
}
