/* cmd_shortlist.c: qkv shortlist: which target tokens a source token can become, learned from aligned text. */
#include "../recipe/shortlist_learn.h"

#include <qkv/unstable/util.h>
#include <qkv/unstable/shortlist.h>
#include "options.h"

#include <stdio.h>

static struct {
    const char *model, *out;
    value_list train;
    int likeliest, frequent, iterations, max_pairs;
    bool strict, quiet;
} given;

static const option options[] = {
    { "model", 'm', .value = "DIR", .help = "folder of the translator", .required = true, .text = &given.model },
    { "train", .value = "FILE..", .help = "its training data: two files, or one file \"source TAB target\"", .required = true,
      .list = &given.train },
    { "out", 'o', .value = "FILE", .help = "shortlist to write", .required = true, .text = &given.out },
    { "likeliest", .value = "N", .help = "target tokens per source token (default: 100)", .count = &given.likeliest },
    { "frequent", .is_rare = true, .value = "N", .help = "most frequent target tokens, always allowed (default: 100)",
      .count = &given.frequent },
    { "iterations", .is_rare = true, .value = "N", .help = "iterations of expectation maximization (default: 5)",
      .count = &given.iterations },
    { "max-pairs", .is_rare = true, .value = "N", .help = "maximum pairs to learn from, evenly spaced (default: 400000)",
      .count = &given.max_pairs },
    { "strict", .is_rare = true, .help = "reject lines that are not UTF-8 instead of repairing them", .flag = &given.strict },
    { "quiet", .is_rare = true, .help = "print errors only", .flag = &given.quiet },
    { 0 },
};

static qkv_status read_pairs(const qkv_model *m, qkv_dataset *pairs)
{
    qkv_corpus_opts o = QKV_OPTS(qkv_corpus_opts);
    o.strict = given.strict;
    if (!qkv_model_tokenizer(m, QKV_SIDE_SOURCE)) return fail(QKV_USAGE, "the model has no tokenizer: it knows ids, not text");
    const char *second = given.train.n > 1 ? given.train.at[1] : NULL;
    return qkv_dataset_add_files(pairs, m, given.train.at[0], second, &o, NULL) ? library_failed() : QKV_OK;
}

static qkv_status learn_list(const qkv_model *m, const qkv_dataset *pairs)
{
    qkv_shortlist_opts o = QKV_OPTS(qkv_shortlist_opts);
    o.likeliest = given.likeliest, o.frequent = given.frequent;
    o.iterations = given.iterations, o.max_pairs = given.max_pairs;
    qkv_shortlist *s = qkv_shortlist_learn(m, pairs, &o);
    qkv_status status = s && !qkv_shortlist_save(s, given.out) ? QKV_OK : library_failed();
    if (!status && !given.quiet) fprintf(stderr, _("qkv: wrote %s\n"), given.out);
    qkv_shortlist_free(s);
    return status;
}

static qkv_status run_shortlist(void)
{
    if (given.train.n > 2) return fail(QKV_USAGE, "--train takes one file or two, not %d", given.train.n);
    if (qkv_file_writable(given.out)) return library_failed();
    qkv_model *m = qkv_model_load(given.model, NULL);
    qkv_dataset *pairs = m ? qkv_dataset_new() : NULL;
    qkv_status status = pairs ? read_pairs(m, pairs) : library_failed();
    if (!status) status = learn_list(m, pairs);
    qkv_dataset_free(pairs);
    qkv_model_free(m);
    return status;
}

const command shortlist_command = {
    .name = "shortlist",
    .summary = "make a shortlist of target tokens for faster translation",
    .about = "Learns from aligned text, such as what the model was trained on, for every source\n"
             "token its likeliest target tokens (IBM model 1). \"qkv translate --shortlist FILE\"\n"
             "then computes the output layer for the tokens of each sentence's own list alone:\n"
             "those of its source tokens, the most frequent ones and the special tokens. That is\n"
             "faster, the more so the larger the vocabulary, and changes a translation where the\n"
             "model would have chosen another token. The same text gives the same file at any\n"
             "number of threads.",
    .example = "  qkv shortlist -m models/en-de --train train.en train.de --out en-de.list\n"
               "  qkv translate -m models/en-de --shortlist en-de.list -i test.en",
    .options = options,
    .run = run_shortlist,
};
