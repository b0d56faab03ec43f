/* cmd_translate.c: qkv translate: lines in, translations out. */
#include "../report/strings.h"
#include "lines.h"

#include <qkv/unstable/util.h>
#include <qkv/unstable/shortlist.h>
#include "model.h"
#include "options.h"
#include "streams.h"
#include "translations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *model, *prefix, *shortlist, *source_lang, *target_lang, *source_prefix;
    int beam, n_best, max_length, max_source, no_repeat, batch;
    float length_penalty;
    int split;
    bool alignment, json, heatmap, strict, quiet, plain;
} given = { .max_source = 1024, .batch = 256 };

/* --split; the last two are the same as the two before them. */
enum { SPLIT_AUTO, SPLIT_ALWAYS, SPLIT_NEVER, SPLIT_WORDS = 5 };
static const char *const split_words[SPLIT_WORDS + 1] = { "auto", "always", "never", "yes", "no", NULL };
static const qkv_split splits[SPLIT_WORDS] = { QKV_SPLIT_AUTO, QKV_SPLIT_SENTENCES, QKV_SPLIT_NONE, QKV_SPLIT_SENTENCES,
                                               QKV_SPLIT_NONE };

static const option options[] = {
    { "model", 'm', .group = INPUT_GROUP, .value = "DIR", .help = "model folder", .required = true, .text = &given.model },
    WEIGHT_ROWS(INPUT_GROUP),
    TOUCH_ROWS,
    TEXT_ROWS(INPUT_GROUP),
    { "beam", 'b', .group = SEARCH_GROUP, .value = "N", .help = "beam size (default: the model's, else 4); 1 = greedy",
      .count = &given.beam },
    RESULT_ROW(RESULT_GROUP),
    { "n-best", .group = RESULT_GROUP, .value = "N", .help = "print the N best translations as \"line ||| text ||| score\"",
      .count = &given.n_best },
    { "length-penalty", .is_rare = true, .group = SEARCH_GROUP, .value = "A",
      .help = "score = log p / ((5+length)/6)^A (default: fitted by training, else 0.6)", .number = &given.length_penalty },
    { "max-length", .is_rare = true, .group = SEARCH_GROUP, .value = "N",
      .help = "maximum tokens per translation (default: the model's, else twice the source + 20)", .count = &given.max_length },
    { "max-source", .is_rare = true, .group = INPUT_GROUP, .value = "N", .help = "maximum tokens per line (default: 1024)",
      .count = &given.max_source },
    { "no-repeat-ngram", .is_rare = true, .group = SEARCH_GROUP, .value = "N", .help = "repeat no N-gram within a translation",
      .count = &given.no_repeat },
    { "prefix", .is_rare = true, .group = SEARCH_GROUP, .value = "TEXT",
      .help = "start every translation with TEXT (no trailing space)", .text = &given.prefix },
    { "source-lang", .group = INPUT_GROUP, .value = "CODE",
      .help = "source language of a multilingual model: en_XX, eng_Latn, en", .text = &given.source_lang },
    { "target-lang", .group = INPUT_GROUP, .value = "CODE", .help = "target language of a multilingual model",
      .text = &given.target_lang },
    { "source-prefix", .is_rare = true, .group = INPUT_GROUP, .value = "TEXT",
      .help = "text to put before every source, such as T5's \"translate English to German: \"", .text = &given.source_prefix },
    { "split", .is_rare = true, .group = INPUT_GROUP, .value = "WHEN",
      .help = "auto, always or never: translate the sentences of a line one by one (default: auto)", .choice = &given.split,
      .names = split_words, .without_value = SPLIT_ALWAYS },
    { "plain", .is_rare = true, .group = INPUT_GROUP,
      .help = "translate the lines of a subtitle, Markdown, HTML or XML file as plain text", .flag = &given.plain },
    { "shortlist", .is_rare = true, .group = SEARCH_GROUP, .value = "FILE",
      .help = "restrict target tokens to this list, made by \"qkv shortlist\": faster", .text = &given.shortlist },
    { "alignment", .is_rare = true, .group = RESULT_GROUP,
      .help = "append the most attended source token of each target token: \"||| 0-0 2-1\"", .flag = &given.alignment },
    { "heatmap", .group = RESULT_GROUP, .help = "show attention under each translation", .flag = &given.heatmap },
    { "json", .group = RESULT_GROUP, .help = "print one JSON object per line", .flag = &given.json },
    { "batch", .is_rare = true, .value = "N", .help = "lines translated at a time (default: 256)", .count = &given.batch },
    { "strict", .is_rare = true, .group = INPUT_GROUP, .help = "reject lines that are not UTF-8 instead of repairing them",
      .flag = &given.strict },
    { "quiet", .is_rare = true, .group = RESULT_GROUP, .help = "do not report repaired lines", .flag = &given.quiet },
    { 0 },
};

