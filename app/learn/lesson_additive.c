/* lesson_additive.c: lesson 9: dot-product against additive attention. */
#include "../draw/view.h"
#include "lesson.h"

#include "../corpora/grammar.h"
#include "../term/errors.h"
#include "stopwatch.h"
#include "walk.h"

#include <math.h>
#include <stdio.h>

/* ---- the same inputs ---- */

static const labels token_names = { example_columns, NULL };

static void show_rows(const char *text, const qkv_tensor *x, labels columns)
{
    say("%s", text);
    show_matrix(x, token_names, columns, 3, columns.names != NULL);
    putchar('\n');
}

static void show_both(const walked *dot, const walked *additive)
{
    say_heading(_("The same queries, keys and values"));
    show_rows(_("Weights by the dot product:"), dot->weights, token_names);
    show_rows(_("Weights by addition, with w = (1, 1) and nothing learned yet:"), additive->weights, token_names);
    show_rows(_("The output by the dot product:"), dot->output, (labels){ 0 });
    show_rows(_("The output by addition:"), additive->output, (labels){ 0 });
    say(_("A dot product is large where two vectors point the same way: it compares by itself. The sum inside tanh does "
          "not: a large key makes every score large, whatever the query. Additive attention is a small network that must "
          "first learn to compare, through W_q, W_k and w."));
}

static qkv_status draw_both(const walked *dot, const walked *additive)
{
    const char *path = picture_path("additive");
    if (!path) return QKV_OK;
    const qkv_heatmap maps[] = { { qkv_tensor_data(dot->weights), _("dot product") },
                                 { qkv_tensor_data(additive->weights), _("additive") } };
    const qkv_heatmap_opts opts = { .rows = 3,
                                    .columns = 3,
                                    .row_names = example_columns,
                                    .column_names = example_columns,
                                    .row_axis = _("query (attending)"),
                                    .column_axis = _("key (attended)"),
                                    .high = 1 };
    if (qkv_picture_heatmaps(path, maps, 2, &opts)) return library_failed();
    tell_picture(path);
    return QKV_OK;
}

static qkv_status same_inputs(qkv_tape *t)
{
    walked dot = { 0 }, additive = { 0 };
    qkv_status status = walk_attention(t, &example_operands, NULL, &dot);
    if (status) return status;
    qkv_tensor *w = qkv_constant(t, QKV_SHAPE(2), (const float[]){ 1, 1 });
    additive.output = qkv_attention(dot.q, dot.k, dot.v, NULL,
                                    &(qkv_attention_opts){ .additive = w, .weights = &additive.weights });
    if (qkv_tape_status(t)) return library_failed();
    show_both(&dot, &additive);
    return draw_both(&dot, &additive);
}

/* ---- speed ---- */

enum { SIZES = 4, WIDTH = 64 };
static const int sizes[SIZES] = { 64, 128, 256, 512 };

/* One attention of n tokens over themselves. */
typedef struct race {
    qkv_tape *tape;
    qkv_tensor *inputs, *w; /* (n, WIDTH), (WIDTH): weights, so that the tape can be reset */
} race;

static qkv_status multiply(void *data)
{
    const race *r = data;
    qkv_tape_reset(r->tape);
    qkv_tensor *x = qkv_on(r->tape, r->inputs);
    return qkv_attention(x, x, x, NULL, NULL) ? QKV_OK : library_failed();
}

static qkv_status add_up(void *data)
{
    const race *r = data;
    qkv_tape_reset(r->tape);
    qkv_tensor *x = qkv_on(r->tape, r->inputs);
    return qkv_attention(x, x, x, NULL, &(qkv_attention_opts){ .additive = r->w }) ? QKV_OK : library_failed();
}

/* Prints a row. */
static qkv_status race_at(qkv_tape *t, int n)
{
    double dot = 0, additive = 0;
    qkv_params *p = qkv_params_new(9);
    race r = { .tape = t };
    r.inputs = p ? qkv_params_add(p, "x", QKV_SHAPE(n, WIDTH), QKV_INIT_NORMAL, 1) : NULL;
    r.w = p ? qkv_params_add(p, "w", QKV_SHAPE(WIDTH), QKV_INIT_NORMAL, 0.1f) : NULL;
    qkv_status status = qkv_params_status(p) ? library_failed() : least_seconds(multiply, &r, &dot);
    if (!status) status = least_seconds(add_up, &r, &additive);
    if (!status) printf("    %5d  %12.3f  %12.3f  %7.0f\n", n, 1e3 * dot, 1e3 * additive, additive / dot);
    qkv_tape_reset(t);
    qkv_params_free(p);
    return status;
}

