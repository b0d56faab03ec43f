/* test_nn.c: layers: multi-head attention against a plain computation and PyTorch, positions, norms, the regression line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "failing.h"
#include "lcg.h"
#include "nn/params.h"

#include <qkv/qkv.h>

#include <math.h>
#include <string.h>

#include "golden/nn.inc"

static void close_to(const char *what, const float *ours, const double *expected, int64_t n, double tolerance)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)ours[i] - expected[i]) <= tolerance * (1 + fabs(expected[i]))))
            fail_msg("%s[%d] is %.9g, expected %.9g", what, (int)i, (double)ours[i], expected[i]);
}

/* Weights of one attention with values from the generator, in the order they were added. */
static void fill_weights(qkv_params *p)
{
    lcg_state = 1;
    for (int i = 0; i < qkv_params_size(p); i++)
        lcg_fill(qkv_tensor_data_mut(qkv_params_at(p, i)), qkv_tensor_count(qkv_params_at(p, i)));
}

static qkv_tensor *random_variable(qkv_tape *t, int64_t a, int64_t b, int64_t c)
{
    qkv_tensor *x = qkv_variable(t, QKV_SHAPE(a, b, c), NULL);
    assert_non_null(x);
    lcg_fill(qkv_tensor_data_mut(x), qkv_tensor_count(x));
    return x;
}

/* ---- multi-head attention ---- */

static void self_attention_equals_pytorch(void **state)
{
    (void)state;
    qkv_params *p = qkv_params_new(1);
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_mha m = qkv_mha_new(p, "att", &(qkv_mha_opts){ .dim = 8, .heads = 2 });
    fill_weights(p);
    qkv_tensor *x = random_variable(t, 2, 3, 8);
    qkv_tensor *result = qkv_mha_forward(&m, x, x, QKV_CAUSAL);
    qkv_tensor *weight = random_variable(t, 2, 3, 8);
    assert_int_equal(qkv_backward(qkv_sum(qkv_mul(result, weight), QKV_ALL_DIMS)), QKV_OK);
    close_to("result", qkv_tensor_data(result), self_result, 48, 1e-5);
    close_to("dx", qkv_tensor_grad(x), self_dx, 48, 1e-4);
    close_to("dWq", qkv_tensor_grad(m.q.weight), self_dqkv, 64, 1e-4);
    close_to("dWk", qkv_tensor_grad(m.k.weight), self_dqkv + 64, 64, 1e-4);
    close_to("dWv", qkv_tensor_grad(m.v.weight), self_dqkv + 128, 64, 1e-4);
    qkv_tape_free(t);
    qkv_params_free(p);
}

static void cross_attention_equals_pytorch(void **state)
{
    (void)state;
    qkv_params *p = qkv_params_new(1);
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_mha m = qkv_mha_new(p, "att", &(qkv_mha_opts){ .dim = 8, .heads = 2, .kv_dim = 6 });
    fill_weights(p);
    qkv_tensor *x = random_variable(t, 2, 3, 8), *y = random_variable(t, 2, 4, 6);
    const int32_t lengths[] = { 4, 2 };
    qkv_tensor *result = qkv_mha_forward(&m, x, y, &(qkv_mask){ .key_lengths = lengths });
    qkv_tensor *weight = random_variable(t, 2, 3, 8);
    assert_int_equal(qkv_backward(qkv_sum(qkv_mul(result, weight), QKV_ALL_DIMS)), QKV_OK);
    close_to("result", qkv_tensor_data(result), cross_result, 48, 1e-5);
    close_to("dx", qkv_tensor_grad(x), cross_dx, 48, 1e-4);
    close_to("dy", qkv_tensor_grad(y), cross_dy, 48, 1e-4);
    close_to("dWk", qkv_tensor_grad(m.k.weight), cross_dk, 48, 1e-4);
    qkv_tape_free(t);
    qkv_params_free(p);
}

/* row . w^T + b, one number of it */
static double affine(const qkv_linear *l, const float *row, int64_t out)
{
    int64_t in = qkv_tensor_dim(l->weight, 1);
    double sum = l->bias ? (double)qkv_tensor_data(l->bias)[out] : 0;
    for (int64_t i = 0; i < in; i++) sum += (double)row[i] * (double)qkv_tensor_data(l->weight)[out * in + i];
    return sum;
}

