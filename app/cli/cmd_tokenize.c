/* cmd_tokenize.c: qkv tokenize and qkv detokenize: lines of text to tokens and back, one line in, one line out. */
#include "../report/tokens.h"

#include <qkv/unstable/util.h>
#include "lines.h"
#include "options.h"
#include "streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct {
    const char *tokenizer, *model;
    bool ids, json, raw, specials, with_special_tokens, pair, target, skip_specials, strict, quiet;
} given;

/* clang-format off */
#define TOKENIZER_PLACE \
    { "tokenizer", .value = "PATH", .help = "tokenizer file (.json, .txt, .model, .spm) or model folder", \
      .text = &given.tokenizer }, \
    { "model", 'm', .value = "DIR", .help = "model folder: use its tokenizer", .text = &given.model }
/* clang-format on */

static const option tokenize_options[] = {
    TOKENIZER_PLACE,
    TEXT_ROWS(NO_GROUP),
    RESULT_ROW(NO_GROUP),
    { "target", .help = "use the target tokenizer of a folder with two", .flag = &given.target },
    { "ids", .help = "print ids instead of tokens", .flag = &given.ids },
    { "raw", .is_rare = true, .help = "print tokens as spelled in the tokenizer file", .flag = &given.raw },
    { "json", .help = "print one JSON object per line: ids, tokens and their byte spans", .flag = &given.json },
    { "specials", .is_rare = true, .help = "special tokens such as " QKV_SPECIAL_END " in the text become their ids",
      .flag = &given.specials },
    { "framed", .is_rare = true,
      .help = "with the tokens put around a text, such as " QKV_SPECIAL_BERT_START " and " QKV_SPECIAL_BERT_END,
      .flag = &given.with_special_tokens },
    { "pair", .is_rare = true, .help = "lines are pairs: \"text TAB second text\"", .flag = &given.pair },
    { "strict", .is_rare = true, .help = "reject lines that are not UTF-8 instead of repairing them", .flag = &given.strict },
    { "quiet", .is_rare = true, .help = "do not report repaired lines", .flag = &given.quiet },
    { 0 },
};

static const option detokenize_options[] = {
    TOKENIZER_PLACE,
    TEXT_ROWS(NO_GROUP),
    RESULT_ROW(NO_GROUP),
    { "target", .help = "use the target tokenizer of a folder with two", .flag = &given.target },
    { "ids", .help = "lines are ids instead of tokens", .flag = &given.ids },
    { "raw", .is_rare = true, .help = "tokens are spelled as in the tokenizer file", .flag = &given.raw },
    { "skip-specials", .is_rare = true, .help = "leave special tokens such as " QKV_SPECIAL_END " out",
      .flag = &given.skip_specials },
    { "strict", .is_rare = true, .help = "reject tokens that form invalid UTF-8 instead of repairing the text",
      .flag = &given.strict },
    { "quiet", .is_rare = true, .help = "do not report repaired lines", .flag = &given.quiet },
    { 0 },
};

/* What is reused from line to line. */
typedef struct work {
    qkv_tokenizer *tokenizer;
    text_stream in;
    qkv_text *repaired; /* the line as UTF-8 */
    qkv_text *decoded;
    qkv_buffer text;
    qkv_encoding *encoded;
    token_ids ids;
} work;

static qkv_token_style chosen_style(void)
{
    return given.ids ? QKV_TOKEN_STYLE_ID : given.raw ? QKV_TOKEN_STYLE_RAW : QKV_TOKEN_STYLE_SHOWN;
}

static qkv_status repair(work *w, const text_stream *from, const char *text, size_t length)
{
    qkv_status status = check_line(from, text, length, given.strict, given.quiet);
    if (status) return status;
    return qkv_utf8_repair((qkv_str){ text, length }, &w->repaired) ? library_failed() : QKV_OK;
}

/* ---- tokenize ---- */

static qkv_status encode_line(work *w, int64_t number)
{
    const char *text = w->repaired->data;
    size_t length = w->repaired->length;
    qkv_encode_opts opts = { .parse_special = given.specials, .add_special = given.with_special_tokens };
    const char *tab = given.pair ? memchr(text, '\t', length) : NULL, *end = text + length;
    if (given.pair && (!tab || memchr(tab + 1, '\t', (size_t)(end - tab) - 1)))
        return fail(QKV_FORMAT, "line %lld is not \"text TAB second text\"", (long long)number);
    if (tab) opts.pair = (qkv_str){ tab + 1, (size_t)(end - tab) - 1 }, length = (size_t)(tab - text);
    return qkv_tokenizer_encode(w->tokenizer, (qkv_str){ text, length }, &opts, &w->encoded) ? library_failed() : QKV_OK;
}

static qkv_status tokenize_line(void *data, const text_stream *in, char *line, size_t length)
{
    work *w = data;
    qkv_status status = repair(w, in, line, length);
    if (!status) status = encode_line(w, in->number);
    if (status) return status;
    if (given.json ? qkv_ids_json(w->tokenizer, w->encoded, given.pair, &w->text)
                   : qkv_tokens_text(w->tokenizer, w->encoded->ids, (size_t)w->encoded->n, chosen_style(), &w->text))
        return library_failed();
    puts(w->text.data);
    return QKV_OK;
}

/* ---- detokenize ---- */

