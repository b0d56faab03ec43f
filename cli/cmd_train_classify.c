/* cmd_train_classify.c: qkv train classify: labelled texts in, a classifier out. */
#include "labelled.h"
#include "training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BY_LOSS, BY_ACCURACY };
static const char *const metric_names[] = { "loss", "accuracy", NULL };
enum { MOST_CLASSES = 10000 };

static struct {
    const char *train, *valid;
    int metric;
    bool balance;
} given = { .metric = BY_ACCURACY };

#define ROW_OF_CLASSIFY TRANSFORMER_ROW
static const option options[] = {
    { "train", .group = DATA_GROUP, .value = "PATH", .help = "labelled texts: TSV, CSV, JSONL, or a folder of LABEL/*.txt",
      .required = true, .text = &given.train },
    { "valid", .group = DATA_GROUP, .value = "PATH", .help = "the same, to measure progress on", .text = &given.valid },
    LABELLED_OPTIONS,
    TOKENIZER_OPTIONS,
    { "balance", .group = DATA_GROUP, .help = "weigh classes so that rare ones count as much as common ones",
      .flag = &given.balance },
    { "metric", .group = STOPPING_GROUP, .value = "NAME",
      .help = "what is best: the highest accuracy (unless given) or the lowest loss", .choice = &given.metric,
      .names = metric_names },
#include "transformer_rows.h"
    TRAINING_OPTIONS("linear (unless given), paper, constant or cosine", "0", "4096"),
    TRAINING_LIMITS("5"),
    { 0 },
};

/* ---- what is read ---- */

typedef struct texts {
    label_set labels;
    labelled_look look;
    const qkv_model *model;
    int64_t max_length;
    qkv_pairs *pairs;
    qkv_word_counts *words;
} texts;

static qkv_status too_many(const texts *t, const qkv_labelled *x)
{
    qkv_status status = check_labelled(&t->look, &t->labels, given.train, true);
    if (status) return told(status);
    return told(fail(QKV_LIMIT, "%s: line %lld: more than %d different labels: --label-column chooses the column", x->path,
                     (long long)x->line, MOST_CLASSES));
}

static qkv_status take_label(void *data, const qkv_labelled *x)
{
    texts *t = data;
    if (t->labels.n == MOST_CLASSES && find_label(&t->labels, x->label) < 0) return too_many(t, x);
    look_at_labelled(&t->look, given.train, x);
    qkv_status status = told(add_label(&t->labels, x->label));
    if (!status && t->words && (status = qkv_word_counts_add(t->words, x->text, x->text_length))) return status;
    return !status && t->words && x->pair ? qkv_word_counts_add(t->words, x->pair, x->pair_length) : status;
}

static qkv_status take_text(void *data, const qkv_labelled *x)
{
    texts *t = data;
    int class_id = find_label(&t->labels, x->label);
    if (class_id < 0)
        return told(fail(QKV_FORMAT, "%s: line %lld: the label \"%.60s\" is not in %s%s", x->path, (long long)x->line, x->label,
                         given.train, header_hint(x)));
    return qkv_pairs_add_text(t->pairs, t->model, x->text, x->text_length, x->pair, x->pair_length, t->max_length,
                              (int32_t)class_id);
}

static qkv_status read_labels(texts *t)
{
    free_labels(&t->labels);
    t->look = (labelled_look){ 0 };
    qkv_status status = read_labelled(given.train, training.strict, false, true, take_label, t, NULL);
    return status ? status : check_labelled(&t->look, &t->labels, given.train, training.quiet);
}

static qkv_status add_labelled_words(void *data, qkv_word_counts *sources, qkv_word_counts *targets)
{
    (void)targets;
    texts *t = data;
    t->words = sources;
    qkv_status status = read_labels(t);
    t->words = NULL;
    return status;
}

