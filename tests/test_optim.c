/* test_optim.c: optimizers against PyTorch, and what they refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "failing.h"
#include "lcg.h"
#include "nn/params.h"
#include "train/optimizer.h"

#include <qkv/qkv.h>

#include <math.h>
#include <string.h>

static const struct {
    qkv_optimizer_opts opts;
    double after[9];
} golden[] = {
#include "golden/optim.inc"
};

static void equals_pytorch_after_100_steps(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof golden / sizeof *golden; c++) {
        qkv_params *p = qkv_params_new(1);
        qkv_tensor *matrix = qkv_params_add(p, "matrix", QKV_SHAPE(2, 3), QKV_INIT_ZERO, 0);
        qkv_tensor *vector = qkv_params_add(p, "vector", QKV_SHAPE(3), QKV_INIT_ZERO, 0);
        qkv_optimizer *o = qkv_optimizer_new(p, &golden[c].opts);
        assert_non_null(o);
        lcg_state = 1;
        lcg_fill(qkv_tensor_data_mut(matrix), 6);
        lcg_fill(qkv_tensor_data_mut(vector), 3);
        for (int step = 0; step < 100; step++) {
            lcg_fill(matrix->grad, 6);
            lcg_fill(vector->grad, 3);
            assert_int_equal(qkv_optimizer_step(o), QKV_OK);
        }
        assert_int_equal(qkv__optimizer_steps(o), 100);
        for (int i = 0; i < 9; i++) {
            float ours = i < 6 ? qkv_tensor_data(matrix)[i] : qkv_tensor_data(vector)[i - 6];
            if (!(fabs((double)ours - golden[c].after[i]) <= 1e-6))
                fail_msg("case %zu, weight %d: %.9g, PyTorch has %.9g", c, i, (double)ours, golden[c].after[i]);
        }
        for (int64_t i = 0; i < qkv__params_block(p); i++) assert_true(qkv__params_grad(p)[i] == 0);
        qkv_optimizer_free(o);
        qkv_params_free(p);
    }
}

/* Weights of several tasks give the same bits as alone, and the zeros between them stay. */
static void many_tasks_and_padding(void **state)
{
    (void)state;
    enum { N = 50001 };
    float *one = malloc(N * sizeof *one);
    for (int threads = 1; threads <= 3; threads += 2) {
        assert_int_equal(qkv_set_num_threads(threads), QKV_OK);
        qkv_params *p = qkv_params_new(1);
        qkv_params_add(p, "first", QKV_SHAPE(5), QKV_INIT_ONE, 0);
        qkv_tensor *w = qkv_params_add(p, "large", QKV_SHAPE(3, N / 3), QKV_INIT_NORMAL, 1);
        /* eps is a true zero: 0 / 0 in the zeros between weights would be NaN */
        qkv_optimizer *o = qkv_optimizer_new(p, &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM, .eps = -1 });
        for (int step = 0; step < 3; step++) {
            for (int i = 0; i < 5; i++) qkv__params_grad(p)[i] = 1;
            for (int i = 0; i < N; i++) w->grad[i] = (float)(i % 101 + 1);
            assert_int_equal(qkv_optimizer_step(o), QKV_OK);
        }
        if (threads == 1) memcpy(one, qkv_tensor_data(w), N * sizeof *one);
        else assert_memory_equal(one, qkv_tensor_data(w), N * sizeof *one);
        for (int i = 5; i < 16; i++) assert_true(qkv__params_data(p)[i] == 0);
        qkv_optimizer_free(o);
        qkv_params_free(p);
    }
    free(one);
    assert_int_equal(qkv_set_num_threads(0), QKV_OK);
}

/* Weights that start alike and have the same gradients stay alike, at the ends of the tasks too. */
static void every_weight_is_updated_once(void **state)
{
    (void)state;
    enum { N = 50001 };
    const qkv_optimizer_opts rules[] = {
        { .rule = QKV_OPTIMIZER_SGD },
        { .rule = QKV_OPTIMIZER_SGD, .momentum = 0.9f },
        { .rule = QKV_OPTIMIZER_SGD, .momentum = 0.9f, .nesterov = 1 },
        { .rule = QKV_OPTIMIZER_ADAGRAD },
        { .rule = QKV_OPTIMIZER_RMSPROP },
        { .rule = QKV_OPTIMIZER_RMSPROP, .momentum = 0.9f },
        { .rule = QKV_OPTIMIZER_ADAM },
        { .rule = QKV_OPTIMIZER_ADAMW },
    };
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        qkv_params *p = qkv_params_new(1);
        qkv_tensor *w = qkv_params_add(p, "w", QKV_SHAPE(3, N / 3), QKV_INIT_ONE, 0);
        qkv_optimizer *o = qkv_optimizer_new(p, &rules[r]);
        for (int step = 0; step < 3; step++) {
            for (int i = 0; i < N; i++) w->grad[i] = 0.5f;
            assert_int_equal(qkv_optimizer_step(o), QKV_OK);
        }
        assert_true(qkv_tensor_data(w)[0] < 1);
        for (int i = 1; i < N; i++)
            if (qkv_tensor_data(w)[i] != qkv_tensor_data(w)[0]) fail_msg("rule %zu: weight %d of %d is another", r, i, N);
        qkv_optimizer_free(o);
        qkv_params_free(p);
    }
}

