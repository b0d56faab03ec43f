/* lesson_recipe.c: lesson 16: how the paper trains: warm-up, Adam, dropout, label smoothing, averaging; and what came of it. */
#include "../draw/view.h"
#include "lesson.h"

#include "../term/errors.h"

#include <math.h>
#include <stdio.h>

/* ---- the rate ---- */

enum { POINTS = 7, CURVE = 200 };
static const qkv_schedule paper = { .kind = QKV_SCHEDULE_INVERSE_SQRT, .lr = 1, .warmup = 4000, .dim = 512 };

static qkv_status draw_rate(void)
{
    double steps[CURVE], rates[CURVE];
    for (int i = 0; i < CURVE; i++) steps[i] = 200.0 * (i + 1), rates[i] = qkv_schedule_lr(&paper, 200 * (i + 1));
    const qkv_curve curve = { _("the paper's rate"), steps, rates, CURVE };
    return draw_curves("warmup", &curve, 1,
                       &(qkv_curve_opts){ .title = _("the paper's rate"), .x_axis = _("step"), .y_axis = _("learning rate") });
}

static qkv_status show_rate(void)
{
    static const int64_t steps[POINTS] = { 1, 1000, 2000, 4000, 8000, 16000, 100000 };
    say_heading(_("Warm-up"));
    puts("    lrate = d_model^-0.5 min(step^-0.5, step warmup^-1.5)\n");
    say(_("The rate rises in a straight line for 4000 steps and then falls as one over the square root of the step. With "
          "d_model = 512:"));
    for (int i = 0; i < POINTS; i++) {
        double rate = qkv_schedule_lr(&paper, steps[i]);
        printf("    %8lld  %.7f  ", (long long)steps[i], rate);
        for (int j = 0; j < (int)(rate / 0.000018); j++) putchar('#');
        putchar('\n');
    }
    putchar('\n');
    say(_("The peak is at step 4000: (512 * 4000)^-0.5 = %.6f. Without warm-up the first steps would be the longest, taken "
          "when "
          "Adam knows least about its gradients and the layers still do anything."),
        1 / sqrt(512.0 * 4000));
    return draw_rate();
}

/* ---- Adam ---- */

/* One weight, one step of the paper's Adam with a gradient of this size: how far it goes. */
static qkv_status first_step(float gradient, float *moved)
{
    qkv_params *p = qkv_params_new(0);
    qkv_tensor *w = qkv_params_add(p, "w", QKV_SHAPE(1), QKV_INIT_ZERO, 0);
    const qkv_optimizer_opts opts = { .rule = QKV_OPTIMIZER_ADAM, .lr = 0.001f, .beta1 = 0.9f, .beta2 = 0.98f, .eps = 1e-9f };
    qkv_optimizer *o = w ? qkv_optimizer_new(p, &opts) : NULL;
    qkv_tape *t = o ? qkv_tape_new(NULL) : NULL;
    qkv_status status = QKV_OK;
    if (qkv_backward(qkv_scale(qkv_on(t, w), gradient)) || qkv_optimizer_step(o)) status = library_failed();
    else *moved = -qkv_tensor_item(w);
    qkv_tape_free(t);
    qkv_optimizer_free(o);
    qkv_params_free(p);
    return status;
}

static qkv_status show_adam(void)
{
    float small, large;
    qkv_status status = first_step(1e-4f, &small);
    if (!status) status = first_step(100, &large);
    if (status) return status;
    say_heading(_("Adam with beta2 = 0.98 and eps = 1e-9"));
    say(_("The paper uses beta1 = 0.9, beta2 = 0.98, eps = 1e-9. beta2 says how long the mean of squared gradients remembers: "
          "1 "
          "/ (1 - beta2) is %.0f steps, where the usual 0.999 is %.0f. Under a rate that changes, old squares mislead, so it "
          "forgets sooner. eps keeps from dividing by 0, and is so small that it touches nothing else: the first step at rate "
          "0.001 goes %.6f for a gradient of 0.0001 and %.6f for one of 100."),
        1 / (1 - 0.98), 1 / (1 - 0.999), (double)small, (double)large);
    return QKV_OK;
}

