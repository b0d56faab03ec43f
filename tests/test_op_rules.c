/* test_op_rules.c: what operations promise besides their formulas: known numbers, hard inputs, empty tensors, dropout, and one
 * clear sentence for every misuse. */
#include <qkv/tensor.h>
#include <qkv/unstable/util.h>

#include "tensor/inplace.h"
#include "tensor/tape.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static qkv_tape *t;

static int set_up(void **state)
{
    (void)state;
    return !(t = qkv_tape_new(&(qkv_tape_opts){ .train = 1, .seed = 3 }));
}

static int tear_down(void **state)
{
    (void)state;
    qkv_tape_free(t);
    return 0;
}

#define FLOATS(...) \
    (const float[]) { __VA_ARGS__ }

static qkv_tensor *vector(int64_t n, const float *data) { return qkv_variable(t, QKV_SHAPE(n), data); }
static qkv_tensor *matrix(int64_t m, int64_t n, const float *data) { return qkv_variable(t, QKV_SHAPE(m, n), data); }

static void near(float got, double expected, double tolerance)
{
    if (!(fabs((double)got - expected) <= tolerance)) fail_msg("%.9g, expected %.9g", (double)got, expected);
}

/* The tape has this error, and its sentence has these words. A fresh tape follows. */
static void refused(qkv_tensor *y, qkv_status status, const char *words)
{
    assert_null(y);
    assert_int_equal(qkv_tape_status(t), status);
    if (!strstr(qkv_error(), words)) fail_msg("\"%s\" lacks \"%s\"", qkv_error(), words);
    qkv_tape_reset(t);
}

/* ---- the specification's numbers ---- */

static void layernorm_numbers(void **state)
{
    (void)state;
    qkv_tensor *y = qkv_layer_norm(vector(5, FLOATS(140, 150, 160, 170, 180)), vector(5, FLOATS(1, 1, 1, 1, 1)), NULL, 1e-5f);
    const double expected[] = { -1.4142, -0.7071, 0, 0.7071, 1.4142 };
    for (int i = 0; i < 5; i++) near(qkv_tensor_data(y)[i], expected[i], 5e-5);
}

static void smoothing_number(void **state)
{
    (void)state;
    qkv_tensor *x = matrix(2, 3, FLOATS(2, 1, 0.1f, 0.5f, 2.5f, 0.3f));
    qkv_tensor *loss = qkv_cross_entropy(x, (int32_t[]){ 0, 1 }, &(qkv_cross_entropy_opts){ .label_smoothing = 0.1f });
    near(qkv_tensor_item(loss), 0.436873, 5e-7);
}

/* ---- hard inputs ---- */

static void layernorm_far_from_zero(void **state)
{
    (void)state;
    enum { N = 512 };
    float x[N], one[N];
    double mean = 0, square = 0;
    for (int i = 0; i < N; i++) {
        x[i] = 2000.0f + 0.001f * (float)((i * 37) % 101 - 50);
        one[i] = 1;
        mean += (double)x[i] / N;
    }
    for (int i = 0; i < N; i++) square += ((double)x[i] - mean) * ((double)x[i] - mean) / N;
    const char *isa, *best = qkv_isa();
    for (int s = 0; (isa = qkv_isa_at(s)); s++) {
        qkv_set_isa(isa);
        qkv_tensor *y = qkv_layer_norm(vector(N, x), vector(N, one), NULL, 1e-12f);
        for (int i = 0; i < N; i++) near(qkv_tensor_data(y)[i], ((double)x[i] - mean) / sqrt(square + 1e-12), 1e-5);
    }
    qkv_set_isa(best);
}

static void softmax_of_large_scores(void **state)
{
    (void)state;
    float x[3 * 100];
    for (int i = 0; i < 300; i++)
        x[i] = i < 100 ? (i % 2 ? 1e4f : -1e4f) : i < 200 ? 1e4f - (float)(i % 7) : -1e4f + (float)(i % 5);
    qkv_tensor *y = qkv_softmax(matrix(3, 100, x)), *logs = qkv_log_softmax(matrix(3, 100, x));
    for (int r = 0; r < 3; r++) {
        double sum = 0;
        for (int i = 0; i < 100; i++) {
            float p = qkv_tensor_data(y)[r * 100 + i];
            assert_true(isfinite(p) && isfinite(qkv_tensor_data(logs)[r * 100 + i]));
            sum += (double)p;
        }
        near((float)sum, 1, 1e-6);
    }
}

static void softmax_of_nothing_to_see(void **state)
{
    (void)state;
    qkv_tensor *x = matrix(2, 3, FLOATS(-INFINITY, -INFINITY, -INFINITY, 0, -INFINITY, 0)), *y = qkv_softmax(x);
    const float expected[] = { 0, 0, 0, 0.5f, 0, 0.5f };
    for (int i = 0; i < 6; i++) assert_true(qkv_tensor_data(y)[i] == expected[i]);
    assert_int_equal(qkv_backward(qkv_sum(qkv_mul(y, y), QKV_ALL_DIMS)), QKV_OK);
    for (int i = 0; i < 3; i++) assert_true(qkv_tensor_grad(x)[i] == 0);
}

