/* lesson_embeddings.c: lesson 12: a word becomes a vector and gets its position; a vector becomes words again by a softmax. */
#include "lesson.h"

#include "../term/errors.h"

#include <math.h>
#include <stdio.h>

enum { WORDS = 5, DIM = 4, SENTENCE = 3 };

static const char *const words[WORDS] = { "我", "爱", "你", "猫", "狗" };
static const int32_t sentence[SENTENCE] = { 0, 1, 3 };

static void show_words(const float *values, int n, const int32_t *ids)
{
    const char *names[WORDS];
    for (int i = 0; i < n; i++) names[i] = words[ids ? ids[i] : i];
    show_numbers(values, n, DIM, (labels){ .names = names }, (labels){ 0 }, 4);
}

/* ---- the table ---- */

static qkv_status look_up(qkv_tape *t, const qkv_embedding *embed)
{
    float one_hot[SENTENCE * WORDS] = { 0 };
    for (int i = 0; i < SENTENCE; i++) one_hot[i * WORDS + sentence[i]] = 1;
    qkv_tensor *found = qkv_embedding_forward(embed, t, sentence, 1, SENTENCE);
    qkv_tensor *product = qkv_matmul(qkv_constant(t, QKV_SHAPE(SENTENCE, WORDS), one_hot), embed->weight, 0);
    if (qkv_tape_status(t)) return library_failed();
    say_heading(_("A word is a row of a table"));
    say(_("A model computes with numbers, so each token of the vocabulary has an id, and each id a row of d_model numbers, its "
          "embedding. The rows start at random and are learned like any other weight. A table of %d words and d_model = %d:"),
        WORDS, DIM);
    show_words(qkv_tensor_data(embed->weight), WORDS, NULL);
    say(_("%s%s%s has the ids %d, %d, %d and becomes these rows:"), words[0], words[1], words[3], sentence[0], sentence[1],
        sentence[2]);
    show_words(qkv_tensor_data(found), SENTENCE, sentence);
    say(_("That is the same as a product with one-hot vectors (1 at the id, 0 elsewhere): largest difference %.4f. A look-up "
          "is "
          "only the quick way."),
        largest_difference(qkv_tensor_data(found), qkv_tensor_data(product), SENTENCE * DIM));
    return QKV_OK;
}

/* ---- times sqrt(d_model) ---- */

enum { SIZES = 3, ROWS = 200 };
static const int64_t sizes[SIZES] = { 64, 256, 512 };

static double root_mean_square(const qkv_tensor *x)
{
    double sum = 0;
    for (int64_t i = 0; i < qkv_tensor_count(x); i++) sum += (double)qkv_tensor_data(x)[i] * (double)qkv_tensor_data(x)[i];
    return sqrt(sum / (double)qkv_tensor_count(x));
}

static qkv_status measure_scale(qkv_tape *t, int64_t d, float row[3])
{
    qkv_params *p = qkv_params_new(12);
    qkv_embedding embed = qkv_embedding_new(p, "table", ROWS, d);
    qkv_tensor *positions = qkv_sinusoid(t, 0, ROWS, d, QKV_POSITION_SINUSOID);
    qkv_status status = qkv_params_status(p) || !positions ? library_failed() : QKV_OK;
    if (!status) {
        row[0] = (float)root_mean_square(embed.weight);
        row[1] = row[0] * sqrtf((float)d);
        row[2] = (float)root_mean_square(positions);
    }
    qkv_params_free(p);
    return status;
}

