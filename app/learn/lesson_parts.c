/* lesson_parts.c: lesson 7: what stands around attention: LayerNorm, residuals, dropout, label smoothing. */
#include "../draw/view.h"
#include "lesson.h"

#include "../term/errors.h"
#include "../term/print.h"

#include <math.h>
#include <stdio.h>

/* ---- LayerNorm ---- */

static void moments(const float *x, int n, double *mean, double *biased, double *unbiased)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) sum += (double)x[i];
    *mean = sum / n;
    for (int i = 0; i < n; i++) squares += ((double)x[i] - *mean) * ((double)x[i] - *mean);
    *biased = squares / n, *unbiased = squares / (n - 1);
}

static qkv_status normalise(qkv_tape *t)
{
    static const float heights[] = { 140, 150, 160, 170, 180 }, ones[] = { 1, 1, 1, 1, 1 };
    qkv_tensor *x = qkv_constant(t, QKV_SHAPE(1, 5), heights), *gain = qkv_constant(t, QKV_SHAPE(5), ones);
    qkv_tensor *y = qkv_layer_norm(x, gain, NULL, 1e-5f), *rows[] = { x, y }, *both = qkv_concat(2, rows, 0);
    if (!both) return library_failed();
    double mean, biased, unbiased;
    moments(heights, 5, &mean, &biased, &unbiased);
    say_heading(_("LayerNorm: every vector on one scale"));
    puts("    LayerNorm(x) = gain (x - mean) / sqrt(var + eps) + bias\n");
    const char *names[] = { "x", "LayerNorm(x)" };
    print_table(&(table){ .values = qkv_tensor_data(both), .rows = 2, .columns = 5, .row = { names, NULL }, .decimals = 4 });
    putchar('\n');
    say(_("The mean is %.0f. The variance is the biased one, divided by n: %.0f. Divided by n - 1 it would be %.0f, and the "
          "first number would be %.4f: weights trained with the one do not fit the other."),
        mean, biased, unbiased, ((double)heights[0] - mean) / sqrt(unbiased + 1e-5));
    say(_("Some tutorials print [-1.6, -0.8, 0, 0.8, 1.6] for these heights. Neither divisor gives that."));
    say(_("Each token is put on one scale by its own numbers, so neither the batch nor the length of the text matters."));
    return QKV_OK;
}

/* ---- residuals ---- */

enum { DEPTHS = 6, DEEPEST = 24, DIM = 32, TOKENS = 8 };
static const int depths[DEPTHS] = { 1, 2, 4, 8, 16, DEEPEST };

typedef enum way { PLAIN, RESIDUAL, PAPER, WAYS } way;

typedef struct stack {
    qkv_params *params;
    qkv_ffn sublayer[DEEPEST];
    qkv_norm norm[DEEPEST];
    qkv_tensor *input, *direction; /* (TOKENS, DIM): where the gradient is read, and the one that is sent down */
} stack;

static qkv_status make_stack(stack *s)
{
    char name[32];
    *s = (stack){ .params = qkv_params_new(7) };
    if (!s->params) return library_failed();
    for (int i = 0; i < DEEPEST; i++) {
        snprintf(name, sizeof name, "%d.ffn", i);
        s->sublayer[i] = qkv_ffn_new(s->params, name, &(qkv_ffn_opts){ .dim = DIM, .d_ff = 4 * DIM });
        snprintf(name, sizeof name, "%d.norm", i);
        s->norm[i] = qkv_norm_new(s->params, name, DIM, QKV_NORM_LAYER);
    }
    s->input = qkv_params_add(s->params, "input", QKV_SHAPE(TOKENS, DIM), QKV_INIT_NORMAL, 1);
    s->direction = qkv_params_add(s->params, "direction", QKV_SHAPE(TOKENS, DIM), QKV_INIT_NORMAL, 1);
    return qkv_params_status(s->params) ? library_failed() : QKV_OK;
}

static qkv_tensor *climb(const stack *s, qkv_tape *t, int depth, way w)
{
    qkv_tensor *x = qkv_on(t, s->input);
    for (int i = 0; i < depth; i++) {
        qkv_tensor *f = qkv_ffn_forward(&s->sublayer[i], x);
        x = w == PLAIN ? f : qkv_add(x, f);
        if (w == PAPER) x = qkv_norm_forward(&s->norm[i], x);
    }
    return x;
}

/* The length of the gradient at the input, as a share of the one that is sent in at the top. */
static qkv_status gradient_left(const stack *s, qkv_tape *t, int depth, way w, double *left)
{
    double sent = 0, arrived = 0;
    qkv_tape_reset(t);
    qkv_params_zero_grad(s->params);
    if (qkv_backward(qkv_sum(qkv_mul(climb(s, t, depth, w), s->direction), QKV_ALL_DIMS))) return library_failed();
    for (int i = 0; i < TOKENS * DIM; i++) {
        sent += (double)qkv_tensor_data(s->direction)[i] * (double)qkv_tensor_data(s->direction)[i];
        arrived += (double)qkv_tensor_grad(s->input)[i] * (double)qkv_tensor_grad(s->input)[i];
    }
    *left = sqrt(arrived / sent);
    return QKV_OK;
}

