/* cmd_score.c: qkv score: BLEU and chrF of translations. */
#include "../report/scores.h"

#include <qkv/unstable/util.h>
#include "lines.h"
#include "options.h"
#include "streams.h"
#include "../draw/print_maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const tokenizers[] = { "13a", "zh", "char", "intl", "none", NULL }; /* as qkv_score_tokenizer has them */

static struct {
    const char *hyp, *ref, *metrics;
    int tokenizer;
    bool lowercase, json;
} given = { .metrics = "bleu,chrf" };

static const option options[] = {
    { "ref", .value = "FILE", .help = "reference translations, one per line", .required = true, .text = &given.ref },
    { "hyp", .value = "FILE", .help = "translations to score (default: standard input)", .text = &given.hyp },
    { "input", 'i', .value = "FILE", .help = "the same as --hyp", .text = &given.hyp },
    RESULT_ROW(NO_GROUP),
    { "metric", .value = "LIST", .help = "bleu, chrf or chrf++, separated by commas (default: bleu,chrf)",
      .text = &given.metrics },
    { "tokenize", .value = "NAME", .help = "tokenization for BLEU: 13a, zh, char, intl or none (default: 13a)",
      .choice = &given.tokenizer, .names = tokenizers },
    { "lowercase", .help = "compare in lower case", .flag = &given.lowercase },
    { "json", .help = "print JSON, with all digits", .flag = &given.json },
    { 0 },
};

/* ---- metrics ---- */

enum { BLEU, CHRF, CHRF_WORDS, METRICS };
static const char *const metrics[METRICS] = { "bleu", "chrf", "chrf++" };
static const int word_orders[METRICS] = { [CHRF_WORDS] = 2 };

typedef struct results {
    bool wanted[METRICS];
    qkv_bleu_score *bleu;
    qkv_chrf_score *chrf[METRICS];
} results;

static qkv_status choose_metrics(results *r)
{
    for (const char *name = given.metrics;; name++) {
        int m = 0, length = (int)strcspn(name, ",");
        while (m < METRICS && (strncmp(name, metrics[m], (size_t)length) || metrics[m][length])) m++;
        if (m == METRICS) return fail(QKV_USAGE, "--metric: \"%.*s\" is not one of bleu, chrf, chrf++", length, name);
        r->wanted[m] = true;
        name += length;
        if (!*name) return QKV_OK;
    }
}

/* Either side may be the shorter one. */
static qkv_status check_counts(const lines *hyp, const lines *ref)
{
    const lines *shorter = hyp->n < ref->n ? hyp : ref, *longer = shorter == hyp ? ref : hyp;
    if (hyp->n != ref->n)
        return fail(QKV_USAGE, "%s has %lld line%s, %s has %lld (first extra line: %lld)", shorter->name, (long long)shorter->n,
                    shorter->n == 1 ? "" : "s", longer->name, (long long)longer->n, (long long)shorter->n + 1);
    return hyp->n ? QKV_OK : fail(QKV_FORMAT, "%s and %s are empty: there is nothing to score", hyp->name, ref->name);
}

static qkv_status score(const lines *hyp, const lines *ref, results *r)
{
    qkv_str *hypotheses = malloc(sizeof *hypotheses * 2 * (size_t)hyp->n);
    if (!hypotheses) return fail(QKV_MEMORY, "out of memory");
    for (int64_t i = 0; i < hyp->n; i++) hypotheses[i] = qkv_cstr(hyp->at[i]), hypotheses[hyp->n + i] = qkv_cstr(ref->at[i]);
    const qkv_str *references = hypotheses + hyp->n;
    qkv_status status = QKV_OK;
    qkv_bleu_opts opts = { .tokenizer = (qkv_score_tokenizer)given.tokenizer, .lowercase = given.lowercase };
    if (r->wanted[BLEU]) status = qkv_bleu(hypotheses, &references, 1, hyp->n, &opts, &r->bleu);
    for (int m = CHRF; m < METRICS && !status; m++) {
        qkv_chrf_opts chrf_opts = { .word_order = word_orders[m], .lowercase = given.lowercase };
        if (r->wanted[m]) status = qkv_chrf(hypotheses, &references, 1, hyp->n, &chrf_opts, &r->chrf[m]);
    }
    free(hypotheses);
    return status ? library_failed() : QKV_OK;
}

static qkv_status print_metric(const results *r, int m)
{
    qkv_buffer text = { 0 };
    if (given.json) printf("  \"%s\": ", metrics[m]);
    return print_text(m == BLEU ? qkv_bleu_text(r->bleu, given.json, &text)
                                : qkv_chrf_text(r->chrf[m], word_orders[m], given.json, &text),
                      &text);
}

static qkv_status print_results(const results *r)
{
    const char *before = "{\n";
    qkv_status status = QKV_OK;
    for (int m = 0; m < METRICS && !status; m++) {
        if (!r->wanted[m]) continue;
        if (given.json) fputs(before, stdout);
        status = print_metric(r, m);
        before = ",\n";
    }
    if (given.json) puts("\n}");
    return status;
}

/* Chinese, Japanese and Thai. */
static bool is_unspaced(int32_t c)
{
    return (c >= 0x0e00 && c <= 0x0e7f) || (c >= 0x3040 && c <= 0x30ff) || (c >= 0x3400 && c <= 0x9fff) ||
           (c >= 0xf900 && c <= 0xfaff) || c >= 0x20000;
}

/* 13a takes a sentence without spaces as one word or two: a good translation then has a BLEU of 0. */
static void tell_tokenizer(const lines *ref)
{
    int64_t unspaced = 0, all = 0;
    if (given.tokenizer || was_given("tokenize")) return;
    for (int64_t i = 0; i < ref->n; i++)
        for (size_t length = strlen(ref->at[i]), at = 0, bytes; at < length; at += bytes, all++)
            unspaced += is_unspaced(qkv_utf8_next(ref->at[i] + at, length - at, &bytes));
    if (2 * unspaced > all)
        fprintf(stderr,
                _("qkv: score: --tokenize 13a separates words at spaces, which %s hardly has: use --tokenize zh for Chinese, "
                  "char for Japanese and Thai\n"),
                ref->name);
}

static qkv_status run_score(void)
{
    lines hyp = { 0 }, ref = { 0 };
    results r = { 0 };
    qkv_status status = choose_metrics(&r);
    if (!status) status = read_lines(&ref, given.ref, true);
    if (!status) status = read_lines(&hyp, given.hyp, true);
    if (!status) status = check_counts(&hyp, &ref);
    if (!status && r.wanted[BLEU]) tell_tokenizer(&ref);
    if (!status) status = score(&hyp, &ref, &r);
    if (!status) status = open_results(NULL);
    if (!status) status = print_results(&r);
    qkv_free(r.bleu);
    for (int m = CHRF; m < METRICS; m++) qkv_free(r.chrf[m]);
    free_lines(&hyp);
    free_lines(&ref);
    return status;
}

const command score_command = {
    .name = "score",
    .summary = "score translations like sacreBLEU: BLEU, chrF",
    .about = "Compares translations with the right ones, line by line, and prints BLEU, chrF\n"
             "(chrF2) and chrF++ (chrF2++) of the whole file, from 0 to 100. The numbers are\n"
             "those of sacreBLEU, and so is the signature below each, but for the version.\n"
             "\n"
             "13a is for languages with spaces between words, zh for Chinese. Both files are\n"
             "UTF-8 with equally many lines; an empty line is a sentence too.",
    .example = "  qkv score --ref test.zh --hyp translated.zh --tokenize zh",
    .options = options,
    .run = run_score,
};