/* What the head'th head adds up for one query: the definition, in double. visible: how many keys the query may see. */
static void plain_head(const qkv_mha *m, int64_t head, const float *query, const qkv_tensor *y, int64_t b, int64_t visible,
                       double *out)
{
    int64_t d_k = qkv_tensor_dim(m->q.weight, 0) / m->heads, d_v = qkv_tensor_dim(m->out.weight, 1) / m->heads;
    int64_t shared = head / (m->heads / m->kv_heads), keys = qkv_tensor_dim(y, 1), width = qkv_tensor_dim(y, 2);
    double weights[16], total = 0;
    for (int64_t j = 0; j < visible; j++) {
        const float *key = qkv_tensor_data(y) + (b * keys + j) * width;
        double score = 0;
        for (int64_t d = 0; d < d_k; d++) score += affine(&m->q, query, head * d_k + d) * affine(&m->k, key, shared * d_k + d);
        total += weights[j] = exp(score / sqrt((double)d_k));
    }
    for (int64_t d = 0; d < d_v; d++) {
        out[d] = 0;
        for (int64_t j = 0; j < visible; j++)
            out[d] += weights[j] / total * affine(&m->v, qkv_tensor_data(y) + (b * keys + j) * width, shared * d_v + d);
    }
}

static void check_against_definition(const qkv_mha_opts *opts, int64_t queries, int64_t keys, bool causal)
{
    qkv_params *p = qkv_params_new(1);
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_mha m = qkv_mha_new(p, "att", opts);
    assert_int_equal(qkv_params_status(p), QKV_OK);
    fill_weights(p);
    qkv_tensor *x = random_variable(t, 2, queries, opts->dim);
    qkv_tensor *y = random_variable(t, 2, keys, opts->kv_dim ? opts->kv_dim : opts->dim);
    const qkv_tensor *result = qkv_mha_forward(&m, x, y, &(qkv_mask){ .causal = causal });
    assert_int_equal(qkv_tape_status(t), QKV_OK);
    int64_t all = qkv_tensor_dim(m.out.weight, 1), d_v = all / m.heads;
    for (int64_t row = 0; row < 2 * queries; row++) {
        int64_t b = row / queries, visible = causal ? row % queries + keys - queries + 1 : keys;
        double heads[64], expected[64];
        for (int64_t h = 0; h < m.heads; h++)
            plain_head(&m, h, qkv_tensor_data(x) + row * opts->dim, y, b, visible, heads + h * d_v);
        for (int64_t i = 0; i < opts->dim; i++) {
            expected[i] = m.out.bias ? (double)qkv_tensor_data(m.out.bias)[i] : 0;
            for (int64_t j = 0; j < all; j++) expected[i] += heads[j] * (double)qkv_tensor_data(m.out.weight)[i * all + j];
        }
        close_to("result", qkv_tensor_data(result) + row * opts->dim, expected, opts->dim, 1e-5);
    }
    qkv_tape_free(t);
    qkv_params_free(p);
}

static void attention_equals_its_definition(void **state)
{
    (void)state;
    check_against_definition(&(qkv_mha_opts){ .dim = 6, .heads = 1 }, 4, 4, false);
    check_against_definition(&(qkv_mha_opts){ .dim = 12, .heads = 3 }, 5, 5, true);
    check_against_definition(&(qkv_mha_opts){ .dim = 12, .heads = 4, .kv_heads = 2 }, 5, 5, true);
    check_against_definition(&(qkv_mha_opts){ .dim = 12, .heads = 4, .kv_heads = 1, .no_bias = 1 }, 2, 6, true);
    check_against_definition(&(qkv_mha_opts){ .dim = 7, .heads = 2, .d_k = 3, .d_v = 5, .kv_dim = 4 }, 3, 6, false);
}