typedef struct work {
    qkv_model *model;
    qkv_shortlist *shortlist;
    qkv_translate_opts opts;
    translation_format format;
    text_stream in;
    int64_t too_long;
    int64_t most_sentences, whole; /* lines with more that attention keeps whole; 0: not counted */
    qkv_translations *found;
} work;

/* With attention lines stay whole. It is counted which of them "--split auto" would have split. */
static int64_t sentences_to_count(const qkv_model_info *info, int split)
{
    if (split != SPLIT_AUTO || !(given.alignment || given.heatmap)) return 0;
    return info->sentences ? info->sentences : !strcmp(info->family, "qkv");
}

static int64_t count_sentences(const char *text, size_t length)
{
    int64_t n = 0;
    for (qkv_span s = { 0, 0 }; qkv_sentence_next(text, length, &s);) n++;
    return n;
}

static void refuse_long(work *w, int64_t number, int64_t n_source)
{
    static const char too_long[] = N_("line %lld has %lld tokens, more than %lld: %s");
    static const char *const why[] = { [QKV_SOURCE_BOUND_OPTION] = N_("--max-source allows more"),
                                       [QKV_SOURCE_BOUND_POSITIONS] = N_("the model has positions for no more"),
                                       [QKV_SOURCE_BOUND_CONFIG] = N_(
                                           "max_position_embeddings of its config.json allows no more") };
    const qkv_translations *t = w->found;
    long long has = (long long)(n_source - t->source_around), most = (long long)t->max_source;
    char reason[160]; /* in JSON it is English */
    snprintf(reason, sizeof reason, too_long, (long long)number, has, most, why[t->source_bound]);
    w->too_long++;
    fail(QKV_LIMIT, too_long, (long long)number, has, most, _(why[t->source_bound]));
    print_no_translation(&w->format, number, reason);
}

static qkv_status translate_group(void *data, line_group *g)
{
    work *w = data;
    qkv_status status = QKV_OK;
    qkv_str *texts = qkv__strings_of((const char *const *)g->at, g->lengths, g->n);
    bool failed = !texts || qkv_translate(w->model, texts, g->n, &w->opts, &w->found);
    free(texts);
    if (failed) return library_failed();
    for (int64_t i = 0; i < g->n && !status; i++) {
        source_line line = { g->before + i + 1, g->at[i], g->lengths[i] };
        w->whole += w->most_sentences && count_sentences(line.text, line.length) > w->most_sentences;
        if (w->found->status[i]) refuse_long(w, line.number, w->found->n_source[i]);
        else status = print_translations(&w->format, w->model, line, w->found, i);
        if (!w->found->status[i]) g->tokens += w->found->n_source[i] + w->found->best[i * w->found->n_best].n_ids;
    }
    return status;
}

/* ---- from options to the end ---- */

/* Files that are more than text, by the end of their names. */
static qkv_status check_file_kind(const char *path)
{
    static const struct {
        const char *what, *ends; /* separated by spaces */
    } kinds[] = {
        { N_("timestamps"), " srt vtt sbv ass ssa ttml lrc " },
        { N_("code and markup"), " md markdown mdx rst adoc tex ipynb " },
        { N_("tags"), " html htm xhtml xml svg tmx xliff xlf sgm sgml " },
        { N_("keys and syntax"), " json jsonl yaml yml toml ini po pot properties strings resx " },
    };
    static const char documents[] = " docx doc odt rtf pdf epub pptx odp xlsx ods ";
    const char *dot = path && !given.plain ? strrchr(path, '.') : NULL;
    char end[16] = " ";
    size_t n = 1;
    if (!dot || strlen(dot) > sizeof end - 2) return QKV_OK;
    while (*++dot) end[n++] = *dot >= 'A' && *dot <= 'Z' ? (char)(*dot - 'A' + 'a') : *dot;
    end[n] = ' ';
    if (n > 1 && strstr(documents, end))
        return fail(QKV_UNSUPPORTED, "%s: documents are not supported: save it as plain text first", path);
    for (size_t i = 0; n > 1 && i < sizeof kinds / sizeof *kinds; i++)
        if (strstr(kinds[i].ends, end))
            return fail(QKV_UNSUPPORTED, "%s: %s would be translated too: extract the text first, or use --plain", path,
                        _(kinds[i].what));
    return QKV_OK;
}

static qkv_status check_translate_options(void)
{
    if (given.json && given.heatmap) return fail(QKV_USAGE, "--json and --heatmap: choose one");
    if (splits[given.split] == QKV_SPLIT_SENTENCES && (given.alignment || given.heatmap))
        return fail(QKV_USAGE, "--split %s: --alignment and --heatmap need whole lines", split_words[given.split]);
    if (!(given.length_penalty >= 0)) return fail(QKV_USAGE, "--length-penalty must be at least 0");
    return check_file_kind(streams.input);
}

