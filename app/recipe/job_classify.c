/* job_classify.c: training a classifier: labelled texts in. */
#include "job.h"

#include <qkv/score.h>
#include "share_text.h"

#include "../../src/base/memory.h"
#include "../../src/dist/dist.h"
#include "../../src/model/model_info.h"
#include "../../src/nn/layer.h"
#include "../../src/nn/ngrams.h"
#include "../report/correlation.h"
#include "../../src/model/classes.h"
#include "../../src/task/texts.h"
#include "../../src/train/examples.h"
#include "../../src/data/pairs.h"
#include "../../src/data/label_list.h"
#include "../../src/data/table.h"
#include "../../src/model/model.h"
#include "../term/translator.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BY_LOSS, BY_ACCURACY }; /* --metric */
enum { MOST_CLASSES = 10000, MOST_SEPARATOR = 15 };
enum { SHARED_RUN = 6 }; /* words; shorter runs are common phrases */

/* ---- options ---- */

static qkv_status check_one_file(const char *name, const qkv__paths *f)
{
    return f->n <= 1 ? QKV_OK : qkv__fail(QKV_USAGE, "--%s: %d files; expected one file or folder", name, f->n);
}

static qkv_problem problem_of(const qkv_training *t)
{
    return t->o.v.numbers           ? QKV_PROBLEM_REGRESSION
           : t->o.v.label_separator ? QKV_PROBLEM_MULTILABEL
                                    : QKV_PROBLEM_CLASSIFICATION;
}

/* Options that only one label a text has a use for. */
static qkv_status check_problem(const qkv_training *t)
{
    const qkv__training_values *v = &t->o.v;
    if (v->numbers && v->label_separator) return qkv__fail(QKV_USAGE, "--numbers and --label-separator: choose one");
    const char *separator = v->label_separator;
    if (separator && (!*separator || strchr(separator, '\t') || strlen(separator) > MOST_SEPARATOR))
        return qkv__fail(QKV_USAGE, "--label-separator is empty, has a TAB in it, or more than %d bytes", MOST_SEPARATOR);
    if (v->balance && problem_of(t))
        return qkv__fail(QKV_USAGE, "--balance is for texts with one label: leave it out, or --numbers and --label-separator");
    if (v->numbers && QKV__IS_SET(&t->o, smoothing) && v->smoothing > 0)
        return qkv__fail(QKV_USAGE, "--label-smoothing is not for --numbers");
    if (problem_of(t) && v->ngrams)
        return qkv__fail(QKV_USAGE, "--ngrams is for texts with one label: leave it out, or --numbers and --label-separator");
    return QKV_OK;
}

static qkv_status check_classifying(const qkv_training *t)
{
    qkv_status status = check_one_file("train", &t->o.v.train_labelled);
    if (!status) status = check_one_file("valid", &t->o.v.valid);
    return status ? status : check_problem(t);
}

/* Fewer and larger steps than translation's: little text, seen a few times. */
static void set_paper_classes(qkv_training *t)
{
    qkv__training_values *v = &t->o.v;
    v->schedule = 2; /* linear */
    v->lr = 5e-4f;   /* recorded, and not used: 1e-3 is */
    if (!v->steps && !v->epochs && !(v->minutes > 0)) v->epochs = 5;
    v->max_tokens = 4096;
    v->patience = 5;
    v->class_metric = BY_ACCURACY;
}

/* ---- reading ---- */

typedef struct labelled_reading {
    qkv_training *t;
    const char *path;
    qkv_dataset *pairs; /* where texts go */
    bool held;          /* only those that are held back, else only the others */
    int64_t number, max_length;
    qkv__labelled_look look;
    qkv__unknown_labels unknown;
    char separator; /* of the columns of a table */
    qkv_word_counts *words;
    qkv__survey *survey;
} labelled_reading;

static qkv_labelled_opts labelled_opts(const qkv_training *t)
{
    const qkv__training_values *v = &t->o.v;
    return (qkv_labelled_opts){ .size = sizeof(qkv_labelled_opts),
                                .label = v->label_column,
                                .text = v->text_column,
                                .pair = v->pair_column,
                                .strict = v->strict,
                                .header = v->header,
                                .separator = v->label_separator,
                                .numbers = v->numbers,
                                .column_separator = v->separator };
}

