/* cmd_explain.c: qkv explain: one attention, step by step, with the numbers. */
#include "arrays.h"
#include "options.h"
#include "streams.h"
#include "../learn/walk.h"

#include <math.h>
#include <stdio.h>

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

static void show_inputs(const walked *w)
{
    puts("Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V\n");
    printf("%lld queries look at %lld keys of d_k = %lld numbers; each key has a value of d_v = %lld numbers.\n\n",
           (long long)qkv_dim(w->q, 0), (long long)qkv_dim(w->k, 0), (long long)qkv_dim(w->q, 1), (long long)qkv_dim(w->v, 1));
    puts("1. Queries Q. A query is what a token looks for.");
    show_matrix(w->q, w->queries, (labels){ 0 }, 3, false);
    puts("\n2. Keys K. A key is what a token can be found by.");
    show_matrix(w->k, w->keys, (labels){ 0 }, 3, false);
    puts("\n3. Values V. A value is what a token hands over when it is looked at.");
    show_matrix(w->v, w->keys, (labels){ 0 }, 3, false);
}

static void show_scores(const walked *w)
{
    int64_t d_k = qkv_dim(w->q, 1);
    puts("\n4. Scores S = Q K^T. Each query meets each key: S[i][j] = q_i . k_j, large where they point the same way.");
    if (qkv_count(w->scores)) show_sum("S[0][0]", qkv_data(w->q), qkv_data(w->k), 1, d_k, qkv_data(w->scores)[0]);
    show_matrix(w->scores, w->queries, w->key_columns, 3, false);
    printf("\n5. Scaled S / sqrt(d_k) = S / %.3f. Longer vectors give larger sums; the root takes that growth back.\n",
           sqrt((double)d_k));
    if (given.causal) puts("   Causal: a key that comes after the query is hidden by -inf.");
    show_matrix(w->scaled, w->queries, w->key_columns, 3, false);
}

static void show_result(const walked *w)
{
    puts("\n6. Weights A = softmax: A[i][j] = exp(s_ij) / (exp(s_i0) + exp(s_i1) + ...). Each row becomes shares that sum to "
         "1.");
    show_matrix(w->weights, w->queries, w->key_columns, 3, true);
    puts("\n7. Output O = A V. Each token takes the values by its shares: O[i] = A[i][0] v_0 + A[i][1] v_1 + ...");
    if (qkv_count(w->output))
        show_sum("O[0][0]", qkv_data(w->weights), qkv_data(w->v), qkv_dim(w->v, 1), qkv_dim(w->v, 0), qkv_data(w->output)[0]);
    show_matrix(w->output, w->queries, (labels){ 0 }, 3, false);
}

static qkv_status explain(const operands *o, bool is_example)
{
    walked w = { .queries = { .prefix = "q" }, .keys = { .prefix = "k" }, .key_columns = { .prefix = "k" } };
    if (is_example) w.queries.names = w.keys.names = example_tokens, w.key_columns.names = example_columns;
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .no_grad = 1 });
    if (!t) return library_failed();
    qkv_status status = walk_attention(t, o, (qkv_mask){ .causal = given.causal }, &w);
    if (!status) status = open_results(NULL);
    if (!status) show_inputs(&w), show_scores(&w), show_result(&w);
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
