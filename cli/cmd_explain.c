/* cmd_explain.c: qkv explain: one attention, step by step, with the numbers. */
#include "options.h"
#include "streams.h"
#include "../learn/walk.h"

static struct {
    const char *q, *k, *v;
    bool causal;
} given;

static const option options[] = {
    { "q", .value = "FILE", .help = "queries of your own, (T, D); with --k and --v", .text = &given.q },
    { "k", .value = "FILE", .help = "keys", .text = &given.k },
    { "v", .value = "FILE", .help = "values", .text = &given.v },
    { "causal", .help = "query i sees keys 0..i; with fewer queries than keys the last sees all", .flag = &given.causal },
    RESULT_ROW(NO_GROUP),
    { 0 },
};

static qkv_status explain(const operands *o, bool is_example)
{
    walked w = { .queries = { .prefix = "q" }, .keys = { .prefix = "k" }, .key_columns = { .prefix = "k" } };
    if (is_example) w.queries.names = w.keys.names = example_tokens, w.key_columns.names = example_columns;
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .no_grad = 1 });
    if (!t) return library_failed();
    qkv_status status = walk_attention(t, o, (qkv_mask){ .causal = given.causal }, &w);
    if (!status) status = open_results(NULL);
    if (!status) show_walk(&w, given.causal);
    qkv_tape_free(t);
    return status;
}

static qkv_status run_explain(void)
{
    if (!given.q && !given.k && !given.v) return explain(&example_operands, true);
    if (!given.q || !given.k || !given.v) return fail(QKV_USAGE, "--q, --k and --v go together");
    operands o = { 0 };
    qkv_status status = load_operands(&o, given.q, given.k, given.v);
    if (!status && o.q.ndim != 2)
        status = fail(QKV_USAGE, "%s: has %d dimensions: one attention is explained at a time, from 2 (T,D)", given.q,
                      o.q.ndim);
    if (!status) status = explain(&o, false);
    free_operands(&o);
    return status;
}

const command explain_command = {
    .name = "explain",
    .summary = "walk through one attention with every number",
    .about = "Shows softmax(Q K^T / sqrt(d_k)) V step by step: queries, keys, values, scores,\n"
             "scaled scores, weights and output, each as a table. Without arrays of your own\n"
             "it shows an example of three tokens.",
    .example = "  qkv explain\n  qkv explain --q q.npy --k k.npy --v v.npy --causal",
    .options = options,
    .run = run_explain,
};
