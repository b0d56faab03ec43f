/* test_params.c: named weights in flat blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "failing.h"
#include "nn/params.h"

#include <qkv/qkv.h>

#include <math.h>
#include <string.h>

static void initial_values_have_their_statistics(void **state)
{
    (void)state;
    enum { N = 300 * 200 };
    qkv_params *p = qkv_params_new(42);
    const qkv_tensor *normal = qkv_params_add(p, "normal", QKV_SHAPE(300, 200), QKV_INIT_NORMAL, 0.5f);
    const qkv_tensor *xavier = qkv_params_add(p, "xavier", QKV_SHAPE(300, 200), QKV_INIT_XAVIER, 0);
    const qkv_tensor *one = qkv_params_add(p, "one", QKV_SHAPE(7), QKV_INIT_ONE, 0);
    const qkv_tensor *zero = qkv_params_add(p, "zero", QKV_SHAPE(7), QKV_INIT_ZERO, 0);
    double sum = 0, squares = 0, within = 0, limit = sqrt(6.0 / 500), uniform_squares = 0, largest = 0, neighbours = 0;
    for (int i = 0; i < N; i++) {
        double x = (double)qkv_tensor_data(normal)[i], u = (double)qkv_tensor_data(xavier)[i];
        sum += x;
        squares += x * x;
        within += fabs(x) < 0.5;
        if (i) neighbours += x * (double)qkv_tensor_data(normal)[i - 1];
        uniform_squares += u * u;
        largest = fmax(largest, fabs(u));
    }
    /* five standard errors each */
    assert_true(fabs(sum / N) < 5 * 0.5 / sqrt(N));
    assert_true(fabs(squares / N - 0.25) < 5 * 0.25 * sqrt(2.0 / N));
    assert_true(fabs(within / N - 0.6827) < 5 * 0.4655 / sqrt(N));
    assert_true(fabs(neighbours / N) < 5 * 0.25 / sqrt(N));
    assert_true(largest < limit && largest > 0.999 * limit);
    assert_true(fabs(uniform_squares / N / (limit * limit / 3) - 1) < 5 * 0.9 / sqrt(N));
    for (int i = 0; i < 7; i++) assert_true(qkv_tensor_data(one)[i] == 1 && qkv_tensor_data(zero)[i] == 0);
    qkv_params_free(p);
}

static void values_depend_on_seed_and_name_only(void **state)
{
    (void)state;
    qkv_params *a = qkv_params_new(1), *b = qkv_params_new(1), *c = qkv_params_new(2);
    const qkv_tensor *first = qkv_params_add(a, "x", QKV_SHAPE(9, 5), QKV_INIT_NORMAL, 0);
    const qkv_tensor *other = qkv_params_add(b, "y", QKV_SHAPE(9, 5), QKV_INIT_NORMAL, 0);
    const qkv_tensor *second = qkv_params_add(b, "x", QKV_SHAPE(9, 5), QKV_INIT_NORMAL, 0);
    const qkv_tensor *seeded = qkv_params_add(c, "x", QKV_SHAPE(9, 5), QKV_INIT_NORMAL, 0);
    assert_memory_equal(qkv_tensor_data(first), qkv_tensor_data(second), 45 * sizeof(float));
    assert_memory_not_equal(qkv_tensor_data(first), qkv_tensor_data(other), 45 * sizeof(float));
    assert_memory_not_equal(qkv_tensor_data(first), qkv_tensor_data(seeded), 45 * sizeof(float));
    qkv_params_free(a);
    qkv_params_free(b);
    qkv_params_free(c);
}

