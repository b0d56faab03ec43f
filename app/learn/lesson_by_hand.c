/* lesson_by_hand.c: lesson 1: queries, keys and values, every number on the way. */
#include "../draw/view.h"
#include "lesson.h"
#include "../term/errors.h"
#include "walk.h"

#include <math.h>
#include <stdio.h>

static void show_tensor(const qkv_tensor *x, labels row, labels column, int decimals, bool sums)
{
    show_matrix(x, row, column, decimals, sums);
    putchar('\n');
}

static void spell_sum(const char *name, const float *a, const float *b, int64_t step, int64_t n, float result)
{
    show_sum(name, a, b, step, n, result);
    putchar('\n');
}

static void show_inputs(const walked *w)
{
    say(_(
        "Attention is a search that returns a mixture. Each token asks a question, its query q. Each token also wears a label "
        "that others can find it by, its key k, and carries what it hands over when it is found, its value v. All three are "
        "vectors, computed from the token by three matrices that are learned."));
    say(_("In a library, the query is the question that a reader brings, the keys are the titles in the catalogue, and the "
          "values are the contents of the books. Attention does not fetch one book. It mixes the contents of all books, "
          "weighted by "
          "how well each title matches the question."));
    say(_("Written as matrices, a token a row:"));
    puts("    Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V\n");
    say("%s", _(example_about));
    say(_("Here are %lld tokens with queries and keys of d_k = %lld numbers and values of d_v = %lld. The queries Q:"),
        (long long)qkv_tensor_dim(w->q, 0), (long long)qkv_tensor_dim(w->q, 1), (long long)qkv_tensor_dim(w->v, 1));
    show_tensor(w->q, w->queries, (labels){ 0 }, 3, false);
    say(_("The keys K:"));
    show_tensor(w->k, w->keys, (labels){ 0 }, 3, false);
    say(_("The values V:"));
    show_tensor(w->v, w->keys, (labels){ 0 }, 3, false);
}

static void show_scores(const walked *w)
{
    say_heading(_("Step 1: scores"));
    say(_("Every query meets every key: score = q . k, the sum of the products, number by number. It is large where the two "
          "point the same way and negative where they point apart. The first one by hand:"));
    spell_sum("S[0][0]", qkv_tensor_data(w->q), qkv_tensor_data(w->k), 1, qkv_tensor_dim(w->q, 1),
              qkv_tensor_data(w->scores)[0]);
    say(_("And all of them, S = Q K^T: a row for each query, a column for each key."));
    show_tensor(w->scores, w->queries, w->key_columns, 3, false);
    say_heading(_("Step 2: scaling"));
    say(_("All scores are divided by sqrt(d_k) = %.3f, so that they do not grow with the length of the vectors. Lesson 2 is "
          "about why."),
        sqrt((double)qkv_tensor_dim(w->q, 1)));
    show_tensor(w->scaled, w->queries, w->key_columns, 3, false);
}

static void show_softmax(const walked *w)
{
    const float *s = qkv_tensor_data(w->scaled);
    double exps[3], sum = 0;
    for (int j = 0; j < 3; j++) sum += exps[j] = exp((double)s[j]);
    say_heading(_("Step 3: softmax"));
    say(_("Scores become shares: take exp of each, which is always above 0, and divide by the sum of the row. For the first "
          "row "
          "the three exps are %.3f, %.3f and %.3f, their sum is %.3f, and the first share is %.3f / %.3f = %.3f."),
        exps[0], exps[1], exps[2], sum, exps[0], sum, exps[0] / sum);
    show_tensor(w->weights, w->queries, w->key_columns, 3, true);
    say(_("These are the attention weights: row i says how much token i takes from each token. Each row sums to 1."));
}

static void show_output(const walked *w)
{
    say_heading(_("Step 4: the weighted sum"));
    say(_(
        "Each token takes the values by its shares. The first number of the first output is the first column of V, weighted by "
        "the first row of the shares:"));
    spell_sum("O[0][0]", qkv_tensor_data(w->weights), qkv_tensor_data(w->v), qkv_tensor_dim(w->v, 1), qkv_tensor_dim(w->v, 0),
              qkv_tensor_data(w->output)[0]);
    say(_("All outputs, O = A V, where A are the shares:"));
    show_tensor(w->output, w->queries, (labels){ 0 }, 3, false);
}

static qkv_status draw_walk(const walked *w)
{
    return draw_maps("by_hand", &(qkv_heatmap){ .values = qkv_tensor_data(w->weights) }, 1,
                     &(qkv_heatmap_opts){ .rows = qkv_tensor_dim(w->weights, -2),
                                          .columns = qkv_tensor_dim(w->weights, -1),
                                          .row_names = example_columns,
                                          .column_names = example_columns,
                                          .row_axis = _("query (attending)"),
                                          .column_axis = _("key (attended)"),
                                          .title = _("attention weights") });
}

