/* cmd_classify.c: qkv classify: lines in, labels out; or texts with their labels in, and how many were right out. */
#include "confusion.h"
#include "labelled.h"
#include "lines.h"
#include "model.h"
#include "results.h"
#include "streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *model, *eval, *confusion;
    int max_length, batch;
    bool pairs, windows, all, json, strict, quiet;
} given = { .max_length = 256, .batch = 256 };

static const option options[] = {
    { "model", 'm', .group = INPUT_GROUP, .value = "DIR", .help = "the folder of the model", .required = true,
      .text = &given.model },
    WEIGHT_ROWS(INPUT_GROUP),
    TEXT_ROWS(INPUT_GROUP),
    { "pairs", .group = INPUT_GROUP, .help = "lines are pairs: text, TAB, second text", .flag = &given.pairs },
    RESULT_ROW(RESULT_GROUP),
    { "all", .group = RESULT_GROUP, .help = "print the probability of every class", .flag = &given.all },
    { "json", .group = RESULT_GROUP, .help = "print a JSON object a line", .flag = &given.json },
    { "eval", .group = DATA_GROUP, .value = "PATH",
      .help = "labelled texts, as \"qkv train classify\" reads them: print scores", .text = &given.eval },
    { "confusion", .group = DATA_GROUP, .value = "FILE", .help = "write the confusion matrix as CSV too",
      .text = &given.confusion },
    LABELLED_OPTIONS,
    { "max-length", .group = INPUT_GROUP, .value = "N", .help = "tokens read of a text, 256 unless given",
      .count = &given.max_length },
    { "windows", .group = INPUT_GROUP, .help = "read a longer text in windows of as many, and average",
      .flag = &given.windows },
    { "batch", .value = "N", .help = "lines to read and classify at once, 256 unless given", .count = &given.batch },
    { "strict", .group = INPUT_GROUP, .help = "refuse a line that is not UTF-8 instead of repairing it",
      .flag = &given.strict },
    { "quiet", .group = RESULT_GROUP, .help = "tell nothing but errors", .flag = &given.quiet },
    { 0 },
};

/* ---- texts, a group at a time ---- */

typedef struct group {
    qkv_model *model;
    char **texts, **pairs;
    size_t *lengths, *pair_lengths;
    int *classes;    /* what they should be, with --eval */
    int64_t n, line; /* line: lines read so far */
    qkv_matrix found;
    qkv_text text;
    int64_t cut;
    confusion confusion;
} group;

/* A copy with a NUL after it. Reports its error. */
static qkv_status copy_text(const char *text, size_t length, char **to, size_t *to_length)
{
    if (!(*to = malloc(length + 1))) return fail(QKV_MEMORY, "out of memory");
    memcpy(*to, text, length);
    (*to)[length] = '\0';
    *to_length = length;
    return QKV_OK;
}

static void empty_group(group *g)
{
    for (int64_t i = 0; i < g->n; i++) {
        free(g->texts[i]), free(g->pairs[i]);
        g->texts[i] = g->pairs[i] = NULL;
    }
    g->n = 0;
}

static qkv_status run_group(group *g)
{
    const qkv_texts texts = { .texts = (const char *const *)g->texts,
                              .pairs = g->pairs[0] ? (const char *const *)g->pairs : NULL,
                              .lengths = g->lengths,
                              .pair_lengths = g->pair_lengths,
                              .n = g->n };
    const qkv_reading_opts opts = { .max_length = given.max_length, .windows = given.windows };
    if (qkv_classify(g->model, &texts, &opts, &g->found)) return library_failed();
    g->cut += g->found.cut;
    return QKV_OK;
}

static int likeliest(const float *row, int64_t n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

/* ---- lines in, labels out ---- */

static qkv_status print_group(group *g)
{
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < g->n && !status; i++) {
        const float *row = g->found.data + i * g->found.width;
        if (qkv_classified_text(g->model, row, given.all, given.json, &g->text)) status = library_failed();
        else if (given.json) printf("{\"line\": %lld, %s\n", (long long)(g->line - g->n + i + 1), g->text.data + 1);
        else puts(g->text.data);
    }
    fflush(stdout);
    return status;
}

/* A line, or both texts of one. */
static qkv_status take_line(group *g, const text_stream *in, const char *line, size_t length)
{
    const char *tab = given.pairs ? memchr(line, '\t', length) : NULL;
    size_t first = tab ? (size_t)(tab - line) : length;
    qkv_status status = check_line(in, line, length, given.strict, given.quiet);
    if (!status && given.pairs && !tab)
        status = fail(QKV_FORMAT, "%s: line %lld: a pair has a TAB between its texts", in->name, (long long)in->number);
    if (!status) status = copy_text(line, first, &g->texts[g->n], &g->lengths[g->n]);
    if (!status && tab) status = copy_text(tab + 1, length - first - 1, &g->pairs[g->n], &g->pair_lengths[g->n]);
    if (!status) g->n++, g->line++;
    return status;
}

/* Fills the group; *more: whether there may be lines left. */
static qkv_status take_lines(group *g, text_stream *in, char **line, size_t *room, bool *more)
{
    qkv_status status = QKV_OK;
    while (!status && g->n < given.batch && *more) {
        size_t length;
        status = next_line(in, line, room, &length, more);
        while (length && (*line)[length - 1] == '\r') length--;
        if (!status && *more) status = take_line(g, in, *line, length);
    }
    return status;
}