static qkv_status read_labelled(labelled_reading *r, qkv_labelled_each each, bool quiet, qkv_read_stats *read)
{
    const qkv_labelled_opts opts = labelled_opts(r->t);
    qkv__notes notes = qkv__training_notes(r->t);
    qkv_status status = qkv__labelled_read(r->path, &opts, each, r, quiet ? (qkv__notes){ 0 } : notes, read);
    if (status && quiet && read) qkv__tell_repaired(notes, r->path, read->repaired, read->first_repaired);
    return status;
}

/* ---- numbers ----
 * A model learns numbers of mean 0 and variance 1; what is saved says the text's own: scale (w h + b) + mean. */

static void scale_last_layer(const qkv_model *m, double scale, double shift)
{
    const qkv_linear *last = &qkv__model_transformer(m)->classifier;
    float *w = qkv_tensor_data_mut(last->weight), *b = qkv_tensor_data_mut(last->bias);
    for (int64_t i = 0; i < qkv_tensor_count(last->weight); i++) w[i] = (float)(scale * (double)w[i]);
    *b = (float)(scale * (double)*b + shift);
}

static double number_scale(const qkv_training *t) { return sqrt(t->numbers.squares / (double)t->numbers.n); }

static void fold_numbers(const qkv_training *t) { scale_last_layer(t->model, number_scale(t), t->numbers.mean); }

static void unfold_numbers(const qkv_training *t)
{
    scale_last_layer(t->model, 1 / number_scale(t), -t->numbers.mean / number_scale(t));
}

/* The bits that are trained on come back. */
static qkv_status save_classifier(void *data, qkv_model *m, const char *folder)
{
    const qkv_training *t = data;
    const qkv_linear *last = &qkv__model_transformer(m)->classifier;
    if (!t->o.v.numbers) return qkv_model_save(m, folder, NULL);
    size_t bytes = sizeof(float) * (size_t)qkv_tensor_count(last->weight);
    float *kept = qkv__alloc(bytes), bias = *qkv_tensor_data(last->bias);
    if (!kept) return QKV_MEMORY;
    memcpy(kept, qkv_tensor_data(last->weight), bytes);
    fold_numbers(t);
    qkv_status status = qkv_model_save(m, folder, NULL);
    memcpy(qkv_tensor_data_mut(last->weight), kept, bytes);
    *qkv_tensor_data_mut(last->bias) = bias;
    qkv__release(kept, bytes);
    return status;
}

/* The model of the training itself says the text's own numbers too once it is done. */
static qkv_status finish_classifier(qkv_training *t)
{
    if (t->o.v.numbers) fold_numbers(t);
    return QKV_OK;
}

/* ---- the labels ---- */

static qkv_status too_many_labels(const labelled_reading *r, const qkv_labelled *x)
{
    char warning[512];
    qkv_status status = qkv__labelled_check(&r->look, &r->t->labels, r->path, warning);
    if (status) return status;
    return qkv__fail(QKV_LIMIT, "%s: line %lld: more than %d different labels: --label-column chooses the column", x->path,
                     (long long)x->line, MOST_CLASSES);
}

static qkv_status add_label(labelled_reading *r, const qkv_labelled *x, const char *label)
{
    qkv__label_set *s = &r->t->labels;
    if (s->n == MOST_CLASSES && qkv__label_find(s, label) < 0) return too_many_labels(r, x);
    return qkv__label_add(s, label);
}

static qkv_status add_labels(labelled_reading *r, const qkv_labelled *x)
{
    char label[QKV__LABEL_MAX];
    qkv_status status = QKV_OK;
    for (const char *at = qkv__first_label(x); at && !status;)
        status = qkv__next_label(x, &at, r->t->o.v.label_separator, label) ? add_label(r, x, label) : QKV_FORMAT;
    return status;
}

static qkv_status read_number(const qkv_labelled *x, double *number)
{
    qkv_status status = qkv__label_number(x, number);
    if (!status || !*qkv__header_hint(x)) return status;
    return qkv__fail(status, "%s: line %lld: \"%.60s\" is not a number%s", x->path, (long long)x->line, x->label.data,
                     qkv__header_hint(x));
}

/* Welford's way to mean and variance. */
static qkv_status add_number(qkv_training *t, const qkv_labelled *x)
{
    double number;
    qkv_status status = read_number(x, &number);
    if (status) return status;
    double off = number - t->numbers.mean;
    t->numbers.mean += off / (double)++t->numbers.n;
    t->numbers.squares += off * (number - t->numbers.mean);
    return QKV_OK;
}