static qkv_status show_scale(qkv_tape *t)
{
    float rows[SIZES * 3];
    qkv_status status = QKV_OK;
    for (int i = 0; i < SIZES && !status; i++) status = measure_scale(t, sizes[i], rows + 3 * i);
    if (status) return status;
    say_heading(_("Why times sqrt(d_model)"));
    say(_("The paper multiplies embeddings by sqrt(d_model). The same table is used at the other end of the model, to turn "
          "vectors into scores of words, and there its numbers must be small, about 1 / sqrt(d_model), for the scores to have "
          "variance 1. As a word, such a row would drown in the position that is added to it. How large is a number (root mean "
          "square) of an embedding, of the same times sqrt(d_model), and of a position?"));
    show_numbers(rows, SIZES, 3, (labels){ .names = (const char *const[]){ "d = 64", "d = 256", "d = 512" } },
                 (labels){ .names = (const char *const[]){ "E", "E sqrt(d)", "PE" } }, 4);
    say(_("A position's numbers are sines and cosines: %.4f, whatever d is. At d = 512 it is %.0f times as loud as a bare "
          "embedding, and %.2f times the multiplied one: now the word is heard."),
        (double)rows[8], (double)(rows[8] / rows[6]), (double)(rows[8] / rows[7]));
    say(_("Another reason is often given: without the factor the scores would be small and the softmax saturated. That is the "
          "wrong way round. Small scores give nearly equal weights; large scores saturate the softmax (lesson 2)."));
    return QKV_OK;
}

/* ---- word + position ---- */

static qkv_status show_sum(qkv_tape *t, const qkv_embedding *embed)
{
    static const int32_t cat[] = { 3, 3 };
    qkv_tensor *word = qkv_scale(qkv_embedding_forward(embed, t, cat, 1, 1), sqrtf(DIM));
    qkv_tensor *at_0 = qkv_sinusoid(t, 0, 1, DIM, QKV_POSITION_SINUSOID),
               *at_4 = qkv_sinusoid(t, 4, 1, DIM, QKV_POSITION_SINUSOID);
    qkv_tensor *rows[] = { qkv_reshape(word, QKV_SHAPE(1, DIM)), at_0, qkv_add(qkv_reshape(word, QKV_SHAPE(1, DIM)), at_0),
                           at_4, qkv_add(qkv_reshape(word, QKV_SHAPE(1, DIM)), at_4) };
    qkv_tensor *all = qkv_concat(5, rows, 0);
    if (qkv_tape_status(t)) return library_failed();
    say_heading(_("Word + position"));
    say(_("What enters the first layer is the sum of the two. %s at position 0 and at position 4:"), words[3]);
    const char *names[] = { "E sqrt(d)", "PE(0)", _("sum at 0"), "PE(4)", _("sum at 4") };
    show_numbers(qkv_tensor_data(all), 5, DIM, (labels){ .names = names }, (labels){ 0 }, 4);
    say(_("The same word, two vectors: the model can tell them apart (lesson 6 shows what it does without)."));
    return QKV_OK;
}

/* ---- other positions ---- */

static void show_naive(void)
{
    say_heading(_("Why not simply 0, 1, 2, 3?"));
    say(_("The naive way adds the number of the place itself: [0, 0, ...], [1, 1, ...], [2, 2, ...]. Three problems:"));
    say(_("1. It has no bound. At place 500 each number is 500 beside a word's 1: the word is lost. And divided by the length "
          "it has no step: from one word to the next it is %.3f in a text of 5 and %.3f in a text of 50."),
        1.0 / 4, 1.0 / 49);
    say(_("2. It ends where training ends. A model that saw texts of 50 words knows nothing about a 60, which is larger than "
          "any number it was trained on."));
    say(_("3. It does not say how far apart two places are. In products, which are all that attention compares by, places 1 "
          "and 2 give %d (d = 4) and places 50 and 51 give %d, at the same distance. With sines both pairs give %.4f."),
        4 * 1 * 2, 4 * 50 * 51, cos(1) + cos(0.01));
}

