/* lesson_costs.c: lesson 10: self-attention against a recurrence and a convolution: cost and path length. */
#include "../draw/view.h"
#include "lesson.h"

#include "../term/errors.h"
#include "../term/print.h"
#include "stopwatch.h"

#include <math.h>
#include <stdio.h>

enum { DIM = 64, WIDTH = 3, NEAR = 16, LONGEST = 2048, SIZES = 4, KINDS = 4, TIMED = 3 };
static const int sizes[SIZES] = { 32, 128, 512, LONGEST };

/* The layers, over the same tokens. */
typedef struct layers {
    qkv_params *params;
    qkv_tape *tape;
    qkv_tensor *tokens;      /* (LONGEST, DIM) */
    qkv_mha attention;       /* with its projections */
    qkv_linear input, state; /* h_t = tanh(W h_{t-1} + U x_t) */
    qkv_linear window;       /* y_t = W (x_t, x_{t-s}, x_{t-2s}), s the stride */
    int n;
} layers;

static qkv_status make_layers(layers *l)
{
    *l = (layers){ .params = qkv_params_new(10), .tape = qkv_tape_new(&(qkv_tape_opts){ .keep_grads = 1 }) };
    if (!l->params || !l->tape) return library_failed();
    l->tokens = qkv_params_add(l->params, "tokens", QKV_SHAPE(LONGEST, DIM), QKV_INIT_NORMAL, 1);
    l->attention = qkv_mha_new(l->params, "attention", &(qkv_mha_opts){ .dim = DIM, .heads = 1 });
    l->input = qkv_linear_new(l->params, "input", DIM, DIM, true);
    l->state = qkv_linear_new(l->params, "state", DIM, DIM, true);
    l->window = qkv_linear_new(l->params, "window", WIDTH * DIM, DIM, true);
    return qkv_params_status(l->params) ? library_failed() : QKV_OK;
}

static void free_layers(layers *l)
{
    qkv_tape_free(l->tape);
    qkv_params_free(l->params);
}

/* ---- the layers: (n, DIM) -> (n, DIM) ---- */

static qkv_tensor *attend_layer(const layers *l, qkv_tensor *x)
{
    qkv_tensor *batch = qkv_reshape(x, QKV_SHAPE(1, -1, DIM));
    return qkv_reshape(qkv_mha_forward(&l->attention, batch, batch, NULL), QKV_SHAPE(-1, DIM));
}

static qkv_tensor *states[LONGEST]; /* of the last recurrence */

/* No step can start before the one in front of it is done. */
static qkv_tensor *recur(const layers *l, qkv_tensor *x)
{
    int n = (int)qkv_tensor_dim(x, 0);
    qkv_tensor *inputs = qkv_linear_forward(&l->input, x), *h = NULL;
    for (int i = 0; i < n; i++) {
        qkv_tensor *u = qkv_slice(inputs, 0, i, i + 1);
        states[i] = h = qkv_tanh(h ? qkv_add(qkv_linear_forward(&l->state, h), u) : u);
    }
    return qkv_concat(n, states, 0);
}

/* x moved down by so many rows, zeros above. */
static qkv_tensor *shift(qkv_tape *t, qkv_tensor *x, int64_t rows)
{
    int64_t n = qkv_tensor_dim(x, 0);
    if (rows > n) rows = n;
    qkv_tensor *parts[] = { qkv_constant(t, QKV_SHAPE(rows, DIM), NULL), qkv_slice(x, 0, 0, n - rows) };
    return qkv_concat(2, parts, 0);
}

static qkv_tensor *convolve(const layers *l, qkv_tensor *x, int64_t stride)
{
    qkv_tensor *parts[WIDTH];
    for (int i = 0; i < WIDTH; i++) parts[i] = i ? shift(l->tape, x, i * stride) : x;
    return qkv_linear_forward(&l->window, qkv_concat(WIDTH, parts, 1));
}

/* ---- the paper's table ---- */

static const char *const kinds[KINDS] = { N_("self-attention"), N_("recurrence"), N_("convolution"), N_("restricted") };