static qkv_status speed(void)
{
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    qkv_status status = t ? QKV_OK : library_failed();
    say_heading(_("Speed"));
    say(_("Both compare every query with every key, n x n times d steps. But the dot products of all pairs are one product of "
          "matrices, which a processor does many at a time, and addition needs a tanh for every number of every pair. "
          "Milliseconds on this machine with %d threads, d = %d, and how many times as long addition takes:"),
        qkv_num_threads(), WIDTH);
    printf("    %5s  %12s  %12s", "n", "q . k", "w . tanh");
    print_name(_("ratio"), 9, true);
    putchar('\n');
    for (int i = 0; i < SIZES && !status; i++) status = race_at(t, sizes[i]);
    putchar('\n');
    say(_("Memory differs too. A program that keeps its intermediate results holds n x n scores for the dot product, and n x n "
          "x d numbers inside tanh for addition: at n = %d and d = %d, %.0f MB instead of %.0f MB. This library keeps neither: "
          "it "
          "recomputes them in the backward pass."),
        sizes[SIZES - 1], WIDTH, 4.0 * sizes[SIZES - 1] * sizes[SIZES - 1] * WIDTH / 1e6,
        4.0 * sizes[SIZES - 1] * sizes[SIZES - 1] / 1e6);
    qkv_tape_free(t);
    return status;
}

/* ---- what they learn ---- */

enum { SYMBOLS = 16, PAIRS = 8, DIM = 16, BATCH = 64, HELD_OUT = 1000, STEPS = 120, EVERY = 20 };

/* Each row: PAIRS different symbols, a value for each, one of the symbols as the question and its value as the answer. */
typedef struct questions {
    int32_t keys[HELD_OUT * PAIRS], values[HELD_OUT * PAIRS], asked[HELD_OUT], answers[HELD_OUT];
    int n;
} questions;

static void draw_questions(uint64_t *random, int n, questions *out)
{
    int32_t deck[SYMBOLS];
    for (int i = 0; i < SYMBOLS; i++) deck[i] = i;
    out->n = n;
    for (int row = 0; row < n; row++) {
        for (int i = 0; i < PAIRS; i++) {
            int other = i + random_below(random, SYMBOLS - i);
            int32_t drawn = deck[other];
            deck[other] = deck[i], deck[i] = drawn;
            out->keys[row * PAIRS + i] = drawn;
            out->values[row * PAIRS + i] = random_below(random, SYMBOLS);
        }
        int at = random_below(random, PAIRS);
        out->asked[row] = out->keys[row * PAIRS + at], out->answers[row] = out->values[row * PAIRS + at];
    }
}

typedef struct retriever {
    bool is_additive;
    qkv_params *params;
    qkv_tape *tape;
    qkv_optimizer *optimizer;
    qkv_embedding symbols, values;
    qkv_linear query, key, out;
    qkv_tensor *w;
} retriever;

static qkv_status make_retriever(retriever *r, bool is_additive)
{
    *r = (retriever){ .is_additive = is_additive, .params = qkv_params_new(9), .tape = qkv_tape_new(NULL) };
    if (!r->params || !r->tape) return library_failed();
    r->symbols = qkv_embedding_new(r->params, "symbols", SYMBOLS, DIM);
    r->values = qkv_embedding_new(r->params, "values", SYMBOLS, DIM);
    r->query = qkv_linear_new(r->params, "query", DIM, DIM, true);
    r->key = qkv_linear_new(r->params, "key", DIM, DIM, true);
    r->out = qkv_linear_new(r->params, "out", DIM, SYMBOLS, true);
    if (is_additive) r->w = qkv_params_add(r->params, "w", QKV_SHAPE(DIM), QKV_INIT_NORMAL, 0.5f);
    r->optimizer = qkv_optimizer_new(r->params, &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM, .lr = 0.01f });
    return r->optimizer ? QKV_OK : library_failed();
}

static void free_retriever(retriever *r)
{
    qkv_optimizer_free(r->optimizer);
    qkv_tape_free(r->tape);
    qkv_params_free(r->params);
}

