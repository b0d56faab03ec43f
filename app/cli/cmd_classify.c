/* cmd_classify.c: qkv classify: lines in, labels out; or texts with their labels in, and how many were right out. */
#include "../report/scores.h"

#include <qkv/unstable/util.h>

#include "../../src/base/json.h"
#include "../report/results.h"
#include "../report/strings.h"
#include "../draw/view.h"
#include "classified_table.h"
#include "lines.h"
#include "model.h"
#include "results.h"
#include "streams.h"
#include "../draw/print_maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *model, *eval, *confusion, *label_column, *label_separator, *text_column, *pair_column, *separator;
    float threshold;
    int max_length, batch;
    bool header, pairs, windows, all, json, strict, quiet, merge_labels;
} given = { .threshold = 0.5f, .max_length = 256, .batch = 256 };

static const option options[] = {
    { "model", 'm', .group = INPUT_GROUP, .value = "DIR", .help = "model folder", .required = true, .text = &given.model },
    WEIGHT_ROWS(INPUT_GROUP),
    TOUCH_ROWS,
    TEXT_ROWS(INPUT_GROUP),
    { "pairs", .is_rare = true, .group = INPUT_GROUP, .help = "lines are pairs: \"text TAB second text\"",
      .flag = &given.pairs },
    RESULT_ROW(RESULT_GROUP),
    { "all", .group = RESULT_GROUP, .help = "print the probability of every class", .flag = &given.all },
    { "threshold", .is_rare = true, .group = RESULT_GROUP, .value = "P",
      .help = "with several labels per text: lowest probability of a predicted label (default: 0.5)",
      .number = &given.threshold },
    { "json", .group = RESULT_GROUP, .help = "print one JSON object per line", .flag = &given.json },
    { "eval", .group = DATA_GROUP, .value = "PATH", .help = "evaluate on labelled texts, in a format of \"qkv train classify\"",
      .text = &given.eval },
    { "confusion", .is_rare = true, .group = DATA_GROUP, .value = "FILE", .help = "also write the confusion matrix as CSV",
      .text = &given.confusion },
    { "header", .is_rare = true, .group = DATA_GROUP, .help = "the first line of each TSV file is a header",
      .flag = &given.header },
    { "separator", .is_rare = true, .group = DATA_GROUP, .value = "CHAR",
      .help = "column separator of tables: tab, or one of , ; | (default: detected)", .text = &given.separator },
    { "merge-labels", .is_rare = true, .group = DATA_GROUP,
      .help = "match labels of --eval in any case and white space (default: as in training)", .flag = &given.merge_labels },
    { "label-column", .group = DATA_GROUP, .value = "NAME", .help = "label column: its name in the header, or its number",
      .text = &given.label_column },
    { "label-separator", .is_rare = true, .group = DATA_GROUP, .value = "TEXT",
      .help = "separator of several labels (default: as in training, else a comma)", .text = &given.label_separator },
    { "text-column", .group = DATA_GROUP, .value = "NAME", .help = "text column: name or number", .text = &given.text_column },
    { "pair-column", .is_rare = true, .group = DATA_GROUP, .value = "NAME", .help = "column of the second text, for pairs",
      .text = &given.pair_column },
    { "max-length", .is_rare = true, .group = INPUT_GROUP, .value = "N", .help = "maximum tokens per text (default: 256)",
      .count = &given.max_length },
    { "windows", .is_rare = true, .group = INPUT_GROUP, .help = "split longer texts into windows of that length and average",
      .flag = &given.windows },
    { "batch", .is_rare = true, .value = "N", .help = "lines classified at a time (default: 256)", .count = &given.batch },
    { "strict", .is_rare = true, .group = INPUT_GROUP,
      .help = "reject lines that are not UTF-8, and texts without a known label", .flag = &given.strict },
    { "quiet", .is_rare = true, .group = RESULT_GROUP, .help = "print errors only", .flag = &given.quiet },
    { 0 },
};

