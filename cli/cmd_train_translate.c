/* cmd_train_translate.c: qkv train translate: pairs of lines in, a translator out. */
#include "lines.h"
#include "training.h"
#include "translations.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BY_LOSS, BY_BLEU };
static const char *const metric_names[] = { "loss", "bleu", NULL };
static const char *const bleu_names[] = { "13a", "zh", "char", "intl", "none", NULL }; /* in the order of qkv_score_tokenizer */

static struct {
    value_list train, valid;
    int metric, bleu;
    bool separate;
} given;

#define ROW_OF_TRANSLATE TRANSFORMER_ROW
static const option options[] = {
    { "train", .group = DATA_GROUP, .value = "FILES",
      .help = "source and target, line by line; or one file \"source TAB target\"", .required = true, .list = &given.train },
    { "valid", .group = DATA_GROUP, .value = "FILES", .help = "the same, to measure progress on", .list = &given.valid },
    TOKENIZER_OPTIONS,
    { "separate", .group = DATA_GROUP, .help = "source and target have a vocabulary each", .flag = &given.separate },
    { "metric", .group = STOPPING_GROUP, .value = "NAME",
      .help = "what is best: the lowest loss (unless given) or the highest bleu", .choice = &given.metric,
      .names = metric_names },
    { "bleu-tokenizer", .group = STOPPING_GROUP, .value = "NAME", .help = "13a (unless given), zh, char, intl or none",
      .choice = &given.bleu, .names = bleu_names },
#include "transformer_rows.h"
    TRAINING_OPTIONS("paper (unless given), constant, linear or cosine", "0.1", "2048"),
    TRAINING_LIMITS("30"),
    { 0 },
};

static const char *second(const value_list *l) { return l->n > 1 ? l->at[1] : NULL; }

/* ---- the text ---- */

static void tell_left_out(const value_list *files, const qkv_corpus_read *read)
{
    const char *name = files->at[0];
    if (training.quiet) return;
    tell_repaired(name, read->repaired, read->first_repaired);
    if (files->n > 1) tell_repaired(files->at[1], read->target_repaired, read->first_target_repaired);
    if (read->empty)
        fprintf(stderr, "qkv: %s: %lld pairs have an empty side, the first is line %lld: left out\n", name,
                (long long)read->empty, (long long)read->first_empty);
    if (read->too_long)
        fprintf(stderr, "qkv: %s: %lld pairs have more than --max-length %d tokens, the first is line %lld: left out\n", name,
                (long long)read->too_long, training.max_length, (long long)read->first_too_long);
}

static qkv_status add_pair_words(void *data, qkv_word_counts *sources, qkv_word_counts *targets)
{
    (void)data;
    const qkv_corpus_opts opts = { .strict = training.strict };
    if (qkv_word_counts_add_corpus(sources, targets, given.train.at[0], second(&given.train), &opts, NULL))
        return library_failed();
    return QKV_OK;
}

static qkv_status add_pairs(qkv_pairs *p, const qkv_model *m, const value_list *files, int64_t max_length,
                            qkv_corpus_read *read)
{
    if (qkv_pairs_add_corpus(p, qkv_model_source_tokenizer(m), qkv_model_target_tokenizer(m), files->at[0], second(files),
                             &(qkv_corpus_opts){ .strict = training.strict, .max_length = max_length }, read))
        return library_failed();
    tell_left_out(files, read);
    return QKV_OK;
}

/* ---- validation ---- */

typedef struct valid_text {
    const qkv_pairs *pairs;
    qkv_batch_opts batches;
    char **sources, **references; /* the lines as they stand in the files, n each, for BLEU */
    int64_t n, room;
} valid_text;

static bool has_room(valid_text *v)
{
    if (v->n < v->room) return true;
    int64_t room = v->room ? 2 * v->room : 1024;
    char **sources = realloc(v->sources, (size_t)room * sizeof *sources);
    if (sources) v->sources = sources;
    char **references = realloc(v->references, (size_t)room * sizeof *references);
    if (references) v->references = references;
    if (sources && references) v->room = room;
    return sources && references;
}

