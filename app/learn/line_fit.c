/* line_fit.c: the smallest model there is, y = w x + b. */
#include "line_fit.h"

#include "../term/errors.h"
#include "../term/print.h"
#include "../term/language.h"

#include <stdio.h>
#include <math.h>

static const float line_x[] = { 0, 1, 2, 3, 4 }, line_y[] = { 1, 3, 5, 7, 9 };

const char *const line_rule_names[LINE_RULES + 1] = { "sgd", "momentum", "adagrad", "rmsprop", "adam", NULL };
const line_rule line_rules[LINE_RULES] = {
    { "SGD", "w -= lr g", { .rule = QKV_OPTIMIZER_SGD, .lr = 0.1f } },
    { N_("momentum"), "v = 0.9 v + g; w -= lr v", { .rule = QKV_OPTIMIZER_SGD, .momentum = 0.9f, .lr = 0.01f } },
    { "AdaGrad", "s += g^2; w -= lr g / sqrt(s)", { .rule = QKV_OPTIMIZER_ADAGRAD, .lr = 1 } },
    { "RMSProp", "s = 0.9 s + 0.1 g^2; w -= lr g / sqrt(s)", { .rule = QKV_OPTIMIZER_RMSPROP, .alpha = 0.9f, .lr = 0.02f } },
    { "Adam", "m = 0.9 m + 0.1 g; v = 0.999 v + 0.001 g^2; w -= lr m' / sqrt(v')", { .rule = QKV_OPTIMIZER_ADAM, .lr = 0.3f } },
};

qkv_status start_line(line_fit *f, const qkv_optimizer_opts *opts)
{
    *f = (line_fit){ .params = qkv_params_new(0) };
    if (!f->params) return library_failed();
    f->w = qkv_params_add(f->params, "w", QKV_SHAPE(1, 1), QKV_INIT_ZERO, 0);
    f->b = qkv_params_add(f->params, "b", QKV_SHAPE(1), QKV_INIT_ZERO, 0);
    f->optimizer = qkv_optimizer_new(f->params, opts);
    f->tape = f->optimizer ? qkv_tape_new(NULL) : NULL;
    return f->tape ? QKV_OK : library_failed();
}

void free_line(line_fit *f)
{
    qkv_tape_free(f->tape);
    qkv_optimizer_free(f->optimizer);
    qkv_params_free(f->params);
}

qkv_status step_line(line_fit *f, float *loss)
{
    qkv_tape_reset(f->tape);
    qkv_tensor *x = qkv_constant(f->tape, QKV_SHAPE(5, 1), line_x), *y = qkv_constant(f->tape, QKV_SHAPE(5, 1), line_y);
    qkv_tensor *error = qkv_mse(qkv_affine(x, f->w, f->b), y);
    if (qkv_backward(error)) return library_failed();
    *loss = qkv_tensor_item(error);
    if (!isfinite(*loss))
        return fail(QKV_NUMERIC, "step %lld: the loss is %g: try a smaller --lr", (long long)f->steps, (double)*loss);
    if (qkv_optimizer_step(f->optimizer)) return library_failed();
    f->steps++;
    return QKV_OK;
}

/* The loss is the one the step started from; w and b are those it arrived at. */
qkv_status print_descent(line_fit *f, int steps, int every)
{
    print_name(_("step"), 4, true);
    fputs("     w     b", stdout);
    print_name(_("loss"), 8, true);
    putchar('\n');
    for (int step = 0; step < steps; step++) {
        float loss;
        qkv_status status = step_line(f, &loss);
        if (status) return status;
        if (step % every == 0)
            printf("%4d  %.2f  %.2f  %6.3f\n", step, (double)qkv_tensor_item(f->w), (double)qkv_tensor_item(f->b),
                   (double)loss);
    }
    return QKV_OK;
}