typedef struct work {
    qkv_model *model;
    qkv_str *pairs; /* the second texts of a group of lines */
    qkv_matrix *found;
    qkv_buffer text;
    int64_t cut, empty;
    qkv__json_doc record; /* of the training */
    bool is_table;        /* the lines are a table */
} work;

static qkv_encoder_opts reading_opts(void)
{
    return (qkv_encoder_opts){ .max_length = given.max_length, .windows = given.windows };
}

/* ---- lines in, labels out ---- */

/* Cuts each line at its TAB; without one, the group ends before it. */
static qkv_status split_pairs(work *w, line_group *g)
{
    for (int64_t i = 0; given.pairs && i < g->n; i++) {
        const char *tab = memchr(g->at[i], '\t', g->lengths[i]);
        if (!tab) {
            g->n = i;
            return fail(QKV_FORMAT, "%s: line %lld: a pair has a TAB between its texts", g->name,
                        (long long)(g->before + i + 1));
        }
        w->pairs[i] = (qkv_str){ tab + 1, g->lengths[i] - (size_t)(tab + 1 - g->at[i]) };
        g->lengths[i] = (size_t)(tab - g->at[i]);
    }
    return QKV_OK;
}

/* A library's option of 0 is its default. */
static double threshold(void) { return given.threshold > 0 ? (double)given.threshold : -1; }

/* A text of white space alone says nothing of its class; it would get the likeliest one. */
static bool is_empty_text(const line_group *g, int64_t i)
{
    return !given.pairs && strspn(g->at[i], " \t\r\v\f") == g->lengths[i];
}

static qkv_status print_classes(work *w, const line_group *g)
{
    qkv_status status = QKV_OK;
    const int64_t first = g->before + 1;
    const qkv_classified_opts o = { .size = sizeof o, .threshold = threshold(), .all = given.all, .json = given.json };
    for (int64_t i = 0; i < w->found->rows && !status; i++) {
        const float *row = w->found->data + i * w->found->width;
        if (is_empty_text(g, i)) {
            w->empty++;
            if (given.json) printf("{\"line\": %lld, \"label\": null}\n", (long long)(first + i));
            else putchar('\n');
        } else if (qkv_classified_text_with(w->model, row, &o, &w->text)) status = library_failed();
        else if (given.json) printf("{\"line\": %lld, %s\n", (long long)(first + i), w->text.data + 1);
        else puts(w->text.data);
    }
    return status;
}

/* What comes before a line that is refused is classified. */
static qkv_status classify_group(void *data, line_group *g)
{
    work *w = data;
    qkv_status split = split_pairs(w, g);
    qkv_encoder_opts opts = reading_opts();
    opts.pairs = given.pairs ? w->pairs : NULL;
    if (!g->n) return split;
    qkv_str *texts = qkv__strings_of((const char *const *)g->at, g->lengths, g->n);
    bool failed = !texts || qkv_classify(w->model, texts, g->n, &opts, &w->found);
    free(texts);
    if (failed) return library_failed();
    w->cut += w->found->truncated;
    qkv_status status = print_classes(w, g);
    return status ? status : split;
}

static qkv_status classify_lines(work *w)
{
    text_stream in;
    w->pairs = calloc((size_t)given.batch, sizeof *w->pairs);
    qkv_status status = open_texts(&in);
    if (!status && !w->pairs) status = fail(QKV_MEMORY, "out of memory");
    if (!status) status = open_results(&in);
    if (!status) status = each_group(&in, given.batch, given.strict, given.quiet, classify_group, w);
    close_texts(&in);
    return status;
}

/* ---- columns ---- */