static qkv_status take_label(void *data, const qkv_labelled *x)
{
    labelled_reading *r = data;
    qkv__labelled_look_at(&r->look, r->path, x);
    r->survey->texts++;
    qkv__survey_text(r->survey, x->text.data, x->text.length);
    r->survey->pairs += x->pair.data != NULL;
    return r->t->o.v.numbers           ? add_number(r->t, x)
           : r->t->o.v.label_separator ? add_labels(r, x)
                                       : add_label(r, x, x->label.data);
}

static qkv_status check_numbers(const qkv_training *t)
{
    const char *path = t->o.v.train_labelled.at[0];
    if (!t->numbers.n) return qkv__fail(QKV_FORMAT, "%s: there are no texts", path);
    if (t->numbers.squares > 0) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: every text has the number %g: there is nothing to learn", path, t->numbers.mean);
}

static qkv_status check_classes(const qkv_training *t, const qkv_read_stats *read)
{
    const char *path = t->o.v.train_labelled.at[0];
    if (t->labels.n > 1) return QKV_OK;
    if (!t->labels.n && read->unlabelled)
        return qkv__fail(QKV_FORMAT, "%s: no text has a label: --label-column chooses the column", path);
    if (!t->labels.n) return qkv__fail(QKV_FORMAT, problem_of(t) ? "%s: no text has a label" : "%s: there are no texts", path);
    return qkv__fail(QKV_FORMAT,
                     problem_of(t) ? "%s: there is one label, \"%.60s\": two at least are needed"
                                   : "%s: every text has the label \"%.60s\": two classes at least are needed",
                     path, t->labels.names[0]);
}

static qkv_status survey_labelled(qkv_training *t, qkv__survey *s)
{
    char text[512];
    int alike = 0;
    const qkv_labelled_opts opts = labelled_opts(t);
    labelled_reading r = { .t = t, .path = t->o.v.train_labelled.at[0], .survey = s, .look.opts = &opts };
    qkv_read_stats read = { 0 };
    qkv__label_set_free(&t->labels);
    memset(&t->numbers, 0, sizeof t->numbers);
    qkv_status status = read_labelled(&r, take_label, true, &read);
    if (t->o.v.numbers) return status ? status : check_numbers(t);
    if (!status) status = qkv__labelled_check(&r.look, &t->labels, r.path, text);
    if (!status && *text) qkv__training_note(t, "%s", text);
    if (!status) status = qkv__labels_alike(&t->labels, t->o.v.merge_labels, &alike, text);
    if (!status && alike)
        qkv__training_note(t,
                           t->o.v.merge_labels
                               ? "%s: %d labels that differ only in case or white space are merged: %s"
                               : QKV__N("%s: %d labels differ only in case or white space: %s: --merge-labels merges them"),
                           r.path, alike, text);
    return status ? status : check_classes(t, &read);
}

/* ---- the texts ---- */

/* The last of every 1/split texts is held back. */
static bool is_passed_over(labelled_reading *r)
{
    int64_t every = qkv__held_every(r->t);
    return every && (++r->number % every == 0) != r->held;
}

static qkv_status take_words(void *data, const qkv_labelled *x)
{
    labelled_reading *r = data;
    if (is_passed_over(r)) return QKV_OK;
    qkv_status status = qkv_word_counts_add(r->words, x->text);
    return !status && x->pair.data ? qkv_word_counts_add(r->words, x->pair) : status;
}

static qkv_status add_labelled_words(qkv_training *t, qkv_word_counts *sources, qkv_word_counts *targets)
{
    (void)targets;
    labelled_reading r = { .t = t, .path = t->o.v.train_labelled.at[0], .words = sources };
    return read_labelled(&r, take_words, true, NULL);
}

/* -1: a label of validation text that no training text has, which is counted; when strict: FORMAT. */
static qkv_status find_class(labelled_reading *r, const qkv_labelled *x, const char *label, int *class_id)
{
    qkv_status status = qkv__label_match(&r->t->labels, label, class_id);
    if (status || *class_id >= 0) return status;
    if (!r->t->o.v.strict) return qkv__note_unknown(&r->unknown, x, label), QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: line %lld: the label \"%.60s\" is not in %s%s", x->path, (long long)x->line, label,
                     r->t->o.v.train_labelled.at[0], qkv__header_hint(x));
}