/* Gradients whose squares overflow leave the weights finite and the state not. */
static void a_state_that_is_lost(void **state)
{
    (void)state;
    enum { N = 40000, AT = 20000 }; /* in the second task */
    qkv_params *p = qkv_params_new(1);
    qkv_tensor *first = qkv_params_add(p, "first", QKV_SHAPE(5), QKV_INIT_ZERO, 0);
    qkv_tensor *second = qkv_params_add(p, "second", QKV_SHAPE(N), QKV_INIT_ZERO, 0);
    qkv_optimizer *o = qkv_optimizer_new(p, &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM });
    assert_int_equal(qkv__optimizer_lost(o), -1);
    for (int i = 0; i < N; i++) second->grad[i] = 1;
    assert_int_equal(qkv_optimizer_step(o), QKV_OK);
    assert_int_equal(qkv__optimizer_lost(o), -1);
    second->grad[AT] = 1e30f;
    assert_int_equal(qkv_optimizer_step(o), QKV_OK);
    assert_true(isfinite(qkv_tensor_data(second)[AT]));
    int64_t at = qkv__optimizer_lost(o), start = qkv_tensor_data(second) - qkv__params_data(p);
    assert_true(at > start && at <= start + AT);
    qkv_tensor_data_mut(first)[4] = NAN;
    assert_int_equal(qkv_optimizer_step(o), QKV_OK);
    assert_int_equal(qkv__optimizer_lost(o), qkv_tensor_data(first) - qkv__params_data(p));
    qkv_optimizer_free(o);
    qkv_params_free(p);
}

static void refuses(void **state)
{
    (void)state;
    const qkv_optimizer_opts bad[] = {
        { .rule = (qkv_optimizer_rule)9 },
        { .rule = (qkv_optimizer_rule)-1 },
        { .lr = NAN },
        { .lr = INFINITY },
        { .momentum = 1 },
        { .rule = QKV_OPTIMIZER_ADAM, .beta1 = 1 },
        { .rule = QKV_OPTIMIZER_ADAM, .beta2 = 2 },
        { .rule = QKV_OPTIMIZER_RMSPROP, .alpha = 1 },
        { .eps = NAN },
        { .eps = INFINITY },
        { .weight_decay = NAN },
        { .weight_decay = INFINITY },
        { .nesterov = 1 },
        { .rule = QKV_OPTIMIZER_ADAM, .nesterov = 1 },
    };
    qkv_params *p = qkv_params_new(1);
    qkv_params_add(p, "w", QKV_SHAPE(2), QKV_INIT_ONE, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(qkv_optimizer_new(p, &bad[i]));
        assert_int_equal(qkv_error_status(), QKV_USAGE);
    }
    for (int rule = 0; rule <= QKV_OPTIMIZER_ADAMW; rule++) {
        qkv_optimizer *any = qkv_optimizer_new(p, &(qkv_optimizer_opts){ .rule = (qkv_optimizer_rule)rule });
        assert_true(qkv__optimizer_lr(any) == (rule >= QKV_OPTIMIZER_ADAM ? 0.001f : 0.01f));
        qkv_optimizer_free(any);
    }
    qkv_optimizer *o = qkv_optimizer_new(p, NULL);
    assert_true(qkv__optimizer_lr(o) == 0.01f);
    qkv__params_grad(p)[0] = 1;
    for (int i = 0; i < 3; i++) {
        qkv_optimizer_set_lr(o, (const float[]){ NAN, INFINITY, -1 }[i]);
        assert_int_equal(qkv_optimizer_step(o), QKV_USAGE);
    }
    qkv_optimizer_set_lr(o, 0);
    assert_int_equal(qkv_optimizer_step(o), QKV_OK);
    assert_true(qkv__params_data(p)[0] == 1);
    qkv_params_add(p, "later", QKV_SHAPE(2), QKV_INIT_ONE, 0);
    assert_int_equal(qkv_optimizer_step(o), QKV_USAGE);
    assert_int_equal(qkv__optimizer_steps(o), 1);
    qkv_optimizer_free(o);
    qkv_params_free(p);
    qkv_optimizer_free(NULL);
    assert_int_not_equal(qkv_optimizer_step(NULL), QKV_OK);
}

static qkv_status make_and_step(void)
{
    qkv_params *p = qkv_params_new(3);
    qkv_params_add(p, "w", QKV_SHAPE(40, 50), QKV_INIT_XAVIER, 0);
    qkv_optimizer *o = qkv_optimizer_new(p, &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAMW });
    qkv_status status = o ? qkv_optimizer_step(o) : qkv_error_status();
    qkv_optimizer_free(o);
    qkv_params_free(p);
    return status;
}

static void survives_failing_memory(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(make_and_step) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch_after_100_steps),
        cmocka_unit_test(many_tasks_and_padding),
        cmocka_unit_test(every_weight_is_updated_once),
        cmocka_unit_test(a_state_that_is_lost),
        cmocka_unit_test(refuses),
        cmocka_unit_test(survives_failing_memory),
    };
    return cmocka_run_group_tests_name("optim", tests, NULL, NULL);
}