/* An example small enough for the head, and what goes wrong when its softmax is done by eye. */
static void show_small(const walked *w)
{
    const float *a = qkv_tensor_data(w->weights), *o = qkv_tensor_data(w->output), *v = qkv_tensor_data(w->v);
    float steps[9];
    for (int j = 0; j < 3; j++)
        steps[j] = qkv_tensor_data(w->scores)[j], steps[3 + j] = qkv_tensor_data(w->scaled)[j], steps[6 + j] = a[j];
    say_heading(_("A smaller one, and a common mistake"));
    say(_("One query, q = [1, 0], and three keys: [1, 0], [0, 1] and [1, 0], with the values [10, 0], [0, 20] and [30, 0]. The "
          "scores, the scaled scores and the shares:"));
    print_table(&(table){ .values = steps,
                          .rows = 3,
                          .columns = 3,
                          .row.names = (const char *const[]){ _("scores"), _("scaled"), _("shares") },
                          .column.prefix = "k",
                          .decimals = 6 });
    putchar('\n');
    say(_("The output is [%.5f, %.5f]."), (double)o[0], (double)o[1]);
    say(_("Some tutorials print 0.5, 0 and 0.5 here, and the output [%g, %g]. They divide each score by the sum of the scores "
          "and forget the exp: 1 / (1 + 0 + 1) = 0.5. With softmax, exp(0) = 1, so the second key keeps a weight of %.6f. A "
          "lower score gives a smaller weight, but never exactly 0."),
        0.5 * (double)v[0] + 0.5 * (double)v[4], 0.5 * (double)v[1] + 0.5 * (double)v[5], (double)a[1]);
}

static qkv_status teach_small(qkv_tape *t)
{
    static float q[] = { 1, 0 }, k[] = { 1, 0, 0, 1, 1, 0 }, v[] = { 10, 0, 0, 20, 30, 0 };
    operands o = { .q = { .ndim = 2, .shape = { 1, 2 }, .data = q },
                   .k = { .ndim = 2, .shape = { 3, 2 }, .data = k },
                   .v = { .ndim = 2, .shape = { 3, 2 }, .data = v } };
    walked w = { 0 };
    qkv_status status = walk_attention(t, &o, NULL, &w);
    if (!status) show_small(&w);
    return status;
}

/* One number a token; the digits that get lost when weights are cut before the sum. */
static qkv_status teach_rounding(qkv_tape *t)
{
    static float q[] = { 1 }, k[] = { 1, 2, 0.5f }, v[] = { 10, 20, 5 };
    operands o = { .q = { .ndim = 2, .shape = { 1, 1 }, .data = q },
                   .k = { .ndim = 2, .shape = { 3, 1 }, .data = k },
                   .v = { .ndim = 2, .shape = { 3, 1 }, .data = v } };
    walked w = { 0 };
    double cut = 0;
    qkv_status status = walk_attention(t, &o, NULL, &w);
    if (status) return status;
    const float *a = qkv_tensor_data(w.weights);
    for (int j = 0; j < 3; j++) cut += floor((double)a[j] * 1000) / 1000 * (double)v[j];
    say(_("The same with one number per token: q = 1, k = 1, 2, 0.5 and v = 10, 20, 5 give the weights %.6f, %.6f, %.6f and "
          "the "
          "output %.3f. Some tutorials print %.2f, since they cut the weights to three digits before the sum."),
        (double)a[0], (double)a[1], (double)a[2], (double)qkv_tensor_data(w.output)[0], cut);
    return QKV_OK;
}

static qkv_status teach_example(qkv_tape *t)
{
    walked w = { .queries.names = example_tokens, .keys.names = example_tokens, .key_columns.names = example_columns };
    qkv_status status = walk_attention(t, &example_operands, NULL, &w);
    if (status) return status;
    show_inputs(&w);
    show_scores(&w);
    show_softmax(&w);
    show_output(&w);
    return draw_walk(&w);
}

static qkv_status run_by_hand_lesson(void)
{
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    if (!t) return library_failed();
    qkv_status status = teach_example(t);
    if (!status) status = teach_small(t);
    if (!status) status = teach_rounding(t);
    qkv_tape_free(t);
    return status;
}

const lesson lesson_by_hand = {
    .name = "1",
    .title = N_("Query, key and value by hand"),
    .run = run_by_hand_lesson,
    .question = N_("Which score would the second key need for its share to be exactly 0, so that 0.5, 0 and 0.5 were right?"),
    .answer = N_("Minus infinity. The exp of any finite score is above 0, so a finite score can make a share small but not 0 "
                 "(until it is too small for a floating-point number). Setting scores to minus infinity is how keys are "
                 "hidden on purpose: lesson 3."),
};