/* ---- cross-entropy ---- */

static void all_rows_ignored(void **state)
{
    (void)state;
    qkv_tensor *x = matrix(2, 3, FLOATS(2, 1, 0, 1, 2, NAN));
    qkv_tensor *loss = qkv_cross_entropy(x, (int32_t[]){ -100, -100 }, NULL);
    assert_true(qkv_tensor_item(loss) == 0);
    assert_int_equal(qkv_backward(loss), QKV_OK);
    for (int i = 0; i < 6; i++) assert_true(qkv_tensor_grad(x)[i] == 0);
}

static float loss_of_row(const float *row, int32_t target)
{
    return qkv_tensor_item(qkv_cross_entropy(matrix(1, 3, row), &target, NULL));
}

static void rows_count_by_weight(void **state)
{
    (void)state;
    const float x[] = { 2, 1, 0, 1, 2, 5, 0, 0, 1 }, weights[] = { 0.5f, 0, 2 };
    const int32_t targets[] = { 0, 0, 1 };
    qkv_tensor *logits = matrix(3, 3, x);
    qkv_tensor *loss = qkv_cross_entropy(logits, targets, &(qkv_cross_entropy_opts){ .weights = weights });
    double expected = (0.5 * (double)loss_of_row(x, 0) + 2 * (double)loss_of_row(x + 6, 1)) / 2.5;
    near(qkv_tensor_item(loss), expected, 1e-6);
    assert_int_equal(qkv_backward(loss), QKV_OK);
    for (int i = 3; i < 6; i++) assert_true(qkv_tensor_grad(logits)[i] == 0);
}

static void bad_targets(void **state)
{
    (void)state;
    refused(qkv_cross_entropy(matrix(2, 3, NULL), (int32_t[]){ 0, 3 }, NULL), QKV_USAGE, "target 3 of row 1 is outside 0..2");
    refused(qkv_cross_entropy(matrix(2, 3, NULL), (int32_t[]){ -1, 0 }, NULL), QKV_USAGE, "target -1 of row 0");
    const int32_t targets[] = { 0, 1 };
    qkv_cross_entropy_opts bad[] = { { .weights = FLOATS(1, NAN) },
                                     { .weights = FLOATS(1, -1) },
                                     { .weights = FLOATS(1, INFINITY) } };
    for (int i = 0; i < 3; i++) refused(qkv_cross_entropy(matrix(2, 3, NULL), targets, &bad[i]), QKV_USAGE, "weight of row 1");
    qkv_cross_entropy_opts smooth[] = { { .label_smoothing = 1 }, { .label_smoothing = -0.1f }, { .label_smoothing = NAN } };
    for (int i = 0; i < 3; i++) refused(qkv_cross_entropy(matrix(2, 3, NULL), targets, &smooth[i]), QKV_USAGE, "smoothing");
    refused(qkv_cross_entropy(qkv_sum(vector(1, NULL), QKV_ALL_DIMS), targets, NULL), QKV_USAGE, "no dimension");
}

/* ---- dropout ---- */

enum { MANY = 100000 };

static qkv_tensor *ones(void)
{
    qkv_tensor *x = qkv_variable(t, QKV_SHAPE(MANY), NULL);
    for (int i = 0; i < MANY; i++) qkv_tensor_data_mut(x)[i] = 1;
    return x;
}

static void dropout_keeps_its_share(void **state)
{
    (void)state;
    qkv_tensor *x = ones(), *y = qkv_dropout(x, 0.1f);
    int64_t kept = 0;
    assert_int_equal(qkv_backward(qkv_sum(y, QKV_ALL_DIMS)), QKV_OK);
    for (int i = 0; i < MANY; i++) {
        float value = qkv_tensor_data(y)[i];
        kept += value != 0;
        assert_true(value == 0 || value == 1.0f / (1.0f - 0.1f));
        assert_true(qkv_tensor_grad(x)[i] == value); /* backward drops the same ones */
    }
    near((float)kept / MANY, 0.9, 0.005); /* five standard deviations */
}

/* Threads take pieces of a tensor; each piece must have random numbers of its own. */
static void dropout_does_not_repeat(void **state)
{
    (void)state;
    const float *y = qkv_tensor_data(qkv_dropout(ones(), 0.5f));
    for (int i = 32; i + 64 <= MANY; i += 32) assert_memory_not_equal(y, y + i, 64 * sizeof *y);
}

static uint64_t drop_bits(uint64_t seed, uint64_t step, int which)
{
    qkv_tape *old = t;
    t = qkv_tape_new(&(qkv_tape_opts){ .train = 1, .seed = seed });
    qkv__tape_set_step(t, step);
    qkv_tensor *y = NULL;
    for (int i = 0; i <= which; i++) y = qkv_dropout(ones(), 0.5f);
    uint64_t bits = 0;
    for (int i = 0; i < 64; i++) bits |= (uint64_t)(qkv_tensor_data(y)[MANY - 64 + i] != 0) << i;
    qkv_tape_free(t);
    t = old;
    return bits;
}

