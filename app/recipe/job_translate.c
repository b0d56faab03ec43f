/* job_translate.c: training a translator: pairs of lines in. */
#include "fit_length.h"
#include "../../src/data/corpus.h"
#include "job.h"
#include "share_text.h"
#include "training.h"

#include "../../src/base/clock.h"
#include "../../src/base/memory.h"
#include "../../src/base/size.h"
#include "../../src/model/model_info.h"
#include "../../src/task/translate.h"
#include "../../src/base/buffer.h"
#include "../../src/data/pairs.h"
#include "../../src/train/plan.h"

#include <qkv/unstable/dist.h>
#include <qkv/unstable/util.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { BY_LOSS, BY_BLEU, BY_STEP }; /* --metric */
enum { FIT_NOTHING, FIT_LENGTH };   /* --fit */

static const char *second_file(const qkv__paths *f) { return f->n > 1 ? f->at[1] : NULL; }

/* The --valid files, or those of --train, of which a part is held back. */
static const qkv__paths *valid_files(const qkv_training *t) { return t->o.v.valid.n ? &t->o.v.valid : &t->o.v.train_pairs; }

static qkv_corpus_opts reading_opts(const qkv_training *t, bool held)
{
    qkv_corpus_opts o = { .size = sizeof o, .strict = t->o.v.strict };
    o.held_every = qkv__held_every(t);
    o.held = held;
    return o;
}

static bool has_valid(const qkv_training *t) { return t->o.v.valid.n || t->o.v.split > 0; }

/* ---- options ---- */

static qkv_status check_pair_files(const char *name, const qkv__paths *f)
{
    if (f->n <= 2) return QKV_OK;
    return qkv__fail(QKV_USAGE, "--%s: %d files; expected source and target, or one with both", name, f->n);
}

static qkv_status check_has_valid(const qkv_training *t)
{
    const char *what = t->o.v.metric == BY_BLEU ? "--metric bleu" : t->o.v.fit == FIT_LENGTH ? "--fit length" : NULL;
    return has_valid(t) || !what ? QKV_OK : qkv__fail(QKV_USAGE, "%s needs --valid, or --split", what);
}

static qkv_status check_translation(const qkv_training *t)
{
    const qkv__training_values *v = &t->o.v;
    qkv_status status = check_pair_files("train", &v->train_pairs);
    if (!status) status = check_pair_files("valid", &v->valid);
    if (!status && v->separate && v->tokenizer) status = qkv__fail(QKV_USAGE, "--tokenizer is one vocabulary, --separate two");
    if (!status && (v->paper || QKV__IS_SET(&t->o, split))) status = check_has_valid(t); /* else a rule may hold text back */
    return status;
}

static void set_paper_translation(qkv_training *t)
{
    t->o.v.smoothing = 0.1f;
    t->o.v.max_tokens = 2048;
    t->o.v.patience = 5;
    if (!t->o.v.steps && !t->o.v.epochs && !(t->o.v.minutes > 0)) t->o.v.epochs = 30;
}

/* ---- the text ---- */

/* A word that columns of pairs are called by. */
static bool is_column_name(const char *text, size_t length)
{
    static const char *const names[] = {
        "source",  "src",      "input",   "sentence", "target",     "tgt",        "trg",    "output", "translation",
        "english", "german",   "french",  "spanish",  "italian",    "portuguese", "dutch",  "polish", "czech",
        "russian", "japanese", "chinese", "korean",   "vietnamese", "turkish",    "arabic", "hindi",  "en",
        "de",      "fr",       "es",      "it",       "pt",         "nl",         "pl",     "cs",     "ru",
        "ja",      "zh",       "ko",      "vi",       "tr",         "ar",         "hi",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && !strncasecmp(names[i], text, length)) return true;
    return false;
}

static qkv_status survey_pair(void *data, qkv_str source, qkv_str target)
{
    qkv__survey *s = data;
    if (!source.length || !target.length) return QKV_OK;
    if (!s->texts++) s->is_header = is_column_name(source.data, source.length) && is_column_name(target.data, target.length);
    qkv__survey_text(s, target.data, target.length);
    return QKV_OK;
}

static qkv_status survey_pairs(qkv_training *t, qkv__survey *s)
{
    const qkv_corpus_opts opts = { .strict = t->o.v.strict };
    const qkv__paths *f = &t->o.v.train_pairs;
    qkv_status status = qkv_read_pairs(f->at[0], second_file(f), &opts, survey_pair, s);
    if (!status && s->is_header)
        qkv__training_note(t, "%s: the first pair is column names, not sentences: remove that line", f->at[0]);
    return status;
}

