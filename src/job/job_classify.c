/* job_classify.c: training a classifier: labelled texts in. */
#include "training.h"

#include "../base/memory.h"
#include "../model/model_info.h"

#include <stdio.h>
#include <string.h>

enum { BY_LOSS, BY_ACCURACY }; /* --metric */
enum { MOST_CLASSES = 10000 };

/* ---- options ---- */

static qkv_status check_one_file(const char *name, const qkv__paths *f)
{
    return f->n <= 1 ? QKV_OK : qkv__fail(QKV_USAGE, "--%s: %d files; expected one file or folder", name, f->n);
}

static qkv_status check_classifying(const qkv_training *t)
{
    qkv_status status = check_one_file("train", &t->o.v.train_labelled);
    return status ? status : check_one_file("valid", &t->o.v.valid);
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
    qkv_pairs *pairs; /* where texts go */
    bool held;        /* only those that are held back, else only the others */
    int64_t number, max_length;
    qkv__labelled_look look;
    qkv_word_counts *words;
    qkv__survey *survey;
} labelled_reading;

static qkv_labelled_opts labelled_opts(const qkv_training *t)
{
    const qkv__training_values *v = &t->o.v;
    return (qkv_labelled_opts){
        .label = v->label_column, .text = v->text_column, .pair = v->pair_column, .strict = v->strict, .header = v->header
    };
}