static qkv_status show_learned(qkv_tape *t)
{
    enum { PLACES = 512, WIDE = 128, IDS = 3 };
    qkv_params *p = qkv_params_new(1);
    qkv_embedding embed = qkv_embedding_new(p, "positions", PLACES, DIM);
    qkv_embedding learned_rows = qkv_embedding_new(p, "learned", PLACES, WIDE),
                  vocabulary = qkv_embedding_new(p, "words", 1000, WIDE);
    qkv_tensor *learned = qkv_slice(qkv_on(t, learned_rows.weight), 0, 0, IDS);
    qkv_tensor *read = qkv_embedding_forward(&vocabulary, t, (const int32_t[]){ 0, 1, 2 }, 1, IDS);
    qkv_tensor *sum = qkv_add(qkv_reshape(read, QKV_SHAPE(IDS, WIDE)), learned);
    qkv_tensor *far = qkv_sinusoid(t, 100000, 1, DIM, QKV_POSITION_SINUSOID);
    qkv_status status = qkv_params_status(p) || qkv_tape_status(t) ? library_failed() : QKV_OK;
    if (!status) {
        say_heading(_("Learned positions, and texts longer than in training"));
        say(_("BERT and GPT-2 learn a table of positions like the table of words. The rows of positions 0, 1 and 2 are added "
              "to "
              "the embeddings of the first three tokens. Sizes as they are computed, and the first %d numbers of each row:"),
            DIM);
        show_shape(_("table of positions"), learned_rows.weight);
        show_shape(_("its rows 0, 1 and 2"), learned);
        show_shape(_("embeddings + positions"), sum);
        putchar('\n');
        qkv_tensor *corner = qkv_slice(learned, 1, 0, DIM);
        if (!corner) status = library_failed();
        else show_numbers(qkv_tensor_data(corner), IDS, DIM, (labels){ .prefix = "PE" }, (labels){ 0 }, 4);
        say(_("The paper tried that too and found the same BLEU (25.7 against 25.8, table 3). But a table ends. A table of %d "
              "rows, asked for row %d, in this library:"),
            PLACES, PLACES);
        if (!qkv_embedding_forward(&embed, t, (const int32_t[]){ PLACES }, 1, 1)) printf("    %s\n\n", qkv_error());
        qkv_tape_reset(t);
        far = qkv_sinusoid(t, 100000, 1, DIM, QKV_POSITION_SINUSOID);
        say(_("Sines go on for ever, PE(100000) is"));
        show_numbers(qkv_tensor_data(far), 1, DIM, (labels){ .prefix = "PE" }, (labels){ 0 }, 4);
        say(_("Between places that were seen (interpolation) both are at home. Beyond them (extrapolation) the sines can be "
              "computed, and the paper hoped that they would work; that the model makes sense of them is not promised. Rotary "
              "positions (lesson 18) are the answer of today."));
    }
    qkv_params_free(p);
    return status;
}

/* ---- back to words ---- */

static qkv_status show_tied(qkv_tape *t, const qkv_embedding *embed)
{
    static const float hidden[DIM] = { 0.5f, -0.2f, 0.9f, 0.1f };
    qkv_tensor *h = qkv_constant(t, QKV_SHAPE(1, DIM), hidden), *logits = qkv_affine(h, embed->weight, NULL);
    qkv_tensor *p = qkv_softmax(logits), *rows[] = { logits, p }, *both = qkv_concat(2, rows, 0);
    qkv_config base = { 0 };
    char one[32], two[32], all[32];
    if (qkv_tape_status(t) || qkv_config_preset("base", 37000, &base)) return library_failed();
    int best = 0;
    for (int i = 1; i < WORDS; i++)
        if (qkv_tensor_data(p)[i] > qkv_tensor_data(p)[best]) best = i;
    say_heading(_("Tied: the same table at the end"));
    say(_("At the end a vector h becomes a score for each word: the product of h with the word's row of the same table, logits "
          "= h E^T. For h = [0.5, -0.2, 0.9, 0.1]:"));
    show_numbers(qkv_tensor_data(both), 2, WORDS, (labels){ .names = (const char *const[]){ "h E^T", "softmax" } },
                 (labels){ .names = words }, 4);
    say(_("The likeliest is %s with %.4f. The paper uses one table in three places: source words, target words, and here. At a "
          "vocabulary of 37000 a table has %s weights, so two more would add %s to the %s of the base model."),
        words[best], (double)qkv_tensor_data(p)[best], large_number(37000 * 512, one), large_number(2 * 37000 * 512, two),
        large_number(count_weights(&base).total, all));
    return QKV_OK;
}