static void dropout_is_keyed(void **state)
{
    (void)state;
    uint64_t bits = drop_bits(1, 7, 0);
    assert_true(bits == drop_bits(1, 7, 0));
    assert_true(bits != drop_bits(2, 7, 0));
    assert_true(bits != drop_bits(1, 8, 0));
    assert_true(bits != drop_bits(1, 7, 1));
    qkv_tensor *a = qkv_dropout(ones(), 0.5f); /* a reset counts a step */
    float first[64];
    memcpy(first, qkv_tensor_data(a), sizeof first);
    qkv_tape_reset(t);
    assert_memory_not_equal(first, qkv_tensor_data(qkv_dropout(ones(), 0.5f)), sizeof first);
}

static void dropout_is_off(void **state)
{
    (void)state;
    qkv_tensor *x = ones();
    assert_ptr_equal(qkv_dropout(x, 0), x);
    qkv_tape *train = t;
    t = qkv_tape_new(NULL);
    x = ones();
    assert_ptr_equal(qkv_dropout(x, 0.5f), x);
    qkv_tape_free(t);
    t = train;
    const float bad[] = { -0.1f, 1, 2, NAN };
    for (int i = 0; i < 4; i++) refused(qkv_dropout(ones(), bad[i]), QKV_USAGE, "0 <= p < 1");
}

/* ---- misuse ---- */

static void shapes_that_do_not_fit(void **state)
{
    (void)state;
    refused(qkv_add(matrix(2, 3, NULL), vector(2, NULL)), QKV_USAGE, "add: shapes (2, 3) and (2) do not broadcast");
    refused(qkv_sub(matrix(2, 3, NULL), matrix(4, 3, NULL)), QKV_USAGE, "sub: shapes");
    refused(qkv_mul(matrix(2, 0, NULL), matrix(2, 3, NULL)), QKV_USAGE, "mul: shapes");
    refused(qkv__silu_gated(vector(2, NULL), vector(3, NULL)), QKV_USAGE,
            "silu_gated: the gate is (2), x is (3): they must be");
    refused(qkv__gelu_gated(vector(2, NULL), vector(3, NULL)), QKV_USAGE,
            "gelu_gated: the gate is (2), x is (3): they must be");
    refused(qkv_layer_norm(matrix(2, 3, NULL), vector(2, NULL), NULL, 0), QKV_USAGE, "gain must be (3)");
    refused(qkv_layer_norm(matrix(2, 3, NULL), vector(3, NULL), vector(2, NULL), 0), QKV_USAGE, "bias must be (3)");
    refused(qkv_layer_norm(matrix(2, 3, NULL), vector(3, NULL), NULL, NAN), QKV_USAGE, "eps");
    refused(qkv_rms_norm(matrix(2, 3, NULL), matrix(1, 3, NULL), 0), QKV_USAGE, "gain must be (3)");
    refused(qkv_reshape(matrix(2, 3, NULL), QKV_SHAPE(4, 2)), QKV_USAGE, "(2, 3) cannot become (4, 2)");
    refused(qkv_reshape(matrix(2, 3, NULL), QKV_SHAPE(4, -1)), QKV_USAGE, "cannot become");
    refused(qkv_reshape(matrix(2, 3, NULL), QKV_SHAPE(-1, -1)), QKV_USAGE, "cannot become");
    refused(qkv_reshape(matrix(2, 3, NULL), QKV_SHAPE(-2, -3)), QKV_USAGE, "cannot become");
    refused(qkv_reshape(matrix(0, 3, NULL), QKV_SHAPE(0, -1)), QKV_USAGE, "cannot become");
    refused(qkv_reshape(matrix(2, 3, NULL), 7, (int64_t[7]){ 1, 1, 1, 1, 1, 2, 3 }), QKV_USAGE, "dimensions");
    refused(qkv_permute(matrix(2, 3, NULL), (int[]){ 0, 0 }), QKV_USAGE, "each of the 2 dimensions");
    refused(qkv_permute(matrix(2, 3, NULL), (int[]){ 0, 2 }), QKV_USAGE, "each of the 2 dimensions");
    refused(qkv_transpose(matrix(2, 3, NULL), 0, 2), QKV_USAGE, "no dimensions 0 and 2");
    refused(qkv_slice(matrix(2, 3, NULL), 2, 0, 1), QKV_USAGE, "no dimension 2");
    refused(qkv_slice(matrix(2, 3, NULL), 1, 2, 4), QKV_USAGE, "2 to 4");
    refused(qkv_slice(matrix(2, 3, NULL), 1, 2, 1), QKV_USAGE, "2 to 1");
    refused(qkv_slice(matrix(2, 3, NULL), 1, -1, 1), QKV_USAGE, "-1 to 1");
    refused(qkv_concat(2, (qkv_tensor *[]){ matrix(2, 3, NULL), matrix(2, 4, NULL) }, 0), QKV_USAGE, "part 1 is (2, 4)");
    refused(qkv_concat(1, (qkv_tensor *[]){ matrix(2, 3, NULL) }, -3), QKV_USAGE, "no dimension -3");
    refused(qkv_sum(matrix(2, 3, NULL), 2), QKV_USAGE, "no dimension 2");
    refused(qkv_mse(vector(2, NULL), vector(3, NULL)), QKV_USAGE, "must be equal");
    refused(qkv_binary_cross_entropy(vector(2, NULL), vector(3, NULL)), QKV_USAGE, "must be equal");
    refused(qkv_rope(matrix(2, 4, NULL), NULL), QKV_USAGE, "(B, T, heads*D)");
    qkv_rope_opts rotary[] = { { .heads = 3 }, { .heads = 4 }, { .heads = -1 } };
    for (int i = 0; i < 3; i++)
        refused(qkv_rope(qkv_variable(t, QKV_SHAPE(1, 2, 4), NULL), &rotary[i]), QKV_USAGE, "even width");
}