/* Pairs that training would leave out too: "qkv translate" and "qkv score" leave none out. */
static qkv_status add_lines(void *data, const char *source, size_t n, const char *target, size_t m)
{
    valid_text *v = data;
    if (!has_room(v)) return QKV_MEMORY;
    char *from = strndup(source, n), *to = strndup(target, m);
    if (!from || !to) return free(from), free(to), QKV_MEMORY;
    v->sources[v->n] = from;
    v->references[v->n++] = to;
    return QKV_OK;
}

static qkv_status read_valid_lines(valid_text *v)
{
    qkv_status status = qkv_corpus_each(given.valid.at[0], second(&given.valid),
                                        &(qkv_corpus_opts){ .strict = training.strict }, add_lines, v);
    return status == QKV_MEMORY ? fail(status, "out of memory") : status ? library_failed() : QKV_OK;
}

static void free_valid_lines(valid_text *v)
{
    for (int64_t i = 0; i < v->n; i++) free(v->sources[i]), free(v->references[i]);
    free(v->sources);
    free(v->references);
}

/* As "qkv translate" prints it: nothing for a line that is too long. */
static char *printed_line(const qkv_translations *t, int64_t i)
{
    char *line = strdup(t->status[i] ? "" : t->best[i].text);
    for (char *c = line; c && *c; c++) *c = line_byte(*c);
    return line;
}

static qkv_status score_lines(const valid_text *v, const qkv_translations *t, double *bleu)
{
    const char *const *references[] = { (const char *const *)v->references };
    char **printed = calloc((size_t)v->n, sizeof *printed);
    bool has_all = printed;
    qkv_bleu_score score = { 0 };
    for (int64_t i = 0; has_all && i < v->n; i++) has_all = (printed[i] = printed_line(t, i));
    const qkv_bleu_opts opts = { .tokenizer = (qkv_score_tokenizer)given.bleu };
    qkv_status status = !has_all ? fail(QKV_MEMORY, "out of memory")
                        : qkv_bleu((const char *const *)printed, references, 1, v->n, &opts, &score) ? library_failed()
                                                                                                     : QKV_OK;
    for (int64_t i = 0; printed && i < v->n; i++) free(printed[i]);
    free(printed);
    *bleu = score.score;
    return status;
}

/* What "qkv translate" and "qkv score" give: lines as they are, and the search that translate has without options. */
static qkv_status measure_bleu(const training_job *j, double *bleu)
{
    const valid_text *v = j->data;
    qkv_translations out = { 0 };
    qkv_status status = qkv_translate(j->model, (const char *const *)v->sources, NULL, v->n, NULL, &out) ? library_failed()
                                                                                                         : QKV_OK;
    if (!status) status = score_lines(v, &out, bleu);
    qkv_translations_free(&out);
    return status;
}

static qkv_status validate_translator(training_job *j, qkv_run_score *score)
{
    const valid_text *v = j->data;
    double loss, bleu;
    if (qkv_evaluate(j->model, v->pairs, NULL, &v->batches, &loss)) return library_failed();
    score->score = -loss;
    snprintf(score->words, sizeof score->words, "valid loss %.4f", loss);
    snprintf(score->json, sizeof score->json, "\"valid_loss\": %.6f", loss);
    if (given.metric != BY_BLEU) return QKV_OK;
    qkv_status status = measure_bleu(j, &bleu);
    if (status) return status;
    /* BLEU that reads the same is the same: 0.00 for long, while the loss falls. */
    score->score = round(100 * bleu) / 100;
    score->loss = loss;
    snprintf(score->words, sizeof score->words, "valid loss %.4f, BLEU %.2f", loss, bleu);
    snprintf(score->json, sizeof score->json, "\"valid_loss\": %.6f, \"bleu\": %.4f", loss, bleu);
    return QKV_OK;
}

/* ---- the command ---- */

static qkv_status check_files(const char *name, const value_list *l)
{
    return l->n <= 2 ? QKV_OK : fail(QKV_USAGE, "--%s: %d files; expected source and target, or one with both", name, l->n);
}