static void attention_refuses(void **state)
{
    (void)state;
    const struct {
        qkv_mha_opts opts;
        const char *says;
    } cases[] = {
        { { .dim = 10, .heads = 4 }, "dim 10, heads 4, kv_heads 4, kv_dim 10, d_k 0, d_v 0): dim does not divide" },
        { { .dim = 12, .heads = 4, .kv_heads = 3 }, "heads 4, kv_heads 3, kv_dim 12, d_k 0, d_v 0): heads must be a multiple" },
        { { .dim = 12 }, "heads 0" },
        { { .dim = 12, .heads = -2 }, "heads -2" },
        { { .heads = 2 }, "dim 0" },
        { { .dim = 12, .heads = 2, .d_k = -1 }, "negative" },
        { { .dim = 12, .heads = 2, .d_k = INT64_MAX }, "larger than memory" },
        { { .dim = 12, .heads = 2, .dropout = 1 }, "dropout must be" },
        { { .dim = 12, .heads = 2, .dropout = NAN }, "dropout must be" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_params *p = qkv_params_new(1);
        qkv_mha m = qkv_mha_new(p, "att", &cases[i].opts);
        assert_null(m.q.weight);
        assert_int_equal(qkv_params_status(p), QKV_USAGE);
        if (!strstr(qkv_error(), cases[i].says) || !strstr(qkv_error(), "\"att\"")) fail_msg("%s", qkv_error());
        assert_int_equal(qkv_params_size(p), 0);
        qkv_params_free(p);
    }
}

/* A layer that could not be made gives NULL and an error on the tape, never a result without its bias. */
static void failed_layers_do_not_compute(void **state)
{
    (void)state;
    qkv_params *p = qkv_params_new(1);
    qkv_params_add(p, "l.bias", QKV_SHAPE(4), QKV_INIT_ZERO, 0); /* takes the bias's name */
    qkv_params_add(p, "n.bias", QKV_SHAPE(4), QKV_INIT_ZERO, 0);
    qkv_linear l = qkv_linear_new(p, "l", 4, 4, true);
    qkv_norm n = qkv_norm_new(p, "n", 4, QKV_NORM_LAYER);
    qkv_embedding e = qkv_embedding_new(p, "e", 0, 4);
    qkv_mha m = qkv_mha_new(p, "m", &(qkv_mha_opts){ .dim = 4, .heads = 3 });
    assert_int_equal(qkv_params_status(p), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "l.bias"));
    qkv_tape *t = qkv_tape_new(NULL);
    const int32_t id = 0;
    for (int i = 0; i < 4; i++) {
        qkv_tensor *x = qkv_variable(t, QKV_SHAPE(1, 1, 4), NULL);
        const qkv_tensor *y = i == 0   ? qkv_linear_forward(&l, x)
                              : i == 1 ? qkv_norm_forward(&n, x)
                              : i == 2 ? qkv_embedding_forward(&e, t, &id, 1, 1)
                                       : qkv_mha_forward(&m, x, x, NULL);
        assert_null(y);
        assert_int_equal(qkv_tape_status(t), QKV_USAGE);
        qkv_tape_reset(t);
    }
    char long_name[400];
    memset(long_name, 'x', sizeof long_name);
    long_name[399] = '\0';
    assert_null(qkv_linear_new(p, long_name, 2, 2, true).weight);
    assert_null(qkv_linear_new(p, NULL, 2, 2, true).weight);
    assert_null(qkv_linear_new(p, "l2", 0, 2, true).weight);
    assert_null(qkv_linear_new(NULL, "l3", 2, 2, true).weight);
    assert_null(qkv_mha_new(NULL, "m3", &(qkv_mha_opts){ .dim = 2, .heads = 2 }).q.weight);
    qkv_tape_free(t);
    qkv_params_free(p);
}

/* ---- the small layers ---- */

static void sinusoids(void **state)
{
    (void)state;
    qkv_tape *t = qkv_tape_new(NULL);
    const qkv_tensor *table = qkv_sinusoid(t, 0, 5, 4, QKV_POSITION_SINUSOID);
    const double first[4] = { 0, 1, 0, 1 }, fifth[4] = { -0.7568, -0.6536, 0.0400, 0.9992 };
    close_to("PE(0)", qkv_tensor_data(table), first, 4, 1e-7);
    for (int i = 0; i < 4; i++) assert_true(fabs((double)qkv_tensor_data(table)[16 + i] - fifth[i]) <= 0.5e-4);
    const qkv_tensor *later = qkv_sinusoid(t, 4, 1, 4, QKV_POSITION_SINUSOID);
    assert_memory_equal(qkv_tensor_data(later), qkv_tensor_data(table) + 16, 4 * sizeof(float));
    for (int dim = 4; dim <= 5; dim++) { /* an odd one has one more sine than cosines */
        const float *pairs = qkv_tensor_data(qkv_sinusoid(t, 3, 2, dim, QKV_POSITION_SINUSOID)),
                    *halves = qkv_tensor_data(qkv_sinusoid(t, 3, 2, dim, QKV_POSITION_SINUSOID_HALVES));
        int sines = (dim + 1) / 2;
        for (int row = 0; row < 2; row++)
            for (int i = 0; i < dim; i++)
                assert_true(halves[row * dim + (i % 2 ? sines + i / 2 : i / 2)] == pairs[row * dim + i]);
    }
    assert_int_equal(qkv_tape_status(t), QKV_OK);
    assert_null(qkv_sinusoid(t, -1, 2, 4, QKV_POSITION_SINUSOID));
    assert_int_equal(qkv_tape_status(t), QKV_USAGE);
    qkv_tape_free(t);
}