static void bad_ids(void **state)
{
    (void)state;
    refused(qkv_gather(t, matrix(5, 2, NULL), (int32_t[]){ 0, 4, 5 }, QKV_SHAPE(3)), QKV_USAGE,
            "id 5 at place 2 is outside 0..4");
    refused(qkv_gather(t, matrix(5, 2, NULL), (int32_t[]){ -1 }, QKV_SHAPE(1)), QKV_USAGE, "id -1 at place 0");
    refused(qkv_gather(t, vector(5, NULL), (int32_t[]){ 0 }, QKV_SHAPE(1)), QKV_USAGE, "(V, D)");
    refused(qkv_gather(t, matrix(5, 2, NULL), (int32_t[]){ 0 }, QKV_SHAPE(-1)), QKV_USAGE, "shape");
    refused(qkv_gather(t, matrix(5, 2, NULL), (int32_t[]){ 0 }, QKV_SHAPE(1, 1, 1, 1, 1, 1)), QKV_USAGE, "dimensions");
}

static void two_tapes(void **state)
{
    (void)state;
    qkv_tape *other = qkv_tape_new(NULL);
    qkv_tensor *x = qkv_variable(other, QKV_SHAPE(2), NULL);
    refused(qkv_add(vector(2, NULL), x), QKV_USAGE, "two tapes");
    refused(qkv_on(t, x), QKV_USAGE, "another tape");
    refused(qkv_gather(t, qkv_variable(other, QKV_SHAPE(2, 2), NULL), (int32_t[]){ 0 }, QKV_SHAPE(1)), QKV_USAGE,
            "another tape");
    assert_ptr_equal(qkv_on(other, x), x);
    qkv_tape_free(other);
}

static void nothing_gives_nothing(void **state)
{
    (void)state;
    qkv_tensor *x = vector(2, NULL);
    assert_null(qkv_add(x, NULL));
    assert_null(qkv_mul(NULL, x));
    assert_null(qkv_scale(NULL, 1));
    assert_null(qkv_relu(NULL));
    assert_null(qkv__silu_gated(NULL, x));
    assert_null(qkv_softmax(NULL));
    assert_null(qkv_layer_norm(x, NULL, NULL, 0));
    assert_null(qkv_rms_norm(NULL, x, 0));
    assert_null(qkv_rope(NULL, NULL));
    assert_null(qkv_dropout(NULL, 0.5f));
    assert_null(qkv_reshape(NULL, QKV_SHAPE(1)));
    assert_null(qkv_permute(NULL, NULL));
    assert_null(qkv_transpose(NULL, 0, 1));
    assert_null(qkv_slice(NULL, 0, 0, 1));
    assert_null(qkv_concat(2, (qkv_tensor *[]){ x, NULL }, 0));
    assert_null(qkv_sum(NULL, QKV_ALL_DIMS));
    assert_null(qkv_mean(NULL, 0));
    assert_null(qkv_cross_entropy(NULL, NULL, NULL));
    assert_null(qkv_mse(NULL, x));
    assert_null(qkv_gather(t, NULL, NULL, 0, NULL));
    assert_null(qkv_on(t, NULL));
    assert_int_equal(qkv_tape_status(t), QKV_OK);
}

/* ---- empty tensors, tensors without dimensions ---- */

static void same_shape(const qkv_tensor *x, int ndim, const int64_t *shape)
{
    if (!x) fail_msg("%s", qkv_error());
    assert_int_equal(qkv_tensor_ndim(x), ndim);
    for (int i = 0; i < ndim; i++) assert_int_equal(qkv_tensor_dim(x, i), shape[i]);
}