/* ---- softmax ---- */

enum { SCORES = 3 };
static const float scores[SCORES] = { 2, 1, 0.1f };

static qkv_tensor *softmax_at(qkv_tape *t, float factor, float shift)
{
    float x[SCORES];
    for (int i = 0; i < SCORES; i++) x[i] = scores[i] * factor + shift;
    return qkv_softmax(qkv_constant(t, QKV_SHAPE(1, SCORES), x));
}

static qkv_status show_softmax(qkv_tape *t)
{
    qkv_tensor *rows[] = { softmax_at(t, 1, 0), softmax_at(t, 1, 100), softmax_at(t, 2, 0), softmax_at(t, 0.5f, 0) };
    qkv_tensor *all = qkv_concat(4, rows, 0), *x = qkv_variable(t, QKV_SHAPE(1, SCORES), scores);
    qkv_tensor *first = qkv_slice(qkv_softmax(x), 1, 0, 1);
    if (qkv_tape_status(t) || qkv_backward(qkv_sum(first, QKV_ALL_DIMS))) return library_failed();
    const float *p = qkv_tensor_data(all), *g = qkv_tensor_grad(x);
    say_heading(_("Why softmax"));
    puts("    softmax(x)_i = exp(x_i) / (exp(x_1) + ... + exp(x_n))\n");
    const char *names[] = { "x", "x + 100", "2 x", "x / 2" };
    say(_("For x = [2, 1, 0.1]:"));
    print_table(&(table){ .values = p, .rows = 4, .columns = SCORES, .row.names = names, .decimals = 4, .sums = true });
    putchar('\n');
    say(_(
        "It normalises: every row is above 0 and sums to 1, whatever the scores are; x / sum(x) would not with negative ones. "
        "Adding 100 to all changes nothing, which is why the largest is subtracted before exp."));
    say(_("It emphasises: a lead of 1 is a factor of e, %.4f / %.4f = %.3f. Twice the scores make it sharper, half of them "
          "flatter (the temperature of sampling)."),
        (double)p[0], (double)p[1], (double)(p[0] / p[1]));
    say(_("It is differentiable: the gradient of the first share is [%.4f, %.4f, %.4f], p_i (1 - p_i) at its own score and "
          "-p_i "
          "p_j at others. The largest alone (argmax) would have gradient 0 everywhere, and nothing could be learned through "
          "it."),
        (double)g[0], (double)g[1], (double)g[2]);
    return QKV_OK;
}

static qkv_status run_embeddings_lesson(void)
{
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_params *p = qkv_params_new(12);
    qkv_embedding embed = qkv_embedding_new(p, "words", WORDS, DIM);
    qkv_status status = !t || qkv_params_status(p) ? library_failed() : look_up(t, &embed);
    if (!status) status = show_scale(t);
    if (!status) status = show_sum(t, &embed);
    if (!status) show_naive(), status = show_learned(t);
    if (!status) status = show_tied(t, &embed);
    if (!status) status = show_softmax(t);
    qkv_tape_free(t);
    qkv_params_free(p);
    return status;
}

const lesson lesson_embeddings = {
    .name = "12",
    .title = N_("Embeddings, positions and the softmax"),
    .run = run_embeddings_lesson,
    .question = N_("With a tied table, a word that the model should say needs a vector h whose product with the word's row is "
                   "large. What does that do to words of like meaning?"),
    .answer = N_("They end up with rows that point alike: they follow the same contexts, so the same h must score both high. "
                 "And because the table is tied, the gradient of every prediction also shapes the rows that are read as input, "
                 "those of rare words too: each step of training touches every row through the softmax, and only the rows of "
                 "its own words through the look-up."),
};