static void learned_positions(void **state)
{
    (void)state;
    qkv_params *p = qkv_params_new(1);
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_embedding pos = qkv_embedding_new(p, "pos", 6, 3);
    qkv_tensor *rows = qkv__positions_forward(&pos, t, 2, 3);
    assert_true(qkv_tensor_dim(rows, 0) == 3 && qkv_tensor_dim(rows, 1) == 3);
    assert_memory_equal(qkv_tensor_data(rows), qkv_tensor_data(pos.weight) + 6, 9 * sizeof(float));
    assert_int_equal(qkv_backward(qkv_sum(rows, QKV_ALL_DIMS)), QKV_OK);
    for (int i = 0; i < 18; i++) assert_true(qkv_tensor_grad(pos.weight)[i] == (i >= 6 && i < 15 ? 1.0f : 0.0f));
    const int64_t bad[][2] = { { 0, 7 }, { 4, 3 }, { 7, 0 }, { -1, 2 }, { 1, -1 }, { INT64_MAX, INT64_MAX } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        qkv_tape_reset(t);
        assert_null(qkv__positions_forward(&pos, t, bad[i][0], bad[i][1]));
        assert_int_equal(qkv_tape_status(t), QKV_USAGE);
    }
    qkv_tape_free(t);
    qkv_params_free(p);
}

static void embedding_and_norm(void **state)
{
    (void)state;
    qkv_params *p = qkv_params_new(1);
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_embedding e = qkv_embedding_new(p, "tok", 7, 5);
    qkv_norm n = qkv_norm_new(p, "norm", 5, QKV_NORM_LAYER);
    const int32_t ids[] = { 3, 0, 6, 3 };
    qkv_tensor *h = qkv_embedding_forward(&e, t, ids, 2, 2);
    assert_true(qkv_tensor_ndim(h) == 3 && qkv_tensor_dim(h, 0) == 2 && qkv_tensor_dim(h, 1) == 2 && qkv_tensor_dim(h, 2) == 5);
    for (int i = 0; i < 4; i++)
        assert_memory_equal(qkv_tensor_data(h) + 5 * i, qkv_tensor_data(e.weight) + 5 * ids[i], 5 * sizeof(float));
    assert_int_equal(qkv_backward(qkv_sum(h, QKV_ALL_DIMS)), QKV_OK);
    const float seen[] = { 1, 0, 0, 2, 0, 0, 1 }; /* how often each token is there */
    for (int i = 0; i < 35; i++) assert_true(qkv_tensor_grad(e.weight)[i] == seen[i / 5]);

    const float heights[] = { 140, 150, 160, 170, 180 };
    const double expected[] = { -1.4142, -0.7071, 0, 0.7071, 1.4142 };
    qkv_tensor *y = qkv_norm_forward(&n, qkv_constant(t, QKV_SHAPE(1, 5), heights));
    for (int i = 0; i < 5; i++) assert_true(fabs((double)qkv_tensor_data(y)[i] - expected[i]) <= 0.5e-4);
    qkv_tape_free(t);
    qkv_params_free(p);
}

