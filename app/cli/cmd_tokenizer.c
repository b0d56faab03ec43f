/* cmd_tokenizer.c: qkv tokenizer: trains a tokenizer on text files. */
#include "lines.h"
#include "../../src/data/corpus.h"
#include "../../src/token/word_counts.h"
#include "options.h"
#include "results.h"

#include <stdio.h>

static struct {
    value_list train, specials;
    const char *out;
    int kind, size, min_count;
    bool strict, quiet;
} given = { .size = 8000, .min_count = 2 };

static const char *const kinds[] = { "bpe", "words", "characters", "wordpunct", NULL }; /* in the order of qkv_token_kind */

static const option options[] = {
    { "train", .value = "FILE..", .help = "text files, plain or gzip", .required = true, .list = &given.train },
    { "out", 'o', .value = "FILE", .help = "tokenizer.json to write", .required = true, .text = &given.out },
    { "kind", .value = "NAME",
      .help = "bpe, words (split at spaces), wordpunct (at punctuation too) or characters (default: bpe)",
      .choice = &given.kind, .names = kinds },
    { "size", .value = "N", .help = "vocabulary size (default: 8000)", .count = &given.size },
    { "specials", .is_rare = true, .value = "TEXT..",
      .help = "special tokens (default: " QKV_SPECIAL_PAD " " QKV_SPECIAL_START " " QKV_SPECIAL_END " " QKV_SPECIAL_UNKNOWN ")",
      .list = &given.specials },
    { "min-count", .is_rare = true, .value = "N", .help = "minimum count (default: 2)", .count = &given.min_count },
    { "strict", .is_rare = true, .help = "reject lines that are not UTF-8 instead of repairing them", .flag = &given.strict },
    { "quiet", .is_rare = true, .help = "print errors only", .flag = &given.quiet },
    { 0 },
};

static qkv_status add_files(qkv_word_counts *w)
{
    for (int i = 0; i < given.train.n; i++) {
        qkv__lines_read read;
        if (qkv__word_counts_add_file(w, given.train.at[i], given.strict, &read)) return library_failed();
        if (!given.quiet) tell_repaired(given.train.at[i], read.repaired, read.first_repaired);
    }
    if (qkv__word_counts_size(w)) return QKV_OK;
    return fail(QKV_FORMAT, "%s: there is no text to learn from", given.train.at[0]);
}

static qkv_status train_tokenizer(const qkv_word_counts *w)
{
    qkv_tokenizer *t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .vocab_size = given.size,
                                                                     .min_count = given.min_count,
                                                                     .specials = (const char *const *)given.specials.at,
                                                                     .n_specials = given.specials.n });
    if (!t || qkv_tokenizer_save(t, given.out)) {
        qkv_tokenizer_free(t);
        return library_failed();
    }
    if (!given.quiet && qkv_tokenizer_vocab_size(t) < given.size)
        fprintf(stderr, _("qkv: tokenizer: the text gives %d tokens, not %d\n"), qkv_tokenizer_vocab_size(t), given.size);
    if (!given.quiet) fprintf(stderr, _("qkv: wrote %s\n"), given.out);
    qkv_tokenizer_free(t);
    return QKV_OK;
}

static qkv_status run_tokenizer(void)
{
    qkv_status status = check_output(given.out);
    if (status) return status;
    qkv_word_counts *w = qkv_word_counts_new((qkv_token_kind)given.kind);
    if (!w) return library_failed();
    status = add_files(w);
    if (!status) status = train_tokenizer(w);
    qkv_word_counts_free(w);
    return status;
}

const command tokenizer_command = {
    .name = "tokenizer",
    .summary = "train a tokenizer",
    .about = "Learns a vocabulary from the lines of text files and writes it as a Hugging Face\n"
             "tokenizer.json.\n"
             "\n"
             "Byte-level BPE: ids are special tokens, the 256 bytes, then merges; the pair that\n"
             "occurs most often is merged first, of equal ones that with the smaller ids. Any\n"
             "text in any language can be encoded; nothing is unknown.\n"
             "\n"
             "Words (in lower case, split at white space) and characters: ids are special\n"
             "tokens, then what occurs most often, of equal ones that with the smaller bytes.\n"
             "Anything else is " QKV_SPECIAL_UNKNOWN ".\n"
             "\n"
             "When the text gives fewer tokens than asked for, that is told and the smaller\n"
             "vocabulary is written.",
    .example = "  qkv tokenizer --train train.en train.de.gz --size 8000 \\\n"
               "    --out tokenizer.json",
    .options = options,
    .run = run_tokenizer,
};