static void growing_keeps_values(void **state)
{
    (void)state;
    enum { N = 200 };
    qkv_params *p = qkv_params_new(7);
    qkv_tensor *w[N];
    int64_t count = 0;
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        w[i] = qkv_params_add(p, name, QKV_SHAPE(i), QKV_INIT_ZERO, 0);
        assert_non_null(w[i]);
        assert_non_null(qkv_tensor_data(w[i]));
        for (int j = 0; j < i; j++) {
            qkv_tensor_data_mut(w[i])[j] = (float)(1000 * i + j);
            w[i]->grad[j] = (float)(-1000 * i - j);
        }
        count += i;
    }
    assert_int_equal(qkv_params_size(p), N);
    assert_int_equal(qkv_params_count(p), count);
    double sum = 0, expected = 0;
    for (int i = 0; i < N; i++) {
        assert_ptr_equal(qkv_params_at(p, i), w[i]);
        assert_ptr_equal(qkv_params_find(p, qkv_params_name(p, i)), w[i]);
        assert_int_equal((uintptr_t)qkv_tensor_data(w[i]) % 64, 0);
        assert_int_equal(qkv_tensor_data(w[i]) - qkv__params_data(p), qkv_tensor_grad(w[i]) - qkv__params_grad(p));
        for (int j = 0; j < i; j++) {
            assert_true(qkv_tensor_data(w[i])[j] == (float)(1000 * i + j) &&
                        qkv_tensor_grad(w[i])[j] == (float)(-1000 * i - j));
            expected += 1000 * i + j;
        }
    }
    for (int64_t i = 0; i < qkv__params_block(p); i++) sum += (double)qkv__params_data(p)[i];
    assert_true(sum == expected); /* so what lies between the weights is zero */
    qkv_params_zero_grad(p);
    for (int64_t i = 0; i < qkv__params_block(p); i++) assert_true(qkv__params_grad(p)[i] == 0);
    assert_null(qkv_params_at(p, N));
    assert_null(qkv_params_at(p, -1));
    assert_null(qkv_params_name(p, N));
    assert_null(qkv_params_find(p, "w200"));
    qkv_params_free(p);
}

static void refuses(void **state)
{
    (void)state;
    qkv_params *p = qkv_params_new(1);
    assert_int_equal(qkv_params_status(p), QKV_OK);
    assert_non_null(qkv_params_add(p, "w", QKV_SHAPE(2), QKV_INIT_ZERO, 0));
    assert_null(qkv_params_add(p, "w", QKV_SHAPE(2), QKV_INIT_ZERO, 0));
    assert_non_null(strstr(qkv_error(), "\"w\": the name is used already"));
    const int64_t huge[2] = { INT64_MAX / 2, INT64_MAX / 2 }, seven[7] = { 1, 1, 1, 1, 1, 1, 1 };
    assert_null(qkv_params_add(p, "a", QKV_SHAPE(2, -1), QKV_INIT_ZERO, 0));
    assert_null(qkv_params_add(p, "b", 2, huge, QKV_INIT_ZERO, 0));
    assert_null(qkv_params_add(p, "c", 7, seven, QKV_INIT_ZERO, 0));
    assert_null(qkv_params_add(p, "d", -1, seven, QKV_INIT_ZERO, 0));
    assert_null(qkv_params_add(p, "e", QKV_SHAPE(3), QKV_INIT_XAVIER, 0));
    assert_null(qkv_params_add(p, "f", QKV_SHAPE(3), QKV_INIT_NORMAL, NAN));
    assert_null(qkv_params_add(p, "g", QKV_SHAPE(3), (qkv_init)17, 0));
    assert_null(qkv_params_add(p, "", QKV_SHAPE(3), QKV_INIT_ZERO, 0));
    assert_null(qkv_params_add(p, NULL, QKV_SHAPE(3), QKV_INIT_ZERO, 0));
    assert_int_equal(qkv_error_status(), QKV_USAGE);
    assert_int_equal(qkv_params_size(p), 1);
    assert_int_equal(qkv_params_status(p), QKV_USAGE); /* the first error stays */
    assert_non_null(strstr(qkv_error(), "\"w\": the name is used already"));
    assert_null(qkv_optimizer_new(p, NULL));
    qkv_params_free(p);
    qkv_params_free(NULL);
    assert_null(qkv_params_add(NULL, "w", QKV_SHAPE(2), QKV_INIT_ZERO, 0));
    assert_int_not_equal(qkv_params_status(NULL), QKV_OK);
}