/* By its text alone, whatever its label. */
static qkv_status note_text(labelled_reading *r, const qkv_labelled *x)
{
    qkv__hashes *h = r->pairs == r->t->valid ? &r->t->valid_hashes : &r->t->hashes;
    r->separator = (char)x->separator;
    return qkv__hashes_add_text(h, x->text.data, x->text.length, x->pair.data, x->pair.length);
}

/* Texts of each class, of those that are read. */
static int64_t *class_counts(const labelled_reading *r)
{
    return r->pairs == r->t->valid ? r->t->valid_counts : r->t->labels.counts;
}

/* Adds the text with what is to be learned of it. */
static qkv_status add_example(const labelled_reading *r, const qkv_labelled *x, qkv_example *e)
{
    e->text = x->text;
    e->pair = x->pair;
    e->max_length = r->max_length;
    return qkv_dataset_add(r->pairs, r->t->model, e);
}

static qkv_status take_text(void *data, const qkv_labelled *x)
{
    labelled_reading *r = data;
    int class_id;
    qkv_status status = find_class(r, x, x->label.data, &class_id);
    if (status || class_id < 0 || is_passed_over(r)) return status;
    class_counts(r)[class_id]++;
    if ((status = note_text(r, x))) return status;
    return add_example(r, x, &QKV_OPTS(qkv_example, .kind = QKV_EXAMPLE_CLASS, .class_id = (int32_t)class_id));
}

static qkv_status take_several(void *data, const qkv_labelled *x)
{
    labelled_reading *r = data;
    qkv_training *t = r->t;
    char label[QKV__LABEL_MAX];
    int class_id;
    memset(t->has, 0, (size_t)t->labels.n);
    for (const char *at = qkv__first_label(x); at;) {
        if (!qkv__next_label(x, &at, t->o.v.label_separator, label)) return QKV_FORMAT;
        qkv_status status = find_class(r, x, label, &class_id);
        if (status || class_id < 0) return status;
        t->has[class_id] = 1;
    }
    if (is_passed_over(r)) return QKV_OK;
    if (note_text(r, x)) return QKV_MEMORY;
    for (int i = 0; i < t->labels.n; i++) class_counts(r)[i] += t->has[i];
    return add_example(r, x, &QKV_OPTS(qkv_example, .kind = QKV_EXAMPLE_LABELS, .labels = t->has, .n_labels = t->labels.n));
}

static qkv_status take_number(void *data, const qkv_labelled *x)
{
    labelled_reading *r = data;
    double number;
    qkv_status status = read_number(x, &number);
    if (status || is_passed_over(r)) return status;
    if ((status = note_text(r, x))) return status;
    float value = (float)((number - r->t->numbers.mean) / number_scale(r->t));
    return add_example(r, x, &QKV_OPTS(qkv_example, .kind = QKV_EXAMPLE_VALUE, .value = value));
}

static qkv_labelled_each reader_of(const qkv_training *t)
{
    static const qkv_labelled_each readers[] = { take_text, take_several, take_number };
    return readers[problem_of(t)];
}

/* Each class counts as much as any other: n / (classes * count); one that was held back as a whole counts nowhere. */
static qkv_status weigh_classes(qkv_training *t)
{
    int64_t n = qkv_dataset_size(t->pairs), classes = t->labels.n;
    qkv_status status = qkv__grow((void **)&t->weights, &t->weights_bytes, sizeof *t->weights * (size_t)classes);
    for (int i = 0; i < classes && !status; i++)
        t->weights[i] = t->labels.counts[i] ? (float)((double)n / ((double)classes * (double)t->labels.counts[i])) : 0;
    return status;
}

static void note_missing_classes(const qkv_training *t, const char *kind, const int64_t *counts)
{
    int missing = 0, first = 0;
    for (int i = t->labels.n - 1; i >= 0; i--)
        if (!counts[i]) missing++, first = i;
    char more[48] = "";
    if (missing > 1)
        snprintf(more, sizeof more, qkv__translated(missing > 2 ? QKV__N(", nor %d others") : QKV__N(", nor %d other")),
                 missing - 1);
    if (missing)
        qkv__training_note(t, "no %s text has the label \"%.60s\"%s", qkv__translated(kind), t->labels.names[first], more);
}

