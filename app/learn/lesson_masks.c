/* lesson_masks.c: lesson 3: causal and padding masks, what -inf does, and a row with nothing to see. */
#include "../draw/view.h"
#include "lesson.h"
#include "../term/errors.h"
#include "../term/print.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { T = 4, D = 4 };
static const char *const words[T] = { "I", "love", "you", "too" };
static const char *const padded[T] = { "thank", "you", QKV_SPECIAL_PAD, QKV_SPECIAL_PAD };

/* One attention with the mask it was computed under. */
typedef struct masked {
    qkv_tensor *q, *k, *v, *scaled, *weights, *output;
    uint8_t hidden[T * T];
} masked;

/* The same queries, keys and values each time: the lesson is about the mask. */
static masked attend_masked(qkv_tape *t, const qkv_params *p, const qkv_mask *mask)
{
    masked m = { 0 };
    m.q = qkv_on(t, qkv_params_find(p, "q"));
    m.k = qkv_on(t, qkv_params_find(p, "k"));
    m.v = qkv_on(t, qkv_params_find(p, "v"));
    m.output = qkv_attention(m.q, m.k, m.v, mask, &(qkv_attention_opts){ .scaled = &m.scaled, .weights = &m.weights });
    for (int i = 0; m.output && i < T * T; i++) m.hidden[i] = qkv_tensor_data(m.scaled)[i] == -INFINITY;
    return m;
}

static void show_scores(const qkv_tensor *scores)
{
    show_numbers(qkv_tensor_data(scores), T, T, (labels){ .names = words }, (labels){ .names = words }, 3);
}

static void show_weights(const masked *m, const char *const *names)
{
    print_table(&(table){ .values = qkv_tensor_data(m->weights),
                          .hidden = m->hidden,
                          .rows = T,
                          .columns = T,
                          .row.names = names,
                          .column.names = names,
                          .decimals = 3,
                          .sums = true });
    putchar('\n');
}

/* ---- causal ---- */

/* How far the masked weights are from those of before, cut to what may be seen and made to sum to 1 again. */
static double off_from_renormalised(const float *before, const float *after)
{
    double off = 0;
    for (int i = 0; i < T; i++) {
        double seen = 0;
        for (int j = 0; j <= i; j++) seen += (double)before[i * T + j];
        for (int j = 0; j <= i; j++) off = fmax(off, fabs((double)before[i * T + j] / seen - (double)after[i * T + j]));
    }
    return off;
}

/* Numbers of the output that another last word changes, in the rows before it. */
static int changed_before_last(qkv_tape *t, const qkv_params *p, const masked *m)
{
    float k[T * D], v[T * D];
    int changed = 0;
    memcpy(k, qkv_tensor_data(m->k), sizeof k);
    memcpy(v, qkv_tensor_data(m->v), sizeof v);
    for (int i = (T - 1) * D; i < T * D; i++) k[i] += 1, v[i] -= 5;
    qkv_tensor *y = qkv_attention(qkv_on(t, qkv_params_find(p, "q")), qkv_constant(t, QKV_SHAPE(T, D), k),
                                  qkv_constant(t, QKV_SHAPE(T, D), v), QKV_CAUSAL, NULL);
    for (int i = 0; y && i < (T - 1) * D; i++) changed += qkv_tensor_data(y)[i] != qkv_tensor_data(m->output)[i];
    return changed;
}

static void teach_free(const masked *m)
{
    say(_("Without a mask every token sees every token. Scores (scaled), and the weights that the softmax makes of them:"));
    show_scores(m->scaled);
    show_weights(m, words);
}

static void teach_causal(qkv_tape *t, const qkv_params *p, const masked *all, const masked *causal)
{
    float hidden[T * T] = { 0 };
    for (int i = 0; i < T; i++)
        for (int j = i + 1; j < T; j++) hidden[i * T + j] = -INFINITY;
    say_heading(_("The causal mask"));
    say(_("A model that writes a text word by word must not look at words that are not written yet. So position i sees 0 to i "
          "only. The mask is added to the scores before the softmax: 0 where one may look, -inf where one may not."));
    show_scores(qkv_constant(t, QKV_SHAPE(T, T), hidden));
    say(_("Scores with the mask, and their softmax. exp(-inf) = 0, so a hidden key (///) gets exactly 0, and the others "
          "share what it had:"));
    show_scores(causal->scaled);
    show_weights(causal, words);
    say(_("It is the same as cutting the weights of before to what may be seen and dividing each row by its sum: the largest "
          "difference is %.0e, the rounding of floats."),
        off_from_renormalised(qkv_tensor_data(all->weights), qkv_tensor_data(causal->weights)));
    say(_("Now another last word: its key and its value change. Of the %d output numbers of the words before it, %d change. "
          "That "
          "is why a language model can be trained on all positions of a text at once."),
        (T - 1) * D, changed_before_last(t, p, causal));
}

/* ---- padding ---- */

static void teach_padding(const masked *all, const masked *by_length, const int32_t *ids, int32_t length)
{
    double wasted = 0;
    for (int i = 0; i < length; i++)
        for (int j = length; j < T; j++) wasted += (double)qkv_tensor_data(all->weights)[i * T + j] / length;
    say_heading(_("The padding mask"));
    say(_("Sentences of one batch are filled up to the same length. Let \"thank you\" stand next to the sentence above: its "
          "ids "
          "are %d %d %d %d, where 0 is padding. If its scores were those of above, its two words would spend %.1f %% of their "
          "attention on nothing. With the length, %d, the keys behind it are hidden:"),
        ids[0], ids[1], ids[2], ids[3], 100 * wasted, length);
    show_weights(by_length, padded);
    say(_("The rows of the padding itself are still computed. Nobody reads them, and the loss leaves them out."));
}