static void print_row(const char *name, const char *cost, const char *steps, const char *path)
{
    fputs("    ", stdout);
    print_name(name, 16, false);
    print_name(cost, 18, false);
    print_name(steps, 18, false);
    puts(path);
}

static void show_paper(void)
{
    say(_("Why attention at all, when a recurrent network can read a text word by word, and a convolution window by window? "
          "The paper answers with a table (its table 1). For n tokens of d numbers, windows of k tokens, and attention "
          "restricted to the r nearest tokens:"));
    print_row("", _("operations"), _("one after another"), _("longest path"));
    print_row(_(kinds[0]), "O(n^2 d)", "O(1)", "O(1)");
    print_row(_(kinds[1]), "O(n d^2)", "O(n)", "O(n)");
    print_row(_(kinds[2]), "O(k n d^2)", "O(1)", "O(log_k n)");
    print_row(_(kinds[3]), "O(r n d)", "O(1)", "O(n / r)");
    putchar('\n');
    say(_("The path is how many operations lie between two tokens that are far apart: what one has to tell the other goes "
          "through all of them, and so does the gradient. Let us measure each column."));
}

/* ---- time ---- */

typedef double costs[SIZES][KINDS];

static qkv_tensor *first_tokens(const layers *l)
{
    qkv_tape_reset(l->tape);
    return qkv_slice(qkv_on(l->tape, l->tokens), 0, 0, l->n);
}

static qkv_status time_attention(void *data) { return attend_layer(data, first_tokens(data)) ? QKV_OK : library_failed(); }
static qkv_status time_recurrence(void *data) { return recur(data, first_tokens(data)) ? QKV_OK : library_failed(); }
static qkv_status time_convolution(void *data) { return convolve(data, first_tokens(data), 1) ? QKV_OK : library_failed(); }

/* Scores and the sum of values alone, as the paper counts; and with the four projections of attention. */
static void count_multiplications(costs paper, costs all)
{
    for (int i = 0; i < SIZES; i++) {
        double n = sizes[i], d = DIM;
        paper[i][0] = 2 * n * n * d, paper[i][1] = 2 * n * d * d, paper[i][2] = WIDTH * n * d * d;
        paper[i][3] = 2 * NEAR * n * d;
        for (int j = 0; j < KINDS; j++) all[i][j] = paper[i][j] + (j == 0 || j == 3 ? 4 * n * d * d : 0);
    }
}

static qkv_status measure_layers(layers *l, costs milliseconds)
{
    static qkv_status (*const work[TIMED])(void *) = { time_attention, time_recurrence, time_convolution };
    for (int i = 0; i < SIZES; i++) {
        l->n = sizes[i];
        for (int j = 0; j < TIMED; j++) {
            double seconds;
            qkv_status status = least_seconds(work[j], l, &seconds);
            if (status) return status;
            milliseconds[i][j] = 1e3 * seconds;
        }
    }
    return QKV_OK;
}

static void print_costs(costs of, int n_kinds, double unit)
{
    printf("    %6s", "n");
    for (int j = 0; j < n_kinds; j++) print_name(_(kinds[j]), 16, true);
    putchar('\n');
    for (int i = 0; i < SIZES; i++) {
        printf("    %6d", sizes[i]);
        for (int j = 0; j < n_kinds; j++) printf("%16.3f", of[i][j] / unit);
        putchar('\n');
    }
    putchar('\n');
}

static qkv_status draw_times(costs milliseconds)
{
    const char *path = picture_path("costs");
    double x[SIZES], y[TIMED][SIZES];
    qkv_curve curves[TIMED];
    if (!path) return QKV_OK;
    for (int i = 0; i < SIZES; i++) x[i] = sizes[i];
    for (int j = 0; j < TIMED; j++) {
        for (int i = 0; i < SIZES; i++) y[j][i] = milliseconds[i][j];
        curves[j] = (qkv_curve){ _(kinds[j]), x, y[j], SIZES };
    }
    const qkv_curve_opts opts = {
        .title = _("time of one layer"), .x_axis = _("tokens"), .y_axis = _("milliseconds"), .log_x = 1, .log_y = 1
    };
    if (qkv_picture_curves(path, curves, TIMED, &opts)) return library_failed();
    tell_picture(path);
    return QKV_OK;
}

