/* line_fit.h: the smallest model there is, y = w x + b, and its way to the points of y = 2x + 1, x = 0..4. */
#ifndef QKV_LEARN_LINE_FIT_H
#define QKV_LEARN_LINE_FIT_H

#include <qkv/qkv.h>

typedef struct line_fit {
    qkv_params *params;
    qkv_tensor *w, *b;
    qkv_optimizer *optimizer;
    qkv_tape *tape;
    int64_t steps;
} line_fit;

/* The rules that lesson 8 compares: how it is typed and how it is called (N_()), its update, and its options with a rate that
 * suits the line. */
enum { LINE_RULES = 5 };
typedef struct line_rule {
    const char *name, *update;
    qkv_optimizer_opts opts;
} line_rule;
extern const char *const line_rule_names[LINE_RULES + 1]; /* NULL after the last */
extern const line_rule line_rules[LINE_RULES];

/* Starts at w = b = 0; free it on an error too. Errors are reported. */
qkv_status start_line(line_fit *f, const qkv_optimizer_opts *opts);
void free_line(line_fit *f);

/* One step on the mean squared error; *loss is the one the step starts from. NUMERIC, reported, when that is not finite. */
qkv_status step_line(line_fit *f, float *loss);

/* Takes steps and prints every so many of them. */
qkv_status print_descent(line_fit *f, int steps, int every);

#endif
