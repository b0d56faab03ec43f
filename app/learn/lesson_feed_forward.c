/* lesson_feed_forward.c: lesson 13: the feed-forward network: ReLU and what it is for; convolutions of size 1. */
#include "lesson.h"

#include "../term/errors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- by hand ---- */

enum { DIM = 2, INNER = 3, TOKENS = 4 };
static const float w1[INNER * DIM] = { 1, 1, 1, -1, -2, 1 }, b1[INNER] = { 0, 0, 1 }; /* (out, in) */
static const float w2[DIM * INNER] = { 1, 0, 2, 0, 1, -1 }, b2[DIM] = { 0.5f, 0 };
static const float tokens[TOKENS * DIM] = { 1, 2, -1, 1, 0, -1, 2, 0 };

static void show_relu(void)
{
    static const float x[] = { -2, -0.5f, 0, 0.5f, 2 };
    float rows[15];
    for (int i = 0; i < 5; i++) rows[i] = x[i], rows[5 + i] = x[i] > 0 ? x[i] : 0, rows[10 + i] = x[i] > 0;
    say(_("After every attention comes a small network that works on each token alone:"));
    puts("    FFN(x) = max(0, x W_1 + b_1) W_2 + b_2\n");
    say(_("max(0, x) is called ReLU: what is negative becomes 0, the rest stays, and so does its gradient, 1 or 0."));
    show_numbers(rows, 3, 5, (labels){ .names = (const char *const[]){ "x", "max(0, x)", _("gradient") } }, (labels){ 0 }, 1);
}

static qkv_tensor *by_formula(qkv_tape *t, qkv_tensor *x, qkv_tensor **inner, qkv_tensor **active)
{
    *inner = qkv_affine(x, qkv_constant(t, QKV_SHAPE(INNER, DIM), w1), qkv_constant(t, QKV_SHAPE(INNER), b1));
    *active = qkv_relu(*inner);
    return qkv_affine(*active, qkv_constant(t, QKV_SHAPE(DIM, INNER), w2), qkv_constant(t, QKV_SHAPE(DIM), b2));
}

/* A convolution over the tokens with a window of one: at each place, for each output, a sum over the inputs there. */
static void convolve_one(const float *x, int in, int out, const float *kernel, const float *bias, float *y)
{
    for (int place = 0; place < TOKENS; place++)
        for (int o = 0; o < out; o++) {
            y[place * out + o] = bias[o];
            for (int i = 0; i < in; i++) y[place * out + o] += kernel[o * in + i] * x[place * in + i];
        }
}

static double difference_from_convolutions(const qkv_tensor *y)
{
    float inner[TOKENS * INNER], out[TOKENS * DIM];
    convolve_one(tokens, DIM, INNER, w1, b1, inner);
    for (int i = 0; i < TOKENS * INNER; i++) inner[i] = fmaxf(0, inner[i]);
    convolve_one(inner, INNER, DIM, w2, b2, out);
    return largest_difference(out, qkv_tensor_data(y), TOKENS * DIM);
}

/* How many numbers of the result change when one token does, and how many of them are of other tokens. */
static void count_changes(const float *a, const float *b, int changed, int *all, int *others)
{
    *all = *others = 0;
    for (int i = 0; i < TOKENS * DIM; i++)
        if (a[i] != b[i]) ++*all, *others += i / DIM != changed;
}

static qkv_status show_by_hand(qkv_tape *t)
{
    float other[TOKENS * DIM];
    qkv_tensor *x = qkv_constant(t, QKV_SHAPE(TOKENS, DIM), tokens), *inner, *active, *unused[2];
    qkv_tensor *y = by_formula(t, x, &inner, &active);
    memcpy(other, tokens, sizeof other);
    other[2] += 3;
    qkv_tensor *z = by_formula(t, qkv_constant(t, QKV_SHAPE(TOKENS, DIM), other), &unused[0], &unused[1]);
    if (qkv_tape_status(t)) return library_failed();
    int all, others;
    count_changes(qkv_tensor_data(y), qkv_tensor_data(z), 1, &all, &others);
    say_heading(_("By hand"));
    say(_("%d tokens of %d numbers, and inside %d. The tokens x:"), TOKENS, DIM, INNER);
    show_numbers(tokens, TOKENS, DIM, (labels){ 0 }, (labels){ 0 }, 1);
    say(_("x W_1 + b_1, the first number of the first token being 1 * 1 + 1 * 2 + 0 = %.1f:"),
        (double)qkv_tensor_data(inner)[0]);
    show_numbers(qkv_tensor_data(inner), TOKENS, INNER, (labels){ 0 }, (labels){ 0 }, 1);
    puts("max(0, ...):\n");
    show_numbers(qkv_tensor_data(active), TOKENS, INNER, (labels){ 0 }, (labels){ 0 }, 1);
    say(_("and times W_2, plus b_2:"));
    show_numbers(qkv_tensor_data(y), TOKENS, DIM, (labels){ 0 }, (labels){ 0 }, 1);
    say(_("Every token goes through the same matrices, and no token sees another: with token 1 changed, %d numbers of the "
          "result "
          "change, and %d of them belong to other tokens. Tokens meet in attention only."),
        all, others);
    say(_("The paper also calls it two convolutions of kernel size 1. Computed that way, window by window, the largest "
          "difference "
          "is %.6f: a window of one token is a product with a matrix."),
        difference_from_convolutions(y));
    return QKV_OK;
}