/* ---- dropout ---- */

static void show_dropouts(void)
{
    say_heading(_("Three dropouts"));
    say(_("The paper announces three types of regularization and describes two: residual dropout and label smoothing. Residual "
          "dropout is applied in two places, sub-layer outputs and embedding sums, which makes three. Many readers count "
          "the dropout inside the layers, which only the code has, as the third."));
    say(_(
        "With P = 0.1 in the base model (0.3 in the big one) numbers become 0 in training, lesson 7 shows how. The paper drops "
        "the result of each sub-layer before it is added, x + Dropout(Sublayer(x)), and the sums of embedding and position. "
        "Its code also drops attention weights after the softmax, and numbers inside the feed-forward after the ReLU. Here "
        "these are --dropout, --attention-dropout and --inner-dropout of \"qkv train\". Without dropout the paper's base model "
        "has a BLEU of 24.6 instead of 25.8 (table 3, row D)."));
}

/* ---- label smoothing ---- */

enum { ROWS = 2, CLASSES = 3 };
static const float logits[ROWS * CLASSES] = { 2, 1, 0.1f, 0.5f, 2.5f, 0.3f };
static const int32_t classes[ROWS] = { 0, 1 };

static qkv_status show_smoothing(qkv_tape *t)
{
    float targets[ROWS * CLASSES], entropy = 0;
    for (int i = 0; i < ROWS * CLASSES; i++) targets[i] = i % CLASSES == classes[i / CLASSES] ? 0.9f : 0.1f / (CLASSES - 1);
    for (int i = 0; i < ROWS * CLASSES; i++) entropy -= targets[i] * logf(targets[i]) / ROWS;
    qkv_tensor *x = qkv_constant(t, QKV_SHAPE(ROWS, CLASSES), logits), *log_p = qkv_log_softmax(x);
    qkv_tensor *cross = qkv_scale(qkv_sum(qkv_mul(qkv_constant(t, QKV_SHAPE(ROWS, CLASSES), targets), log_p), QKV_ALL_DIMS),
                                  -1.0f / ROWS);
    if (qkv_tape_status(t)) return library_failed();
    say_heading(_("Label smoothing 0.1"));
    say(_(
        "Instead of \"1 for the right word, 0 for the others\" the target gives 0.9 to the right one and shares 0.1 among the "
        "others. For 3 classes and the right ones 0 and 1:"));
    show_numbers(targets, ROWS, CLASSES, (labels){ 0 }, (labels){ 0 }, 2);
    say(_("The loss is the divergence KL(target || softmax) = sum of target (log target - log p), averaged over the rows. For "
          "logits [2, 1, 0.1] and [0.5, 2.5, 0.3] it is %.6f, and it would be 0 if the model gave exactly these targets: being "
          "surer than 0.9 costs too. With the entropy of the targets added, %.6f, it is their cross-entropy."),
        (double)(qkv_tensor_item(cross) - entropy), (double)entropy);
    say(_(
        "(PyTorch and this library share the 0.1 among all classes, the right one included; the loss of lesson 7, 0.436873, is "
        "counted that way.)"));
    say(_("The paper's value is 0.1; the 0.14 in some notes is a typing error. A target row of %.5f and %.3f for 100 classes, "
          "also seen there, mixes the two conventions, 0.1 / 99 and 0.9 + 0.1 / 100, and sums to %.3f."),
        0.1 / 99, 0.9 + 0.1 / 100, 99 * (0.1 / 99) + 0.9 + 0.1 / 100);
    say(_("It hurts perplexity and helps BLEU. A model that is never surer than 0.9 gives every word at most that: on text "
          "where "
          "it is always right the perplexity is %.3f and not 1. But it keeps alternatives alive, which beam search needs. The "
          "paper's table 3: without smoothing perplexity 4.67 and BLEU 25.3, with it 4.92 and 25.8."),
        1 / 0.9);
    return QKV_OK;
}

