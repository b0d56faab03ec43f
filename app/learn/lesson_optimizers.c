/* lesson_optimizers.c: lesson 8: five optimizers walk down the same slope. */
#include "../draw/view.h"
#include "lesson.h"

#include "line_fit.h"
#include "../term/errors.h"
#include "../term/print.h"
#include "../corpora/grammar.h"

#include <math.h>
#include <stdio.h>

enum { RULES = LINE_RULES, STEPS = 201, STOPS = 6 };
static const int stops[STOPS] = { 0, 20, 40, 60, 100, 200 };

typedef double losses[RULES][STEPS];

/* ---- walking ---- */

static qkv_status descend(line_fit *f, double loss[STEPS])
{
    for (int step = 0; step < STEPS; step++) {
        float now;
        qkv_status status = step_line(f, &now);
        if (status) return status;
        loss[step] = (double)now;
    }
    return QKV_OK;
}

static qkv_status descend_by(int i, float rate, double loss[STEPS])
{
    line_fit f;
    qkv_optimizer_opts opts = line_rules[i].opts;
    opts.lr = rate;
    qkv_status status = start_line(&f, &opts);
    if (!status) status = descend(&f, loss);
    free_line(&f);
    return status;
}

/* At one rate for all, or at 0 each at its own. */
static qkv_status descend_by_all(float rate, losses loss)
{
    qkv_status status = QKV_OK;
    for (int i = 0; i < RULES && !status; i++) status = descend_by(i, rate > 0 ? rate : line_rules[i].opts.lr, loss[i]);
    return status;
}

/* ---- showing ---- */

static void print_rule(int i)
{
    fputs("    ", stdout);
    print_name(_(line_rules[i].name), 8, false);
}

static void print_losses(float rate, losses loss)
{
    printf("    %8s  %5s", "", "lr");
    for (int j = 0; j < STOPS; j++) printf("  %7d", stops[j]);
    putchar('\n');
    for (int i = 0; i < RULES; i++) {
        print_rule(i);
        printf("  %5g", (double)(rate > 0 ? rate : line_rules[i].opts.lr));
        for (int j = 0; j < STOPS; j++) printf("  %7.2g", loss[i][stops[j]]);
        putchar('\n');
    }
    putchar('\n');
}

static qkv_status draw_losses(const char *name, const char *title, losses loss)
{
    const char *path = picture_path(name);
    if (!path) return QKV_OK;
    double steps[STEPS];
    qkv_curve curves[RULES];
    for (int i = 0; i < STEPS; i++) steps[i] = i;
    for (int i = 0; i < RULES; i++) curves[i] = (qkv_curve){ _(line_rules[i].name), steps, loss[i], STEPS };
    const qkv_curve_opts opts = { .title = title, .x_axis = _("step"), .y_axis = _("loss"), .log_y = 1 };
    if (qkv_picture_curves(path, curves, RULES, &opts)) return library_failed();
    tell_picture(path);
    return QKV_OK;
}

/* ---- the lesson ---- */

static qkv_status walk_line(line_fit *f)
{
    print_name(_("step"), 8, true);
    printf("  %4s  %4s", "w", "b");
    print_name(_("loss"), 8, true);
    putchar('\n');
    for (int step = 0; step <= 80; step++) {
        float loss;
        qkv_status status = step_line(f, &loss);
        if (status) return status;
        if (step % 20 == 0)
            printf("    %4d  %.2f  %.2f  %6.3f\n", step, (double)qkv_tensor_item(f->w), (double)qkv_tensor_item(f->b),
                   (double)loss);
    }
    putchar('\n');
    return QKV_OK;
}

static qkv_status plain_descent(void)
{
    line_fit f;
    say(_("The smallest model there is, y = w x + b, starts at w = b = 0 and is to find the line y = 2x + 1 from its points "
          "at x = 0, 1, 2, 3, 4. The loss is the mean squared error, g is its gradient. What an "
          "optimizer does with a gradient is the same here as in a Transformer."));
    say_heading(_("Gradient descent, rate 0.01"));
    qkv_status status = start_line(&f, &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_SGD, .lr = 0.01f });
    if (!status) status = walk_line(&f);
    free_line(&f);
    if (!status)
        say(_("It falls fast and then crawls. The loss is a long valley: steep across, where w and b rise together, and "
              "nearly flat along its floor, where w sinks as b rises. One rate must serve both."));
    return status;
}

static qkv_status same_rate(void)
{
    losses loss;
    qkv_status status = descend_by_all(0.01f, loss);
    if (status) return status;
    say_heading(_("Five rules, the same rate"));
    for (int i = 0; i < RULES; i++) print_rule(i), printf("  %s\n", line_rules[i].update);
    putchar('\n');
    say(_("Here are their losses after so many steps, all at the rate 0.01:"));
    print_losses(0.01f, loss);
    say(_("SGD moves by rate times gradient; here gradients are large, so it is quick. The last three divide by the size of "
          "the gradients so far: whatever those are, a step of RMSProp or Adam is about as long as the rate, and the steps "
          "of AdaGrad become shorter and shorter. 0.01 is simply a short stride for them. A rate belongs to its rule."));
    return draw_losses("optimizers_same_rate", _("the same rate: loss"), loss);
}

