/* test_inplace.c: operations in place give the bits of those they are named after, forward and backward, and so does a tape
 * that reuses the memory of values. */
#include <qkv/tensor.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "failing.h"
#include "tensor/inplace.h"

enum { ROWS = 300, IN = 20, OUT = 70 };

static float input[ROWS * IN], weight[OUT * IN], other[ROWS * OUT];

static int draw(void **state)
{
    (void)state;
    uint32_t s = 5;
    float *all[] = { input, weight, other };
    const int64_t counts[] = { ROWS * IN, OUT * IN, ROWS * OUT };
    for (int a = 0; a < 3; a++)
        for (int64_t i = 0; i < counts[a]; i++) {
            s = s * 1664525u + 1013904223u;
            all[a][i] = (float)(s >> 8) / 8388608.0f - 1;
        }
    return 0;
}

typedef struct outcome {
    float y[ROWS * OUT], dx[ROWS * IN], dw[OUT * IN], dother[ROWS * OUT];
} outcome;

/* A feed-forward layer's relu and dropout, and the dropout and addition after a sub-layer, in place or not. `twice` uses the
 * sum and what was added once more, so that gradients add up where in the other case they are the first. */
static qkv_status run(bool over, bool twice, const qkv_tape_opts *opts, outcome *o)
{
    qkv_tape *t = qkv_tape_new(opts);
    if (!t) return qkv_error_status();
    qkv_tensor *x = qkv_variable(t, QKV_SHAPE(ROWS, IN), input), *w = qkv_variable(t, QKV_SHAPE(OUT, IN), weight);
    qkv_tensor *r = qkv_variable(t, QKV_SHAPE(ROWS, OUT), other), *h = qkv_affine(x, w, NULL), *y;
    qkv_tensor *square = qkv_constant(t, QKV_SHAPE(OUT, OUT), other);
    if (over) {
        h = qkv_affine(qkv__dropout_inplace(qkv__relu_inplace(h), 0.2f), square, NULL);
        y = qkv__add_inplace(qkv__dropout_inplace(h, 0.3f), r);
    } else {
        h = qkv_affine(qkv_dropout(qkv_relu(h), 0.2f), square, NULL);
        y = qkv_add(qkv_dropout(h, 0.3f), r);
    }
    qkv_tensor *z = twice ? qkv_add(qkv_mul(y, y), qkv_mul(r, r)) : qkv_mul(y, y);
    qkv_status status = qkv_backward(qkv_sum(z, QKV_ALL_DIMS));
    if (!status && o) {
        memcpy(o->y, qkv_tensor_data(y), sizeof o->y);
        memcpy(o->dx, qkv_tensor_grad(x), sizeof o->dx);
        memcpy(o->dw, qkv_tensor_grad(w), sizeof o->dw);
        memcpy(o->dother, qkv_tensor_grad(r), sizeof o->dother);
    }
    qkv_tape_free(t);
    return status;
}

static void same_bits_in_place(void **state)
{
    (void)state;
    static outcome plain, over;
    for (int train = 0; train < 2; train++)
        for (int twice = 0; twice < 2; twice++)
            for (int keep = 0; keep < 2; keep++) {
                const qkv_tape_opts opts = { .train = train, .keep_grads = keep, .seed = 3 };
                assert_int_equal(run(false, twice, &opts, &plain), QKV_OK);
                assert_int_equal(run(true, twice, &opts, &over), QKV_OK);
                assert_memory_equal(&plain, &over, sizeof plain);
            }
}

/* An activation overwrites what wants no gradient, and nothing else. */
static void activations_in_place(void **state)
{
    (void)state;
    typedef qkv_tensor *map(qkv_tensor * x);
    map *const beside[] = { qkv_gelu, qkv_gelu_tanh, qkv_silu };
    map *const over[] = { qkv__gelu_inplace, qkv__gelu_tanh_inplace, qkv__silu_inplace };
    for (int i = 0; i < 3; i++)
        for (int wants = 0; wants < 2; wants++) {
            qkv_tape *t = qkv_tape_new(NULL);
            qkv_tensor *x = (wants ? qkv_variable : qkv_constant)(t, QKV_SHAPE(ROWS, IN), input);
            qkv_tensor *y = beside[i](x), *same = over[i](x);
            assert_int_equal(qkv_tape_status(t), QKV_OK);
            assert_memory_equal(qkv_tensor_data(y), qkv_tensor_data(same), sizeof(float) * ROWS * IN);
            assert_true(wants == (qkv_tensor_data(same) != qkv_tensor_data(x)));
            if (wants) assert_memory_equal(qkv_tensor_data(x), input, sizeof(float) * ROWS * IN);
            qkv_tape_free(t);
        }
}

/* The loss and its gradients with and without the reuse of values; logits that are used again keep theirs. */
static void same_bits_with_reuse(void **state)
{
    (void)state;
    static float plain[OUT * IN], reused[OUT * IN];
    int32_t targets[ROWS];
    for (int i = 0; i < ROWS; i++) targets[i] = i % OUT == 7 ? QKV_IGNORE : i % OUT;
    for (int again = 0; again < 2; again++) {
        float losses[2];
        for (int reuse = 0; reuse < 2; reuse++) {
            qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .overwrite_values = reuse });
            qkv_tensor *w = qkv_variable(t, QKV_SHAPE(OUT, IN), weight);
            qkv_tensor *logits = qkv_affine(qkv_constant(t, QKV_SHAPE(ROWS, IN), input), w, NULL);
            const qkv_cross_entropy_opts opts = { .label_smoothing = 0.1f };
            qkv_tensor *loss = qkv_cross_entropy(logits, targets, &opts);
            if (again) loss = qkv_add(loss, qkv_mean(qkv_mul(logits, logits), QKV_ALL_DIMS));
            assert_int_equal(qkv_backward(loss), QKV_OK);
            losses[reuse] = qkv_tensor_item(loss);
            memcpy(reuse ? reused : plain, qkv_tensor_grad(w), sizeof plain);
            qkv_tape_free(t);
        }
        assert_true(losses[0] == losses[1]);
        assert_memory_equal(plain, reused, sizeof plain);
    }
}

static qkv_status run_once(void) { return run(true, true, &(qkv_tape_opts){ .train = 1 }, NULL); }

static void any_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(run_once) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_in_place),
        cmocka_unit_test(activations_in_place),
        cmocka_unit_test(same_bits_with_reuse),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, draw, NULL);
}