static qkv_status read_valid_texts(qkv_training *t, int64_t max_length)
{
    const qkv__training_values *v = &t->o.v;
    const qkv__paths *f = v->valid.n ? &v->valid : &v->train_labelled;
    labelled_reading r = { .t = t, .path = f->at[0], .pairs = t->valid, .held = true, .max_length = max_length };
    qkv_status status = read_labelled(&r, reader_of(t), !v->valid.n, NULL);
    if (!status) qkv__tell_unknown(qkv__training_notes(t), r.path, &r.unknown);
    if (!status && r.unknown.n && !qkv_dataset_size(t->valid))
        return qkv__fail(QKV_FORMAT, "%s: line %lld: the label \"%.60s\" is not in %s, nor is any other", r.path,
                         (long long)r.unknown.first_line, r.unknown.first, v->train_labelled.at[0]);
    if (status || !qkv_dataset_size(t->valid))
        return status || !v->valid.n ? status : qkv__fail(QKV_FORMAT, "%s: there are no texts", r.path);
    if (v->numbers) return QKV_OK;
    note_missing_classes(t, QKV__N("training"), t->labels.counts);
    note_missing_classes(t, QKV__N("validation"), t->valid_counts);
    return QKV_OK;
}

/* What is measured, and what the model is said to be. */
static qkv_status set_problem(qkv_training *t)
{
    qkv_problem problem = problem_of(t);
    const char *const number[] = { "number" }, *const *names = (const char *const *)t->labels.names;
    t->loss = problem == QKV_PROBLEM_REGRESSION   ? qkv_loss_regression()
              : problem == QKV_PROBLEM_MULTILABEL ? qkv_loss_multilabel()
                                                  : qkv_loss_classification(t->o.v.balance ? t->weights : NULL, t->labels.n);
    t->has_loss = true;
    return qkv_model_set_labels(t->model, t->o.v.numbers ? number : names, t->o.v.numbers ? 1 : t->labels.n, problem,
                                t->o.v.label_separator);
}

/* Room for what is counted of the labels, nothing counted yet. */
static qkv_status begin_counts(qkv_training *t)
{
    size_t n = (size_t)t->labels.n;
    qkv_status status = qkv__grow((void **)&t->valid_counts, &t->valid_counts_bytes, sizeof *t->valid_counts * n);
    if (!status) status = qkv__grow((void **)&t->has, &t->has_bytes, n);
    if (status || !n) return status;
    memset(t->valid_counts, 0, t->valid_counts_bytes);
    memset(t->labels.counts, 0, sizeof *t->labels.counts * n); /* now without what is held back */
    return QKV_OK;
}

/* Counts of the texts that were read. */
typedef struct labelled_told {
    qkv_read_stats read;
    char separator; /* 0: the usual one of the file's ending */
} labelled_told;

static qkv_status read_both(qkv_training *t, void *data)
{
    const qkv__training_values *v = &t->o.v;
    labelled_told *told = data;
    qkv_labelled_format format;
    /* the end is not counted */
    labelled_reading r = { .t = t,
                           .path = v->train_labelled.at[0],
                           .pairs = t->pairs,
                           .max_length = qkv__readable_length(t->model, v->max_length + 1) - 1 };
    qkv_status status = read_labelled(&r, reader_of(t), false, &told->read);
    if (!status) status = qkv__labelled_format(r.path, &format);
    if (!status && r.separator != (format == QKV_LABELLED_CSV ? ',' : '\t')) told->separator = r.separator;
    return !status && (v->valid.n || v->split > 0) ? read_valid_texts(t, r.max_length) : status;
}

/* A training text's ids with their end, as in batches, and its class. */
static qkv_status find_counted(const qkv_training *t, int64_t i, int32_t **ids, size_t *bytes, int64_t *n, int32_t *class_id)
{
    int64_t one;
    const int32_t *from = qkv__dataset_side(t->pairs, i, 0, n);
    *class_id = *qkv__dataset_side(t->pairs, i, 1, &one);
    qkv_status status = qkv__grow((void **)ids, bytes, sizeof **ids * (size_t)(*n + 1));
    if (status) return status;
    if (*n) memcpy(*ids, from, sizeof **ids * (size_t)*n);
    if (!t->batches.source_has_end || !*n) (*ids)[(*n)++] = t->batches.end;
    return QKV_OK;
}