static void clips_by_the_norm_of_all(void **state)
{
    (void)state;
    qkv_params *p = qkv_params_new(1);
    qkv_tensor *a = qkv_params_add(p, "a", QKV_SHAPE(1), QKV_INIT_ZERO, 0);
    qkv_tensor *b = qkv_params_add(p, "b", QKV_SHAPE(2), QKV_INIT_ZERO, 0);
    a->grad[0] = 2;
    b->grad[0] = -3;
    b->grad[1] = 6;
    float norm;
    assert_int_equal(qkv_params_clip_grad(p, 7, &norm), QKV_OK); /* just at the limit: nothing changes */
    assert_true(norm == 7 && qkv_tensor_grad(a)[0] == 2 && qkv_tensor_grad(b)[0] == -3 && qkv_tensor_grad(b)[1] == 6);
    assert_int_equal(qkv_params_clip_grad(p, 3.5f, NULL), QKV_OK);
    assert_true(qkv_tensor_grad(a)[0] == 1 && qkv_tensor_grad(b)[0] == -1.5f && qkv_tensor_grad(b)[1] == 3);
    const float bad[] = { NAN, INFINITY, -INFINITY };
    for (int i = 0; i < 3; i++) {
        b->grad[1] = bad[i];
        assert_int_equal(qkv_params_clip_grad(p, 0.1f, &norm), QKV_NUMERIC);
        assert_true(!isfinite(norm) && qkv_tensor_grad(a)[0] == 1 && qkv_tensor_grad(b)[0] == -1.5f);
    }
    b->grad[1] = 3;
    assert_int_equal(qkv_params_clip_grad(p, 0, &norm), QKV_USAGE);
    assert_int_equal(qkv_params_clip_grad(p, NAN, &norm), QKV_USAGE);
    assert_int_not_equal(qkv_params_clip_grad(NULL, 1, &norm), QKV_OK);
    qkv_params_free(p);
}

/* The norm of large params is the same bits at any thread count. */
static void norm_keeps_its_bits(void **state)
{
    (void)state;
    float norms[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(qkv_set_num_threads(i + 1), QKV_OK);
        qkv_params *p = qkv_params_new(5);
        const qkv_tensor *w = qkv_params_add(p, "w", QKV_SHAPE(1000, 1301), QKV_INIT_NORMAL, 0);
        memcpy(w->grad, qkv_tensor_data(w), sizeof(float) * (size_t)qkv_tensor_count(w));
        assert_int_equal(qkv_params_clip_grad(p, 1, &norms[i]), QKV_OK);
        float after;
        assert_int_equal(qkv_params_clip_grad(p, 10, &after), QKV_OK);
        assert_true(fabsf(after - 1) < 1e-6f);
        qkv_params_free(p);
    }
    assert_true(fabs((double)norms[0] / sqrt(1301000.0) - 1) < 5 / sqrt(2 * 1301000.0));
    assert_memory_equal(&norms[0], &norms[1], sizeof(float));
    assert_memory_equal(&norms[0], &norms[2], sizeof(float));
    assert_int_equal(qkv_set_num_threads(0), QKV_OK);
}

static qkv_status make_weights(void)
{
    qkv_params *p = qkv_params_new(3);
    for (int i = 0; i < 6; i++) qkv_params_add(p, (char[]){ (char)('a' + i), 0 }, QKV_SHAPE(41, 50), QKV_INIT_XAVIER, 0);
    qkv_status status = qkv_params_status(p);
    if (p) {
        if (!status) assert_int_equal(qkv_params_size(p), 6);
        for (int i = 0; i < qkv_params_size(p); i++) {
            qkv_tensor *w = qkv_params_at(p, i);
            assert_true(qkv_tensor_data(w)[0] != 0 &&
                        qkv_tensor_grad(w)[2049] == 0); /* what was added before a failure still stands */
            for (int j = 2050; j < 2064; j++) assert_true(qkv_tensor_data(w)[j] == 0 && qkv_tensor_grad(w)[j] == 0);
        }
        qkv_status clipped = qkv_params_clip_grad(p, 1, NULL);
        if (!status) status = clipped;
    }
    qkv_params_free(p);
    return status;
}

static void survives_failing_memory(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(make_weights) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(initial_values_have_their_statistics),
        cmocka_unit_test(values_depend_on_seed_and_name_only),
        cmocka_unit_test(growing_keeps_values),
        cmocka_unit_test(refuses),
        cmocka_unit_test(clips_by_the_norm_of_all),
        cmocka_unit_test(norm_keeps_its_bits),
        cmocka_unit_test(survives_failing_memory),
    };
    return cmocka_run_group_tests_name("params", tests, NULL, NULL);
}