static qkv_status add_pair_words(qkv_training *t, qkv_word_counts *sources, qkv_word_counts *targets)
{
    const qkv_corpus_opts opts = reading_opts(t, false);
    const qkv__paths *f = &t->o.v.train_pairs;
    return qkv__word_counts_add_corpus(sources, targets, f->at[0], second_file(f), &opts, NULL);
}

static qkv_status keep_model_options(qkv_training *t, const qkv_model *from, qkv_config *o)
{
    (void)t, (void)from, (void)o;
    return QKV_OK;
}

static void note_left_out(const qkv_training *t, const qkv__paths *f, const qkv_read_stats *read)
{
    qkv__tell_repaired(qkv__training_notes(t), f->at[0], read->repaired, read->first_repaired);
    if (f->n > 1) qkv__tell_repaired(qkv__training_notes(t), f->at[1], read->target_repaired, read->first_target_repaired);
    if (read->empty)
        qkv__training_note(t, "%s: %lld pairs have an empty side, the first is line %lld: left out", f->at[0],
                           (long long)read->empty, (long long)read->first_empty);
    if (read->too_long)
        qkv__training_note(t, "%s: %lld pairs have more than --max-length %d tokens, the first is line %lld: left out",
                           f->at[0], (long long)read->too_long, t->o.v.max_length, (long long)read->first_too_long);
}

static qkv_status add_pairs(const qkv_training *t, qkv_dataset *p, const qkv__paths *f, bool held, int64_t max_length,
                            qkv_read_stats *read)
{
    qkv_corpus_opts opts = reading_opts(t, held);
    opts.max_length = max_length;
    qkv_status status = qkv_dataset_add_files(p, t->model, f->at[0], second_file(f), &opts, read);
    if (!status && (!held || t->o.v.valid.n)) note_left_out(t, f, read); /* what is held back was told with the rest */
    return status;
}

/* Less than one batch teaches the same sentences over and over; that is rarely what was meant. */
static qkv_status check_enough(const qkv_training *t)
{
    qkv_loader *e = qkv_loader_new(t->pairs, &(qkv_batch_opts){ .max_tokens = t->o.v.max_tokens }, 0);
    if (!e) return qkv_error_status();
    int64_t batches = qkv_loader_size(e), pairs = qkv_dataset_size(t->pairs);
    qkv_loader_free(e);
    if (batches > 1) return QKV_OK;
    return qkv__fail(
        QKV_FORMAT,
        "%s: it ends at line %lld: %lld pairs do not fill one batch of %d tokens: give more text or a smaller --max-tokens",
        t->o.v.train_pairs.at[0], (long long)pairs, (long long)pairs, t->o.v.max_tokens);
}

/* ---- validation lines as they stand in the files ---- */

/* Up to a NUL, as a C string has it. */
static char *copy_line(qkv_str text)
{
    size_t n = strnlen(text.data, text.length);
    char *copy = qkv__alloc(n + 1);
    if (copy) memcpy(copy, text.data, n), copy[n] = '\0';
    return copy;
}

/* Pairs that training would leave out too: "qkv translate" and "qkv score" leave none out. */
static qkv_status keep_valid_line(void *data, qkv_str source, qkv_str target)
{
    qkv__valid_lines *l = data;
    size_t wanted = sizeof(char *) * (size_t)(l->n + 1);
    qkv_status status = qkv__grow((void **)&l->sources, &l->sources_bytes, wanted);
    if (!status) status = qkv__grow((void **)&l->references, &l->references_bytes, wanted);
    char *from = status ? NULL : copy_line(source), *to = from ? copy_line(target) : NULL;
    if (!to) return qkv__release_text(from), QKV_MEMORY;
    l->sources[l->n] = from;
    l->references[l->n++] = to;
    return QKV_OK;
}

static qkv_status read_valid_lines(qkv_training *t)
{
    const qkv__paths *f = valid_files(t);
    const qkv_corpus_opts opts = reading_opts(t, true);
    return qkv_read_pairs(f->at[0], second_file(f), &opts, keep_valid_line, &t->lines);
}

typedef struct shared_lines {
    qkv__valid_lines *lines;
    char *source; /* that waits for its reference */
} shared_lines;

static qkv_status take_shared_line(void *data, const char *line)
{
    shared_lines *s = data;
    if (!s->source) return (s->source = copy_line(qkv_cstr(line))) ? QKV_OK : QKV_MEMORY;
    qkv_status status = keep_valid_line(s->lines, qkv_cstr(s->source), qkv_cstr(line));
    qkv__release_text(s->source);
    s->source = NULL;
    return status;
}