/* What comes before a line that is refused is classified. */
static qkv_status classify_lines(group *g)
{
    text_stream in;
    qkv_status status = open_texts(&in);
    if (!status) status = open_results(&in);
    if (is_typed(&in)) given.batch = 1;
    char *line = NULL;
    size_t room = 0;
    for (bool more = true; !status && more && !ferror(stdout); empty_group(g)) {
        status = take_lines(g, &in, &line, &room, &more);
        qkv_status done = g->n ? run_group(g) : QKV_OK;
        if (!done && g->n) done = print_group(g);
        if (!status) status = done;
    }
    free(line);
    close_texts(&in);
    return status;
}

/* ---- scores ---- */

static qkv_status count_group(group *g)
{
    qkv_status status = g->n ? run_group(g) : QKV_OK;
    for (int64_t i = 0; i < g->n && !status; i++)
        count_answer(&g->confusion, g->classes[i], likeliest(g->found.data + i * g->found.width, g->found.width));
    empty_group(g);
    return status;
}

static qkv_status take_labelled(void *data, const qkv_labelled *x)
{
    group *g = data;
    int class_id = find_class(&g->confusion, x->label);
    if (class_id < 0)
        return told(fail(QKV_FORMAT, "%s: line %lld: the model does not know the label \"%.60s\"%s", x->path,
                         (long long)x->line, x->label, x->line == 1 ? _(": if line 1 is a header, give --header") : ""));
    g->classes[g->n] = class_id;
    qkv_status status = copy_text(x->text, x->text_length, &g->texts[g->n], &g->lengths[g->n]);
    if (!status && x->pair) status = copy_text(x->pair, x->pair_length, &g->pairs[g->n], &g->pair_lengths[g->n]);
    if (!status) g->n++;
    return told(status || g->n < given.batch ? status : count_group(g));
}

static qkv_status evaluate(group *g)
{
    qkv_status status = read_labelled(given.eval, given.strict, false, given.quiet, take_labelled, g, NULL);
    if (!status) status = count_group(g);
    if (!status && !g->confusion.n) status = fail(QKV_FORMAT, "%s: there are no texts", given.eval);
    if (!status) status = open_results(NULL);
    if (!status) status = print_scores(&g->confusion, given.json);
    return status || !given.confusion ? status : write_confusion(&g->confusion, given.confusion);
}

/* ---- from options to the end ---- */

static qkv_status make_room_for_texts(group *g)
{
    size_t n = (size_t)given.batch;
    g->texts = calloc(n, sizeof *g->texts);
    g->pairs = calloc(n, sizeof *g->pairs);
    g->lengths = calloc(n, sizeof *g->lengths);
    g->pair_lengths = calloc(n, sizeof *g->pair_lengths);
    g->classes = calloc(n, sizeof *g->classes);
    bool ok = g->texts && g->pairs && g->lengths && g->pair_lengths && g->classes;
    if (ok) return given.eval ? begin_confusion(&g->confusion, g->model) : QKV_OK;
    return fail(QKV_MEMORY, "out of memory");
}

static void close_all(group *g)
{
    empty_group(g);
    free(g->texts), free(g->pairs), free(g->lengths), free(g->pair_lengths), free(g->classes);
    free_confusion(&g->confusion);
    qkv_matrix_free(&g->found);
    qkv_text_free(&g->text);
    qkv_model_free(g->model);
}

static qkv_status run_classify(void)
{
    group g = { 0 };
    qkv_status status = given.eval ? check_output(given.confusion) : QKV_OK;
    if (given.confusion && !given.eval) status = fail(QKV_USAGE, "--confusion needs --eval");
    if (given.eval && (streams.texts.n || streams.input)) status = fail(QKV_USAGE, "texts and --eval: choose one");
    if (!status) status = load_model(given.model, &g.model);
    if (!status && !qkv_model_label(g.model, 0)) status = fail(QKV_UNSUPPORTED, "%s is not a classifier", given.model);
    if (!status && given.eval && !qkv_model_label(g.model, 1))
        status = fail(QKV_UNSUPPORTED, "%s has one label, and scores texts: --eval needs a model with two or more",
                      given.model);
    if (!status) status = make_room_for_texts(&g);
    if (!status) status = given.eval ? evaluate(&g) : classify_lines(&g);
    if (!status && g.cut && !given.quiet)
        fprintf(stderr, _("qkv: classify: %lld texts are longer than is read at once: %s\n"), (long long)g.cut,
                given.windows ? _("read in windows") : _("cut (--max-length, --windows)"));
    close_all(&g);
    return status;
}

const command classify_command = {
    .name = "classify",
    .summary = "tell which class lines of text belong to",
    .about = "Prints for each text, or line, its label, a TAB and the label's probability; with --all\n"
             "every label and its probability, the likeliest first. A model with one label (a\n"
             "cross-encoder, a reranker, a regression) has no probabilities: printed are the\n"
             "label, 1 / (1 + e^-x) and its logit x. The results are the same bytes with any\n"
             "--batch and any number of threads.\n"
             "\n"
             "--eval reads labelled texts and prints accuracy, precision, recall and F1 of each\n"
             "class and the confusion matrix. A text of more than --max-length tokens is cut,\n"
             "or with --windows read in windows whose probabilities are averaged.",
    .example = "  qkv classify -m reviews \"a great film\" \"a dull plot\"\n"
               "  qkv classify -m reviews --eval test.tsv",
    .options = options,
    .run = run_classify,
};
