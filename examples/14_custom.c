/* 14_custom.c: a model of one's own on the tape learns to tell the larger of two digits. */
#include <qkv/qkv.h>

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 64, LENGTH = 2, DIGITS = 10, DIM = 32, STEPS = 300 };
typedef struct net {
    qkv_embedding digits, places;
    qkv_mha attention;
    qkv_norm norm;
    qkv_linear out;
} net;

static qkv_tensor *forward(const net *n, qkv_tape *t, const int32_t *ids)
{
    qkv_tensor *x = qkv_add(qkv_embedding_forward(&n->digits, t, ids, ROWS, LENGTH), n->places.weight); /* (ROWS, 2, DIM) */
    qkv_tensor *y = qkv_norm_forward(&n->norm, qkv_add(x, qkv_mha_forward(&n->attention, x, x, NULL)));
    return qkv_linear_forward(&n->out, qkv_mean(y, 1)); /* (ROWS, 10) */
}

int main(void)
{
    qkv_params *p = qkv_params_new(1);
    const net n = { qkv_embedding_new(p, "digits", DIGITS, DIM), qkv_embedding_new(p, "places", LENGTH, DIM),
                    qkv_mha_new(p, "attention", &QKV_OPTS(qkv_mha_opts, .dim = DIM, .heads = 4)),
                    qkv_norm_new(p, "norm", DIM, QKV_NORM_LAYER), qkv_linear_new(p, "out", DIM, DIGITS, 1) };
    qkv_optimizer *o = qkv_optimizer_new(p, &QKV_OPTS(qkv_optimizer_opts, .rule = QKV_OPTIMIZER_ADAM, .lr = 3e-3f));
    qkv_tape *t = qkv_tape_new(&QKV_OPTS(qkv_tape_opts, .train = 1));
    qkv_status status = o && t ? QKV_OK : qkv_error_status(); /* the first error of a layer stays in p, and o is NULL */
    for (int step = 1; step <= STEPS && !status; step++, qkv_tape_reset(t)) {
        int32_t ids[ROWS * LENGTH], larger[ROWS];
        for (int i = 0; i < ROWS * LENGTH; i++) ids[i] = rand() % DIGITS;
        for (int i = 0; i < ROWS; i++) larger[i] = ids[2 * i] > ids[2 * i + 1] ? ids[2 * i] : ids[2 * i + 1];
        qkv_tensor *loss = qkv_cross_entropy(forward(&n, t, ids), larger, NULL);
        status = qkv_backward(loss); /* with any error of the forward pass */
        if (!status) status = qkv_params_clip_grad(p, 1, NULL);
        if (!status) status = qkv_optimizer_step(o);
        if (step % 100 == 0) printf("step %3d  loss %.3f\n", step, (double)qkv_tensor_item(loss));
    }
    if (status) fprintf(stderr, "%s\n", qkv_error());
    qkv_optimizer_free(o), qkv_tape_free(t), qkv_params_free(p);
    return (int)status;
}