/* Those of rank 0 to the others. */
static qkv_status share_valid_lines(qkv_training *t)
{
    int64_t n = 2 * t->lines.n;
    shared_lines s = { .lines = &t->lines };
    char **both = qkv__alloc(sizeof *both * (size_t)(n + 1));
    if (!both) return QKV_MEMORY;
    for (int64_t i = 0; i < n; i++) both[i] = (i % 2 ? t->lines.references : t->lines.sources)[i / 2];
    qkv_status status = qkv__share_lines(both, n, take_shared_line, &s);
    qkv__release_text(s.source);
    qkv__release(both, sizeof *both * (size_t)(n + 1));
    return status;
}

/* All ranks measure; samples are rank 0's. */
static qkv_status find_valid_lines(qkv_training *t)
{
    bool is_for_all = t->o.v.metric == BY_BLEU || t->o.v.fit == FIT_LENGTH;
    qkv_status status = !qkv_dist_rank() && (is_for_all || t->watch.n_samples > 0) ? read_valid_lines(t) : QKV_OK;
    if (qkv_dist_size() == 1) return status;
    status = qkv__share_status(status);
    return status || !is_for_all ? status : share_valid_lines(t);
}

/* ---- languages ---- */

/* The last suffix of a file name, without ".gz" and ".txt", if it is a language code, else NULL. *stem: bytes before it. */
static const char *language_suffix(const char *path, char code[16], size_t *stem)
{
    static const char *const roles[] = { "src", "tgt", "trg", "ref", "hyp", "sys", "out",
                                         "tok", "bpe", "raw", "tsv", "csv", "txt", NULL };
    static const char *const after[] = { ".gz", ".txt" };
    size_t length = strlen(path);
    for (int i = 0; i < 2; i++)
        if (length > strlen(after[i]) && !memcmp(path + length - strlen(after[i]), after[i], strlen(after[i])))
            length -= strlen(after[i]);
    size_t at = length;
    while (at && path[at - 1] != '.' && path[at - 1] != '/') at--;
    if (at < 2 || path[at - 1] != '.' || path[at - 2] == '/' || length - at >= 16) return NULL;
    memcpy(code, path + at, length - at);
    code[length - at] = '\0';
    *stem = at;
    for (int i = 0; roles[i]; i++)
        if (!strcmp(code, roles[i])) return NULL;
    return qkv__is_language_code(code) ? code : NULL;
}

/* As files such as train.en and train.de have them, which differ in that alone. */
static void note_languages(qkv_training *t)
{
    const qkv__paths *f = &t->o.v.train_pairs;
    char source[16], target[16];
    size_t n, m;
    if (f->n != 2 || !language_suffix(f->at[0], source, &n) || !language_suffix(f->at[1], target, &m)) return;
    const size_t rest = strlen(f->at[0]) - n - strlen(source);
    const bool differ_in_it = n == m && !memcmp(f->at[0], f->at[1], n) && strcmp(source, target) != 0 &&
                              strlen(f->at[1]) - m - strlen(target) == rest;
    if (differ_in_it) qkv__model_set_languages(t->model, source, target);
}

typedef struct pairs_read {
    qkv_read_stats train, valid;
    int64_t sentences; /* of a source line, 99th percentile */
} pairs_read;

enum { MOST_SENTENCES = 1024 }; /* of a line that are told apart */

static qkv_status count_sentences(void *data, qkv_str source, qkv_str target)
{
    int64_t *lines = data, sentences = 0;
    (void)target;
    for (qkv_span s = { 0, 0 }; sentences < MOST_SENTENCES && qkv_sentence_next(source.data, source.length, &s);) sentences++;
    lines[sentences]++;
    return QKV_OK;
}

/* A line with more is split before it is translated, see QKV_SPLIT_AUTO. */
static qkv_status measure_sentences(const qkv_training *t, int64_t *percentile)
{
    int64_t lines[MOST_SENTENCES + 1] = { 0 }, all = 0, upto = 0;
    const qkv_corpus_opts opts = reading_opts(t, false);
    const qkv__paths *f = &t->o.v.train_pairs;
    qkv_status status = qkv_read_pairs(f->at[0], second_file(f), &opts, count_sentences, lines);
    for (int i = 1; i <= MOST_SENTENCES; i++) all += lines[i];
    for (*percentile = 1; *percentile < MOST_SENTENCES; ++*percentile)
        if (100 * (upto += lines[*percentile]) >= 99 * all) break;
    return status;
}