/* ---- averaging ---- */

enum { SETTLE = 100, KEPT = 5, APART = 20 };

/* Noise in -1 .. 1, the same in every run. */
static float noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (float)(1 << 23) - 1;
}

/* One step on one noisy point of y = 2x + 1. */
static qkv_status noisy_step(qkv_tape *t, qkv_optimizer *o, qkv_tensor *w, qkv_tensor *b, uint32_t *state)
{
    float x = noise(state), y = 2 * x + 1 + noise(state);
    qkv_tape_reset(t);
    qkv_tensor *guess = qkv_affine(qkv_constant(t, QKV_SHAPE(1, 1), &x), w, b);
    qkv_tensor *loss = qkv_mse(guess, qkv_constant(t, QKV_SHAPE(1, 1), &y));
    return qkv_backward(loss) || qkv_optimizer_step(o) ? library_failed() : QKV_OK;
}

static double distance(double w, double b) { return hypot(w - 2, b - 1); }

static qkv_status walk_noisily(qkv_tape *t, qkv_optimizer *o, qkv_tensor *w, qkv_tensor *b, float rows[KEPT + 1][3])
{
    uint32_t state = 5;
    double sum_w = 0, sum_b = 0;
    qkv_status status = QKV_OK;
    for (int step = 1; step <= SETTLE + KEPT * APART && !status; step++) {
        status = noisy_step(t, o, w, b, &state);
        int kept = (step - SETTLE) / APART - 1;
        if (step <= SETTLE || (step - SETTLE) % APART) continue;
        sum_w += (double)qkv_tensor_item(w), sum_b += (double)qkv_tensor_item(b);
        rows[kept][0] = qkv_tensor_item(w), rows[kept][1] = qkv_tensor_item(b);
        rows[kept][2] = (float)distance((double)qkv_tensor_item(w), (double)qkv_tensor_item(b));
    }
    rows[KEPT][0] = (float)(sum_w / KEPT), rows[KEPT][1] = (float)(sum_b / KEPT);
    rows[KEPT][2] = (float)distance(sum_w / KEPT, sum_b / KEPT);
    return status;
}

static void show_averages(float rows[KEPT + 1][3])
{
    double mean = 0;
    for (int i = 0; i < KEPT; i++) mean += (double)rows[i][2] / KEPT;
    const char *names[] = { "1", "2", "3", "4", "5", _("average") };
    say_heading(_("Averaging checkpoints"));
    say(_("At the end the paper averages the weights of the last 5 checkpoints (20 for the big model). Why that helps can be "
          "seen "
          "on a line: y = 2x + 1 from single noisy points at a rate of 0.2. Five checkpoints, %d steps apart, and how far each "
          "is from w = 2, b = 1:"),
        APART);
    show_numbers(rows[0], KEPT + 1, 3, (labels){ .names = names },
                 (labels){ .names = (const char *const[]){ "w", "b", _("distance") } }, 4);
    say(_("Each checkpoint hops around the goal; their mean distance is %.4f, the distance of their average %.4f. \"qkv "
          "average\" "
          "does it with models."),
        mean, (double)rows[KEPT][2]);
}

static qkv_status teach_averaging(qkv_tape *t)
{
    float rows[KEPT + 1][3];
    qkv_params *p = qkv_params_new(0);
    qkv_tensor *w = qkv_params_add(p, "w", QKV_SHAPE(1, 1), QKV_INIT_ZERO, 0);
    qkv_tensor *b = qkv_params_add(p, "b", QKV_SHAPE(1), QKV_INIT_ZERO, 0);
    qkv_optimizer *o = b ? qkv_optimizer_new(p, &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_SGD, .lr = 0.2f }) : NULL;
    qkv_status status = o ? walk_noisily(t, o, w, b, rows) : library_failed();
    if (!status) show_averages(rows);
    qkv_optimizer_free(o);
    qkv_params_free(p);
    return status;
}