static void empty_tensors(void **state)
{
    (void)state;
    qkv_tensor *x = matrix(0, 3, NULL), *narrow = matrix(2, 0, NULL), *gain = vector(3, NULL), *one = matrix(1, 3, NULL);
    qkv_tensor *same[] = { qkv_add(x, x),
                           qkv_add(x, gain),
                           qkv_mul(one, x),
                           qkv_sub(x, one),
                           qkv_scale(x, 2),
                           qkv_gelu(x),
                           qkv_tanh(x),
                           qkv__silu_gated(x, x),
                           qkv__gelu_gated(x, x),
                           qkv_softmax(x),
                           qkv_log_softmax(x),
                           qkv_layer_norm(x, gain, gain, 0),
                           qkv_rms_norm(x, gain, 0),
                           qkv_dropout(x, 0.5f),
                           qkv_slice(x, 0, 0, 0),
                           qkv_slice(one, 0, 1, 1),
                           qkv_concat(2, (qkv_tensor *[]){ x, x }, 0),
                           qkv_reshape(x, QKV_SHAPE(-1, 3)),
                           qkv_gather(t, one, NULL, QKV_SHAPE(0)) };
    qkv_tensor *loss = qkv_add(qkv_sum(qkv_softmax(narrow), QKV_ALL_DIMS), qkv_cross_entropy(x, NULL, NULL));
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        same_shape(same[i], QKV_SHAPE(0, 3));
        loss = qkv_add(loss, qkv_sum(same[i], QKV_ALL_DIMS));
    }
    same_shape(qkv_transpose(x, 0, 1), QKV_SHAPE(3, 0));
    same_shape(qkv_concat(2, (qkv_tensor *[]){ x, one }, 0), QKV_SHAPE(1, 3));
    same_shape(qkv_sum(narrow, 0), QKV_SHAPE(0));
    same_shape(qkv_rope(qkv_variable(t, QKV_SHAPE(2, 0, 4), NULL), NULL), QKV_SHAPE(2, 0, 4));
    qkv_tensor *zeros = qkv_sum(x, 0); /* the sum of nothing */
    same_shape(zeros, QKV_SHAPE(3));
    for (int i = 0; i < 3; i++) assert_true(qkv_tensor_data(zeros)[i] == 0);
    loss = qkv_add(loss, qkv_sum(zeros, QKV_ALL_DIMS));
    assert_int_equal(qkv_backward(loss), QKV_OK);
    assert_true(qkv_tensor_item(loss) == 0);
    for (int i = 0; i < 3; i++) assert_true(qkv_tensor_grad(gain)[i] == 0 && qkv_tensor_grad(one)[i] == 0);
    assert_true(isnan(qkv_tensor_item(qkv_mean(x, QKV_ALL_DIMS))));
}

static void without_dimensions(void **state)
{
    (void)state;
    qkv_tensor *x = qkv_variable(t, 0, NULL, FLOATS(2)), *y = qkv_mul(qkv_add(x, x), qkv_permute(x, NULL));
    y = qkv_add(qkv_mul(y, qkv_softmax(x)), qkv_sum(x, QKV_ALL_DIMS));
    same_shape(y, 0, NULL);
    near(qkv_tensor_item(y), 10, 0);
    assert_int_equal(qkv_backward(y), QKV_OK);
    near(qkv_tensor_grad(x)[0], 4 * 2 + 1, 1e-6);
    assert_true(qkv_tensor_item(qkv_reshape(x, QKV_SHAPE(1, 1))) == 2);
}

/* Far from 0 the loss is the logit itself, or nothing. */
static void binary_losses_do_not_overflow(void **state)
{
    (void)state;
    qkv_tensor *x = vector(4, FLOATS(200, -200, 200, -200)), *y = qkv_constant(t, QKV_SHAPE(4), FLOATS(1, 0, 0, 1));
    qkv_tensor *loss = qkv_binary_cross_entropy(x, y);
    near(qkv_tensor_item(loss), 100, 1e-5);
    assert_int_equal(qkv_backward(loss), QKV_OK);
    static const double slopes[] = { 0, 0, 0.25, -0.25 };
    for (int i = 0; i < 4; i++) near(qkv_tensor_grad(x)[i], slopes[i], 1e-6);
    near(qkv_tensor_item(qkv_binary_cross_entropy(vector(1, NULL), qkv_constant(t, QKV_SHAPE(1), NULL))), log(2), 1e-6);
}

static void reshape_shares(void **state)
{
    (void)state;
    qkv_tensor *x = matrix(2, 3, NULL), *y = qkv_reshape(x, QKV_SHAPE(3, -1));
    same_shape(y, QKV_SHAPE(3, 2));
    assert_ptr_equal(qkv_tensor_data(x), qkv_tensor_data(y));
    assert_int_equal(qkv_backward(qkv_sum(qkv_scale(y, 3), QKV_ALL_DIMS)), QKV_OK);
    for (int i = 0; i < 6; i++) assert_true(qkv_tensor_grad(x)[i] == 3);
}