static qkv_status read_both(qkv_training *t, void *told)
{
    pairs_read *read = told;
    qkv_status status = add_pairs(t, t->pairs, &t->o.v.train_pairs, false, t->o.v.max_length, &read->train);
    if (!status) status = check_enough(t);
    if (!status) status = measure_sentences(t, &read->sentences);
    bool is_held = t->o.v.split > 0 && qkv__held_every(t) <= read->train.lines;
    bool has_more = t->o.v.valid.n || is_held;
    return !status && has_more ? add_pairs(t, t->valid, valid_files(t), true, 0, &read->valid) : status;
}

static qkv_status read_pairs(qkv_training *t)
{
    pairs_read read = { 0 };
    qkv_status status = check_has_valid(t);
    if (!status) status = qkv__read_for_all(t, read_both, &read, sizeof read);
    if (!status) qkv__model_set_sentences(t->model, read.sentences);
    if (!status) note_languages(t);
    t->text.empty = read.train.empty;
    t->text.too_long = read.train.too_long;
    t->valid_batches.sequential = 1;
    return !status && has_valid(t) ? find_valid_lines(t) : status;
}

/* ---- validation ---- */

static qkv_status measure_bleu(const qkv_training *t, const qkv_model *m, double *bleu)
{
    return qkv__lines_bleu(m, (const char *const *)t->lines.sources, (const char *const *)t->lines.references, t->lines.n,
                           (qkv_score_tokenizer)t->o.v.bleu_tokenizer, bleu);
}

static qkv_status validate_translator(qkv_training *t, const qkv_model *m, qkv_train_score *out)
{
    double loss, bleu;
    qkv_status status = qkv_evaluate(m, t->valid, &(qkv_evaluate_opts){ .batches = &t->valid_batches }, &loss);
    if (status) return status;
    qkv__training_measured(t, loss, -1);
    out->score = t->o.v.metric == BY_STEP ? (double)t->step : -loss;
    snprintf(out->summary, sizeof out->summary, qkv__translated("valid loss %.4f"), loss);
    snprintf(out->json, sizeof out->json, "\"valid_loss\": %.6f", loss);
    /* A model that has learned nothing does not end its lines: what that takes says nothing about later. */
    if (t->o.v.metric != BY_BLEU || t->is_trial) return QKV_OK;
    if ((status = measure_bleu(t, m, &bleu))) return status;
    t->best_bleu = fmax(t->best_bleu, bleu);
    /* BLEU that reads the same is the same: 0.00 for long, while the loss falls. */
    out->score = round(100 * bleu) / 100;
    out->loss = loss;
    snprintf(out->summary, sizeof out->summary, qkv__translated("valid loss %.4f, BLEU %.2f"), loss, bleu);
    snprintf(out->json, sizeof out->json, "\"valid_loss\": %.6f, \"bleu\": %.4f", loss, bleu);
    return QKV_OK;
}

/* At most `most` lines from all over the text; gives how many. */
static int64_t take_spread(const qkv_training *t, int64_t most, const char **sources, const char **references)
{
    int64_t n = qkv__min(most, t->lines.n);
    for (int64_t i = 0; i < n; i++) {
        int64_t line = (2 * i + 1) * t->lines.n / (2 * n);
        sources[i] = t->lines.sources[line];
        if (references) references[i] = t->lines.references[line];
    }
    return n;
}

/* By the quickest search. What cannot be translated is not shown: it is not training. */
static void show_samples(const qkv_training *t)
{
    enum { MOST = 16 };
    const char *sources[MOST], *references[MOST], *texts[MOST];
    int64_t n = take_spread(t, qkv__min(t->watch.n_samples, MOST), sources, references);
    qkv_str strings[MOST];
    for (int64_t i = 0; i < n; i++) strings[i] = qkv_cstr(sources[i]);
    qkv_translations *x = NULL;
    if (n > 0 && !qkv_translate(t->model, strings, n, &(qkv_translate_opts){ .beam_size = 1 }, &x)) {
        for (int64_t i = 0; i < n; i++) texts[i] = x->status[i] ? "" : x->best[i].text.data;
        t->watch.sample(t->watch.data, n, sources, references, texts);
    }
    qkv_free(x);
}

/* ---- after the last step ---- */

static int stop_fitting(void *data) { return qkv__training_stops(data); }