static qkv_status detokenize_line(void *data, const text_stream *in, char *line, size_t length)
{
    work *w = data;
    if (strlen(line) < length) return fail(QKV_FORMAT, "line %lld holds a NUL byte", (long long)in->number);
    qkv_status status = qkv_tokens_parse(w->tokenizer, line, chosen_style(), given.tokenizer, &w->ids);
    if (status) return fail(status, "line %lld: %s", (long long)in->number, library_error());
    const unsigned flags = given.skip_specials ? QKV_DECODE_SKIP_SPECIAL : 0;
    if (qkv_tokenizer_decode(w->tokenizer, w->ids.ids, (int64_t)w->ids.n, flags, &w->decoded)) return library_failed();
    const text_stream made = { .name = _("the text of the tokens"), .number = in->number };
    if ((status = repair(w, &made, w->decoded->data, w->decoded->length))) return status;
    fwrite(w->repaired->data, 1, w->repaired->length, stdout);
    putchar('\n');
    return QKV_OK;
}

/* ---- lines ---- */

/* Of a file, or one of those of a folder. */
static qkv_status load_tokenizer(work *w)
{
    struct stat about;
    qkv_tokenizer *source, *target;
    bool is_there = !stat(given.tokenizer, &about);
    if (!is_there && given.model)
        return qkv_model_load(given.model, NULL), library_failed(); /* which tells why it is no model */
    if (!is_there || !S_ISDIR(about.st_mode)) {
        if (given.target) return fail(QKV_USAGE, "--target is for a folder, but %s is none", given.tokenizer);
        return (w->tokenizer = qkv_tokenizer_load(given.tokenizer)) ? QKV_OK : library_failed();
    }
    if (qkv_tokenizers_load(given.tokenizer, &source, &target)) return library_failed();
    bool second = given.target && target;
    w->tokenizer = second ? target : source;
    qkv_tokenizer_free(second ? source : target);
    return w->tokenizer ? QKV_OK
                        : fail(QKV_IO,
                               "%s holds no tokenizer: expected tokenizer.json, vocab.txt, tokenizer.model, or "
                               "vocab.json with merges.txt",
                               given.tokenizer);
}

static qkv_status run_on_lines(const char *name, line_handler handle)
{
    work w = { 0 };
    if (given.ids && given.json) return fail(QKV_USAGE, "--ids and --json: choose one");
    if (given.raw && (given.ids || given.json))
        return fail(QKV_USAGE, "--raw and --%s: choose one", given.ids ? "ids" : "json");
    if (given.tokenizer && given.model) return fail(QKV_USAGE, "--tokenizer and --model: choose one");
    if (!given.tokenizer && !(given.tokenizer = given.model))
        return fail(QKV_USAGE, "--tokenizer is missing, and so is --model: see \"qkv %s --help\"", name);
    qkv_status status = load_tokenizer(&w);
    if (status) return status;
    status = open_texts(&w.in);
    if (!status) status = open_results(&w.in);
    if (!status) status = each_line(&w.in, handle, &w);
    close_texts(&w.in);
    qkv_free(w.repaired);
    qkv_free(w.decoded);
    qkv_buffer_free(&w.text);
    qkv_free(w.encoded);
    token_ids_free(&w.ids);
    qkv_tokenizer_free(w.tokenizer);
    return status;
}

static qkv_status run_tokenize(void) { return run_on_lines("tokenize", tokenize_line); }
static qkv_status run_detokenize(void) { return run_on_lines("detokenize", detokenize_line); }

const command tokenize_command = {
    .name = "tokenize",
    .summary = "split text into tokens or ids",
    .about = "Reads texts, or lines of --input or standard input, and prints the tokens of each on a\n"
             "line of its own, with a space between them. A space in a token is U+2581, a low\n"
             "line; bytes that make no whole character, or none that can be seen, are <0xE7> and\n"
             "the like. --raw prints them as the tokenizer's file spells them, a byte-level BPE\n"
             "with one character a byte; --json has both, as \"shown\" and \"tokens\". Tokens of\n"
             "other published models are as their files have them. An empty line gives an empty\n"
             "line.\n"
             "\n"
             "Special tokens in the text are text like any other unless --specials is given;\n"
             "--framed adds those that the model reads around a text. With --pair a line is two\n"
             "texts, and --json has the type of each token, mostly 1 for those of the second;\n"
             "the spans of a text's tokens are bytes of that text.\n"
             "\n"
             "Bytes that are not UTF-8 are replaced by U+FFFD, and the line is named on\n"
             "standard error; with --strict such a line ends the command.",
    .example = "  qkv tokenize --tokenizer tokenizer.json --ids \"I love you\"\n"
               "  printf \"Is it?\\tIt is.\\n\" | qkv tokenize -m bert-base-uncased \\\n"
               "    --framed --pair --json",
    .options = tokenize_options,
    .run = run_tokenize,
};

const command detokenize_command = {
    .name = "detokenize",
    .summary = "join tokens or ids into text",
    .about = "Reads lines of tokens, or of ids with --ids, as qkv tokenize prints them, and\n"
             "prints the text of each; --raw is for tokens of tokenize --raw. Tokens that end in\n"
             "the middle of a character give U+FFFD, and the line is named on standard error;\n"
             "with --strict they end the command.",
    .example = "  qkv detokenize --tokenizer tokenizer.json --ids <ids.txt",
    .options = detokenize_options,
    .run = run_detokenize,
};