static qkv_status measure_gradients(const stack *s, qkv_tape *t, double left[WAYS][DEPTHS])
{
    qkv_status status = QKV_OK;
    for (int w = 0; w < WAYS; w++)
        for (int i = 0; i < DEPTHS && !status; i++) status = gradient_left(s, t, depths[i], (way)w, &left[w][i]);
    return status;
}

static void print_gradients(double left[WAYS][DEPTHS])
{
    print_name(_("layers"), 12, true);
    printf("  %14s  %14s  %14s\n", "f(x)", "x + f(x)", "norm(x + f(x))");
    for (int i = 0; i < DEPTHS; i++)
        printf("%12d  %14.6f  %14.6f  %14.6f\n", depths[i], left[PLAIN][i], left[RESIDUAL][i], left[PAPER][i]);
    putchar('\n');
}

static qkv_status draw_gradients(double left[WAYS][DEPTHS])
{
    const char *path = picture_path("residuals");
    double x[DEPTHS];
    for (int i = 0; i < DEPTHS; i++) x[i] = depths[i];
    const qkv_curve curves[] = { { "f(x)", x, left[PLAIN], DEPTHS },
                                 { "x + f(x)", x, left[RESIDUAL], DEPTHS },
                                 { "norm(x + f(x))", x, left[PAPER], DEPTHS } };
    if (!path) return QKV_OK;
    const qkv_curve_opts opts = {
        .title = _("how much gradient arrives at the input"), .x_axis = _("layers"), .y_axis = _("share"), .log_y = 1
    };
    if (qkv_picture_curves(path, curves, WAYS, &opts)) return library_failed();
    tell_picture(path);
    return QKV_OK;
}

static qkv_status residuals(qkv_tape *t)
{
    stack s;
    double left[WAYS][DEPTHS];
    qkv_status status = make_stack(&s);
    if (!status) status = measure_gradients(&s, t, left);
    if (!status) {
        say_heading(_("Residuals: a way through for the gradient"));
        puts("    y = LayerNorm(x + Sublayer(x))\n");
        say(_("Think of an essay: x is the draft and Sublayer(x) the teacher's corrections. The sum keeps the draft, so a bad "
              "correction cannot destroy it."));
        say(_("Training moves a weight by its gradient, which must travel down through every layer above it. Here are "
              "stacks of 1 to %d fresh feed-forward layers f, and how much of a gradient sent in at the top arrives at the "
              "bottom:"),
            DEEPEST);
        print_gradients(left);
        say(_("Without the sum each layer passes on a part of what it gets, and parts of parts of parts vanish: after %d "
              "layers %.6f is left. With the sum the gradient of x + f(x) is 1 + f'(x): whatever f does, the 1 lets it "
              "through. The norm after it keeps the sums from growing."),
            DEEPEST, left[PLAIN][DEPTHS - 1]);
        status = draw_gradients(left);
    }
    qkv_params_free(s.params);
    return status;
}

/* ---- dropout ---- */

enum { MANY = 100000, FEW = 8 };
static const float rate = 0.1f;

static void count_dropped(const float *x, double *share, double *mean)
{
    int zeros = 0;
    double sum = 0;
    for (int i = 0; i < MANY; i++) zeros += x[i] == 0, sum += (double)x[i];
    *share = (double)zeros / MANY, *mean = sum / MANY;
}

/* MANY ones. */
static qkv_tensor *ones_on(qkv_tape *t) { return qkv_softmax(qkv_constant(t, QKV_SHAPE(MANY, 1), NULL)); }

static qkv_status dropout(qkv_tape *using_it)
{
    qkv_tape *training = qkv_tape_new(&(qkv_tape_opts){ .train = 1, .seed = 1 });
    qkv_tensor *dropped = qkv_dropout(ones_on(training), rate), *kept = qkv_dropout(ones_on(using_it), rate);
    qkv_status status = training && dropped && kept ? QKV_OK : library_failed();
    if (!status) {
        double share, mean, share_off, mean_off;
        count_dropped(qkv_tensor_data(dropped), &share, &mean);
        count_dropped(qkv_tensor_data(kept), &share_off, &mean_off);
        say_heading(_("Dropout: learn not to lean on one number"));
        say(_("In training each number becomes 0 with probability p, and the others are multiplied by 1/(1-p). The first %d "
              "of %d ones at p = %.1f:"),
            FEW, MANY, (double)rate);
        print_table(
            &(table){ .values = qkv_tensor_data(dropped), .rows = 1, .columns = FEW, .row = { NULL, "y" }, .decimals = 4 });
        putchar('\n');
        say(_("Of all of them %.4f are zero and the mean is %.4f: the factor 1/(1-p) keeps it, so that the layers after it "
              "see numbers of the same size as when dropout is off. Outside training nothing happens: share of zeros %.4f, "
              "mean %.4f."),
            share, mean, share_off, mean_off);
    }
    qkv_tape_free(training);
    return status;
}