static qkv_status fit_model(qkv_training *t, qkv_model *best)
{
    qkv_length_fit fit;
    const qkv_fit_length_opts opts = { .tokenizer = (qkv_score_tokenizer)t->o.v.bleu_tokenizer,
                                       .hooks = &(qkv_hooks){ .data = t, .cancel = stop_fitting } };
    qkv_status status = qkv_fit_length_penalty(best, (const char *const *)t->lines.sources,
                                               (const char *const *)t->lines.references, t->lines.n, &opts, &fit);
    if (status) return t->stopped ? QKV_OK : status;
    t->best_bleu = fmax(t->best_bleu, fit.bleu);
    qkv__training_note(t, "length penalty %.2g: BLEU %.2f on %lld validation lines, %.2f without fitting",
                       (double)fit.length_penalty, fit.bleu, (long long)fit.lines, fit.usual_bleu);
    status = qkv_model_set_length_penalty(best, fit.length_penalty);
    return status ? status : qkv_model_save(best, t->o.v.out, NULL);
}

/* Of the best model, which is the folder's. What an earlier run of a finished training fitted counts for nothing, so that the
 * same comes out again. */
static qkv_status fit_length(qkv_training *t)
{
    if (t->o.v.fit != FIT_LENGTH || !t->lines.n) return QKV_OK;
    float usual = qkv__model_get_info(t->model)->length_penalty;
    qkv_model *best = qkv_model_load(t->o.v.out, NULL);
    qkv_status status = best ? qkv_model_set_length_penalty(best, usual > 0 ? usual : 0) : qkv_error_status();
    if (!status) status = fit_model(t, best);
    qkv_model_free(best);
    return status;
}

/* Where nothing else has measured BLEU, that of a few lines: the loss of a model that translates nothing is often well below the
 * one of token frequencies. */
static qkv_status finish_translator(qkv_training *t)
{
    enum { MOST = 48 };
    const char *sources[MOST], *references[MOST];
    qkv_status status = fit_length(t);
    if (status || t->best_bleu >= 0 || !t->lines.n) return status;
    int64_t n = take_spread(t, MOST, sources, references);
    return qkv__lines_bleu(t->model, sources, references, n, (qkv_score_tokenizer)t->o.v.bleu_tokenizer, &t->best_bleu);
}

/* Some lines, as many as there is time for, are searched by a model that has learned nothing, which does not end a line: as far as
 * an average one goes. The seconds of one, while the machine was least disturbed. */
static qkv_status time_search(const qkv_training *t, double most_seconds, double *seconds)
{
    enum { MOST = 128, PART = 16 };
    const char *sources[MOST];
    qkv_str strings[MOST];
    double each[MOST / PART], began = qkv__seconds();
    int64_t n = take_spread(t, MOST, sources, NULL), pairs = qkv__max(qkv_dataset_size(t->valid), 1), parts = 0;
    const qkv_translate_opts opts = { .max_length = (int)qkv__ceil_div(qkv__dataset_target_ids(t->valid), pairs) };
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < n; i++) strings[i] = qkv_cstr(sources[i]);
    for (int64_t at = 0; at < n && !status && (!at || qkv__seconds() - began < most_seconds); at += PART) {
        qkv_translations *x = NULL;
        int64_t lines = qkv__min(PART, n - at);
        double before = qkv__seconds();
        status = qkv_translate(t->model, strings + at, lines, &opts, &x);
        each[parts++] = (qkv__seconds() - before) / (double)lines;
        qkv_free(x);
    }
    *seconds = qkv__steady_seconds(each, parts);
    return status;
}

/* To fit, the lines are searched two or three times; by BLEU, at each validation. */
static int64_t lines_searched(const qkv_training *t, int64_t validations)
{
    enum { FITTING = 3 };
    int64_t fitted = t->o.v.fit == FIT_LENGTH ? FITTING * qkv__min(t->lines.n, QKV__FITTED_LINES) : 0;
    return fitted + (t->o.v.metric == BY_BLEU ? validations * t->lines.n : 0);
}

const qkv__job qkv__translate_job = {
    .name = "translate",
    .command = "train translate",
    .bit = QKV__TRANSLATE,
    .noun = QKV__N("pairs"),
    .set_paper = set_paper_translation,
    .check = check_translation,
    .survey = survey_pairs,
    .choose = qkv__choose_translation,
    .add_words = add_pair_words,
    .adjust = keep_model_options,
    .read = read_pairs,
    .validate = validate_translator,
    .sample = show_samples,
    .finish = finish_translator,
    .time_search = time_search,
    .lines_searched = lines_searched,
};