/* A padding mask hides exactly the padded keys, as a keep map and as lengths. */
static void padding_masks_hide_keys(void **state)
{
    (void)state;
    const uint8_t keep[] = { 1, 1, 1, 0, 0, 1, 1, 0, 0, 0 };
    const int32_t lengths[] = { 3, 2 };
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .keep_attention = 1 });
    lcg_state = 1;
    qkv_tensor *x = random_variable(t, 2, 5, 4);
    const qkv_tensor *a = qkv_attention(x, x, x, &(qkv_mask){ .keep = keep, .keep_shape = { 2, 1, 1, 5 } }, NULL);
    const qkv_tensor *b = qkv_attention(x, x, x, &(qkv_mask){ .key_lengths = lengths }, NULL);
    assert_int_equal(qkv_tape_status(t), QKV_OK);
    assert_memory_equal(qkv_tensor_data(a), qkv_tensor_data(b), 40 * sizeof(float));
    const float *weights = qkv_tensor_data(qkv_tape_attention(t, 0));
    for (int i = 0; i < 50; i++) assert_int_equal(weights[i] > 0, keep[i / 25 * 5 + i % 5]);
    qkv_tape_free(t);
}

/* ---- the SPEC's line: y = 2x + 1, plain SGD ---- */
static void the_line(void **state)
{
    (void)state;
    const char *expected[] = { "0.28 0.10 33.000", "1.98 0.73 0.123", "2.07 0.79 0.015", "2.06 0.82 0.012", "2.06 0.84 0.009" };
    const float xs[] = { 0, 1, 2, 3, 4 }, ys[] = { 1, 3, 5, 7, 9 };
    qkv_params *p = qkv_params_new(1);
    qkv_linear l = qkv_linear_new(p, "line", 1, 1, true);
    qkv_tensor_data_mut(l.weight)[0] = 0;
    qkv_optimizer *o = qkv_optimizer_new(p, &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_SGD, .lr = 0.01f });
    qkv_tape *t = qkv_tape_new(NULL);
    for (int step = 0; step <= 80; step++) {
        qkv_tensor *x = qkv_constant(t, QKV_SHAPE(5, 1), xs), *y = qkv_constant(t, QKV_SHAPE(5, 1), ys);
        qkv_tensor *loss = qkv_mse(qkv_linear_forward(&l, x), y);
        assert_int_equal(qkv_backward(loss), QKV_OK);
        assert_int_equal(qkv_optimizer_step(o), QKV_OK);
        char line[64];
        snprintf(line, sizeof line, "%.2f %.2f %.3f", (double)qkv_tensor_item(l.weight), (double)qkv_tensor_item(l.bias),
                 (double)qkv_tensor_item(loss));
        if (step % 20 == 0) assert_string_equal(line, expected[step / 20]);
        qkv_tape_reset(t);
    }
    qkv_tape_free(t);
    qkv_optimizer_free(o);
    qkv_params_free(p);
}

static qkv_status one_training_step(void)
{
    qkv_params *p = qkv_params_new(1);
    qkv_mha m = qkv_mha_new(p, "att", &(qkv_mha_opts){ .dim = 8, .heads = 2 });
    qkv_norm n = qkv_norm_new(p, "norm", 8, QKV_NORM_LAYER);
    qkv_optimizer *o = qkv_optimizer_new(p, &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM });
    qkv_tape *t = o ? qkv_tape_new(&(qkv_tape_opts){ .train = 1 }) : NULL;
    qkv_tensor *x = qkv_variable(t, QKV_SHAPE(2, 3, 8), NULL);
    qkv_status status = qkv_backward(qkv_sum(qkv_norm_forward(&n, qkv_mha_forward(&m, x, x, QKV_CAUSAL)), QKV_ALL_DIMS));
    if (!status) status = qkv_optimizer_step(o);
    qkv_tape_free(t);
    qkv_optimizer_free(o);
    qkv_params_free(p);
    return status;
}

static void survives_failing_memory(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(one_training_step) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(self_attention_equals_pytorch),
        cmocka_unit_test(cross_attention_equals_pytorch),
        cmocka_unit_test(attention_equals_its_definition),
        cmocka_unit_test(attention_refuses),
        cmocka_unit_test(failed_layers_do_not_compute),
        cmocka_unit_test(sinusoids),
        cmocka_unit_test(learned_positions),
        cmocka_unit_test(embedding_and_norm),
        cmocka_unit_test(padding_masks_hide_keys),
        cmocka_unit_test(the_line),
        cmocka_unit_test(survives_failing_memory),
    };
    return cmocka_run_group_tests_name("nn", tests, NULL, NULL);
}