static qkv_status own_rates(void)
{
    losses loss;
    qkv_status status = descend_by_all(0, loss);
    if (status) return status;
    say_heading(_("Each with a rate that suits it"));
    print_losses(0, loss);
    say(_("Now all arrive, RMSProp as near as its rate lets it: with a memory of ten steps, 1 / (1 - 0.9), its stride stays as "
          "long as the rate, also at the goal. Momentum, which Adam has too, rolls past the floor of the valley and back, so "
          "that the loss "
          "rises at times; but it also keeps rolling along the floor. On two weights, where a good rate is easy to find, "
          "plain SGD is hard to beat."));
    say(_("In a Transformer some weights get large gradients at every step and others, such as the vectors of rare words, "
          "small ones now and then. Adam gives each weight a stride of its own: m' and v' are m / (1 - 0.9^t) and v / (1 - "
          "0.999^t), running means of g and g^2, corrected for their start at 0. The paper trains with Adam, and warms the "
          "rate up: the first steps know v from few gradients. \"qkv line --optimizer adam --lr 0.3\" walks with one rule "
          "alone."));
    return draw_losses("optimizers", _("each at its own rate: loss"), loss);
}

/* ---- stochastic ---- */

enum { POINTS = 5 };
static const double xs[POINTS] = { 0, 1, 2, 3, 4 }, noisy[POINTS] = { 1.4, 2.7, 5.1, 6.6, 9.2 };

static double loss_of(double w, double b)
{
    double sum = 0;
    for (int i = 0; i < POINTS; i++) sum += pow(w * xs[i] + b - noisy[i], 2) / POINTS;
    return sum;
}

/* Losses over all points, of steps that see `n` points each: the batch of a step starts at a random one. */
static void descend_in_batches(int n, double loss[STEPS])
{
    uint64_t random = 8;
    double w = 0, b = 0;
    for (int step = 0; step < STEPS; step++) {
        double dw = 0, db = 0;
        int first = random_below(&random, POINTS);
        loss[step] = loss_of(w, b);
        for (int i = 0; i < n; i++) {
            int at = (first + i) % POINTS;
            double error = 2 * (w * xs[at] + b - noisy[at]) / n;
            dw += error * xs[at], db += error;
        }
        w -= 0.03 * dw, b -= 0.03 * db;
    }
}

/* The largest rate at which SGD converges: 2 over the larger eigenvalue of the second derivatives [[2 m2, 2 m1], [2 m1, 2]], of
 * the means of x and x^2. */
static double rate_limit(double scale, double shift)
{
    double m1 = 0, m2 = 0;
    for (int i = 0; i < POINTS; i++) {
        double x = scale * (xs[i] - shift);
        m1 += x / POINTS, m2 += x * x / POINTS;
    }
    return 2 / (m2 + 1 + sqrt((m2 - 1) * (m2 - 1) + 4 * m1 * m1));
}

static void show_stochastic(void)
{
    static const int batches[] = { POINTS, 2, 1 };
    double loss[STEPS];
    say_heading(_("The S of SGD: stochastic"));
    say(_(
        "So far each step saw all points. With millions of sentences that is too slow, so a step sees a few of them, drawn at "
        "random: a mini-batch. Here are points that lie near a line but not on it, at the rate 0.03. The loss over all "
        "points, and how many points the steps before had seen together:"));
    printf("    %*s", 16 - 4, "");
    for (int j = 0; j < STOPS; j++) printf("  %7d", stops[j]);
    print_name(_("points seen"), 15, true);
    putchar('\n');
    for (int i = 0; i < 3; i++) {
        char name[48];
        snprintf(name, sizeof name, batches[i] == POINTS ? _("all %d points") : _("batches of %d"), batches[i]);
        fputs("    ", stdout);
        print_name(name, 12, false);
        descend_in_batches(batches[i], loss);
        for (int j = 0; j < STOPS; j++) printf("  %7.3f", loss[stops[j]]);
        printf("  %13d\n", stops[STOPS - 1] * batches[i]);
    }
    putchar('\n');
    say(_(
        "Small batches are cheap, need little memory and can learn from text as it arrives. Their gradient is noisy: the loss "
        "jitters and does not settle, unless the rate falls to 0 as training ends. Noise also helps: it leaves sharp minima "
        "that a full gradient would stay in."));
    say(_("SGD depends on the scale of its inputs. For x = 0 to 4 it converges below a rate of %.3f. Measured in hundredths, "
          "x = 0 to 400, the limit is %.2g; with x shifted to mean 0 and scaled to variance 1 it is %.3f. That is why "
          "inputs are normalised, and why a Transformer has LayerNorm (lesson 7)."),
        rate_limit(1, 0), rate_limit(100, 0), rate_limit(1 / sqrt(2), 2));
}

static qkv_status run_optimizers_lesson(void)
{
    qkv_status status = plain_descent();
    if (!status) status = same_rate();
    if (!status) status = own_rates();
    if (!status) show_stochastic();
    return status;
}

const lesson lesson_optimizers = {
    .name = "8",
    .title = N_("Optimizers on the same line"),
    .run = run_optimizers_lesson,
    .question = N_("SGD arrives at a rate of 0.1, and at 0.15 its loss grows without end (\"qkv line --lr 0.15\" shows it). "
                   "Where is the limit?"),
    .answer = N_("At 2 / 13.4 = 0.149. The second derivatives of the loss are the matrix [[12, 4], [4, 2]], and across the "
                 "valley, along its steepest direction, its curvature is its larger eigenvalue, 7 + sqrt(41) = 13.4. A step "
                 "there multiplies the error by 1 - 13.4 lr: between -1 and 1 it shrinks, beyond it grows, from side to "
                 "side. The smaller eigenvalue, 0.6, is the floor, where a step at 0.01 takes off 0.6 percent: that is the "
                 "crawling."),
};
