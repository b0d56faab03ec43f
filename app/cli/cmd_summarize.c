/* cmd_summarize.c: qkv summarize: texts in, their summaries out. */
#include "../report/strings.h"
#include "lines.h"

#include <qkv/unstable/util.h>
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *model, *prefix;
    int beam, max_length, min_length, max_source, no_repeat;
    float length_penalty;
    bool whole;
} given;

static const option options[] = {
    { "model", 'm', .group = INPUT_GROUP, .value = "DIR", .help = "model folder", .required = true, .text = &given.model },
    WEIGHT_ROWS(INPUT_GROUP),
    TEXT_ROWS(INPUT_GROUP),
    { "whole", .group = INPUT_GROUP, .help = "treat the whole input as one text", .flag = &given.whole },
    { "prefix", .is_rare = true, .group = INPUT_GROUP, .value = "TEXT",
      .help = "text to put before every source (default: the model's)", .may_be_empty = true, .text = &given.prefix },
    { "max-source", .is_rare = true, .group = INPUT_GROUP, .value = "N",
      .help = "maximum tokens read at a time (default: 1024)", .count = &given.max_source },
    { "beam", 'b', .group = SEARCH_GROUP, .value = "N", .help = "beam size (default: the model's, else 4); 1 = greedy",
      .count = &given.beam },
    { "max-length", .group = SEARCH_GROUP, .value = "N",
      .help = "maximum tokens per summary (default: the model's, else twice the text + 20)", .count = &given.max_length },
    { "min-length", .is_rare = true, .group = SEARCH_GROUP, .value = "N",
      .help = "minimum tokens per summary (default: the model's, else none)", .count = &given.min_length },
    { "length-penalty", .is_rare = true, .group = SEARCH_GROUP, .value = "A",
      .help = "larger values give longer summaries (default: the model's)", .number = &given.length_penalty },
    { "no-repeat-ngram", .is_rare = true, .group = SEARCH_GROUP, .value = "N", .help = "repeat no N-gram within a summary",
      .count = &given.no_repeat },
    RESULT_ROW(RESULT_GROUP),
    { 0 },
};

/* One text of all lines, a newline between them. MEMORY, reported. */
static qkv_status join_lines(lines *l)
{
    size_t bytes = 1;
    for (int64_t i = 0; i < l->n; i++) bytes += strlen(l->at[i]) + 1;
    char *whole = l->n ? malloc(bytes) : NULL, *at = whole;
    if (!whole) return l->n ? fail(QKV_MEMORY, "no memory for a text of %zu bytes", bytes) : QKV_OK;
    for (int64_t i = 0; i < l->n; i++) {
        at += sprintf(at, "%s%s", i ? "\n" : "", l->at[i]);
        free(l->at[i]);
    }
    l->at[0] = whole;
    l->n = 1;
    return QKV_OK;
}

/* Latin, Greek, Cyrillic, .., Chinese and its neighbours: what most letters of a text belong to; 0: it has none. */
static int script_of(const char *text)
{
    static const int32_t first[] = { 0x41, 0x370, 0x400, 0x530, 0x900, 0xE00, 0xE80, 0x3040, 0xFB00 };
    enum { SCRIPTS = sizeof first / sizeof *first };
    int64_t counts[SCRIPTS] = { 0 };
    size_t length = strlen(text), bytes;
    int most = 0;
    for (; length; text += bytes, length -= bytes) {
        int32_t c = qkv_utf8_next(text, length, &bytes);
        if (c < 0x41 || (c > 'Z' && c < 'a') || (c > 'z' && c < 0xC0) || (c >= 0x2000 && c < 0x3040)) continue;
        for (int i = SCRIPTS - 1; i >= 0; i--)
            if (c >= first[i] && ++counts[i]) break;
    }
    for (int i = 1; i < SCRIPTS; i++)
        if (counts[i] > counts[most]) most = i;
    return counts[most] ? most + 1 : 0;
}

/* A translator has no sign of its own in its files; a summary in another script is one. */
static void tell_translator(const lines *texts, const qkv_translations *t)
{
    for (int64_t i = 0; i < t->n; i++) {
        int of_text = script_of(texts->at[i]), of_summary = t->status[i] ? 0 : script_of(t->best[i * t->n_best].text.data);
        if (!of_text || !of_summary || of_text == of_summary) continue;
        fprintf(stderr,
                _("qkv: summarize: text %lld and its summary are in different scripts: is %s a translator? (qkv translate)\n"),
                (long long)i + 1, given.model);
        return;
    }
}

static qkv_status print_summaries(const qkv_translations *t)
{
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < t->n; i++) {
        if (t->status[i])
            status = fail(QKV_LIMIT, "a sentence of text %lld has %lld tokens, more than %lld", (long long)i + 1,
                          (long long)(t->n_source[i] - t->source_around), (long long)t->max_source);
        puts(t->status[i] ? "" : t->best[i * t->n_best].text.data);
    }
    return status;
}

static qkv_status run_summarize(void)
{
    lines texts = { 0 };
    qkv_model *m = NULL;
    qkv_translations *found = NULL;
    qkv_translate_opts o = QKV_OPTS(qkv_translate_opts);
    o.beam_size = given.beam, o.max_length = given.max_length, o.min_length = given.min_length, o.max_source = given.max_source;
    o.length_penalty = given.length_penalty, o.no_repeat_ngram = given.no_repeat, o.source_prefix = given.prefix;
    qkv_status status = load_model_for(given.model, QKV_CAN_TRANSLATE, &m);
    if (!status && qkv_summarize(m, NULL, 0, &o, &found)) status = library_failed();
    if (!status) status = read_texts(&texts);
    if (!status && given.whole) status = join_lines(&texts);
    if (!status) status = open_results(NULL);
    qkv_str *strings = status ? NULL : qkv__strings_of((const char *const *)texts.at, NULL, texts.n);
    if (!status && (!strings || qkv_summarize(m, strings, texts.n, &o, &found))) status = library_failed();
    free(strings);
    if (!status) tell_translator(&texts, found);
    if (!status) status = print_summaries(found);
    qkv_free(found);
    free_lines(&texts);
    qkv_model_free(m);
    return status;
}

const command summarize_command = {
    .name = "summarize",
    .summary = "summarize texts",
    .about = "Reads texts, or lines of --input or of standard input, and prints a summary of each\n"
             "on a line of its own, in order; with --whole one of all lines together. The model\n"
             "is a T5, a BART or a Pegasus that was trained for it, or one of \"qkv train\n"
             "translate\" on pairs of a text and its summary.\n"
             "\n"
             "What a published model's files say of summaries counts: what stands before a text\n"
             "(\"summarize: \" of T5), beam, lengths and penalty. A text with more tokens than\n"
             "the model reads at once, or than --max-source, is read in parts of whole sentences,\n"
             "and their summaries are printed one after the other.",
    .example = "  qkv summarize -m bart-large-cnn --whole -i article.txt\n"
               "  qkv summarize -m notes \"It rained. The Lions beat the Foxes.\"",
    .options = options,
    .run = run_summarize,
};