/* Counts all texts, then fits the weights to some of them, evenly spaced. The same on every rank. */
static qkv_status count_ngrams(const qkv_training *t)
{
    enum { MOST_FITTED = 4096, MOST_NUMBERS = 1 << 22 };
    const qkv__transformer *x = qkv__model_transformer(t->model);
    int64_t texts = qkv_dataset_size(t->pairs), of_text = 2 * t->labels.n, length;
    if (!qkv__transformer_config(x)->ngrams || !texts) return QKV_OK;
    int64_t fitted = qkv__min(texts, qkv__min(MOST_FITTED, MOST_NUMBERS / of_text));
    size_t bytes = 0, said_bytes = sizeof(float) * (size_t)(fitted * of_text), own_bytes = sizeof(int32_t) * (size_t)fitted;
    int32_t *ids = NULL, class_id, *own = qkv__alloc(own_bytes);
    float *said = qkv__alloc(said_bytes);
    double overlap = 0;
    qkv_status status = own && said ? qkv__dataset_shared_runs(t->pairs, SHARED_RUN, &overlap) : QKV_MEMORY;
    qkv__ngrams_clear(x);
    for (int64_t i = 0; i < texts && !status; i++) {
        status = find_counted(t, i, &ids, &bytes, &length, &class_id);
        if (!status) status = qkv__ngrams_count(x, ids, length, class_id);
    }
    qkv__ngrams_finish(x, overlap);
    for (int64_t i = 0; i < fitted && !status; i++) {
        status = find_counted(t, i * texts / fitted, &ids, &bytes, &length, &own[i]);
        if (!status) status = qkv__ngrams_judge(x, ids, length, own[i], said + i * of_text);
    }
    if (!status) qkv__ngrams_fit(x, said, own, fitted);
    qkv__release(ids, bytes);
    qkv__release(own, own_bytes);
    qkv__release(said, said_bytes);
    return status;
}

static qkv_status read_texts(qkv_training *t)
{
    labelled_told told = { 0 };
    size_t bytes = sizeof(int64_t) * (size_t)t->labels.n;
    qkv_status status = begin_counts(t);
    if (!status && t->continues_numbers) unfold_numbers(t);
    if (!status) status = qkv__read_for_all(t, read_both, &told, sizeof told);
    if (!status) status = qkv__dist_copy(t->labels.counts, bytes);
    if (!status) status = qkv__dist_copy(t->valid_counts, bytes);
    t->text.empty = told.read.empty;
    t->text.unlabelled = told.read.unlabelled;
    t->separator[0] = told.separator;
    t->text.separator = told.separator ? t->separator : NULL;
    if (!status && !problem_of(t)) status = weigh_classes(t);
    if (!status) status = count_ngrams(t);
    return status ? status : set_problem(t);
}

/* ---- the model ---- */

/* What a family has between the first token and its classes. */
static qkv_pooler pooler_of(const char *family)
{
    if (!strcmp(family, "electra")) return QKV_POOLER_GELU;
    return strcmp(family, "distilbert") ? QKV_POOLER_TANH : QKV_POOLER_RELU;
}

/* Published encoders have each their own way from the first token to the classes, and stay what they are. */
static qkv_status adjust_published(const qkv_training *t, const qkv_model *from, qkv_config *o)
{
    const qkv_model_info *info = qkv_model_get_info(from);
    if (!(info->can & QKV_CAN_EMBED))
        return qkv__fail(QKV_USAGE, "%s is a %s, which has no encoder alone to classify with", t->o.v.from, info->family);
    bool has_mean = !strcmp(info->family, "modernbert");
    if (t->o.v.pooling > QKV_POOLING_FIRST || (QKV__IS_GIVEN(&t->o, pooling) && !t->o.v.pooling && !has_mean))
        return qkv__fail(QKV_USAGE, "--pooling %s: the classifier of a %s reads the first token%s",
                         qkv__options_word(QKV__SET_pooling, t->o.v.pooling), info->family, has_mean ? " or the mean" : "");
    o->output_bias = 0;
    o->scaled_output = 0;
    o->head = has_mean;
    if (!has_mean) o->pooling = QKV_POOLING_FIRST;
    o->pooler = has_mean ? QKV_POOLER_HEAD : pooler_of(info->family);
    return QKV_OK;
}