/* Published encoders have each their own way from the first token to the classes, and stay what they are. */
static qkv_status adjust_published(const qkv_model *from, qkv_transformer_opts *o)
{
    if (!(qkv_model_info_of(from)->can & QKV_ABILITY_EMBED))
        return fail(QKV_USAGE, "%s is a %s, which has no encoder alone to classify with", training.from,
                    qkv_model_info_of(from)->family);
    const char *pooling = transformer_option_names[TRANSFORMER_pooling];
    if (was_given(pooling) && training.pooling != QKV_POOLING_FIRST)
        return fail(QKV_USAGE, "--%s %s: the classifier of a %s reads the first token", pooling,
                    transformer_value_names[TRANSFORMER_pooling][training.pooling], qkv_model_info_of(from)->family);
    o->head = o->output_bias = 0;
    o->pooling = QKV_POOLING_FIRST;
    o->pooler = strcmp(qkv_model_info_of(from)->family, "distilbert") ? QKV_POOLER_TANH : QKV_POOLER_RELU;
    return QKV_OK;
}

static qkv_status adjust(void *data, const qkv_model *from, qkv_transformer_opts *o)
{
    const texts *t = data;
    o->decoder_layers = 0;
    o->target_vocabulary = 0;
    o->untied = 0;
    o->classes = t->labels.n;
    o->pooling = (qkv_pooling)training.pooling;
    return is_published(from) ? adjust_published(from, o) : QKV_OK;
}

/* ---- validation ---- */

typedef struct measured {
    const qkv_pairs *pairs;
    qkv_batch_opts batches;
} measured;

/* How many of the texts get their class. */
static qkv_status measure_accuracy(const training_job *j, double *accuracy)
{
    const measured *v = j->data;
    qkv_epoch *e = qkv_epoch_new(v->pairs, &v->batches, 0);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .no_grad = 1 });
    qkv_batch b = { 0 };
    int64_t right = 0, classes = qkv_transformer_options(qkv_model_transformer(j->model))->classes;
    qkv_status status = e && t ? QKV_OK : library_failed();
    for (int64_t i = 0; !status && i < qkv_epoch_batches(e); i++) {
        if (qkv_epoch_batch(e, i, &b)) status = library_failed();
        if (status) break;
        qkv_tape_reset(t);
        const qkv_tensor *logits = qkv_classify_batch(j->model, t, &b);
        if (!logits) status = (qkv_tape_status(t), library_failed());
        for (int64_t r = 0; logits && r < b.rows; r++) {
            const float *row = qkv_data(logits) + r * classes;
            int64_t best = 0;
            for (int64_t c = 1; c < classes; c++)
                if (row[c] > row[best]) best = c;
            right += best == b.labels[r * b.target_length];
        }
    }
    qkv_batch_free(&b);
    qkv_tape_free(t);
    qkv_epoch_free(e);
    if (!status) *accuracy = (double)right / (double)qkv_pairs_count(v->pairs);
    return status;
}

static qkv_status validate_classifier(training_job *j, qkv_run_score *score)
{
    const measured *v = j->data;
    double loss, accuracy = 0;
    if (qkv_evaluate(j->model, v->pairs, j->objective, &v->batches, &loss)) return library_failed();
    qkv_status status = measure_accuracy(j, &accuracy);
    if (status) return status;
    score->score = given.metric == BY_LOSS ? -loss : accuracy;
    snprintf(score->words, sizeof score->words, "valid loss %.4f, accuracy %.2f%%", loss, 100 * accuracy);
    snprintf(score->json, sizeof score->json, "\"valid_loss\": %.6f, \"accuracy\": %.6f", loss, accuracy);
    return QKV_OK;
}

/* ---- the command ---- */

/* Each class counts as much as any other: n / (classes * count). */
static void weigh(const texts *t, float *weights)
{
    int64_t n = qkv_pairs_count(t->pairs);
    for (int i = 0; i < t->labels.n; i++) weights[i] = (float)((double)n / ((double)t->labels.n * (double)t->labels.counts[i]));
}

static qkv_status check_classes(const texts *t)
{
    if (t->labels.n > 1) return QKV_OK;
    if (!t->labels.n) return fail(QKV_FORMAT, "%s: there are no texts", given.train);
    return fail(QKV_FORMAT, "%s: every text has the label \"%.60s\": two classes at least are needed", given.train,
                t->labels.names[0]);
}