/* A sum is as good as its order: a million small numbers do not lose each other. */
static void long_sums_stay_exact(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    qkv_tensor *x = qkv_variable(t, QKV_SHAPE(N), NULL);
    for (int i = 0; i < N; i++) qkv_tensor_data_mut(x)[i] = 0.1f;
    near(qkv_tensor_item(qkv_mean(x, QKV_ALL_DIMS)), (double)0.1f, 2e-7);
    near(qkv_tensor_item(qkv_sum(x, 0)), (double)0.1f * N, 0.2);
    near(qkv_tensor_item(qkv_mse(x, qkv_scale(x, 3))), 4 * (double)0.1f * (double)0.1f, 1e-7);
}

/* ---- rows ---- */

enum { BATCH = 7, WIDTH = 101 };

static qkv_tensor *row_ops(int which, qkv_tensor *x, qkv_tensor *gain)
{
    switch (which) {
    case 0: return qkv_softmax(x);
    case 1: return qkv_log_softmax(x);
    case 2: return qkv_layer_norm(x, gain, gain, 1e-5f);
    case 3: return qkv_rms_norm(x, gain, 1e-5f);
    case 4: return qkv_gelu(x);
    default: return qkv_mul(x, gain);
    }
}

static void a_row_alone_has_the_same_bits(void **state)
{
    (void)state;
    float x[BATCH * WIDTH], gain[WIDTH];
    for (int i = 0; i < BATCH * WIDTH; i++) x[i] = sinf((float)i) * 3;
    for (int i = 0; i < WIDTH; i++) gain[i] = cosf((float)i);
    for (int which = 0; which < 6; which++) {
        qkv_tensor *all = matrix(BATCH, WIDTH, x), *y = row_ops(which, all, vector(WIDTH, gain));
        assert_int_equal(qkv_backward(qkv_sum(qkv_mul(y, y), QKV_ALL_DIMS)), QKV_OK);
        for (int r = 0; r < BATCH; r++) {
            qkv_tensor *row = matrix(1, WIDTH, x + r * WIDTH), *alone = row_ops(which, row, vector(WIDTH, gain));
            assert_int_equal(qkv_backward(qkv_sum(qkv_mul(alone, alone), QKV_ALL_DIMS)), QKV_OK);
            assert_memory_equal(qkv_tensor_data(alone), qkv_tensor_data(y) + r * WIDTH, sizeof gain);
            assert_memory_equal(qkv_tensor_grad(row), qkv_tensor_grad(all) + r * WIDTH, sizeof gain);
        }
    }
}

/* ---- additive attention ---- */

typedef struct operands {
    qkv_tensor *q, *k, *w, *v;
} operands;

static qkv_tensor *waves(int ndim, const int64_t *shape, float speed)
{
    qkv_tensor *x = qkv_variable(t, ndim, shape, NULL);
    for (int64_t i = 0; i < qkv_tensor_count(x); i++) qkv_tensor_data_mut(x)[i] = sinf((float)i * speed);
    return x;
}

static operands some_operands(int64_t n_q, int64_t n_k)
{
    return (operands){ waves(QKV_SHAPE(2, 2, n_q, 3), 1.1f), waves(QKV_SHAPE(2, 2, n_k, 3), 0.7f), waves(QKV_SHAPE(3), 2.3f),
                       waves(QKV_SHAPE(2, 2, n_k, 4), 0.3f) };
}

static double additive_score(const operands *o, int64_t head, int64_t n_q, int64_t i, int64_t n_k, int64_t j)
{
    double score = 0;
    for (int d = 0; d < 3; d++)
        score += (double)qkv_tensor_data(o->w)[d] * tanh((double)qkv_tensor_data(o->q)[(head * n_q + i) * 3 + d] +
                                                         (double)qkv_tensor_data(o->k)[(head * n_k + j) * 3 + d]);
    return score;
}

static void additive_maps(void **state)
{
    (void)state;
    operands o = some_operands(3, 5);
    qkv_tensor *weights, *scaled, *scores;
    qkv_attention_opts opts = { .additive = o.w, .scale = 2, .weights = &weights, .scaled = &scaled, .scores = &scores };
    qkv_tensor *plain = qkv_attention(o.q, o.k, o.v, QKV_CAUSAL, &(qkv_attention_opts){ .additive = o.w, .scale = 2 });
    qkv_tensor *y = qkv_attention(o.q, o.k, o.v, QKV_CAUSAL, &opts);
    assert_memory_equal(qkv_tensor_data(plain), qkv_tensor_data(y),
                        sizeof(float) * (size_t)qkv_tensor_count(y)); /* asking changes no bit */
    same_shape(weights, QKV_SHAPE(2, 2, 3, 5));
    for (int64_t head = 0; head < 4; head++)
        for (int64_t i = 0; i < 3; i++) {
            const float *row = qkv_tensor_data(weights) + (head * 3 + i) * 5;
            double sum = 0, value = 0;
            for (int64_t j = 0; j < 5; j++) {
                double score = additive_score(&o, head, 3, i, 5, j);
                near(qkv_tensor_data(scores)[(head * 3 + i) * 5 + j], score, 1e-6);
                if (j > i + 2) {
                    assert_true(row[j] == 0 && qkv_tensor_data(scaled)[(head * 3 + i) * 5 + j] == -INFINITY);
                    continue;
                }
                near(qkv_tensor_data(scaled)[(head * 3 + i) * 5 + j], 2 * score, 1e-6);
                sum += (double)row[j];
                value += (double)row[j] * (double)qkv_tensor_data(o.v)[(head * 5 + j) * 4];
            }
            near((float)sum, 1, 1e-6);
            near(qkv_tensor_data(y)[(head * 3 + i) * 4], value, 1e-6);
        }
}