/* ModernBERT's classes are read through its head; that of an encoder that had none begins as one that lets everything through,
 * for which it has a bias. */
static void adjust_modernbert(bool is_new, qkv_config *o)
{
    qkv_config like = *o;
    like.output_bias = 0;
    like.ngrams = 0; /* which no published model has */
    if (is_new) like.no_head_bias = like.no_bias;
    like.head = 1;
    like.pooler = QKV_POOLER_HEAD;
    if (qkv__modernbert.missing(&like)) return;
    like.ngrams = o->ngrams;
    *o = like;
}

static qkv_status adjust_classifier(qkv_training *t, const qkv_model *from, qkv_config *o)
{
    o->decoder_layers = 0;
    o->target_vocab_size = 0;
    o->untied = 0;
    o->classes = t->o.v.numbers ? 1 : t->labels.n;
    o->classes_of = QKV_CLASSES_OF_TEXTS;
    t->continues_numbers = t->o.v.numbers && from && qkv_model_get_info(from)->problem == QKV_PROBLEM_REGRESSION;
    o->pooling = (qkv_pooling)t->o.v.pooling;
    o->ngrams = t->o.v.ngrams;
    if (qkv__info_is_published(qkv__model_get_info(from))) return adjust_published(t, from, o);
    adjust_modernbert(!from, o);
    return QKV_OK;
}

/* ---- validation ---- */

/* What is counted while the validation texts are read. */
typedef struct tally {
    const qkv_training *t;
    int64_t right;             /* texts with just what was said */
    int64_t *said, *is, *hits; /* (labels) texts, of several labels; hits: both */
    double *numbers, *told;    /* (texts) what it is, and what was said */
    int64_t n;
} tally;

static void tally_class(tally *y, const float *row, const int32_t *target, int64_t classes)
{
    y->right += qkv__likeliest_class(row, classes) == *target;
}

/* A logit of 0 is a probability of 1/2. */
static void tally_labels(tally *y, const float *row, const int32_t *target, int64_t labels)
{
    bool is_exact = true;
    for (int64_t k = 0; k < labels; k++) {
        bool said = row[k] >= 0, is = qkv__labels_have(target, k);
        y->said[k] += said;
        y->is[k] += is;
        y->hits[k] += said && is;
        is_exact = is_exact && said == is;
    }
    y->right += is_exact;
}

static void tally_number(tally *y, const float *row, const int32_t *target, int64_t outputs)
{
    (void)outputs;
    double scale = number_scale(y->t), mean = y->t->numbers.mean;
    y->told[y->n] = scale * (double)*row + mean;
    y->numbers[y->n++] = scale * (double)qkv__label_value(target) + mean;
}

static void tally_batch(tally *y, const qkv_tensor *logits, const qkv_batch *b)
{
    static void (*const each[])(tally *, const float *, const int32_t *, int64_t) = { tally_class, tally_labels, tally_number };
    int64_t width = qkv_tensor_dim(logits, -1);
    for (int64_t r = 0; r < b->rows; r++)
        each[problem_of(y->t)](y, qkv_tensor_data(logits) + r * width, b->labels + r * b->target_length, width);
}

static qkv_status tally_texts(const qkv_training *t, const qkv_model *m, tally *y)
{
    qkv_loader *e = qkv_loader_new(t->valid, &t->valid_batches, 0);
    qkv_tape *tape = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    qkv_batch *b = NULL;
    qkv_status status = e && tape ? QKV_OK : qkv_error_status();
    for (int64_t i = 0; !status && i < qkv_loader_size(e); i++) {
        if ((status = qkv_loader_batch(e, i, &b))) break;
        qkv_tape_reset(tape);
        const qkv_tensor *logits = qkv__classify_batch(m, tape, b);
        if (logits) tally_batch(y, logits, b);
        else status = qkv_tape_status(tape);
    }
    qkv_free(b);
    qkv_tape_free(tape);
    qkv_loader_free(e);
    return status;
}

/* By accuracy; of several labels by micro F1; numbers by the loss. */
static void tell_accuracy(const qkv_training *t, double loss, double accuracy, qkv_train_score *out)
{
    out->score = t->o.v.class_metric == BY_LOSS ? -loss : accuracy;
    out->loss = loss; /* decides between models of the same accuracy */
    snprintf(out->summary, sizeof out->summary, qkv__translated("valid loss %.4f, accuracy %.2f%%"), loss, 100 * accuracy);
    snprintf(out->json, sizeof out->json, "\"valid_loss\": %.6f, \"accuracy\": %.6f", loss, accuracy);
}

