/* cmd_embed.c: qkv embed and qkv similar: lines of text as vectors, and lines near to lines. */
#include "../report/results.h"
#include "../report/shared_vectors.h"
#include "../report/strings.h"
#include "lines.h"
#include "model.h"
#include "options.h"
#include "ranks.h"
#include "results.h"
#include "streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the order of qkv_pooling; "cls" is what sentence-transformers call the first token. */
enum { POOLING_CLS = QKV_POOLING_ATTENTION + 1 };
static const char *const pooling_names[] = { "mean", "first", "last", "attention", "cls", NULL };

enum { AS_TEXT, AS_JSON };
static const char *const format_names[] = { "text", "json", NULL };

static struct {
    const char *model, *out, *corpus;
    int pooling, max_length, format, top;
    bool windows, raw, quiet;
} given = { .top = 5 };

/* clang-format off */
#define READING_OPTIONS \
    { "model", 'm', .value = "DIR", .help = "folder of a model with an encoder", .required = true, .text = &given.model }, \
    WEIGHT_ROWS(NO_GROUP), \
    TEXT_ROWS(NO_GROUP), \
    { "pooling", .value = "KIND", .help = " (default: the model's, else mean)", \
      .choice = &given.pooling, .names = pooling_names }, \
    { "max-length", .is_rare = true, .value = "N", \
      .help = "maximum tokens per line (default: the model's, else 512)", .count = &given.max_length }, \
    { "windows", .is_rare = true, .help = "split longer lines into windows of that length and average", .flag = &given.windows }
/* clang-format on */

static const option embed_options[] = {
    READING_OPTIONS,
    { "raw", .help = "do not normalize vectors to length 1", .flag = &given.raw },
    { "out", 'o', .value = "FILE", .help = "write a .npy array (lines, dim) instead of printing", .text = &given.out },
    { "format", .value = "NAME", .help = "text (numbers separated by spaces) or json (one array per line) (default: text)",
      .choice = &given.format, .names = format_names },
    { "quiet", .is_rare = true, .help = "do not report files written", .flag = &given.quiet },
    { 0 },
};

static const option similar_options[] = {
    READING_OPTIONS,
    { "corpus", .value = "FILE", .help = "file of lines to search", .required = true, .text = &given.corpus },
    { "top", .value = "N", .help = "results per query (default: 5)", .count = &given.top },
    RESULT_ROW(NO_GROUP),
    { 0 },
};

/* The vectors of all lines. */
static qkv_status embed(const qkv_model *m, const lines *l, bool normalize, qkv__vectors *out)
{
    qkv_str *texts = qkv__strings_of((const char *const *)l->at, NULL, l->n);
    const qkv_embed_opts opts = { .reading = &(qkv_encoder_opts){ .max_length = given.max_length, .windows = given.windows },
                                  .pooling = given.pooling == POOLING_CLS ? QKV_POOLING_FIRST : (qkv_pooling)given.pooling,
                                  .normalize = normalize,
                                  .as = was_given("pooling") ? QKV_EMBED_AS_GIVEN : QKV_EMBED_AS_PUBLISHED };
    bool failed = !texts || qkv__embed_shared(m, texts, l->n, &opts, out);
    free(texts);
    return failed ? library_failed() : QKV_OK;
}

/* ---- embed ---- */

static void print_rows(const qkv__vectors *r)
{
    for (int64_t i = 0; i < r->rows; i++) {
        if (given.format == AS_JSON) putchar('[');
        for (int64_t k = 0; k < r->width; k++)
            printf("%s%.9g", !k ? "" : given.format == AS_JSON ? ", " : " ", (double)r->data[i * r->width + k]);
        puts(given.format == AS_JSON ? "]" : "");
    }
}

static qkv_status run_embed(void)
{
    lines l = { 0 };
    qkv__vectors rows = { 0 };
    qkv_status status = speaks_for_ranks() ? check_output(given.out) : QKV_OK;
    qkv_model *m = NULL;
    if (!status) status = load_model(given.model, &m);
    if (!status) status = read_texts(&l);
    if (!status) status = embed(m, &l, !given.raw, &rows);
    if (!status && !given.out) print_rows(&rows);
    else if (!status && speaks_for_ranks())
        status = write_result(given.out, &(result){ .ndim = 2, .shape = { rows.rows, rows.width }, .data = rows.data },
                              given.quiet);
    qkv__vectors_free(&rows);
    free_lines(&l);
    qkv_model_free(m);
    return status;
}

/* ---- similar ---- */

static qkv_status print_near(const lines *queries, const qkv__vectors *q, const lines *corpus, const qkv__vectors *c)
{
    int64_t n = given.top < c->rows ? given.top : c->rows;
    const qkv_matrix all = { .data = c->data, .rows = c->rows, .width = c->width };
    qkv_neighbour *near = malloc(sizeof *near * (size_t)(n + 1));
    qkv_status status = near ? QKV_OK : fail(QKV_MEMORY, "out of memory");
    for (int64_t i = 0; i < q->rows && !status; i++) {
        if (qkv_nearest(&all, q->data + i * q->width, n, near)) status = library_failed();
        else printf("%s\n", queries->at[i]);
        for (int64_t k = 0; k < n && !status; k++)
            printf("    %.4f  %lld  %s\n", (double)near[k].similarity, (long long)near[k].index + 1, corpus->at[near[k].index]);
    }
    free(near);
    return status;
}

static qkv_status run_similar(void)
{
    lines queries = { 0 }, corpus = { 0 };
    qkv__vectors q = { 0 }, c = { 0 };
    qkv_model *m;
    qkv_status status = load_model(given.model, &m);
    if (!status) status = read_lines(&corpus, given.corpus, false);
    if (!status && !corpus.n) status = fail(QKV_FORMAT, "%s: there are no lines", given.corpus);
    if (!status) status = embed(m, &corpus, true, &c);
    if (!status) status = read_texts(&queries);
    if (!status) status = embed(m, &queries, true, &q);
    if (!status) status = open_results(NULL);
    if (!status) status = print_near(&queries, &q, &corpus, &c);
    qkv__vectors_free(&q);
    qkv__vectors_free(&c);
    free_lines(&queries);
    free_lines(&corpus);
    qkv_model_free(m);
    return status;
}

const command embed_command = {
    .name = "embed",
    .summary = "compute embeddings of text",
    .about = "Prints a vector for each text, or line: the hidden states of the encoder, pooled, and\n"
             "divided by their length unless --raw. Any encoder serves: that of a translator,\n"
             "of a classifier, one trained by \"qkv train mask\", or a published one, whose files\n"
             "say how it is pooled and how many tokens it reads, if they say so.",
    .example = "  qkv embed -m encoder --input lines.txt --out vectors.npy",
    .options = embed_options,
    .run = run_embed,
    .is_shared = true,
};

const command similar_command = {
    .name = "similar",
    .summary = "find the lines of a file most similar to a text",
    .about = "For each text, or line of the input, the lines of the corpus with the largest cosine\n"
             "between their vectors (see \"qkv embed\"): cosine, line number, line.",
    .example = "  qkv similar -m encoder --corpus reviews.txt --top 3 \"a funny film\"",
    .options = similar_options,
    .run = run_similar,
};