static void show_multiplications(costs paper, costs all)
{
    say_heading(_("Cost"));
    say(_("Multiplications of one layer in millions, d = %d, k = %d, r = %d. First as the paper counts, where attention is "
          "scores and sums of values only:"),
        DIM, WIDTH, NEAR);
    print_costs(paper, KINDS, 1e6);
    say(_("So attention is the cheapest as long as n < d, and the dearest for long texts: at %d tokens it multiplies %.0f "
          "times as often as the recurrence. But W_Q, W_K, W_V and W_O multiply too, 4 n d^2 times, which the paper's table "
          "leaves out. With them:"),
        LONGEST, paper[SIZES - 1][0] / paper[SIZES - 1][1]);
    print_costs(all, KINDS, 1e6);
    say(_("Attention is then never the cheapest: at n = %d it is %.3f million against %.3f of the recurrence and %.3f of the "
          "convolution. What it buys is in the other two columns of the paper's table."),
        sizes[0], all[0][0] / 1e6, all[0][1] / 1e6, all[0][2] / 1e6);
}

static qkv_status times(layers *l)
{
    costs paper, all, milliseconds;
    count_multiplications(paper, all);
    qkv_status status = measure_layers(l, milliseconds);
    if (status) return status;
    const double *last = milliseconds[SIZES - 1], *before = milliseconds[SIZES - 2];
    show_multiplications(paper, all);
    say(_("Milliseconds on this machine, projections included, %d threads:"), qkv_num_threads());
    print_costs(milliseconds, TIMED, 1);
    say(_("From %d to %d tokens the times grew %.1f-fold, %.1f-fold and %.1f-fold. And a multiplication is not a "
          "multiplication: 10^9 of them take %.0f ms in attention and %.0f ms in the recurrence, where each step waits for "
          "the one before and has one small vector to work on, while attention and convolution do all tokens at once. That "
          "is the second column, and on a machine with thousands of cores it decides."),
        sizes[SIZES - 2], LONGEST, last[0] / before[0], last[1] / before[1], last[2] / before[2],
        last[0] / all[SIZES - 1][0] * 1e9, last[1] / all[SIZES - 1][1] * 1e9);
    return draw_times(milliseconds);
}

/* ---- paths ---- */

enum { PATHS = 4, MOST_LAYERS = 128 };
static const int path_sizes[PATHS] = { 3, 9, 27, 81 };

typedef enum way { ATTENTION, CONVOLUTION, DILATED } way;

static qkv_tensor *new_tokens(const layers *l)
{
    qkv_tape_reset(l->tape);
    return qkv_variable(l->tape, QKV_SHAPE(l->n, DIM), qkv_tensor_data(l->tokens));
}

/* Computes the gradient of the last row of y, in some direction. */
static qkv_status look_back(const layers *l, qkv_tensor *y)
{
    qkv_tensor *direction = qkv_slice(qkv_on(l->tape, l->tokens), 0, l->n, l->n + 1);
    return qkv_backward(qkv_sum(qkv_mul(qkv_slice(y, 0, l->n - 1, l->n), direction), QKV_ALL_DIMS)) ? library_failed() : QKV_OK;
}

static double gradient_at(const qkv_tensor *x, int64_t row)
{
    double sum = 0;
    for (int64_t i = row * DIM; i < (row + 1) * DIM; i++) sum += (double)qkv_tensor_grad(x)[i] * (double)qkv_tensor_grad(x)[i];
    return sqrt(sum);
}

/* How many layers until the first token has an influence on the last result. */
static qkv_status layers_needed(const layers *l, way w, int *needed)
{
    for (int depth = 1; depth <= MOST_LAYERS; depth++) {
        qkv_tensor *x = new_tokens(l), *y = x;
        int64_t stride = 1;
        for (int i = 0; i < depth; i++) {
            y = w == ATTENTION ? attend_layer(l, y) : convolve(l, y, stride);
            if (w == DILATED && stride < l->n) stride *= WIDTH;
        }
        qkv_status status = look_back(l, y);
        *needed = depth;
        if (status || gradient_at(x, 0) > 0) return status;
    }
    return QKV_OK;
}