static qkv_status tell_labels(const qkv_training *t, const tally *y, double loss, double exact, qkv_train_score *out)
{
    qkv_class_scores *s = NULL;
    qkv_status status = qkv_score_multilabel(y->said, y->is, y->hits, t->labels.n, &s);
    if (status) return qkv_free(s), status;
    out->score = t->o.v.class_metric == BY_LOSS ? -loss : s->micro_f1;
    out->loss = loss; /* at first nothing is said, and F1 is 0 */
    snprintf(out->summary, sizeof out->summary,
             qkv__translated("valid loss %.4f, micro F1 %.2f%%, macro F1 %.2f%%, exact %.2f%%"), loss, 100 * s->micro_f1,
             100 * s->macro_f1, 100 * exact);
    snprintf(out->json, sizeof out->json, "\"valid_loss\": %.6f, \"micro_f1\": %.6f, \"macro_f1\": %.6f, \"exact\": %.6f", loss,
             s->micro_f1, s->macro_f1, exact);
    qkv_free(s);
    return QKV_OK;
}

static qkv_status tell_numbers(const tally *y, double loss, qkv_train_score *out)
{
    qkv_regression_score *s = NULL;
    qkv_status status = qkv_score_regression(y->told, y->numbers, y->n, &s);
    if (status) return qkv_free(s), status;
    char pearson[QKV__CORRELATION], spearman[QKV__CORRELATION];
    out->score = -loss;
    qkv__correlation_text(s->pearson, 0, pearson);
    qkv__correlation_text(s->spearman, 0, spearman);
    snprintf(out->summary, sizeof out->summary, qkv__translated("valid loss %.4f, RMSE %.4g, Pearson %s, Spearman %s"), loss,
             s->rmse, pearson, spearman);
    qkv__correlation_text(s->pearson, 1, pearson);
    qkv__correlation_text(s->spearman, 1, spearman);
    snprintf(out->json, sizeof out->json, "\"valid_loss\": %.6f, \"rmse\": %.6g, \"pearson\": %s, \"spearman\": %s", loss,
             s->rmse, pearson, spearman);
    qkv_free(s);
    return QKV_OK;
}

static qkv_status validate_classifier(qkv_training *t, const qkv_model *m, qkv_train_score *out)
{
    double loss;
    int64_t texts = qkv_dataset_size(t->valid);
    size_t labels = (size_t)t->labels.n, bytes = sizeof(int64_t) * 3 * labels + sizeof(double) * 2 * (size_t)texts;
    tally y = { .t = t, .said = qkv__alloc_zero(bytes) };
    if (!y.said) return QKV_MEMORY;
    y.is = y.said + labels;
    y.hits = y.is + labels;
    y.numbers = (double *)(y.hits + labels);
    y.told = y.numbers + texts;
    qkv_status status = qkv_evaluate(m, t->valid, &(qkv_evaluate_opts){ .loss = &t->loss, .batches = &t->valid_batches },
                                     &loss);
    if (!status) status = tally_texts(t, m, &y);
    double exact = (double)y.right / (double)texts;
    if (!status && t->o.v.numbers) status = tell_numbers(&y, loss, out);
    else if (!status && t->o.v.label_separator) status = tell_labels(t, &y, loss, exact, out);
    else if (!status) tell_accuracy(t, loss, exact, out);
    if (!status) qkv__training_measured(t, loss, t->o.v.numbers || t->o.v.label_separator ? -1 : exact);
    qkv__release(y.said, bytes);
    return status;
}

const qkv__job qkv__classify_job = {
    .name = "classify",
    .command = "train classify",
    .bit = QKV__CLASSIFY,
    .noun = QKV__N("texts"),
    .unit = QKV__N("texts"),
    .set_paper = set_paper_classes,
    .check = check_classifying,
    .survey = survey_labelled,
    .choose = qkv__choose_classes,
    .add_words = add_labelled_words,
    .adjust = adjust_classifier,
    .read = read_texts,
    .validate = validate_classifier,
    .finish = finish_classifier,
    .save = save_classifier,
};