/* The columns that the training read, unless others are chosen, and whether it merged labels. A model without a training has none. */
static bool recall_columns(work *w)
{
    const char **const columns[] = { &given.label_column, &given.text_column, &given.pair_column };
    static const char *const names[] = { "label-column", "text-column", "pair-column" };
    bool has_columns = given.label_column || given.text_column || given.pair_column, has_recalled = false;
    if (!qkv_trainings_text(&given.model, 1, 1, &w->text))
        qkv__json_parse(&(qkv__json_source){ .name = given.model, .text = w->text.data, .length = w->text.length }, &w->record);
    const qkv__json_value *was = qkv__json_get(w->record.top, "options");
    for (int i = 0; i < 3 && !has_columns; i++) {
        const char *name = qkv__json_text(qkv__json_get(was, names[i]));
        if (name && *name) *columns[i] = name, has_recalled = true;
    }
    const char *merges = qkv__json_text(qkv__json_get(was, "merge-labels"));
    given.merge_labels = given.merge_labels || (merges && *merges);
    return has_recalled;
}

static qkv_labelled_opts labelled_opts(work *w)
{
    bool is_recalled = recall_columns(w);
    return (qkv_labelled_opts){ .size = sizeof(qkv_labelled_opts),
                                .label = given.label_column,
                                .text = given.text_column,
                                .pair = given.pair_column,
                                .strict = given.strict,
                                .header = given.header,
                                .separator = given.label_separator,
                                .column_separator = given.separator,
                                .rows = w->is_table,
                                .preferred = is_recalled };
}

static qkv_status classify_columns(work *w)
{
    const qkv_labelled_opts labelled = labelled_opts(w);
    const qkv_encoder_opts reading = reading_opts();
    const qkv_classified_opts said = { .size = sizeof said, .threshold = threshold(), .all = given.all, .json = given.json };
    return classify_table(&(table_task){ .model = w->model,
                                         .how = &labelled,
                                         .reading = &reading,
                                         .said = &said,
                                         .batch = given.batch,
                                         .is_quiet = given.quiet },
                          &w->cut);
}

/* ---- scores ---- */

static qkv_status print_scores(const qkv_confusion *c)
{
    qkv_buffer text = { 0 };
    qkv_status status = print_text(qkv_classes_text(c->counts, c->classes, c->labels, given.json, &text), &text);
    if (!status && !given.json && c->classes > 20) puts(_("\nconfusion: more than 20 classes; see --confusion"));
    if (status || !given.confusion) return status;
    status = qkv_classes_csv(c->counts, c->classes, c->labels, &text);
    if (!status) status = qkv_file_write(given.confusion, text.data, text.length);
    qkv_buffer_free(&text);
    return status ? library_failed() : QKV_OK;
}

/* Several labels a text, or numbers. */
static qkv_status evaluate_others(work *w, const qkv_classify_labelled_opts *opts)
{
    qkv_labelled_score score;
    if (given.confusion) return fail(QKV_USAGE, "--confusion is of models with one label a text");
    if (qkv_score_labelled(w->model, given.eval, opts, given.json, &score, &w->text)) return library_failed();
    w->cut = score.cut;
    qkv_status status = open_results(NULL);
    if (!status) fputs(w->text.data, stdout);
    return status;
}

static qkv_status evaluate(work *w)
{
    const qkv_labelled_opts labelled = labelled_opts(w);
    const qkv_encoder_opts reading = reading_opts();
    const qkv_classify_labelled_opts opts = { .size = sizeof opts,
                                              .labelled = &labelled,
                                              .reading = &reading,
                                              .batch = given.batch,
                                              .note = given.quiet ? NULL : tell_note,
                                              .threshold = threshold(),
                                              .merge_labels = given.merge_labels };
    qkv_confusion c = { 0 };
    if (qkv_model_get_info(w->model)->problem) return evaluate_others(w, &opts);
    if (qkv_classify_labelled(w->model, given.eval, &opts, &c)) return library_failed();
    w->cut = c.cut;
    qkv_status status = open_results(NULL);
    if (!status) status = print_scores(&c);
    qkv_confusion_free(&c);
    return status;
}

/* ---- from options to the end ---- */

