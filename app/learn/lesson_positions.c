/* lesson_positions.c: lesson 6: attention sees a bag of words until each word is told where it stands. */
#include "../draw/view.h"
#include "lesson.h"

#include "../draw/print_maps.h"
#include "../term/errors.h"
#include "../term/print.h"

#include <math.h>
#include <stdio.h>

enum { WORDS = 3, DIM = 4, WIDE = 64, PLACES = 50, FARTHEST = 20 };

static const char *const words[WORDS] = { N_("dog"), N_("bites"), N_("man") };
static const int32_t one_order[WORDS] = { 0, 1, 2 }, other_order[WORDS] = { 2, 1, 0 };

/* One layer, and what it makes of the two sentences. */
typedef struct layer {
    qkv_tape *tape;
    qkv_params *params;
    qkv_embedding table;
    qkv_mha attention;
} layer;

static qkv_status make_layer(layer *l)
{
    *l = (layer){ .params = qkv_params_new(6) };
    if (!l->params) return library_failed();
    l->table = qkv_embedding_new(l->params, "word", WORDS, DIM);
    l->attention = qkv_mha_new(l->params, "attention", &(qkv_mha_opts){ .dim = DIM, .heads = 1 });
    l->tape = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    return qkv_params_status(l->params) || !l->tape ? library_failed() : QKV_OK;
}

static void free_layer(layer *l)
{
    qkv_tape_free(l->tape);
    qkv_params_free(l->params);
}

/* (1, WORDS, DIM) */
static qkv_tensor *attend_words(const layer *l, const int32_t order[WORDS], bool with_positions)
{
    qkv_tensor *x = qkv_scale(qkv_embedding_forward(&l->table, l->tape, order, 1, WORDS), sqrtf(DIM));
    if (with_positions) x = qkv_add(x, qkv_sinusoid(l->tape, 0, WORDS, DIM, QKV_POSITION_SINUSOID));
    return qkv_mha_forward(&l->attention, x, x, NULL);
}

/* ---- the bag of words ---- */

static void show_sentence(const qkv_tensor *output, const qkv_tensor *pooled, const int32_t order[WORDS])
{
    const char *names[WORDS + 1];
    float rows[(WORDS + 1) * DIM];
    for (int i = 0; i < WORDS; i++) names[i] = _(words[order[i]]);
    names[WORDS] = _("mean");
    for (int i = 0; i < WORDS * DIM; i++) rows[i] = qkv_tensor_data(output)[i];
    for (int i = 0; i < DIM; i++) rows[WORDS * DIM + i] = qkv_tensor_data(pooled)[i];
    print_table(&(table){
        .values = rows, .rows = WORDS + 1, .columns = DIM, .row = { names, NULL }, .column = { NULL, "y" }, .decimals = 4 });
    putchar('\n');
}

/* The largest difference between what a word gets in one sentence and in the other. */
static double word_difference(const float *a, const float *b)
{
    double most = 0;
    for (int i = 0; i < WORDS; i++)
        for (int j = 0; j < DIM; j++) most = fmax(most, fabs((double)a[i * DIM + j] - (double)b[(WORDS - 1 - i) * DIM + j]));
    return most;
}

static double mean_difference(const float *a, const float *b)
{
    double most = 0;
    for (int j = 0; j < DIM; j++) most = fmax(most, fabs((double)a[j] - (double)b[j]));
    return most;
}

static qkv_status compare_orders(const layer *l, bool with_positions)
{
    qkv_tensor *a = attend_words(l, one_order, with_positions), *b = attend_words(l, other_order, with_positions);
    qkv_tensor *mean_a = qkv_mean(a, 1), *mean_b = qkv_mean(b, 1);
    if (qkv_tape_status(l->tape)) return library_failed();
    show_sentence(a, mean_a, one_order);
    show_sentence(b, mean_b, other_order);
    say(_("Largest difference of a word between the two sentences: %.6f. Of the mean: %.6f."),
        word_difference(qkv_tensor_data(a), qkv_tensor_data(b)),
        mean_difference(qkv_tensor_data(mean_a), qkv_tensor_data(mean_b)));
    return QKV_OK;
}

static qkv_status bag_of_words(const layer *l)
{
    say(_("\"Dog bites man\" and \"man bites dog\" are the same three words. Does attention know the difference? Here is "
          "one layer of self-attention with random weights, %d numbers a word, and what it gives for each word of both "
          "sentences; the last row is the mean, what a classifier would read."),
        DIM);
    say_heading(_("Without positions"));
    qkv_status status = compare_orders(l, false);
    if (status) return status;
    say(_("The rows have changed places with their words and are otherwise the same. A score q_i . k_j knows two words and "
          "nothing else, and a sum over keys does not care which comes first: the layer sees a bag of words."));
    say_heading(_("With positions"));
    say(_("Now each word is told where it stands: a vector that depends on the position alone is added to it before the "
          "layer."));
    status = compare_orders(l, true);
    if (!status) say(_("Every row is different, and so is the mean: the layer can tell who bites."));
    return status;
}

/* ---- the table ---- */