/* Less than one batch teaches the same sentences over and over; that is rarely what was meant. */
static qkv_status check_enough(const training_job *j)
{
    qkv_epoch *e = qkv_epoch_new(j->pairs, &(qkv_batch_opts){ .max_tokens = training.max_tokens }, 0);
    if (!e) return library_failed();
    int64_t batches = qkv_epoch_batches(e), pairs = qkv_pairs_count(j->pairs);
    qkv_epoch_free(e);
    if (batches > 1) return QKV_OK;
    return fail(
        QKV_FORMAT,
        "%s: it ends at line %lld: %lld pairs do not fill one batch of %d tokens: give more text or a smaller --max-tokens",
        given.train.at[0], (long long)pairs, (long long)pairs, training.max_tokens);
}

static qkv_status train_translator(qkv_model *m, qkv_pairs *pairs, qkv_pairs *valid)
{
    valid_text v = { .pairs = valid };
    training_job j = { .c = &train_translate_command, .model = m, .pairs = pairs, .data = &v };
    qkv_corpus_read read = { 0 }, valid_read = { 0 };
    qkv_special_tokens frame;
    qkv_status status = find_specials(&j, &frame);
    if (!status) status = add_pairs(pairs, m, &given.train, training.max_length, &read);
    if (!status) status = check_enough(&j);
    if (!status && given.valid.n) status = add_pairs(valid, m, &given.valid, 0, &valid_read);
    j.read = (training_data){ .noun = "pairs", .empty = read.empty, .too_long = read.too_long, .valid = valid_read.pairs };
    if (!status && given.valid.n) {
        v.batches = (qkv_batch_opts){ .max_tokens = training.max_tokens,
                                      .in_order = 1,
                                      .start = j.start,
                                      .end = j.end,
                                      .pad = j.pad,
                                      .bare_source = j.bare_source };
        j.validate = validate_translator;
        if (given.metric == BY_BLEU) status = read_valid_lines(&v);
    }
    if (!status) status = run_training(&j);
    free_valid_lines(&v);
    return status;
}

static qkv_status run_train_translate(void)
{
    qkv_status status = check_files("train", &given.train);
    if (!status) status = check_files("valid", &given.valid);
    if (!status && given.separate && training.tokenizer)
        status = fail(QKV_USAGE, "--tokenizer is one vocabulary, --separate two");
    if (!status && given.metric == BY_BLEU && !given.valid.n) status = fail(QKV_USAGE, "--metric bleu needs --valid");
    if (!status) status = check_training_folder(&train_translate_command);
    if (status) return status;
    const training_plan plan = { .add_words = add_pair_words, .separate = given.separate };
    qkv_model *m = training_start(&plan, &status);
    qkv_pairs *pairs = qkv_pairs_new(), *valid = qkv_pairs_new();
    if (m) status = pairs && valid ? train_translator(m, pairs, valid) : library_failed();
    qkv_pairs_free(valid);
    qkv_pairs_free(pairs);
    qkv_model_free(m);
    return leave_training_folder(status);
}

const command train_translate_command = {
    .name = "train translate",
    .summary = "train a translator on pairs of lines",
    .about = "Learns to translate from two aligned text files, plain or gzip, and writes a\n"
             "model folder that \"qkv translate -m DIR\" uses: the best model so far by --valid,\n"
             "or the last one without. Defaults are the paper's: Adam, 4000 steps of warm-up,\n"
             "label smoothing 0.1; the preset sets the size.\n"
             "\n"
             "Beside the model, DIR holds checkpoint.safetensors, from which the same command\n"
             "with --resume goes on bit for bit as if it had never stopped; training.json, the\n"
             "record; log.jsonl, a line for each report and validation. Ctrl-C saves a\n"
             "checkpoint and ends with status 130. The result depends on the options and the\n"
             "text alone, not on threads; --minutes makes it depend on the machine's speed.\n"
             "\n"
             "--metric bleu translates the --valid lines as \"qkv translate\" does without options,\n"
             "beam search included, and scores them as \"qkv score --metric bleu\" does: the\n"
             "same number. Of equal BLEU, to two digits, the lower loss is better.\n"
             "\n"
             "--keep N keeps the models of the last N validations for \"qkv average\".",
    .example = "  qkv train translate --train train.en train.de.gz \\\n"
               "    --valid val.en val.de --out en-de\n"
               "  qkv train translate --train pairs.tsv --preset tiny --epochs 10 --out toy",
    .options = options,
    .run = run_train_translate,
};