/* A hidden key has no influence at all, not even when it is NaN; a query that sees nothing gives zeros and no gradient. */
static void additive_hidden_keys(void **state)
{
    (void)state;
    operands o = some_operands(3, 5);
    for (int64_t i = 0; i < 2 * 5 * 4; i++) qkv_tensor_data_mut(o.v)[i] = NAN; /* all of the first sequence */
    for (int64_t i = 0; i < 2 * 5 * 3; i++) qkv_tensor_data_mut(o.k)[i] = NAN;
    qkv_tensor *y = qkv_attention(o.q, o.k, o.v, &(qkv_mask){ .key_lengths = (int32_t[]){ 0, 5 } },
                                  &(qkv_attention_opts){ .additive = o.w });
    for (int64_t i = 0; i < 2 * 3 * 4; i++)
        assert_true(qkv_tensor_data(y)[i] == 0 && isfinite(qkv_tensor_data(y)[2 * 3 * 4 + i]));
    assert_int_equal(qkv_backward(qkv_sum(qkv_mul(y, y), QKV_ALL_DIMS)), QKV_OK);
    for (int64_t i = 0; i < 2 * 3 * 3; i++) assert_true(qkv_tensor_grad(o.q)[i] == 0);
    for (int64_t i = 0; i < 2 * 5 * 3; i++) assert_true(qkv_tensor_grad(o.k)[i] == 0);
    for (int64_t i = 0; i < 2 * 5 * 4; i++) assert_true(qkv_tensor_grad(o.v)[i] == 0);
    for (int i = 0; i < 3; i++) assert_true(isfinite(qkv_tensor_grad(o.w)[i]));
}

/* With values of one, y is the sum of the weights that dropout left: 1 on average. */
static void additive_dropout(void **state)
{
    (void)state;
    operands o = some_operands(200, 50);
    for (int64_t i = 0; i < qkv_tensor_count(o.v); i++) qkv_tensor_data_mut(o.v)[i] = 1;
    qkv_attention_opts opts = { .additive = o.w, .dropout = 0.4f };
    qkv_tensor *y = qkv_attention(o.q, o.k, o.v, NULL, &opts);
    qkv_tensor *again = qkv_attention(o.q, o.k, o.v, NULL, &opts);
    size_t bytes = sizeof(float) * (size_t)qkv_tensor_count(y);
    assert_memory_not_equal(qkv_tensor_data(y), qkv_tensor_data(again), bytes); /* another use, other numbers */
    near(qkv_tensor_item(qkv_mean(y, QKV_ALL_DIMS)), 1, 0.02);
    float *first = malloc(bytes);
    assert_non_null(first);
    memcpy(first, qkv_tensor_data(y), bytes);
    qkv_tape_reset(t);
    qkv__tape_set_step(t, 0);
    o = some_operands(200, 50);
    opts.additive = o.w;
    for (int64_t i = 0; i < qkv_tensor_count(o.v); i++) qkv_tensor_data_mut(o.v)[i] = 1;
    y = qkv_attention(o.q, o.k, o.v, NULL, &opts);
    assert_memory_equal(qkv_tensor_data(y), first, bytes); /* the same step, the same bits */
    free(first);
    /* y is linear in v: its gradient must use the numbers that forward drew */
    assert_int_equal(qkv_backward(qkv_sum(y, QKV_ALL_DIMS)), QKV_OK);
    double by_gradient = 0, by_value = 0;
    for (int64_t i = 0; i < qkv_tensor_count(o.v); i++) by_gradient += (double)qkv_tensor_grad(o.v)[i];
    for (int64_t i = 0; i < qkv_tensor_count(y); i++) by_value += (double)qkv_tensor_data(y)[i];
    near((float)(by_gradient / by_value), 1, 1e-5);
}