static qkv_status read_labelled(labelled_reading *r, qkv_labelled_each each, bool quiet, qkv_corpus_read *read)
{
    const qkv_labelled_opts opts = labelled_opts(r->t);
    return qkv__labelled_read(r->path, &opts, each, r, quiet ? (qkv__notes){ 0 } : qkv__training_notes(r->t), read);
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

static qkv_status take_label(void *data, const qkv_labelled *x)
{
    labelled_reading *r = data;
    qkv_training *t = r->t;
    if (t->labels.n == MOST_CLASSES && qkv__label_find(&t->labels, x->label) < 0) return too_many_labels(r, x);
    qkv__labelled_look_at(&r->look, r->path, x);
    r->survey->texts++;
    qkv__survey_text(r->survey, x->text, x->text_length);
    return qkv__label_add(&t->labels, x->label);
}

static qkv_status check_classes(const qkv_training *t)
{
    const char *path = t->o.v.train_labelled.at[0];
    if (t->labels.n > 1) return QKV_OK;
    if (!t->labels.n) return qkv__fail(QKV_FORMAT, "%s: there are no texts", path);
    return qkv__fail(QKV_FORMAT, "%s: every text has the label \"%.60s\": two classes at least are needed", path,
                     t->labels.names[0]);
}

static qkv_status survey_labelled(qkv_training *t, qkv__survey *s)
{
    char warning[512];
    const qkv_labelled_opts opts = labelled_opts(t);
    labelled_reading r = { .t = t, .path = t->o.v.train_labelled.at[0], .survey = s, .look.opts = &opts };
    qkv__label_set_free(&t->labels);
    qkv_status status = read_labelled(&r, take_label, true, NULL);
    if (!status) status = qkv__labelled_check(&r.look, &t->labels, r.path, warning);
    if (!status && *warning) qkv__training_note(t, "%s", warning);
    return status ? status : check_classes(t);
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
    qkv_status status = qkv_word_counts_add(r->words, x->text, x->text_length);
    return !status && x->pair ? qkv_word_counts_add(r->words, x->pair, x->pair_length) : status;
}

static qkv_status add_labelled_words(qkv_training *t, qkv_word_counts *sources, qkv_word_counts *targets)
{
    (void)targets;
    labelled_reading r = { .t = t, .path = t->o.v.train_labelled.at[0], .words = sources };
    return read_labelled(&r, take_words, true, NULL);
}

static qkv_status take_text(void *data, const qkv_labelled *x)
{
    labelled_reading *r = data;
    qkv_training *t = r->t;
    int class_id = qkv__label_find(&t->labels, x->label);
    if (class_id < 0)
        return qkv__fail(QKV_FORMAT, "%s: line %lld: the label \"%.60s\" is not in %s%s", x->path, (long long)x->line, x->label,
                         t->o.v.train_labelled.at[0], qkv__header_hint(x));
    if (is_passed_over(r)) return QKV_OK;
    (r->pairs == t->valid ? t->valid_counts : t->labels.counts)[class_id]++;
    return qkv_pairs_add_text(r->pairs, t->model, x->text, x->text_length, x->pair, x->pair_length, r->max_length,
                              (int32_t)class_id);
}

/* Each class counts as much as any other: n / (classes * count); one that was held back as a whole counts nowhere. */
static qkv_status weigh_classes(qkv_training *t)
{
    int64_t n = qkv_pairs_count(t->pairs), classes = t->labels.n;
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
    qkv_status status = read_labelled(&r, take_text, !v->valid.n, NULL);
    if (status || !qkv_pairs_count(t->valid))
        return status || !v->valid.n ? status : qkv__fail(QKV_FORMAT, "%s: there are no texts", r.path);
    note_missing_classes(t, QKV__N("training"), t->labels.counts);
    note_missing_classes(t, QKV__N("validation"), t->valid_counts);
    return QKV_OK;
}

static qkv_status read_texts(qkv_training *t)
{
    const qkv__training_values *v = &t->o.v;
    qkv_corpus_read read = { 0 };
    /* the end is not counted */
    labelled_reading r = { .t = t,
                           .path = v->train_labelled.at[0],
                           .pairs = t->pairs,
                           .max_length = qkv__readable_length(t->model, v->max_length + 1) - 1 };
    qkv_status status = qkv__grow((void **)&t->valid_counts, &t->valid_counts_bytes,
                                  sizeof *t->valid_counts * (size_t)t->labels.n);
    if (status) return status;
    memset(t->valid_counts, 0, t->valid_counts_bytes);
    memset(t->labels.counts, 0, sizeof *t->labels.counts * (size_t)t->labels.n); /* now without what is held back */
    status = read_labelled(&r, take_text, false, &read);
    t->text.empty = read.empty;
    if (!status) status = weigh_classes(t);
    if (!status && (v->valid.n || v->split > 0)) status = read_valid_texts(t, r.max_length);
    t->objective = qkv_classifying(v->balance ? t->weights : NULL, t->labels.n);
    t->has_objective = true;
    return status ? status : qkv_model_set_labels(t->model, (const char *const *)t->labels.names, t->labels.n);
}

/* ---- the model ---- */

/* What a family has between the first token and its classes. */
static qkv_pooler pooler_of(const char *family)
{
    if (!strcmp(family, "electra")) return QKV_POOLER_GELU;
    return strcmp(family, "distilbert") ? QKV_POOLER_TANH : QKV_POOLER_RELU;
}

/* Published encoders have each their own way from the first token to the classes, and stay what they are. */
static qkv_status adjust_published(const qkv_training *t, const qkv_model *from, qkv_transformer_opts *o)
{
    const qkv_model_info *info = qkv_model_info_of(from);
    if (!(info->can & QKV_ABILITY_EMBED))
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
static void adjust_modernbert(bool is_new, qkv_transformer_opts *o)
{
    qkv_transformer_opts like = *o;
    like.output_bias = 0;
    if (is_new) like.no_head_bias = like.no_bias;
    like.head = 1;
    like.pooler = QKV_POOLER_HEAD;
    if (!qkv__modernbert.missing(&like)) *o = like;
}

static qkv_status adjust_classifier(qkv_training *t, const qkv_model *from, qkv_transformer_opts *o)
{
    o->decoder_layers = 0;
    o->target_vocabulary = 0;
    o->untied = 0;
    o->classes = t->labels.n;
    o->classes_of = QKV_CLASSES_OF_TEXTS;
    o->pooling = (qkv_pooling)t->o.v.pooling;
    if (qkv__info_is_published(qkv_model_info_of(from))) return adjust_published(t, from, o);
    adjust_modernbert(!from, o);
    return QKV_OK;
}

/* ---- validation ---- */

static int64_t count_right(const float *logits, const qkv_batch *b, int64_t classes)
{
    int64_t right = 0;
    for (int64_t r = 0; r < b->rows; r++) {
        const float *row = logits + r * classes;
        int64_t best = 0;
        for (int64_t c = 1; c < classes; c++)
            if (row[c] > row[best]) best = c;
        right += best == b->labels[r * b->target_length];
    }
    return right;
}

/* How many of the texts get their class. */
static qkv_status measure_accuracy(const qkv_training *t, const qkv_model *m, double *accuracy)
{
    qkv_epoch *e = qkv_epoch_new(t->valid, &t->valid_batches, 0);
    qkv_tape *tape = qkv_tape_new(&(qkv_tape_opts){ .no_grad = 1 });
    qkv_batch b = { 0 };
    int64_t right = 0;
    qkv_status status = e && tape ? QKV_OK : qkv_error_status();
    for (int64_t i = 0; !status && i < qkv_epoch_batches(e); i++) {
        if ((status = qkv_epoch_batch(e, i, &b))) break;
        qkv_tape_reset(tape);
        const qkv_tensor *logits = qkv_classify_batch(m, tape, &b);
        if (logits) right += count_right(qkv_data(logits), &b, t->labels.n);
        else status = qkv_tape_status(tape);
    }
    qkv_batch_free(&b);
    qkv_tape_free(tape);
    qkv_epoch_free(e);
    if (!status) *accuracy = (double)right / (double)qkv_pairs_count(t->valid);
    return status;
}

static qkv_status validate_classifier(qkv_training *t, const qkv_model *m, qkv_run_score *out)
{
    double loss, accuracy = 0;
    qkv_status status = qkv_evaluate(m, t->valid, &t->objective, &t->valid_batches, &loss);
    if (!status) status = measure_accuracy(t, m, &accuracy);
    if (status) return status;
    out->score = t->o.v.class_metric == BY_LOSS ? -loss : accuracy;
    snprintf(out->words, sizeof out->words, qkv__translated("valid loss %.4f, accuracy %.2f%%"), loss, 100 * accuracy);
    snprintf(out->json, sizeof out->json, "\"valid_loss\": %.6f, \"accuracy\": %.6f", loss, accuracy);
    return QKV_OK;
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
};