static qkv_status train_classifier(qkv_model *m, texts *t, qkv_pairs *valid)
{
    float *weights = calloc((size_t)t->labels.n, sizeof *weights);
    measured v = { .pairs = valid };
    training_job j = { .c = &train_classify_command, .model = m, .pairs = t->pairs, .data = &v, .unit = "texts" };
    qkv_pairs *pairs = t->pairs;
    qkv_corpus_read read = { 0 };
    qkv_special_tokens frame;
    t->model = m;
    t->max_length = readable_length(m, training.max_length + 1) - 1; /* the end is not counted */
    qkv_status status = weights ? find_specials(&j, &frame) : fail(QKV_MEMORY, "out of memory");
    if (!status) status = read_labelled(given.train, training.strict, false, training.quiet, take_text, t, &read);
    if (!status) weigh(t, weights);
    if (!status && given.valid) {
        t->pairs = valid;
        status = read_labelled(given.valid, training.strict, false, training.quiet, take_text, t, NULL);
        t->pairs = pairs;
        if (!status && !qkv_pairs_count(valid)) status = fail(QKV_FORMAT, "%s: there are no texts", given.valid);
        v.batches = (qkv_batch_opts){ .max_tokens = training.max_tokens, .start = j.start, .end = j.end, .pad = j.pad };
        j.validate = validate_classifier;
    }
    const qkv_objective objective = qkv_classifying(given.balance ? weights : NULL, t->labels.n);
    j.objective = &objective;
    j.read = (training_data){ .noun = "texts", .empty = read.empty, .valid = qkv_pairs_count(valid), .labels = &t->labels };
    if (!status && qkv_model_set_labels(m, (const char *const *)t->labels.names, t->labels.n)) status = library_failed();
    if (!status) status = run_training(&j);
    free(weights);
    return status;
}

/* Fewer and larger steps than translation's: little text, seen a few times. */
static void set_defaults(void)
{
    if (!was_given("schedule")) training.schedule = 2; /* linear */
    if (!was_given("lr")) training.lr = 5e-4f;
    if (!training.steps && !training.epochs && !(training.minutes > 0)) training.epochs = 5;
    if (!was_given("label-smoothing")) training.smoothing = 0;
    if (!was_given("max-tokens")) training.max_tokens = 4096;
}

static qkv_status run_train_classify(void)
{
    texts *t = calloc(1, sizeof *t);
    set_defaults();
    qkv_status status = t ? check_training_folder(&train_classify_command) : fail(QKV_MEMORY, "out of memory");
    bool learns = !training.from && !training.tokenizer && !training.resume; /* then the labels come with the words */
    if (!status && !learns) status = read_labels(t);
    const training_plan plan = { .add_words = add_labelled_words, .adjust = adjust, .data = t };
    qkv_model *m = status ? NULL : training_start(&plan, &status);
    qkv_pairs *valid = qkv_pairs_new();
    if (t) t->pairs = qkv_pairs_new();
    if (m && (!valid || !t->pairs)) status = library_failed();
    if (m && !status) status = check_classes(t);
    if (m && !status) status = train_classifier(m, t, valid);
    qkv_pairs_free(valid);
    if (t) qkv_pairs_free(t->pairs), free_labels(&t->labels);
    free(t);
    qkv_model_free(m);
    return leave_training_folder(status);
}

const command train_classify_command = {
    .name = "train classify",
    .summary = "train a classifier on labelled texts",
    .about = "Learns which class a text belongs to, and writes a model folder that \"qkv\n"
             "classify -m DIR\" uses. Texts come as TSV (label TAB text, and TAB second text for\n"
             "pairs; or columns by name or number), CSV with a header, JSON lines, or a folder\n"
             "of LABEL/*.txt as the IMDb reviews are; plain or gzip. A header that is read as a\n"
             "text, or labels that hardly occur twice, are refused before anything is trained.\n"
             "\n"
             "An encoder reads " QKV_SPECIAL_START " text " QKV_SPECIAL_END
             ", cut after --max-length tokens (256 unless given);\n"
             "its hidden states are pooled and classified. Defaults: linear schedule from 1e-3,\n"
             "5 epochs, no label smoothing; all else as in \"qkv train translate\". --from DIR\n"
             "starts with the encoder of another model, such as one of \"qkv train mask\".",
    .example = "  qkv train classify --train train.tsv --valid valid.tsv \\\n"
               "    --preset tiny --tokens words --out reviews",
    .options = options,
    .run = run_train_classify,
};
