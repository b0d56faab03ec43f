/* cmd_line.c: qkv line: gradient descent on the smallest model there is, y = w x + b. */
#include "../learn/line_fit.h"
#include "options.h"
#include "streams.h"

static struct {
    float rate;
    int steps, every;
} given = { .rate = 0.01f, .steps = 100, .every = 20 };

static const option options[] = {
    { "lr", .value = "RATE", .help = "learning rate, 0.01 unless given", .number = &given.rate },
    { "steps", .value = "N", .help = "steps to take, 100 unless given", .count = &given.steps },
    { "every", .value = "N", .help = "print every N-th step, 20 unless given", .count = &given.every },
    RESULT_ROW(NO_GROUP),
    { 0 },
};

static qkv_status run_line(void)
{
    if (!(given.rate > 0)) return fail(QKV_USAGE, "--lr must be larger than 0");
    line_fit f;
    qkv_status status = start_line(&f, &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_SGD, .lr = given.rate });
    if (!status) status = open_results(NULL);
    if (!status) status = print_descent(&f, given.steps, given.every);
    free_line(&f);
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
    .run = run_line,
};