/* ---- label smoothing ---- */

enum { CLASSES = 3, STOPS = 5 };
static const float smoothing = 0.1f;
static const int stops[STOPS] = { 10, 100, 1000, 5000, 20000 };

static qkv_tensor *smoothed(qkv_tensor *logits, const int32_t *targets, float s)
{
    return qkv_cross_entropy(logits, targets, &(qkv_cross_entropy_opts){ .label_smoothing = s });
}

/* Trains three logits towards class 0 by plain gradient descent: the confidence in it at every stop. */
static qkv_status train_confidence(qkv_tape *t, float s, float confidence[STOPS])
{
    float logits[CLASSES] = { 0 };
    for (int step = 1, stop = 0; stop < STOPS; step++) {
        qkv_tape_reset(t);
        qkv_tensor *x = qkv_variable(t, QKV_SHAPE(1, CLASSES), logits), *p = qkv_softmax(x);
        if (qkv_backward(smoothed(x, &(int32_t){ 0 }, s))) return library_failed();
        for (int i = 0; i < CLASSES; i++) logits[i] -= qkv_tensor_grad(x)[i];
        if (step == stops[stop]) confidence[stop++] = qkv_tensor_data(p)[0];
    }
    return QKV_OK;
}

static qkv_status show_confidence(qkv_tape *t)
{
    float confidence[2][STOPS];
    qkv_status status = train_confidence(t, 0, confidence[0]);
    if (!status) status = train_confidence(t, smoothing, confidence[1]);
    if (status) return status;
    say(_("What does that do? Three logits, trained towards the first class by gradient descent at rate 1; the confidence "
          "in it after so many steps:"));
    const char *rows[] = { _("without smoothing"), _("smoothing 0.1") };
    const char *columns[] = { "10", "100", "1000", "5000", "20000" };
    print_table(&(table){ .values = confidence[0],
                          .rows = 2,
                          .columns = STOPS,
                          .row = { rows, NULL },
                          .column = { columns, NULL },
                          .decimals = 6 });
    putchar('\n');
    say(_("Without smoothing the best confidence is 1, which no finite logits reach: they grow for ever. With it the best "
          "is the target itself, 1 - s + s/K = %.6f, and once there, nothing pulls any more."),
        1 - (double)smoothing + (double)smoothing / CLASSES);
    return QKV_OK;
}

static qkv_status smooth(qkv_tape *t)
{
    static const float example[] = { 2, 1, 0.1f, 0.5f, 2.5f, 0.3f };
    static const int32_t targets[] = { 0, 1 };
    qkv_tensor *logits = qkv_constant(t, QKV_SHAPE(2, CLASSES), example);
    qkv_tensor *hard = smoothed(logits, targets, 0), *soft = smoothed(logits, targets, smoothing);
    if (qkv_tape_status(t)) return library_failed();
    say_heading(_("Label smoothing: never quite sure"));
    puts("    loss = -(1 - s) log p[target] - s/K (log p[0] + ... + log p[K-1])\n");
    say(_("The target gets 1 - s of the mass, and s is shared by all K classes. For logits [2, 1, 0.1] and [0.5, 2.5, 0.3] "
          "with targets 0 and 1 the loss is %.6f without smoothing and %.6f with s = %.1f."),
        (double)qkv_tensor_item(hard), (double)qkv_tensor_item(soft), (double)smoothing);
    return show_confidence(t);
}

static qkv_status run_parts_lesson(void)
{
    qkv_tape *t = qkv_tape_new(NULL);
    if (!t) return library_failed();
    say(_("A Transformer layer is attention and a feed-forward network, and around both of them the parts that make a deep "
          "stack of them trainable. One after the other:"));
    qkv_status status = normalise(t);
    if (!status) status = residuals(t);
    qkv_tape_reset(t);
    if (!status) status = dropout(t);
    if (!status) status = smooth(t);
    qkv_tape_free(t);
    return status;
}

const lesson lesson_parts = {
    .name = "7",
    .title = N_("LayerNorm, residuals, dropout, label smoothing"),
    .run = run_parts_lesson,
    .question = N_("Suppose dropout only put zeros and left the other numbers as they are. What would go wrong when the "
                   "trained model is used?"),
    .answer = N_("In training every sum over its numbers would be 1-p of what it is in use, when nothing is dropped: each "
                 "layer would suddenly see inputs larger by 1/(1-p), 1.11 at p = 0.1, than it was trained on, and the next "
                 "one more still. One would have to multiply all of them by 1-p in use instead. Dividing in training costs "
                 "nothing later: that is why it is called inverted dropout."),
};