/* ---- what ReLU is for ---- */

enum { POINTS = 4, WIDTH = 8, STEPS = 300 };
static const float corners[POINTS * 2] = { 0, 0, 0, 1, 1, 0, 1, 1 }, wanted[POINTS] = { 0, 1, 1, 0 };

/* Two layers, with max(0, .) between them or nothing; gives the last loss and the four answers. */
static qkv_status train_xor(bool with_relu, float *loss, float answers[POINTS])
{
    qkv_params *p = qkv_params_new(3);
    qkv_linear in = qkv_linear_new(p, "in", 2, WIDTH, true), out = qkv_linear_new(p, "out", WIDTH, 1, true);
    qkv_optimizer *o = qkv_optimizer_new(p, &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM, .lr = 0.05f });
    qkv_tape *t = o ? qkv_tape_new(NULL) : NULL;
    qkv_status status = t ? QKV_OK : library_failed();
    for (int step = 0; step < STEPS && !status; step++) {
        qkv_tape_reset(t);
        qkv_tensor *h = qkv_linear_forward(&in, qkv_constant(t, QKV_SHAPE(POINTS, 2), corners));
        qkv_tensor *y = qkv_linear_forward(&out, with_relu ? qkv_relu(h) : h);
        qkv_tensor *error = qkv_mse(y, qkv_constant(t, QKV_SHAPE(POINTS, 1), wanted));
        if (qkv_backward(error)) status = library_failed();
        else *loss = qkv_tensor_item(error), memcpy(answers, qkv_tensor_data(y), sizeof(float[POINTS]));
        if (!status && qkv_optimizer_step(o)) status = library_failed();
    }
    qkv_tape_free(t);
    qkv_optimizer_free(o);
    qkv_params_free(p);
    return status;
}

static qkv_status show_xor(void)
{
    float rows[3 * POINTS], loss[2];
    memcpy(rows, wanted, sizeof wanted);
    qkv_status status = train_xor(false, &loss[0], rows + POINTS);
    if (!status) status = train_xor(true, &loss[1], rows + 2 * POINTS);
    if (status) return status;
    say_heading(_("What the ReLU is for"));
    say(_("Without it the two layers are one: (x W_1) W_2 = x (W_1 W_2), a single matrix, however wide the inside is. Such a "
          "layer cannot even learn \"one or the other, but not both\". Trained now, %d steps each, with %d numbers inside; "
          "what "
          "they answer to the four inputs:"),
        STEPS, WIDTH);
    show_numbers(rows, 3, POINTS, (labels){ .names = (const char *const[]){ _("wanted"), _("no ReLU"), _("with ReLU") } },
                 (labels){ .names = (const char *const[]){ "0 0", "0 1", "1 0", "1 1" } }, 4);
    say(_("The mean squared error is %.4f without (0.25: half for everything, the best a straight line can do) and %.4f with "
          "it."),
        (double)loss[0], (double)loss[1]);
    return QKV_OK;
}

/* ---- how much of a layer it is ---- */

static qkv_status show_share(void)
{
    qkv_params *p = qkv_params_new(1);
    qkv_mha_new(p, "attention", &(qkv_mha_opts){ .dim = 512, .heads = 8 });
    int64_t attention = qkv_params_count(p);
    qkv_ffn_new(p, "ffn", &(qkv_ffn_opts){ .dim = 512, .d_ff = 2048 });
    int64_t ffn = qkv_params_count(p) - attention;
    qkv_status status = qkv_params_status(p) ? library_failed() : QKV_OK;
    if (!status) {
        say_heading(_("How much of the model it is"));
        say(_("In the paper d_model = 512 and d_ff = 2048, four times as wide inside. Its two matrices and biases have %lld "
              "weights, the attention beside it %lld: two thirds of an encoder layer are feed-forward. Attention gathers what "
              "a "
              "token needs; this is where something is made of it."),
            (long long)ffn, (long long)attention);
    }
    qkv_params_free(p);
    return status;
}

static qkv_status run_feed_forward_lesson(void)
{
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    if (!t) return library_failed();
    show_relu();
    qkv_status status = show_by_hand(t);
    if (!status) status = show_xor();
    if (!status) status = show_share();
    qkv_tape_free(t);
    return status;
}

const lesson lesson_feed_forward = {
    .name = "13",
    .title = N_("The feed-forward network and ReLU"),
    .run = run_feed_forward_lesson,
    .question = N_(
        "In the example above one inner number of a token is 0 after the ReLU. What does that mean for training, and "
        "what if it is 0 for every token?"),
    .answer = N_(
        "Its gradient is 0 too: this token teaches the weights of that number nothing. That is fine as long as other "
        "tokens do. A number that is 0 for all of them gets no gradient at all and never comes back, a dead unit. GELU "
        "and SiLU, which BERT, GPT-2 and Llama use instead, are smooth and nearly the same shape, but let a little "
        "gradient through below 0."),
};