/* How many states the influence of the first token passes through, one after the other. */
static qkv_status states_passed(const layers *l, int *passed)
{
    qkv_status status = look_back(l, recur(l, new_tokens(l)));
    *passed = 0;
    for (int i = 0; i < l->n && !status; i++) *passed += gradient_at(states[i], 0) > 0;
    return status;
}

static qkv_status print_path(const layers *l)
{
    qkv_status status = QKV_OK;
    int needed, passed;
    printf("    %6d", l->n);
    for (int w = 0; w < 3 && !status; w++) {
        status = layers_needed(l, (way)w, &needed);
        if (!status) printf("%16d", needed);
    }
    if (!status) status = states_passed(l, &passed);
    if (!status) printf("%16d\n", passed);
    return status;
}

static qkv_status paths(layers *l)
{
    const char *const names[] = { _(kinds[0]), _(kinds[2]), _("dilated"), _(kinds[1]) };
    qkv_status status = QKV_OK;
    say_heading(_("Path length"));
    say(_("How many layers does it take until the first token has any influence on the last result, that is, until the "
          "gradient there is not zero? Attention: one, always. A convolution of width %d that looks back moves two tokens a "
          "layer; with holes in its window that become %d times as wide in every layer (\"dilated\") it gets there in log_k "
          "n. A recurrence is one layer, but the influence runs through the state of every token on the way: these are "
          "counted here."),
        WIDTH, WIDTH);
    printf("    %6s", "n");
    for (int j = 0; j < 4; j++) print_name(names[j], 16, true);
    putchar('\n');
    for (int i = 0; i < PATHS && !status; i++) {
        l->n = path_sizes[i];
        status = print_path(l);
    }
    putchar('\n');
    return status;
}

/* ---- influence ---- */

/* The gradient of the last result at the first token, as a share of the one at the last token. */
static qkv_status influence(const layers *l, bool is_recurrent, double *share)
{
    qkv_tensor *x = new_tokens(l);
    qkv_status status = look_back(l, is_recurrent ? recur(l, x) : attend_layer(l, x));
    if (!status) *share = gradient_at(x, 0) / gradient_at(x, l->n - 1);
    return status;
}

static qkv_status influences(layers *l)
{
    say(_("A long path also wears the message down. The gradient of the last result with respect to the first token, as a "
          "share of that with respect to the last token, both networks fresh:"));
    printf("    %6s", "n");
    print_name(_(kinds[0]), 16, true);
    print_name(_(kinds[1]), 16, true);
    putchar('\n');
    for (int i = 0; i < PATHS; i++) {
        double attention, recurrence;
        l->n = path_sizes[i];
        qkv_status status = influence(l, false, &attention);
        if (!status) status = influence(l, true, &recurrence);
        if (status) return status;
        printf("    %6d%16.1e%16.1e\n", l->n, attention, recurrence);
    }
    putchar('\n');
    say(_("Attention shares itself out among the n tokens, wherever they stand. A recurrence multiplies by its matrix at "
          "every step, and forgets."));
    return QKV_OK;
}

static qkv_status run_costs_lesson(void)
{
    layers l;
    qkv_status status = make_layers(&l);
    if (!status) show_paper(), status = times(&l);
    if (!status) status = paths(&l);
    if (!status) status = influences(&l);
    free_layers(&l);
    return status;
}

const lesson lesson_costs = {
    .name = "10",
    .title = N_("Self-attention against a recurrence and a convolution"),
    .run = run_costs_lesson,
    .question = N_("A book has 100,000 tokens. What does the n^2 of self-attention mean for it, and what can one do?"),
    .answer = N_("10^10 scores for each head of each layer: too many to keep, and slow to compute. What need not be kept is "
                 "not: this library computes the weights in tiles and never holds the n x n table, so memory grows with n, "
                 "but the time still grows with n^2. The paper's own remedy is a neighbourhood: each token sees only the r "
                 "nearest, which costs O(r n d), and the path becomes O(n / r) again. Nothing is free."),
};