static qkv_status sines(qkv_tape *t)
{
    static const char *const names[] = { "PE(0)", "PE(1)", "PE(2)", "PE(3)", "PE(4)" };
    qkv_tensor *pe = qkv_sinusoid(t, 0, 5, DIM, QKV_POSITION_SINUSOID);
    if (!pe) return library_failed();
    say_heading(_("Sines and cosines"));
    say(_("The paper's positions are pairs of a sine and a cosine, each pair slower than the one before:"));
    puts("    PE(pos, 2i)   = sin(pos / 10000^(2i/d))\n    PE(pos, 2i+1) = cos(pos / 10000^(2i/d))\n");
    say(_("For d = %d there are two pairs: the first turns by 1 a position, the second by 1/100."), DIM);
    print_table(&(table){ .values = qkv_tensor_data(pe), .rows = 5, .columns = DIM, .row = { names, NULL }, .decimals = 4 });
    putchar('\n');
    say(_("They are the hands of a clock: the fast one tells neighbours apart, the slow one tells far places apart."));
    return QKV_OK;
}

/* dots[p * PLACES + q] = PE(p) . PE(q) */
static double spread(const float *dots, int distance)
{
    double low = (double)dots[distance], high = low;
    for (int p = 0; p + distance < PLACES; p++) {
        low = fmin(low, (double)dots[p * PLACES + p + distance]);
        high = fmax(high, (double)dots[p * PLACES + p + distance]);
    }
    return high - low;
}

static void show_dots(const float *dots)
{
    static const int from[] = { 0, 7, 15, 29 }, distance[] = { 0, 1, 2, 5, 10, FARTHEST };
    static const char *const rows[] = { "p = 0", "p = 7", "p = 15", "p = 29" };
    static const char *const columns[] = { "k = 0", "k = 1", "k = 2", "k = 5", "k = 10", "k = 20" };
    float cells[4 * 6];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 6; j++) cells[i * 6 + j] = dots[from[i] * PLACES + from[i] + distance[j]];
    print_table(&(table){
        .values = cells, .rows = 4, .columns = 6, .row = { rows, NULL }, .column = { columns, NULL }, .decimals = 3 });
    putchar('\n');
}

static qkv_status print_blocks(const qkv_heatmap_opts *opts, const float *values, const char *title)
{
    say("%s", title);
    const qkv_heatmap_opts o = { .rows = opts->rows, .columns = opts->columns, .colours = opts->colours };
    qkv_status status = print_map(values, &o);
    putchar('\n');
    return status;
}

/* Without a folder for pictures, in colours where the terminal has them. */
static qkv_status draw_positions(const char *name, const qkv_heatmap_opts *opts, const float *values, const char *title)
{
    const char *path = picture_path(name);
    if (!path) return shows_colours() ? print_blocks(opts, values, title) : QKV_OK;
    if (qkv_picture_heatmaps(path, &(qkv_heatmap){ values, title }, 1, opts)) return library_failed();
    tell_picture(path);
    return QKV_OK;
}

static qkv_status distances(qkv_tape *t)
{
    qkv_tensor *pe = qkv_sinusoid(t, 0, PLACES, WIDE, QKV_POSITION_SINUSOID), *dots = qkv_matmul(pe, pe, QKV_TRANSPOSE_B);
    if (!dots) return library_failed();
    double most = 0;
    for (int k = 0; k <= FARTHEST; k++) most = fmax(most, spread(qkv_tensor_data(dots), k));
    say_heading(_("What a query can do with them"));
    say(_("Attention compares by dot products. Here is PE(p) . PE(p + k) at d = %d, for some places p and distances k:"), WIDE);
    show_dots(qkv_tensor_data(dots));
    say(_("A column does not change: the product depends on the distance k alone. Over all p it varies by %.4f. The reason "
          "is one line of school mathematics, sin a sin b + cos a cos b = cos(a - b), so the sum is cos(k w_0) + cos(k w_1) "
          "+ ... with no p left in it."),
        most);
    say(_("\"The word before me\" is therefore the same pattern everywhere in the text, and can be learned once."));
    qkv_heatmap_opts opts = {
        .rows = PLACES, .columns = WIDE, .colours = QKV_COLOURS_RED_BLUE, .row_axis = _("position"), .no_values = 1
    };
    opts.column_axis = _("dimension");
    qkv_status status = draw_positions("positions", &opts, qkv_tensor_data(pe), _("sinusoidal positions"));
    opts.columns = PLACES, opts.column_axis = _("position"), opts.colours = QKV_COLOURS_VIRIDIS;
    return status ? status : draw_positions("positions_products", &opts, qkv_tensor_data(dots), "PE(p) . PE(q)");
}

static qkv_status run_positions_lesson(void)
{
    layer l;
    qkv_status status = make_layer(&l);
    if (!status) status = bag_of_words(&l);
    if (!status) status = sines(l.tape);
    if (!status) status = distances(l.tape);
    free_layer(&l);
    return status;
}

const lesson lesson_positions = {
    .name = "6",
    .title = N_("Positions: who bites whom"),
    .run = run_positions_lesson,
    .question = N_("With d = 2 there would be a single pair, sin(p) and cos(p). Which positions would such a model mistake "
                   "for one another?"),
    .answer = N_("Those that are nearly a whole number of turns apart. A turn is 2 pi = 6.283 positions, so 0 and 44 are "
                 "seven turns and 0.018 apart: their vectors are almost equal. The slower pairs are there to tell them "
                 "apart, as the hour hand does when the minute hand points at the same place again."),
};
