/* cmd_line.c: qkv line: gradient descent on the smallest model there is, y = w x + b. */
#include "../learn/line_fit.h"
#include "options.h"
#include "streams.h"

static struct {
    float rate;
    int steps, every, rule;
} given = { .rate = 0.01f, .steps = 100, .every = 20 };

static const option options[] = {
    { "optimizer", .value = "RULE", .help = " (default: sgd)", .choice = &given.rule, .names = line_rule_names },
    { "lr", .value = "RATE", .help = "learning rate (default: 0.01)", .number = &given.rate },
    { "steps", .value = "N", .help = "number of steps (default: 100)", .count = &given.steps },
    { "every", .value = "N", .help = "print every N-th step (default: 20)", .count = &given.every },
    RESULT_ROW(NO_GROUP),
    { 0 },
};

static qkv_status run_line(void)
{
    if (!(given.rate > 0)) return fail(QKV_USAGE, "--lr must be larger than 0");
    line_fit f;
    qkv_optimizer_opts opts = line_rules[given.rule].opts;
    opts.lr = given.rate;
    qkv_status status = start_line(&f, &opts);
    if (!status) status = open_results(NULL);
    if (!status) status = print_descent(&f, given.steps, given.every);
    free_line(&f);
    return status;
}

const command line_command = {
    .name = "line",
    .summary = "fit a line by gradient descent",
    .about = "Fits y = w x + b to the points of y = 2x + 1, x = 0..4, from w = b = 0 by\n"
             "gradient descent on the mean squared error, plain or by another rule. The loss shown is the one each step\n"
             "starts from, w and b are those it arrives at.",
    .example = "  qkv line --lr 0.05 --steps 200\n  qkv line --optimizer adam --lr 0.3",
    .options = options,
    .run = run_line,
};
