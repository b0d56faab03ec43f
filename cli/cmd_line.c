/* cmd_line.c: qkv line: gradient descent on the smallest model there is, y = w x + b. */
#include "options.h"

#include <math.h>
#include <stdio.h>

static struct {
    float rate;
    int steps, every;
} given = { .rate = 0.01f, .steps = 100, .every = 20 };

static const option options[] = {
    { "lr", .value = "RATE", .help = "learning rate, 0.01 unless given", .number = &given.rate },
    { "steps", .value = "N", .help = "steps to take, 100 unless given", .count = &given.steps },
    { "every", .value = "N", .help = "print every N-th step, 20 unless given", .count = &given.every },
    { 0 },
};

static const float line_x[] = { 0, 1, 2, 3, 4 }, line_y[] = { 1, 3, 5, 7, 9 };

/* The loss is the one the step started from; w and b are those it arrived at. */
static qkv_status descend(qkv_tape *t, qkv_tensor *w, qkv_tensor *b, qkv_optimizer *o)
{
    puts("step     w     b    loss");
    for (int step = 0; step < given.steps; step++) {
        qkv_tensor *x = qkv_constant(t, QKV_SHAPE(5, 1), line_x), *y = qkv_constant(t, QKV_SHAPE(5, 1), line_y);
        qkv_tensor *loss = qkv_mean_squared_error(qkv_affine(x, w, b), y);
        if (qkv_backward(loss)) return library_failed();
        float value = qkv_item(loss);
        if (!isfinite(value)) return fail(QKV_NUMERIC, "step %d: the loss is %g: try a smaller --lr", step, (double)value);
        if (qkv_optimizer_step(o)) return library_failed();
        if (step % given.every == 0)
            printf("%4d  %.2f  %.2f  %6.3f\n", step, (double)qkv_item(w), (double)qkv_item(b), (double)value);
        qkv_tape_reset(t);
    }
    return QKV_OK;
}

static qkv_status run(void)
{
    if (!(given.rate > 0)) return fail(QKV_USAGE, "--lr must be larger than 0");
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_params *p = t ? qkv_params_new(0) : NULL;
    qkv_tensor *w = p ? qkv_params_add(p, "w", QKV_SHAPE(1, 1), QKV_INIT_ZERO, 0) : NULL;
    qkv_tensor *b = w ? qkv_params_add(p, "b", QKV_SHAPE(1), QKV_INIT_ZERO, 0) : NULL;
    qkv_optimizer *o = b ? qkv_optimizer_new(p, &(qkv_optimizer_opts){ .rule = QKV_SGD, .lr = given.rate }) : NULL;
    qkv_status status = o ? descend(t, w, b, o) : library_failed();
    qkv_optimizer_free(o);
    qkv_params_free(p);
    qkv_tape_free(t);
    return status;
}

const command line_command = {
    .name = "line",
    .summary = "fit a line by gradient descent and print how",
    .about = "Fits y = w x + b to the points of y = 2x + 1, x = 0..4, from w = b = 0 by plain\n"
             "gradient descent on the mean squared error. The loss shown is the one each step\n"
             "starts from, w and b are those it arrives at.",
    .example = "  qkv line --lr 0.05 --steps 200",
    .options = options,
    .run = run,
};
