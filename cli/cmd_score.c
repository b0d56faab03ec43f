/* cmd_score.c: qkv score: BLEU and chrF of translations. */
#include "lines.h"
#include "options.h"
#include "streams.h"

#include <stdio.h>
#include <string.h>

static const char *const tokenizers[] = { "13a", "zh", "char", "intl", "none", NULL }; /* as qkv_score_tokenizer has them */

static struct {
    const char *hyp, *ref, *metrics;
    int tokenizer;
    bool lowercase, json;
} given = { .metrics = "bleu,chrf" };

static const option options[] = {
    { "ref", .value = "FILE", .help = "the right translations, one a line", .required = true, .text = &given.ref },
    { "hyp", .value = "FILE", .help = "the translations to score; else standard input", .text = &given.hyp },
    { "input", 'i', .value = "FILE", .help = "the same as --hyp", .text = &given.hyp },
    RESULT_ROW(NO_GROUP),
    { "metric", .value = "LIST", .help = "bleu, chrf, chrf++, with commas between; else bleu,chrf", .text = &given.metrics },
    { "tokenize", .value = "NAME", .help = "words for BLEU by 13a (the default), zh, char, intl or none",
      .choice = &given.tokenizer, .names = tokenizers },
    { "lowercase", .help = "compare in lower case", .flag = &given.lowercase },
    { "json", .help = "print JSON, every digit", .flag = &given.json },
    { 0 },
};

/* ---- results ---- */

static void print_numbers(const char *key, const double *numbers, int n)
{
    printf(", \"%s\": [", key);
    for (int i = 0; i < n; i++) printf("%s%.17g", i ? ", " : "", numbers[i]);
    putchar(']');
}

static void print_counts(const char *key, const int64_t *counts, int n)
{
    printf(", \"%s\": [", key);
    for (int i = 0; i < n; i++) printf("%s%lld", i ? ", " : "", (long long)counts[i]);
    putchar(']');
}

static void print_bleu(const qkv_bleu_score *s)
{
    const double *p = s->precisions, length_ratio = s->ref_length ? (double)s->hyp_length / (double)s->ref_length : 0;
    long long hyp_len = s->hyp_length, ref_len = s->ref_length;
    if (!given.json) {
        printf("BLEU %.1f %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %lld ref_len = %lld)\n     %s\n", s->score,
               p[0], p[1], p[2], p[3], s->brevity_penalty, length_ratio, hyp_len, ref_len, s->signature);
        return;
    }
    printf("  \"bleu\": {\"score\": %.17g, \"signature\": \"%s\"", s->score, s->signature);
    print_numbers("precisions", p, QKV_BLEU_ORDER);
    print_counts("matches", s->matches, QKV_BLEU_ORDER);
    print_counts("totals", s->totals, QKV_BLEU_ORDER);
    printf(", \"bp\": %.17g, \"ratio\": %.17g, \"hyp_len\": %lld, \"ref_len\": %lld}", s->brevity_penalty, length_ratio,
           hyp_len, ref_len);
}

static void print_chrf(const qkv_chrf_score *s, int word_order)
{
    const char *plus = word_order ? "++" : "";
    int orders = QKV_CHRF_ORDERS - 2 + word_order;
    if (!given.json) {
        printf("chrF2%s %.1f (precision = %.1f recall = %.1f)\n     %s\n", plus, s->score, s->precision, s->recall,
               s->signature);
        return;
    }
    printf("  \"chrf%s\": {\"score\": %.17g, \"signature\": \"%s\", \"precision\": %.17g, \"recall\": %.17g", plus, s->score,
           s->signature, s->precision, s->recall);
    print_counts("matches", s->matches, orders);
    print_counts("hyp_totals", s->hyp_totals, orders);
    print_counts("ref_totals", s->ref_totals, orders);
    putchar('}');
}

/* ---- metrics ---- */

enum { BLEU, CHRF, CHRF_WORDS, METRICS };
static const char *const metrics[METRICS] = { "bleu", "chrf", "chrf++" };
static const int word_orders[METRICS] = { [CHRF_WORDS] = 2 };

typedef struct results {
    bool wanted[METRICS];
    qkv_bleu_score bleu;
    qkv_chrf_score chrf[METRICS];
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
    const char *const *hypotheses = (const char *const *)hyp->at, *const *references = (const char *const *)ref->at;
    qkv_bleu_opts opts = { .tokenizer = (qkv_score_tokenizer)given.tokenizer, .lowercase = given.lowercase };
    if (r->wanted[BLEU] && qkv_bleu(hypotheses, &references, 1, hyp->n, &opts, &r->bleu)) return library_failed();
    for (int m = CHRF; m < METRICS; m++) {
        qkv_chrf_opts chrf_opts = { .word_order = word_orders[m], .lowercase = given.lowercase };
        if (r->wanted[m] && qkv_chrf(hypotheses, &references, 1, hyp->n, &chrf_opts, &r->chrf[m])) return library_failed();
    }
    return QKV_OK;
}

static void print_results(const results *r)
{
    const char *before = "{\n";
    for (int m = 0; m < METRICS; m++) {
        if (!r->wanted[m]) continue;
        if (given.json) fputs(before, stdout);
        if (m == BLEU) print_bleu(&r->bleu);
        else print_chrf(&r->chrf[m], word_orders[m]);
        before = ",\n";
    }
    if (given.json) puts("\n}");
}

static qkv_status run_score(void)
{
    lines hyp = { 0 }, ref = { 0 };
    results r = { 0 };
    qkv_status status = choose_metrics(&r);
    if (!status) status = read_lines(&ref, given.ref);
    if (!status) status = read_lines(&hyp, given.hyp);
    if (!status) status = check_counts(&hyp, &ref);
    if (!status) status = score(&hyp, &ref, &r);
    if (!status) status = open_results(NULL);
    if (!status) print_results(&r);
    free_lines(&hyp);
    free_lines(&ref);
    return status;
}

const command score_command = {
    .name = "score",
    .summary = "score translations as sacreBLEU does: BLEU, chrF",
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
