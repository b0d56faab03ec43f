/* cmd_explain.c: qkv explain: one attention, step by step, with the numbers. */
#include "arrays.h"
#include "options.h"
#include "print.h"

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
    { 0 },
};

/* The example of the paper's formula that the tests check to the last digit shown. */
static float example_q[] = { 0.83469225f, 0.97844849f, -0.22140911f, -0.50136356f, -0.38048561f, -0.49219428f };
static float example_k[] = { 0.93336044f, 1.38711376f, -0.4832162f, -0.40850584f, -0.40378534f, -0.55737316f };
static float example_v[] = { 1.0333236f,   -0.07687391f, 1.94313157f,  -1.26162928f, 1.18221604f,  -0.0298283f,
                             -1.46568319f, 1.37369452f,  -0.13959719f, -0.50792964f, -0.88052409f, 1.52022357f };
static const char *const example_tokens[] = { "哈基咪 (133)", "南北 (23)", "绿豆 (58)" };
static const char *const example_columns[] = { "哈基咪", "南北", "绿豆" };

/* Everything there is to show. */
typedef struct walk {
    qkv_tensor *q, *k, *v, *scores, *scaled, *weights, *output;
    labels queries, keys, key_columns;
} walk;

static void show(const qkv_tensor *x, labels row, labels column, bool sums)
{
    print_table(&(table){ .values = qkv_data(x),
                          .rows = qkv_dim(x, -2),
                          .columns = qkv_dim(x, -1),
                          .row = row,
                          .column = column,
                          .decimals = 3,
                          .sums = sums });
}

static void show_inputs(const walk *w)
{
    puts("Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V\n");
    printf("%lld queries look at %lld keys of d_k = %lld numbers; each key has a value of d_v = %lld numbers.\n\n",
           (long long)qkv_dim(w->q, 0), (long long)qkv_dim(w->k, 0), (long long)qkv_dim(w->q, 1), (long long)qkv_dim(w->v, 1));
    puts("1. Queries Q. A query is what a token looks for.");
    show(w->q, w->queries, (labels){ 0 }, false);
    puts("\n2. Keys K. A key is what a token can be found by.");
    show(w->k, w->keys, (labels){ 0 }, false);
    puts("\n3. Values V. A value is what a token hands over when it is looked at.");
    show(w->v, w->keys, (labels){ 0 }, false);
}

/* The first number of a product, spelled out: "a0 * b0 + a1 * b1 = result". */
static void show_sum(const char *name, const float *a, const float *b, int64_t step, int64_t n, float result)
{
    if (n < 1 || n > 4) return;
    printf("   %s =", name);
    for (int64_t i = 0; i < n; i++) printf("%s %.3f * %.3f", i ? " +" : "", (double)a[i], (double)b[i * step]);
    printf(" = %.3f\n", (double)result);
}

static void show_scores(const walk *w)
{
    int64_t d_k = qkv_dim(w->q, 1);
    puts("\n4. Scores S = Q K^T. Each query meets each key: S[i][j] = q_i . k_j, large where they point the same way.");
    if (qkv_count(w->scores)) show_sum("S[0][0]", qkv_data(w->q), qkv_data(w->k), 1, d_k, qkv_data(w->scores)[0]);
    show(w->scores, w->queries, w->key_columns, false);
    printf("\n5. Scaled S / sqrt(d_k) = S / %.3f. Longer vectors give larger sums; the root takes that growth back.\n",
           sqrt((double)d_k));
    if (given.causal) puts("   Causal: a key that comes after the query is hidden by -inf.");
    show(w->scaled, w->queries, w->key_columns, false);
}

static void show_result(const walk *w)
{
    puts("\n6. Weights A = softmax: A[i][j] = exp(s_ij) / (exp(s_i0) + exp(s_i1) + ...). Each row becomes shares that sum to "
         "1.");
    show(w->weights, w->queries, w->key_columns, true);
    puts("\n7. Output O = A V. Each token takes the values by its shares: O[i] = A[i][0] v_0 + A[i][1] v_1 + ...");
    if (qkv_count(w->output))
        show_sum("O[0][0]", qkv_data(w->weights), qkv_data(w->v), qkv_dim(w->v, 1), qkv_dim(w->v, 0), qkv_data(w->output)[0]);
    show(w->output, w->queries, (labels){ 0 }, false);
}

static qkv_status explain(const operands *o, bool is_example)
{
    walk w = { .queries = { .prefix = "q" }, .keys = { .prefix = "k" }, .key_columns = { .prefix = "k" } };
    if (is_example) w.queries.names = w.keys.names = example_tokens, w.key_columns.names = example_columns;
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .no_grad = 1 });
    if (!t) return library_failed();
    w.q = qkv_constant(t, 2, o->q.shape, o->q.data);
    w.k = qkv_constant(t, 2, o->k.shape, o->k.data);
    w.v = qkv_constant(t, 2, o->v.shape, o->v.data);
    w.output = qkv_attention_with(w.q, w.k, w.v, (qkv_mask){ .causal = given.causal },
                                  &(qkv_attention_opts){ .scores = &w.scores, .scaled = &w.scaled, .weights = &w.weights });
    qkv_status status = qkv_tape_status(t) ? library_failed() : QKV_OK;
    if (!status) show_inputs(&w), show_scores(&w), show_result(&w);
    qkv_tape_free(t);
    return status;
}

static qkv_status run(void)
{
    if (!given.q && !given.k && !given.v)
        return explain(
            &(operands){ .q = { 2, { 3, 2 }, example_q }, .k = { 2, { 3, 2 }, example_k }, .v = { 2, { 3, 4 }, example_v } },
            true);
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
    .run = run,
};
