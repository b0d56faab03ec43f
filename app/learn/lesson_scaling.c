/* lesson_scaling.c: lesson 2: why scores are divided by sqrt(d_k), measured. */
#include "../draw/view.h"
#include "lesson.h"
#include "../term/errors.h"
#include "../term/print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { GROUPS = 64, KEYS = 16, ROWS = GROUPS * KEYS, SIZES = 5 };
static const int64_t sizes[SIZES] = { 4, 16, 64, 256, 1024 };

/* What is measured at one d_k, over all queries; MEDIAN is the gradient's. */
enum { VARIANCE, LARGEST, ENTROPY, GRADIENT, MEDIAN, MEASURES };
typedef float measures[MEASURES];

static float variance(const float *x, int64_t n)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i], squares += (double)x[i] * (double)x[i];
    return (float)(squares / (double)n - sum / (double)n * (sum / (double)n));
}

static double largest(const float *x, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, (double)x[i]);
    return most;
}

static double entropy(const float *weights, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (weights[i] > 0) sum -= (double)weights[i] * log((double)weights[i]);
    return sum;
}

static double length_of(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static int compare_floats(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, size_t n)
{
    qsort(x, n, sizeof *x, compare_floats);
    return x[n / 2];
}

/* The gradient is what a random error of length about sqrt(KEYS), `blame`, becomes on its way back through the softmax. */
static qkv_status measure_softmax(qkv_tape *t, const qkv_tensor *scores, float scale, qkv_tensor *blame, measures out)
{
    qkv_tensor *x = qkv_variable(t, qkv_tensor_ndim(scores), qkv_tensor_shape(scores), qkv_tensor_data(scores));
    qkv_tensor *scaled = qkv_scale(x, scale), *weights = qkv_softmax(scaled);
    if (qkv_backward(qkv_sum(qkv_mul(weights, blame), QKV_ALL_DIMS))) return library_failed();
    double sums[MEASURES] = { 0 }, gradients[ROWS];
    for (int64_t i = 0; i < ROWS; i++) {
        sums[LARGEST] += largest(qkv_tensor_data(weights) + i * KEYS, KEYS);
        sums[ENTROPY] += entropy(qkv_tensor_data(weights) + i * KEYS, KEYS);
        gradients[i] = length_of(qkv_tensor_grad(scaled) + i * KEYS, KEYS) / length_of(qkv_tensor_data(blame) + i * KEYS, KEYS);
        sums[GRADIENT] += gradients[i];
    }
    for (int i = 0; i < MEASURES; i++) out[i] = (float)(sums[i] / ROWS);
    out[MEDIAN] = (float)median(gradients, ROWS);
    out[VARIANCE] = variance(qkv_tensor_data(scaled), qkv_tensor_count(scaled));
    return QKV_OK;
}

/* Queries and keys of d_k numbers each with mean 0 and variance 1, GROUPS times KEYS of both. */
static qkv_status measure_size(qkv_tape *t, int64_t d_k, measures raw, measures scaled)
{
    qkv_params *p = qkv_params_new(17);
    qkv_tensor *q = qkv_params_add(p, "q", QKV_SHAPE(GROUPS, KEYS, d_k), QKV_INIT_NORMAL, 1);
    qkv_tensor *k = qkv_params_add(p, "k", QKV_SHAPE(GROUPS, KEYS, d_k), QKV_INIT_NORMAL, 1);
    qkv_tensor *blame = qkv_params_add(p, "blame", QKV_SHAPE(GROUPS, KEYS, KEYS), QKV_INIT_NORMAL, 1);
    qkv_tensor *scores = qkv_matmul(qkv_on(t, q), k, QKV_TRANSPOSE_B);
    qkv_status status = qkv_params_status(p) || qkv_tape_status(t) ? library_failed() : QKV_OK;
    if (!status) status = measure_softmax(t, scores, 1, blame, raw);
    if (!status) status = measure_softmax(t, scores, 1 / sqrtf((float)d_k), blame, scaled);
    qkv_tape_reset(t);
    qkv_params_free(p);
    return status;
}

static void show_measures(const measures *of)
{
    char names[SIZES][32];
    const char *rows[SIZES];
    for (int i = 0; i < SIZES; i++) snprintf(names[i], sizeof names[i], "d_k = %lld", (long long)sizes[i]), rows[i] = names[i];
    print_table(&(table){
        .values = of[0],
        .rows = SIZES,
        .columns = MEASURES,
        .row.names = rows,
        .column.names = (const char *const[]){ _("variance"), _("largest"), _("entropy"), _("gradient"), _("median") },
        .decimals = 4 });
    putchar('\n');
}

static qkv_status draw_scaling(const char *name, const char *title, const measures *raw, const measures *scaled, int what,
                               int log_y)
{
    double x[SIZES], y[2][SIZES];
    for (int i = 0; i < SIZES; i++) x[i] = (double)sizes[i], y[0][i] = (double)raw[i][what], y[1][i] = (double)scaled[i][what];
    const qkv_curve curves[] = { { "q . k", x, y[0], SIZES }, { "q . k / sqrt(d_k)", x, y[1], SIZES } };
    return draw_curves(name, curves, 2,
                       &(qkv_curve_opts){ .title = title, .x_axis = "d_k", .y_axis = title, .log_x = 1, .log_y = log_y });
}

static void introduce_scaling(void)
{
    say(_("A score is a sum of d_k products, q . k = q_1 k_1 + ... + q_d k_d. Let all numbers in q and k be independent, with "
          "mean 0 and variance 1, as they are at the start of training. Then each product has mean 0 and variance 1, variances "
          "of independent things add, and so"));
    puts("    Var(q . k) = d_k        Var(q . k / sqrt(d_k)) = 1\n");
    say(_("The longer the vectors, the further apart the scores. The softmax does not like that. Here it is, measured: %d "
          "random "
          "queries, each with %d random keys, at five sizes. \"largest\" is the mean of each query's largest weight; "
          "\"entropy\" "
          "says over how many keys the weights are spread, in nats, at most log %d = %.3f; \"gradient\" is the part of an "
          "error "
          "that comes back through the softmax (its length after by its length before), and \"median\" what half of the "
          "queries "
          "stay below there."),
        ROWS, KEYS, KEYS, log(KEYS));
}

static void conclude(const measures *raw, const measures *scaled)
{
    int last = SIZES - 1;
    say(_("Without the division the weights at d_k = %lld are close to \"all on one key\": the largest is %.3f on average. "
          "There "
          "the softmax is saturated: moving a score hardly moves a weight, and for half of the queries less than %.1g %% of "
          "the "
          "error "
          "comes back, against %.1f %% with the division. A layer that gets no gradient does not learn."),
        (long long)sizes[last], (double)raw[last][LARGEST], 100 * (double)raw[last][MEDIAN],
        100 * (double)scaled[last][MEDIAN]);
    say(_("With the division nothing depends on d_k any more: the variance stays near 1, the largest weight between %.3f and "
          "%.3f. That is all the square root is for."),
        fmin((double)scaled[0][LARGEST], (double)scaled[last][LARGEST]),
        fmax((double)scaled[0][LARGEST], (double)scaled[last][LARGEST]));
}

static qkv_status teach_scaling(const measures *raw, const measures *scaled)
{
    introduce_scaling();
    say_heading(_("softmax(q . k), without scaling"));
    show_measures(raw);
    say_heading(_("softmax(q . k / sqrt(d_k))"));
    show_measures(scaled);
    conclude(raw, scaled);
    qkv_status status = draw_scaling("scaling_largest", _("mean of the largest weight"), raw, scaled, LARGEST, 0);
    return status ? status
                  : draw_scaling("scaling_gradient", _("gradient through the softmax, median"), raw, scaled, MEDIAN, 1);
}

static qkv_status run_scaling_lesson(void)
{
    measures raw[SIZES], scaled[SIZES];
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .keep_grads = 1 });
    qkv_status status = t ? QKV_OK : library_failed();
    for (int i = 0; i < SIZES && !status; i++) status = measure_size(t, sizes[i], raw[i], scaled[i]);
    if (!status) status = teach_scaling(raw, scaled);
    qkv_tape_free(t);
    return status;
}

const lesson lesson_scaling = {
    .name = "2",
    .title = N_("Why the scores are divided by sqrt(d_k)"),
    .run = run_scaling_lesson,
    .question = N_("Why not divide by d_k itself? What would the weights look like at d_k = 1024?"),
    .answer = N_(
        "The variance of the scores would be d_k / d_k^2 = 1 / d_k. At d_k = 1024 the scores would differ by about 1/32, "
        "which exp turns into a few per cent: every query would take nearly the same from every key, and attention "
        "would start as a plain mean. The square root is the one power that keeps the spread as it is."),
};
