/* 01_tensors.c: tensors live on a tape; operations make new ones; errors are read once, at the end. */
#include <qkv/qkv.h>

#include <stdio.h>

static void print(const char *name, const qkv_tensor *x)
{
    printf("%s (%lld, %lld)\n", name, (long long)qkv_tensor_dim(x, 0), (long long)qkv_tensor_dim(x, 1));
    for (int64_t i = 0; i < qkv_tensor_dim(x, 0); i++) {
        for (int64_t j = 0; j < qkv_tensor_dim(x, 1); j++)
            printf(" %7.3f", (double)qkv_tensor_data(x)[i * qkv_tensor_dim(x, 1) + j]);
        printf("\n");
    }
}

int main(void)
{
    /* Everything a computation makes belongs to its tape: one call frees all of it. */
    qkv_tape *t = qkv_tape_new(NULL);

    /* Row-major, as in numpy: two tokens of three numbers each. The values are copied. */
    qkv_tensor *x = qkv_constant(t, QKV_SHAPE(2, 3), (const float[]){ 1, 2, 3, 4, 5, 6 });
    qkv_tensor *bias = qkv_constant(t, QKV_SHAPE(3), (const float[]){ 10, 20, 30 });

    qkv_tensor *sum = qkv_add(x, bias);                         /* (2,3) + (3): the bias serves every row */
    qkv_tensor *scores = qkv_matmul(x, x, QKV_TRANSPOSE_B);     /* x x^T: how alike the tokens are */
    qkv_tensor *weights = qkv_softmax(qkv_scale(scores, 0.1f)); /* every row sums to 1 */
    qkv_tensor *mixed = qkv_matmul(weights, x, 0);              /* each token becomes a mixture of all: attention by hand */

    /* No call above was checked: had one failed, its error would wait here. */
    int failed = qkv_tape_status(t) != QKV_OK;
    if (failed) fprintf(stderr, "%s\n", qkv_error());

    print("x + bias", sum);
    print("softmax(x x^T / 10)", weights);
    print("mixed", mixed);

    /* A mistake is one sentence. What is computed from a failed result fails too, quietly. */
    qkv_tensor *wrong = qkv_softmax(qkv_add(x, qkv_constant(t, QKV_SHAPE(2), NULL)));
    printf("a mistake gives %s and says: ", wrong ? "a result" : "NULL");
    failed |= qkv_tape_status(t) != QKV_USAGE;
    printf("%s\n", qkv_error());

    qkv_tape_free(t);
    return failed;
}