static qkv_status check_classify_options(work *w)
{
    bool has_columns = given.text_column || given.pair_column || given.separator || given.header;
    w->is_table = !given.eval && !given.pairs && !streams.texts.n &&
                  (has_columns || (streams.input && is_table_path(streams.input)));
    if (has_columns && !given.eval && !w->is_table)
        return fail(QKV_USAGE, "columns are of tables: give --input FILE, or --eval FILE, and no texts and no --pairs");
    if (w->is_table && check_table_output(given.json)) return QKV_USAGE;
    if (given.confusion && !given.eval) return fail(QKV_USAGE, "--confusion needs --eval");
    if (!(given.threshold >= 0 && given.threshold <= 1))
        return fail(QKV_USAGE, "--threshold: %g is not from 0 to 1", (double)given.threshold);
    if (given.eval && (streams.texts.n || streams.input)) return fail(QKV_USAGE, "texts and --eval: choose one");
    return check_output(given.confusion);
}

static qkv_status load_classifier(work *w)
{
    qkv_status status = load_touched_model(given.model, QKV_CAN_CLASSIFY, &w->model);
    if (!status && was_given("threshold") && qkv_model_get_info(w->model)->problem != QKV_PROBLEM_MULTILABEL)
        return fail(QKV_USAGE, "--threshold is for models of several labels a text, and %s is none", given.model);
    if (status || !given.eval || qkv_model_label(w->model, 1) || qkv_model_get_info(w->model)->problem) return status;
    return fail(QKV_UNSUPPORTED, "%s has one label, and scores texts: --eval needs a model with two or more", given.model);
}

static qkv_status run_classify(void)
{
    work w = { 0 };
    qkv_status status = check_classify_options(&w);
    if (!status) status = load_classifier(&w);
    if (!status) status = given.eval ? evaluate(&w) : w.is_table ? classify_columns(&w) : classify_lines(&w);
    if (!status && w.cut && !given.quiet)
        fprintf(stderr, _("qkv: classify: texts too long to be read at once: %lld: %s\n"), (long long)w.cut,
                given.windows ? _("read in windows") : _("cut (--max-length, --windows)"));
    if (!status && w.empty && !given.quiet)
        fprintf(stderr, _("qkv: classify: empty texts: %lld: no label\n"), (long long)w.empty);
    free(w.pairs);
    qkv_free(w.found);
    qkv_buffer_free(&w.text);
    qkv__json_free(&w.record);
    qkv_model_free(w.model);
    return status;
}

const command classify_command = {
    .name = "classify",
    .summary = "classify text",
    .about =
        "Prints for each text, or line, its label, a TAB and the label's probability; with --all\n"
        "every label and its probability, the likeliest first. A model with one label (a\n"
        "cross-encoder, a reranker, a regression) has no probabilities: printed are the\n"
        "label, 1 / (1 + e^-x) and its logit x. Where a text may have several labels, those\n"
        "whose probability is at least --threshold are printed, which may be none; a model\n"
        "that tells numbers prints the number. An empty line gives an empty line. The results are the same bytes with any\n"
        "--batch and any number of threads.\n"
        "\n"
        "An --input that ends in .csv, .tsv, .jsonl or .json, or one with --text-column,\n"
        "--separator or --header, is a table. Its text column is that of the training, \"text\",\n"
        "the only one, or of TSV without a header the second. --out FILE.csv or FILE.tsv\n"
        "writes its columns with the prediction and its probability, FILE.jsonl adds both to\n"
        "JSON lines. A row without a text has no prediction.\n"
        "\n"
        "--eval reads labelled texts and prints accuracy, precision, recall and F1 of each\n"
        "class and the confusion matrix; of several labels a text micro and macro F1 and\n"
        "how many texts have just what was said; of numbers the root of the mean squared\n"
        "error, the mean error and the correlations of Pearson and Spearman. A text of more than --max-length tokens is cut,\n"
        "or with --windows read in windows whose probabilities are averaged. Texts with no\n"
        "label, or with one that the model does not know, are counted and left out.",
    .example = "  qkv classify -m reviews \"a great film\" \"a dull plot\"\n"
               "  qkv classify -m reviews --eval test.tsv\n"
               "  qkv classify -m tickets -i tickets.csv -o labelled.csv",
    .options = options,
    .run = run_classify,
    .is_shared = true,
};