/* ---- results ---- */

static void show_results(void)
{
    say_heading(_("What came of it: the paper's four tables"));
    say(_("Table 1 compares layers: lesson 10 measures it."));
    say(_("Table 2, BLEU on WMT 2014 (newstest2014) and operations of training:"));
    puts("                              EN-DE   EN-FR   FLOPs EN-DE  EN-FR\n"
         "    ByteNet                   23.75\n"
         "    Deep-Att + PosUnk                 39.2                 1.0e20\n"
         "    GNMT + RL                 24.6    39.92   2.3e19       1.4e20\n"
         "    ConvS2S                   25.16   40.46   9.6e18       1.5e20\n"
         "    MoE                       26.03   40.56   2.0e19       1.2e20\n"
         "    Deep-Att, ensemble                40.4                 8.0e20\n"
         "    GNMT + RL, ensemble       26.30   41.16   1.8e20       1.1e21\n"
         "    ConvS2S, ensemble         26.36   41.29   7.7e19       1.2e21\n"
         "    Transformer (base)        27.3    38.1    3.3e18\n"
         "    Transformer (big)         28.4    41.8    2.3e19\n");
    say(_(
        "The big model was better than everything before it, ensembles too, and the base model nearly so for a fraction of the "
        "work. English-German had 4.5 million pairs and a shared BPE vocabulary of 37000, English-French 36 million pairs and "
        "32000 word pieces. Batches had about 25000 source and 25000 target tokens. Eight P100 took 0.4 s for a step of the "
        "base model, 100000 steps, 12 hours; and 1.0 s for the big one, 300000 steps, 3.5 days. Translations were searched "
        "with beam 4 and length penalty 0.6."));
    say(_("Table 3 changes one thing at a time in the base model (BLEU on the development set, newstest2013, where base has "
          "25.8):"));
    puts("    h     1: 24.9    4: 25.5    16: 25.8    32: 25.4\n"
         "    d_k  16: 25.1   32: 25.4\n"
         "    N     2: 23.7    4: 25.3     8: 25.5\n"
         "    d   256: 24.5 1024: 26.0\n"
         "    d_ff 1024: 25.4 4096: 26.2\n"
         "    P_drop 0: 24.6 0.2: 25.5\n"
         "    big     : 26.4\n");
    say(_(
        "Several heads beat one, too many hurt; smaller keys hurt; bigger is better; dropout matters; learned positions do as "
        "well as sines (25.7)."));
    say(_(
        "Table 4 is another task, English constituency parsing: 4 layers, trained on 40 thousand sentences of the Wall Street "
        "Journal, reach F1 91.3, and with more, unlabelled text 92.7, without changes made for the task."));
}

static qkv_status run_recipe_lesson(void)
{
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_status status = t ? show_rate() : library_failed();
    if (!status) status = show_adam();
    if (!status) show_dropouts(), status = show_smoothing(t);
    if (!status) status = teach_averaging(t);
    if (!status) show_results();
    qkv_tape_free(t);
    return status;
}

const lesson lesson_recipe = {
    .name = "16",
    .title = N_("How the paper trains, and what came of it"),
    .run = run_recipe_lesson,
    .question = N_("Someone halves d_model to 256 and keeps the formula and 4000 steps of warm-up. What happens to the peak of "
                   "the rate?"),
    .answer = N_("It grows by sqrt(2), from 0.000699 to 0.000988: the formula has d_model^-0.5 in it, so narrow models are "
                 "trained with longer steps. That is as it should be: an output is a sum over d_model numbers, and the wider "
                 "the sum, the more one step of all weights together moves it."),
};