/* ---- nothing to see ---- */

/* exp(x - max) / sum with x all -inf, as it is written down first. */
static float naive_softmax_of_hidden(void)
{
    volatile float hidden = -INFINITY; /* volatile: the compiler must not know */
    return expf(hidden - hidden) / (T * expf(hidden - hidden));
}

static void tell_nothing(const float *rows, double gradient)
{
    say_heading(_("A row with nothing to see"));
    say(_("What if all keys of a query are hidden, as in an empty sentence? Three answers to the same question:"));
    print_table(&(table){ .values = rows,
                          .rows = 3,
                          .columns = T,
                          .row.names = (const char *const[]){ _("softmax as written"), _("-1e9 for -inf"), _("this library") },
                          .column.prefix = "k",
                          .decimals = 3,
                          .sums = true });
    putchar('\n');
    say(_("The formula as it is written computes -inf - (-inf), which is no number, and one nan soon is everywhere. With a "
          "large "
          "negative number in place of -inf every score is rounded to that same number, so the query attends to everything "
          "that should be hidden, in equal shares. Here a query that may see nothing takes nothing: weights 0, output 0, and "
          "the largest gradient that goes back to the keys is %g."),
        gradient);
}

static qkv_status teach_nothing(qkv_tape *t, const qkv_params *p)
{
    float rows[3 * T];
    double gradient = 0;
    const int32_t none = 0;
    qkv_tensor *far_below = qkv_constant(t, QKV_SHAPE(1), &(const float){ -1e9f });
    qkv_tensor *large = qkv_softmax(qkv_add(attend_masked(t, p, NULL).scaled, far_below));
    masked hidden = attend_masked(t, p, &(qkv_mask){ .key_lengths = &none });
    if (qkv_backward(qkv_sum(hidden.output, QKV_ALL_DIMS))) return library_failed();
    for (int j = 0; j < T; j++) rows[j] = naive_softmax_of_hidden();
    memcpy(rows + T, qkv_tensor_data(large), T * sizeof *rows);
    memcpy(rows + 2 * T, qkv_tensor_data(hidden.weights), T * sizeof *rows);
    for (int i = 0; i < T * D; i++) gradient = fmax(gradient, fabs((double)qkv_tensor_grad(qkv_params_find(p, "k"))[i]));
    tell_nothing(rows, gradient);
    return QKV_OK;
}

/* ---- all of it ---- */

/* A picture each, because the cells of one picture are hidden by one mask. */
static qkv_status draw_mask(const char *picture, const masked *m, const char *const *names, const char *title)
{
    return draw_maps(picture, &(qkv_heatmap){ .values = qkv_tensor_data(m->weights) }, 1,
                     &(qkv_heatmap_opts){ .size = sizeof(qkv_heatmap_opts),
                                          .rows = T,
                                          .columns = T,
                                          .row_names = names,
                                          .column_names = names,
                                          .row_axis = _("query (attending)"),
                                          .column_axis = _("key (attended)"),
                                          .title = title,
                                          .high = 1,
                                          .hidden = m->hidden });
}

static qkv_status teach_masks(qkv_tape *t, const qkv_params *p)
{
    const int32_t ids[T] = { 9, 5, 0, 0 };
    int32_t length = T;
    while (length > 0 && !ids[length - 1]) length--;
    masked all = attend_masked(t, p, NULL), causal = attend_masked(t, p, QKV_CAUSAL);
    masked by_length = attend_masked(t, p, &(qkv_mask){ .key_lengths = &length });
    masked both = attend_masked(t, p, &(qkv_mask){ .causal = 1, .key_lengths = &length });
    if (qkv_tape_status(t)) return library_failed();
    teach_free(&all);
    teach_causal(t, p, &all, &causal);
    teach_padding(&all, &by_length, ids, length);
    say(_("Masks combine: a key is seen only if all of them let it be seen. Both at once:"));
    show_weights(&both, padded);
    qkv_status status = teach_nothing(t, p);
    if (!status) status = draw_mask("masks_none", &all, words, _("no mask"));
    if (!status) status = draw_mask("masks_causal", &causal, words, _("causal"));
    if (!status) status = draw_mask("masks_padding", &by_length, padded, _("padding: 2 of 4 keys are real"));
    return status ? status : draw_mask("masks_both", &both, padded, _("both"));
}

static qkv_status run_masks_lesson(void)
{
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_params *p = t ? qkv_params_new(2) : NULL;
    for (int i = 0; i < 3; i++)
        qkv_params_add(p, (const char *const[]){ "q", "k", "v" }[i], QKV_SHAPE(T, D), QKV_INIT_NORMAL, 1.2f);
    qkv_status status = qkv_params_status(p) ? library_failed() : teach_masks(t, p);
    qkv_params_free(p);
    qkv_tape_free(t);
    return status;
}

const lesson lesson_masks = {
    .name = "3",
    .title = N_("Masks: causal and padding"),
    .run = run_masks_lesson,
    .question = N_("Why is the mask added before the softmax? What goes wrong if the hidden weights are set to 0 after it?"),
    .answer = N_("The sum under the softmax would still hold the hidden scores. The rows would no longer sum to 1, and by how "
                 "much they miss it would tell something about the keys that were to be hidden: the future would leak into the "
                 "past, and a model in training would learn to read it."),
};