/* (n, 1, SYMBOLS) */
static qkv_tensor *answer_questions(const retriever *r, const questions *x)
{
    qkv_tape_reset(r->tape);
    qkv_tensor *q = qkv_linear_forward(&r->query, qkv_embedding_forward(&r->symbols, r->tape, x->asked, x->n, 1));
    qkv_tensor *k = qkv_linear_forward(&r->key, qkv_embedding_forward(&r->symbols, r->tape, x->keys, x->n, PAIRS));
    qkv_tensor *v = qkv_embedding_forward(&r->values, r->tape, x->values, x->n, PAIRS);
    qkv_tensor *y = r->is_additive ? qkv_attention(q, k, v, NULL, &(qkv_attention_opts){ .additive = r->w })
                                   : qkv_attention(q, k, v, NULL, NULL);
    return qkv_linear_forward(&r->out, y);
}

static qkv_status train_step(const retriever *r, const questions *x)
{
    if (qkv_backward(qkv_cross_entropy(answer_questions(r, x), x->answers, NULL))) return library_failed();
    return qkv_optimizer_step(r->optimizer) ? library_failed() : QKV_OK;
}

static bool is_right(const float *logits, int32_t wanted)
{
    for (int i = 0; i < SYMBOLS; i++)
        if (logits[i] > logits[wanted]) return false;
    return true;
}

/* The share of right answers. */
static qkv_status examine(const retriever *r, const questions *x, double *share)
{
    int right = 0;
    qkv_tensor *logits = answer_questions(r, x);
    if (!logits) return library_failed();
    for (int i = 0; i < x->n; i++) right += is_right(qkv_tensor_data(logits) + i * SYMBOLS, x->answers[i]);
    *share = (double)right / x->n;
    return QKV_OK;
}

static qkv_status print_shares(const retriever both[2], const questions *test, int step)
{
    double dot, additive;
    qkv_status status = examine(&both[0], test, &dot);
    if (!status) status = examine(&both[1], test, &additive);
    if (!status) printf("    %5d  %8.3f  %8.3f\n", step, dot, additive);
    return status;
}

/* Both see the same questions. */
static qkv_status train_both(const retriever both[2])
{
    static questions batch, test;
    uint64_t random = 9;
    qkv_status status = QKV_OK;
    draw_questions(&random, HELD_OUT, &test);
    for (int step = 0; step <= STEPS && !status; step++) {
        if (step % EVERY == 0) status = print_shares(both, &test, step);
        draw_questions(&random, BATCH, &batch);
        for (int i = 0; i < 2 && !status; i++) status = train_step(&both[i], &batch);
    }
    putchar('\n');
    return status;
}

static qkv_status learn_to_find(void)
{
    retriever both[2] = { 0 };
    qkv_status status = make_retriever(&both[0], false);
    if (!status) status = make_retriever(&both[1], true);
    if (!status) {
        say_heading(_("What they learn"));
        say(_("A task made for attention: %d pairs of a name and a number, and a question, one of the names; the answer is "
              "its number. Both kinds train on the same pairs, drawn from %d names, with Adam at 0.01 in batches of %d. The "
              "share of right answers to %d questions they never saw, after so many steps (guessing: %.3f):"),
            PAIRS, SYMBOLS, BATCH, HELD_OUT, 1.0 / SYMBOLS);
        print_name(_("step"), 9, true);
        printf("  %8s  %8s\n", "q . k", "w . tanh");
        status = train_both(both);
    }
    if (!status)
        say(_("Both learn to look a name up. The paper chose the dot product for the column of milliseconds above: as good, "
              "and one product of matrices."));
    free_retriever(&both[0]);
    free_retriever(&both[1]);
    return status;
}

static qkv_status run_additive_lesson(void)
{
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    if (!t) return library_failed();
    say(_("Before the Transformer, translators scored a query against a key with a small network. The paper compares the "
          "two:"));
    printf("    score(q, k) = q . k / sqrt(d_k)          %s\n", _("dot product"));
    printf("    score(q, k) = w . tanh(W_q q + W_k k)    %s\n\n", _("additive"));
    qkv_status status = same_inputs(t);
    if (!status) status = speed();
    if (!status) status = learn_to_find();
    qkv_tape_free(t);
    return status;
}

const lesson lesson_additive = {
    .name = "9",
    .title = N_("Dot-product against additive attention"),
    .run = run_additive_lesson,
    .question = N_("The paper says that for large d_k additive attention is better than dot products that are not scaled. "
                   "Why does it need no scaling?"),
    .answer = N_("Because tanh is bounded. However many dimensions there are, a score is never larger than the sum of |w|, "
                 "and training sets w. An unscaled dot product of d_k random terms has variance d_k: at 512 its scores "
                 "spread over some 20 either way, the softmax puts all on one key and its gradient is gone. Dividing by "
                 "sqrt(d_k) takes that away, and with it the one advantage that addition had."),
};