static void additive_small_and_wrong(void **state)
{
    (void)state;
    const int64_t sizes[][2] = { { 0, 5 }, { 3, 0 }, { 0, 0 }, { 1, 1 } };
    for (int i = 0; i < 4; i++) {
        operands o = some_operands(sizes[i][0], sizes[i][1]);
        qkv_tensor *y = qkv_attention(o.q, o.k, o.v, NULL, &(qkv_attention_opts){ .additive = o.w });
        same_shape(y, QKV_SHAPE(2, 2, sizes[i][0], 4));
        assert_int_equal(qkv_backward(qkv_sum(y, QKV_ALL_DIMS)), QKV_OK);
        for (int64_t j = 0; j < qkv_tensor_count(y); j++)
            assert_true(qkv_tensor_data(y)[j] == (sizes[i][1] ? qkv_tensor_data(o.v)[j] : 0));
        for (int d = 0; d < 3; d++) assert_true(qkv_tensor_grad(o.w)[d] == 0); /* one key has weight 1 whatever its score */
    }
    operands o = some_operands(3, 5);
    refused(qkv_attention(o.q, o.k, o.v, NULL, &(qkv_attention_opts){ .additive = o.q }), QKV_USAGE,
            "w is (2, 2, 3, 3), it must be (3)");
    o = some_operands(3, 5);
    refused(qkv_attention(o.q, o.k, o.q, NULL, &(qkv_attention_opts){ .additive = o.w }), QKV_USAGE, "same length");
}

/* A bias by distance of another shape, with a cap, and where there is none. */
static void wrong_biases_by_distance(void **state)
{
    (void)state;
    qkv_attention_opts with = { .size = sizeof with };
    operands o = some_operands(3, 5);
    with.relative_bias = waves(QKV_SHAPE(2, 8), 1);
    refused(qkv_attention(o.q, o.k, o.v, NULL, &with), QKV_USAGE, "(heads, queries + keys - 1)");
    o = some_operands(3, 5);
    with.relative_bias = waves(QKV_SHAPE(2, 7), 1);
    with.softcap = 1;
    refused(qkv_attention(o.q, o.k, o.v, NULL, &with), QKV_USAGE, "a cap or a bias");
    o = some_operands(3, 5);
    with.relative_bias = waves(QKV_SHAPE(2, 7), 1);
    with.softcap = 0;
    with.additive = o.w;
    refused(qkv_attention(o.q, o.k, o.v, NULL, &with), QKV_USAGE, "no bias by distance");
}

/* 2000 x 2000 weights would be 16 MB. */
static void additive_memory_is_linear(void **state)
{
    (void)state;
    qkv_tensor *q = waves(QKV_SHAPE(2000, 1), 0.1f), *k = waves(QKV_SHAPE(2000, 1), 0.2f), *v = waves(QKV_SHAPE(2000, 1), 0.3f);
    assert_int_equal(
        qkv_backward(
            qkv_sum(qkv_attention(q, k, v, NULL, &(qkv_attention_opts){ .additive = waves(QKV_SHAPE(1), 1) }), QKV_ALL_DIMS)),
        QKV_OK);
    assert_true(qkv_tape_peak_bytes(t) < 1 << 20);
}

#define RULE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* A row of NaN alone stays NaN on every instruction set: only -inf means that there is nothing to see. */
static void softmax_shows_nan(void **state)
{
    (void)state;
    for (int isa = 0; qkv_isa_at(isa); isa++) {
        qkv_set_isa(qkv_isa_at(isa));
        qkv_tape *tape = qkv_tape_new(NULL);
        const float rows[6] = { NAN, NAN, -INFINITY, NAN, -INFINITY, -INFINITY };
        qkv_tensor *x = qkv_constant(tape, QKV_SHAPE(3, 2), rows);
        const float *y = qkv_tensor_data(qkv_softmax(x)), *z = qkv_tensor_data(qkv_log_softmax(x));
        assert_true(isnan(y[0]) && isnan(y[1]) && isnan(z[0]) && isnan(z[1]));
        assert_true(isnan(y[3]) && isnan(z[3]));
        assert_true(y[4] == 0 && y[5] == 0 && z[4] == -INFINITY);
        qkv_tape_free(tape);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(softmax_shows_nan),
        RULE(layernorm_numbers),
        RULE(smoothing_number),
        RULE(layernorm_far_from_zero),
        RULE(softmax_of_large_scores),
        RULE(softmax_of_nothing_to_see),
        RULE(all_rows_ignored),
        RULE(rows_count_by_weight),
        RULE(bad_targets),
        RULE(dropout_keeps_its_share),
        RULE(dropout_does_not_repeat),
        RULE(dropout_is_keyed),
        RULE(dropout_is_off),
        RULE(shapes_that_do_not_fit),
        RULE(bad_ids),
        RULE(two_tapes),
        RULE(nothing_gives_nothing),
        RULE(empty_tensors),
        RULE(without_dimensions),
        RULE(binary_losses_do_not_overflow),
        RULE(reshape_shares),
        RULE(long_sums_stay_exact),
        RULE(a_row_alone_has_the_same_bits),
        RULE(additive_maps),
        RULE(additive_hidden_keys),
        RULE(additive_dropout),
        RULE(additive_small_and_wrong),
        RULE(wrong_biases_by_distance),
        RULE(additive_memory_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
