/* 02_gradient.c: a gradient, and the check that it is right. */
#include <qkv/qkv.h>

#include <math.h>
#include <stdio.h>

/* f(x) = mean of (tanh(x) - target)^2, computed on tape t. */
static qkv_tensor *f(qkv_tape *t, qkv_tensor *x)
{
    qkv_tensor *target = qkv_constant(t, QKV_SHAPE(3), (const float[]){ 0.5f, 0, -0.5f });
    return qkv_mse(qkv_tanh(x), target);
}

/* The slope at x[i] by moving x[i] a little both ways: slow and rough, but hard to get wrong. */
static double slope(const float x[3], int i)
{
    const float step = 1e-2f;
    double ends[2];
    for (int side = 0; side < 2; side++) {
        float moved[3] = { x[0], x[1], x[2] };
        moved[i] += side ? step : -step;
        qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
        ends[side] = (double)qkv_tensor_item(f(t, qkv_constant(t, QKV_SHAPE(3), moved)));
        qkv_tape_free(t);
    }
    return (ends[1] - ends[0]) / (2 * (double)step);
}

int main(void)
{
    const float values[3] = { 0.1f, -0.7f, 1.2f };
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_tensor *x = qkv_variable(t, QKV_SHAPE(3), values); /* a variable gets a gradient, a constant does not */
    qkv_tensor *loss = f(t, x);

    /* Walks the tape backwards and adds d loss / d x to x's gradient. It also reports what went wrong before. */
    if (qkv_backward(loss)) {
        fprintf(stderr, "%s\n", qkv_error());
        qkv_tape_free(t);
        return 1;
    }

    printf("loss %.6f\n       x   gradient   by moving x\n", (double)qkv_tensor_item(loss));
    int failed = 0;
    for (int i = 0; i < 3; i++) {
        double gradient = (double)qkv_tensor_grad(x)[i], moved = slope(values, i);
        printf("%8.2f %10.6f %13.6f\n", (double)values[i], gradient, moved);
        failed |= !(fabs(gradient - moved) < 1e-3);
    }
    qkv_tape_free(t);
    return failed;
}
