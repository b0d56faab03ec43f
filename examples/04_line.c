/* 04_line.c: the smallest training there is: find the line y = w x + b through five points of y = 2x + 1. */
#include <qkv/qkv.h>

#include <stdio.h>

int main(void)
{
    const float xs[] = { 0, 1, 2, 3, 4 }, ys[] = { 1, 3, 5, 7, 9 };
    qkv_params *p = qkv_params_new(0);
    qkv_linear line = {
        .weight = qkv_params_add(p, "w", QKV_SHAPE(1, 1), QKV_INIT_ZERO, 0),
        .bias = qkv_params_add(p, "b", QKV_SHAPE(1), QKV_INIT_ZERO, 0),
    };
    qkv_optimizer *sgd = qkv_optimizer_new(p, &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_SGD, .lr = 0.01f });
    qkv_tape *t = qkv_tape_new(NULL);

    qkv_status status = QKV_OK;
    printf("step     w     b    loss\n");
    for (int step = 0; step <= 80 && !status; step++) {
        qkv_tensor *x = qkv_constant(t, QKV_SHAPE(5, 1), xs), *y = qkv_constant(t, QKV_SHAPE(5, 1), ys);
        qkv_tensor *loss = qkv_mse(qkv_linear_forward(&line, x), y);
        status = qkv_backward(loss);                   /* d loss / d w and d loss / d b */
        if (!status) status = qkv_optimizer_step(sgd); /* one step downhill */
        if (step % 20 == 0 && !status)
            printf("%4d  %.2f  %.2f  %6.3f\n", step, (double)qkv_tensor_item(line.weight), (double)qkv_tensor_item(line.bias),
                   (double)qkv_tensor_item(loss));
        qkv_tape_reset(t);
    }
    if (status) fprintf(stderr, "%s\n", qkv_error());

    qkv_tape_free(t);
    qkv_optimizer_free(sgd);
    qkv_params_free(p);
    return status != QKV_OK;
}
