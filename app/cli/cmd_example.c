/* cmd_example.c: qkv example: data to try the jobs on, made by grammars. */
#include "../corpora/draw.h"

#include <qkv/unstable/util.h>
#include "options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HELD_OUT = 500, MOST = 200000 };

static struct {
    const char *out;
    int count;
    int64_t seed;
    bool quiet;
} given = { .seed = 1 };

#define OPTIONS(name, help_of_count)                                                                     \
    {                                                                                                    \
        { "out", 'o', .value = "DIR", .help = "folder to write", .required = true, .text = &given.out }, \
            { name, .value = "N", .help = help_of_count, .count = &given.count },                        \
            { "seed", .value = "N", .help = "random seed (default: 1)", .whole = &given.seed },          \
            { "quiet", .help = "print errors only", .flag = &given.quiet }, { 0 },                       \
    }

/* ---- writing ---- */

static void tell(const example_job *what, const char *path, const example *examples, int n)
{
    double nats = 0, bytes = 0;
    if (given.quiet) return;
    fprintf(stderr, _("qkv: wrote %s: %d %s"), path, n, _(what->things));
    for (int i = 0; i < n; i++) nats += examples[i].nats, bytes += (double)strlen(examples[i].line) + 1;
    if (what->entropy) fprintf(stderr, _(", %.3f nats a line, %.4f a character"), nats / n, nats / bytes);
    fputc('\n', stderr);
}

static qkv_status write_examples(const example_job *what, const char *name, const example *examples, int n)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s.%s", given.out, name, what->ending) >= (int)sizeof path)
        return fail(QKV_IO, "%s: the name is too long", given.out);
    size_t length;
    char *text = join_examples(examples, n, &length);
    if (!text) return fail(QKV_MEMORY, "%s: out of memory", path);
    qkv_status status = qkv_file_write(path, text, length) ? library_failed() : QKV_OK;
    free(text);
    if (!status) tell(what, path, examples, n);
    return status;
}

static qkv_status write_all(const example_job *what, const example *examples)
{
    qkv_status status = write_examples(what, "test", examples, HELD_OUT);
    if (!status) status = write_examples(what, "valid", examples + HELD_OUT, HELD_OUT);
    if (!status) status = write_examples(what, "train", examples + 2 * HELD_OUT, given.count);
    if (!status && what->entropy && !given.quiet)
        fprintf(stderr, _("qkv: the language itself has %.3f nats a line on average: no model can do better\n"),
                what->entropy());
    return status;
}

/* `usual` examples unless a number is given. */
static qkv_status write_job(const example_job *what, int usual)
{
    if (!given.count) given.count = usual;
    if (given.count > MOST) return fail(QKV_USAGE, "--%s: at most %d, not %d", what->things, MOST, given.count);
    if (mkdir(given.out, 0777) && errno != EEXIST)
        return fail(QKV_IO, "%s: cannot make the folder: %s", given.out, _(strerror(errno)));
    example *examples = draw_examples(what, given.count + 2 * HELD_OUT, (uint64_t)given.seed);
    if (!examples) return fail(QKV_MEMORY, "no memory for %d %s", given.count, _(what->things));
    qkv_status status = write_all(what, examples);
    free(examples);
    return status;
}

/* ---- translation ---- */

static qkv_status run_example_translate(void) { return write_job(&translation_examples, 20000); }

static const option translate_options[] = OPTIONS("pairs", "training pairs (default: 20000)");

const command example_translate_command = {
    .name = "example translate",
    .summary = "make English-Chinese sentence pairs",
    .about = "Writes train.tsv, valid.tsv and test.tsv: a sentence in English, a TAB, the same\n"
             "in Chinese. A small grammar makes them: everyday sentences of some 300 words,\n"
             "whose parts stand in another order in Chinese. No sentence is in two of the\n"
             "files, and an English sentence has one translation only, so that a translation\n"
             "is right or wrong. The same seed gives the same files.\n"
             "\n"
             "valid.tsv and test.tsv have 500 pairs each. test.tsv starts with \"I love you\",\n"
             "\"The cat sat on the mat\" and \"Xiao Ming went to the shop to buy apples, then he\n"
             "went home\", which are never in train.tsv.",
    .example = "  qkv example translate --out example\n"
               "  qkv train translate --train example/train.tsv --valid example/valid.tsv \\\n"
               "    --out model --preset tiny --vocab 1100 --max-tokens 1024 \\\n"
               "    --schedule linear --lr 2e-3 --warmup 150 --steps 1200",
    .options = translate_options,
    .run = run_example_translate,
};

/* ---- classification ---- */

static qkv_status run_example_classify(void) { return write_job(&labelled_examples, 20000); }

static const option classify_options[] = OPTIONS("pairs", "training sentences (default: 20000)");

const command example_classify_command = {
    .name = "example classify",
    .summary = "make labelled film reviews",
    .about = "Writes train.tsv, valid.tsv and test.tsv: \"pos\" or \"neg\", a TAB, a sentence\n"
             "about a film. A small grammar of some 100 words makes them. No word decides\n"
             "alone: \"The jokes were not bad at all\" is pos, \"I expected a great film but the\n"
             "plot was dull\" is neg. No sentence is in two of the files, and each has one\n"
             "label only. The same seed gives the same files. valid.tsv and test.tsv have 500\n"
             "sentences each.",
    .example = "  qkv example classify --out example",
    .options = classify_options,
    .run = run_example_classify,
};

/* ---- summaries ---- */

static qkv_status run_example_summarize(void) { return write_job(&summary_examples, 10000); }

static const option summarize_options[] = OPTIONS("pairs", "training reports (default: 10000)");

const command example_summarize_command = {
    .name = "example summarize",
    .summary = "make match reports with summaries",
    .about = "Writes train.tsv, valid.tsv and test.tsv: a report of three or four sentences, a\n"
             "TAB, its summary, \"The Lions won two to one in Oslo.\" A small grammar makes them.\n"
             "Where it was, who won and how stand in any order among sentences that say\n"
             "nothing of it, and may name another team. No report is in two of the files. The\n"
             "same seed gives the same files. valid.tsv and test.tsv have 500 pairs each.\n"
             "\n"
             "The training below ends after a minute and sums up most reports of test.tsv word\n"
             "for word.",
    .example = "  qkv example summarize --out example\n"
               "  qkv train translate --train example/train.tsv --valid example/valid.tsv \\\n"
               "    --out model --minutes 1\n"
               "  cut -f1 example/test.tsv | qkv summarize -m model",
    .options = summarize_options,
    .run = run_example_summarize,
};

/* ---- generation ---- */

static qkv_status run_example_generate(void) { return write_job(&toy_language_examples, 20000); }

static const option generate_options[] = OPTIONS(N_("lines"), "training lines (default: 20000)");

const command example_generate_command = {
    .name = "example generate",
    .summary = "make lines of a toy language",
    .about = "Writes train.txt, valid.txt and test.txt: lines such as \"the cats [ the old dog\n"
             "sees the hen ] run\". Verbs agree with their nouns across whole clauses, and\n"
             "brackets close as they were opened. Lines are drawn as they come, so that some\n"
             "are in more than one file. The same seed gives the same files. valid.txt and\n"
             "test.txt have 500 lines each.\n"
             "\n"
             "The probability of each line is known. What is told of each file is the loss of\n"
             "a model that knows the language: nats a line, and a character (its newline is\n"
             "one).",
    .example = "  qkv example generate --out example",
    .options = generate_options,
    .run = run_example_generate,
};