/* Zero is left to the library, which takes what the model's files say. */
static qkv_status resolve_source_limit(work *w)
{
    if (given.beam && given.n_best > given.beam) return fail(QKV_USAGE, "--n-best %d needs a --beam of as many", given.n_best);
    w->format = (translation_format){ given.n_best > 0, given.alignment, given.json, given.heatmap };
    qkv_translate_opts *o = &w->opts;
    *o = QKV_OPTS(qkv_translate_opts);
    o->beam_size = given.beam, o->n_best = given.n_best;
    o->length_penalty = given.length_penalty, o->no_repeat_ngram = given.no_repeat;
    o->max_length = given.max_length, o->max_source = given.max_source;
    o->target_prefix = given.prefix;
    o->shortlist = w->shortlist;
    o->source_lang = given.source_lang, o->target_lang = given.target_lang, o->source_prefix = given.source_prefix;
    o->attention = given.alignment || given.heatmap;
    o->split = o->attention ? QKV_SPLIT_NONE : splits[given.split];
    w->most_sentences = sentences_to_count(qkv_model_get_info(w->model), given.split);
    o->no_length_penalty = was_given("length-penalty") && given.length_penalty == 0;
    return QKV_OK;
}

static void close_all(work *w)
{
    close_texts(&w->in);
    qkv_free(w->found);
    qkv_shortlist_free(w->shortlist);
    qkv_model_free(w->model);
}

static qkv_status run_translate(void)
{
    work w = { 0 };
    qkv_status status = check_translate_options();
    if (!status) status = open_texts(&w.in);
    if (!status) status = load_touched_model(given.model, QKV_CAN_TRANSLATE, &w.model);
    if (!status && given.shortlist && !(w.shortlist = qkv_shortlist_load(given.shortlist))) status = library_failed();
    if (!status) status = resolve_source_limit(&w);
    /* A model or options that cannot translate are told before the first line is waited for. */
    if (!status && qkv_translate(w.model, NULL, 0, &w.opts, &w.found)) status = library_failed();
    if (!status) status = open_results(&w.in);
    if (!status) status = each_group(&w.in, given.batch, given.strict, given.quiet, translate_group, &w);
    if (w.whole && !given.quiet)
        fprintf(stderr,
                w.whole == 1 ? _("qkv: --alignment and --heatmap need whole lines: %lld of the lines has more sentences than "
                                 "the training lines, and its translation may be wrong\n")
                             : _("qkv: --alignment and --heatmap need whole lines: %lld of the lines have more sentences than "
                                 "the training lines, and their translations may be wrong\n"),
                (long long)w.whole);
    close_all(&w);
    return !status && w.too_long ? QKV_LIMIT : status;
}

const command translate_command = {
    .name = "translate",
    .summary = "translate text",
    .about = "Reads texts, or lines of --input or of standard input, and prints the translation\n"
             "of each on a line of its own, in order; an empty line gives an empty line. The results are the same\n"
             "bytes with any --batch and any number of threads.\n"
             "\n"
             "--alignment adds pairs \"source-target\" of token numbers from 0, as qkv tokenize\n"
             "prints the tokens: for each token of the translation the source token, the end\n"
             "left out, with the largest cross-attention weight, averaged over all layers and\n"
             "heads. --heatmap draws these averages. With --json, \"attention\" has them: a row\n"
             "for each token and one for the end, a column for each source token and one for\n"
             "the end; \"score\" is the log-probability with the length penalty.\n"
             "\n"
             "The files of a published model say how it searches: beam, length and penalty, by\n"
             "which its scores are log p / length^A. The folder of a model that was trained here\n"
             "may hold a length penalty too (\"qkv info DIR\" shows it). An option overrides its\n"
             "part of that.\n"
             "\n"
             "A model of many languages is told which two: --source-lang and --target-lang, by\n"
             "the codes that its tokenizer has.\n"
             "\n"
             "A model that was trained on one sentence per line cannot translate three at once.\n"
             "--split auto splits a line if it has more sentences than the training lines, or more\n"
             "tokens than the model reads. A published model gets the whole line if it fits.\n"
             "\"always\" splits every line, and so does --split without a value; \"never\" splits\n"
             "none. The translations of a line are joined again, without spaces in Chinese,\n"
             "Japanese and Thai. --alignment and --heatmap need whole lines. With --prefix, auto\n"
             "splits none.\n"
             "\n"
             "Subtitles, Markdown, HTML, XML and similar files are refused, because their\n"
             "timestamps, code and tags would be translated as text. Extract the text first, a\n"
             "line per sentence or paragraph; --plain translates the lines as they are.\n"
             "\n"
             "A line with more than --max-source tokens gives an empty line (in JSON an\n"
             "\"error\") and a sentence on standard error; the others are translated, and the\n"
             "exit status is 6 at the end. On a terminal each line is answered at once; for a\n"
             "program that waits for answers, --batch 1 does the same.",
    .example = "  qkv translate -m models/en-zh \"I love you\" --heatmap\n"
               "  qkv translate -m models/en-zh -i test.en -o out.zh",
    .options = options,
    .run = run_translate,
    .is_shared = true,
};
