/* cmd_rank.c: qkv rank: the lines of a file that answer a query best. */
#include "../report/strings.h"
#include "json.h"
#include "lines.h"
#include "model.h"
#include "streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *model, *corpus;
    int top, max_length;
    bool json, quiet;
} given = { .top = 5 };

static const option options[] = {
    { "model", 'm', .value = "DIR", .help = "folder of a cross-encoder", .required = true, .text = &given.model },
    WEIGHT_ROWS(NO_GROUP),
    { "corpus", 'c', .value = "FILE", .help = "file of lines to choose from", .required = true, .text = &given.corpus },
    TEXT_ROWS(NO_GROUP),
    RESULT_ROW(NO_GROUP),
    { "top", .value = "N", .help = "results per query (default: 5)", .count = &given.top },
    { "max-length", .is_rare = true, .value = "N", .help = "maximum tokens of query and line together (default: 512)",
      .count = &given.max_length },
    { "json", .help = "print one JSON object per line", .flag = &given.json },
    { "quiet", .is_rare = true, .help = "print errors only", .flag = &given.quiet },
    { 0 },
};

typedef struct work {
    qkv_model *model;
    lines corpus;
    qkv_str *passages; /* the corpus */
    qkv_ranking *found;
} work;

static void print_ranked(const work *w, const char *query, int64_t n)
{
    if (given.json) fputs("{\"query\": ", stdout), put_json_text(query, strlen(query)), fputs(", \"best\": [", stdout);
    else puts(query);
    for (int64_t k = 0; k < n; k++) {
        const qkv_ranked *r = &w->found->best[k];
        const char *text = w->corpus.at[r->index];
        long long line = (long long)r->index + 1;
        if (!given.json) printf("    %.4f  %lld  %s\n", (double)r->score, line, text);
        else printf("%s{\"score\": %.9g, \"line\": %lld, \"text\": ", k ? ", " : "", (double)r->score, line);
        if (given.json) put_json_text(text, strlen(text)), putchar('}');
    }
    if (given.json) puts("]}");
}

static qkv_status rank_query(void *data, const text_stream *in, char *query, size_t length)
{
    work *w = data;
    int64_t n = given.top < w->corpus.n ? given.top : w->corpus.n;
    const qkv_encoder_opts opts = { .max_length = given.max_length };
    check_line(in, query, length, false, given.quiet);
    if (qkv_rank(w->model, (qkv_str){ query, length }, w->passages, w->corpus.n, &opts, &w->found)) return library_failed();
    int64_t cut = w->found->truncated;
    print_ranked(w, query, n);
    if (cut && !given.quiet && in->number == 1)
        fprintf(stderr, _("qkv: rank: %lld lines are longer than is read at once: cut (--max-length)\n"), (long long)cut);
    return QKV_OK;
}

static qkv_status run_rank(void)
{
    work w = { 0 };
    text_stream in = { 0 };
    qkv_status status = load_model_for(given.model, QKV_CAN_RANK, &w.model);
    if (!status) status = read_lines(&w.corpus, given.corpus, false);
    if (!status && !w.corpus.n) status = fail(QKV_FORMAT, "%s: there are no lines", given.corpus);
    if (!status && !(w.passages = qkv__strings_of((const char *const *)w.corpus.at, NULL, w.corpus.n)))
        status = library_failed();
    if (!status) status = open_texts(&in);
    if (!status) status = open_results(&in);
    if (!status) status = each_line(&in, rank_query, &w);
    close_texts(&in);
    qkv_free(w.found);
    free(w.passages);
    free_lines(&w.corpus);
    qkv_model_free(w.model);
    return status;
}

const command rank_command = {
    .name = "rank",
    .summary = "rerank the lines of a file by relevance to a query",
    .about = "For each query, or line of the input, the lines of the corpus that a cross-encoder\n"
             "gives the highest scores, reading query and line together: score, line number, line.\n"
             "More exact than \"qkv similar\", and slower: every line is read for every query.\n"
             "\n"
             "A cross-encoder is a published classifier with one label (ForSequenceClassification).\n"
             "Its score is 1 / (1 + e^-x) of its logit x, or x itself where its config.json names\n"
             "Identity as activation, as sentence-transformers has it.",
    .example = "  qkv rank -m ms-marco-MiniLM-L6-v2 --corpus passages.txt \"how tall is it\"",
    .options = options,
    .run = run_rank,
};
