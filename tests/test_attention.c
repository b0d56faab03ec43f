/* test_attention.c: scaled dot-product attention: the worked numbers, 240 random attentions against PyTorch and finite
 * differences, every instruction set against the reference, the same bits however it is cut, masks, bad input, memory. */
#include <qkv/tensor.h>
#include <qkv/unstable/util.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing.h"
#include "sha256.h"

enum { CASES = 240, MOST = 1 << 16 };

/* ---- the worked numbers ---- */

static void assert_near(const float *got, const float *expected, int64_t n, float tolerance)
{
    assert_non_null(got);
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - expected[i]) <= tolerance))
            fail_msg("element %lld is %.7f, expected %.7f", (long long)i, (double)got[i], (double)expected[i]);
}

typedef struct worked {
    int64_t tq, tk, dk, dv;
    const float *q, *k, *v, *scores, *scaled, *weights, *y;
    float digits;
} worked;

#define F(...) ((const float[]){ __VA_ARGS__ })
static const worked worked_numbers[] = {
    { 3, 3, 2, 4, F(0.83469225f, 0.97844849f, -0.22140911f, -0.50136356f, -0.38048561f, -0.49219428f),
      F(0.93336044f, 1.38711376f, -0.4832162f, -0.40850584f, -0.40378534f, -0.55737316f),
      F(1.0333236f, -0.07687391f, 1.94313157f, -1.26162928f, 1.18221604f, -0.0298283f, -1.46568319f, 1.37369452f, -0.13959719f,
        -0.50792964f, -0.88052409f, 1.52022357f),
      F(2.136f, -0.803f, -0.882f, -0.902f, 0.312f, 0.369f, -1.038f, 0.385f, 0.428f),
      F(1.511f, -0.568f, -0.624f, -0.638f, 0.220f, 0.261f, -0.734f, 0.272f, 0.303f),
      F(0.804f, 0.101f, 0.095f, 0.172f, 0.406f, 0.422f, 0.153f, 0.417f, 0.430f),
      F(0.937f, -0.113f, 1.331f, -0.732f, 0.598f, -0.240f, -0.632f, 0.982f, 0.591f, -0.243f, -0.694f, 1.035f), 5.1e-4f },
    { 1, 3, 2, 2, F(1, 0), F(1, 0, 0, 1, 1, 0), F(10, 0, 0, 20, 30, 0), NULL, NULL, F(0.401112f, 0.197776f, 0.401112f),
      F(16.044484f, 3.955516f), 2e-6f },
    { 1, 3, 1, 1, F(1), F(1, 2, 0.5f), F(10, 20, 5), NULL, NULL, F(0.231224f, 0.628532f, 0.140244f), F(15.584095f), 2e-6f },
    { 1, 2, 2, 2, F(1, 0), F(1, 0, 0, 1), F(5, 0, 0, 10), NULL, NULL, F(0.669762f, 0.330238f), F(3.348808f, 3.302385f), 1e-6f },
};

static void check_worked(const worked *e)
{
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_tensor *weights, *scaled, *scores;
    qkv_tensor *y = qkv_attention(qkv_constant(t, QKV_SHAPE(e->tq, e->dk), e->q),
                                  qkv_constant(t, QKV_SHAPE(e->tk, e->dk), e->k),
                                  qkv_constant(t, QKV_SHAPE(e->tk, e->dv), e->v), NULL,
                                  &(qkv_attention_opts){ .weights = &weights, .scaled = &scaled, .scores = &scores });
    assert_int_equal(qkv_tape_status(t), QKV_OK);
    if (e->scores) assert_near(qkv_tensor_data(scores), e->scores, e->tq * e->tk, e->digits);
    if (e->scaled) assert_near(qkv_tensor_data(scaled), e->scaled, e->tq * e->tk, e->digits);
    assert_near(qkv_tensor_data(weights), e->weights, e->tq * e->tk, fminf(e->digits, 5.1e-4f));
    assert_near(qkv_tensor_data(y), e->y, e->tq * e->dv, e->digits * 4);
    qkv_tape_free(t);
}

static void worked_examples(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof worked_numbers / sizeof *worked_numbers; i++) check_worked(&worked_numbers[i]);
}

/* X = I, W_q = W_k = I, W_v = [[1,2],[3,4]] with values x W_v */
static void worked_self_attention(void **state)
{
    (void)state;
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_tensor *x = qkv_constant(t, QKV_SHAPE(2, 2), F(1, 0, 0, 1)), *wv = qkv_constant(t, QKV_SHAPE(2, 2), F(1, 2, 3, 4));
    qkv_tensor *y = qkv_attention(qkv_matmul(x, x, 0), qkv_matmul(x, x, 0), qkv_matmul(x, wv, 0), NULL, NULL);
    assert_near(qkv_tensor_data(y), F(1.660477f, 2.660477f, 2.339523f, 3.339523f), 4, 1e-6f);
    qkv_tape_free(t);
}

/* ---- random attentions; golden/make_attention.py draws the same ---- */

typedef struct one {
    int64_t batch, heads, kv_heads, tq, tk, dk, dv;
    qkv_mask mask;
    int32_t lengths[8];
    uint8_t keep[MOST / 4];
    float bias[MOST / 4];
    float q[MOST], k[MOST], v[MOST], w[MOST]; /* (B,H,T,D) */
} one;

static uint32_t draw_state;

static int64_t below(int64_t n)
{
    draw_state = draw_state * 1664525u + 1013904223u;
    return (int64_t)((draw_state >> 16) % (uint32_t)n);
}

static void draw_values(float *to, int64_t n)
{
    assert_true(n <= MOST);
    for (int64_t i = 0; i < n; i++) to[i] = (float)below(65536) / 16384 - 2;
}

static int64_t draw_shape(const one *c, int64_t shape[4])
{
    const int64_t full[4] = { c->batch, c->heads, c->tq, c->tk };
    int64_t n = 1;
    for (int i = 0; i < 4; i++) n *= shape[i] = below(2) ? 1 : full[i];
    assert_true(n <= MOST / 4);
    return n;
}

static void draw_masks(one *c, int64_t masks)
{
    c->mask = (qkv_mask){ .causal = (int)(masks & 1) };
    if (masks & 2) {
        c->mask.key_lengths = c->lengths;
        for (int64_t b = 0; b < c->batch; b++) c->lengths[b] = (int32_t)below(c->tk + 1);
    }
    if (masks & 4) {
        int64_t n = draw_shape(c, c->mask.keep_shape);
        c->mask.keep = c->keep;
        for (int64_t i = 0; i < n; i++) c->keep[i] = below(4) != 0;
    }
    if (masks & 8) {
        int64_t n = draw_shape(c, c->mask.bias_shape);
        c->mask.bias = c->bias;
        for (int64_t i = 0; i < n; i++) {
            bool hidden = below(8) == 0;
            float value = (float)below(65536) / 16384 - 2;
            c->bias[i] = hidden ? -INFINITY : value;
        }
    }
}

static void draw_operands(one *c)
{
    draw_values(c->q, c->batch * c->heads * c->tq * c->dk);
    draw_values(c->k, c->batch * c->kv_heads * c->tk * c->dk);
    draw_values(c->v, c->batch * c->kv_heads * c->tk * c->dv);
    draw_values(c->w, c->batch * c->heads * c->tq * c->dv);
}

static one *drawn(int number)
{
    static one c;
    draw_state = (uint32_t)number * 7919u + 1;
    c.batch = 1 + below(2);
    c.kv_heads = 1 + below(2);
    c.heads = c.kv_heads * (1 + below(2));
    c.tq = 1 + below(7);
    c.tk = 1 + below(7);
    c.dk = 1 + below(6);
    c.dv = 1 + below(6);
    draw_masks(&c, below(16));
    draw_operands(&c);
    return &c;
}

/* What one attention gives: y and the gradients of sum(y w), all as (B,H,T,D). */
typedef struct result {
    float y[MOST], q[MOST], k[MOST], v[MOST];
} result;

/* (B,H,T,D) to (B,T,H,D), or back with h and t exchanged. */
static void exchange(float *to, const float *from, int64_t b, int64_t h, int64_t t, int64_t d)
{
    for (int64_t i = 0; i < b * h * t; i++)
        memcpy(to + ((i / (h * t) * t + i % t) * h + i / t % h) * d, from + i * d, sizeof(float) * (size_t)d);
}

static qkv_tensor *operand(qkv_tape *t, const float *x, int64_t b, int64_t h, int64_t n, int64_t d, bool columns)
{
    if (!columns) return qkv_variable(t, QKV_SHAPE(b, h, n, d), x);
    qkv_tensor *y = qkv_variable(t, QKV_SHAPE(b, n, h * d), NULL);
    exchange(qkv_tensor_data_mut(y), x, b, h, n, d);
    return y;
}

static void take(float *to, const float *from, int64_t b, int64_t h, int64_t t, int64_t d, bool columns)
{
    assert_non_null(from);
    if (columns) exchange(to, from, b, t, h, d);
    else memcpy(to, from, sizeof(float) * (size_t)(b * h * t * d));
}

/* Runs c, its heads as a dimension or in the columns; opts may ask for more. */
static qkv_status run(const one *c, bool columns, const qkv_attention_opts *extra, const qkv_tape_opts *tape, result *r)
{
    qkv_tape *t = qkv_tape_new(tape);
    if (!t) return qkv_error_status();
    qkv_tensor *q = operand(t, c->q, c->batch, c->heads, c->tq, c->dk, columns);
    qkv_tensor *k = operand(t, c->k, c->batch, c->kv_heads, c->tk, c->dk, columns);
    qkv_tensor *v = operand(t, c->v, c->batch, c->kv_heads, c->tk, c->dv, columns);
    qkv_tensor *w = operand(t, c->w, c->batch, c->heads, c->tq, c->dv, columns);
    qkv_attention_opts opts = extra ? *extra : (qkv_attention_opts){ 0 };
    if (columns) opts.heads = c->heads, opts.kv_heads = c->kv_heads;
    qkv_tensor *y = qkv_attention(q, k, v, &c->mask, &opts);
    qkv_status status = qkv_backward(qkv_sum(qkv_mul(y, w), QKV_ALL_DIMS));
    if (!status && r) {
        take(r->y, qkv_tensor_data(y), c->batch, c->heads, c->tq, c->dv, columns);
        take(r->q, qkv_tensor_grad(q), c->batch, c->heads, c->tq, c->dk, columns);
        take(r->k, qkv_tensor_grad(k), c->batch, c->kv_heads, c->tk, c->dk, columns);
        take(r->v, qkv_tensor_grad(v), c->batch, c->kv_heads, c->tk, c->dv, columns);
    }
    qkv_tape_free(t);
    return status;
}

static void compare(const char *what, int number, const float *got, const float *expected, int64_t n, float tolerance)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - expected[i]) <= tolerance * fmaxf(1, fabsf(expected[i]))))
            fail_msg("%s, case %d: %s[%lld] is %.7g, expected %.7g", qkv_isa(), number, what, (long long)i, (double)got[i],
                     (double)expected[i]);
}

static void compare_results(int number, const one *c, const result *got, const result *expected)
{
    compare("y", number, got->y, expected->y, c->batch * c->heads * c->tq * c->dv, 1e-5f);
    compare("dq", number, got->q, expected->q, c->batch * c->heads * c->tq * c->dk, 1e-4f);
    compare("dk", number, got->k, expected->k, c->batch * c->kv_heads * c->tk * c->dk, 1e-4f);
    compare("dv", number, got->v, expected->v, c->batch * c->kv_heads * c->tk * c->dv, 1e-4f);
}

static void read_floats(FILE *f, float *to, int64_t n) { assert_int_equal(fread(to, sizeof(float), (size_t)n, f), n); }

static void golden(void **state)
{
    (void)state;
    static result expected, got;
    FILE *f = fopen(QKV_GOLDEN "/attention.f32", "rb");
    assert_non_null(f);
    for (int number = 0; number < CASES; number++) {
        const one *c = drawn(number);
        read_floats(f, expected.y, c->batch * c->heads * c->tq * c->dv);
        read_floats(f, expected.q, c->batch * c->heads * c->tq * c->dk);
        read_floats(f, expected.k, c->batch * c->kv_heads * c->tk * c->dk);
        read_floats(f, expected.v, c->batch * c->kv_heads * c->tk * c->dv);
        for (int i = 0; qkv_isa_at(i); i++) {
            qkv_set_isa(qkv_isa_at(i));
            for (int columns = 0; columns < 2; columns++) {
                assert_int_equal(run(c, columns, NULL, NULL, &got), QKV_OK);
                compare_results(number, c, &got, &expected);
            }
        }
    }
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
}

/* ---- finite differences ---- */

static double loss_of(const one *c)
{
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    qkv_tensor *y = qkv_attention(operand(t, c->q, c->batch, c->heads, c->tq, c->dk, false),
                                  operand(t, c->k, c->batch, c->kv_heads, c->tk, c->dk, false),
                                  operand(t, c->v, c->batch, c->kv_heads, c->tk, c->dv, false), &c->mask, NULL);
    double sum = 0;
    for (int64_t i = 0; i < qkv_tensor_count(y); i++) sum += (double)qkv_tensor_data(y)[i] * (double)c->w[i];
    qkv_tape_free(t);
    return sum;
}

static void check_slopes(const char *what, int number, one *c, float *x, const float *grad, int64_t n)
{
    const float step = 0.015625f;
    for (int64_t i = 0; i < n; i++) {
        float at = x[i];
        x[i] = at + step;
        double above = loss_of(c);
        x[i] = at - step;
        double slope = (above - loss_of(c)) / (2 * (double)step);
        x[i] = at;
        if (!(fabs(slope - (double)grad[i]) <= 2e-3 * fmax(1, fabs(slope))))
            fail_msg("case %d: %s[%lld] is %g, the slope is %g", number, what, (long long)i, (double)grad[i], slope);
    }
}

static void finite_differences(void **state)
{
    (void)state;
    static result r;
    for (int number = 0; number < CASES; number++) {
        one *c = drawn(number);
        assert_int_equal(run(c, false, NULL, NULL, &r), QKV_OK);
        check_slopes("dq", number, c, c->q, r.q, c->batch * c->heads * c->tq * c->dk);
        check_slopes("dk", number, c, c->k, r.k, c->batch * c->kv_heads * c->tk * c->dk);
        check_slopes("dv", number, c, c->v, r.v, c->batch * c->kv_heads * c->tk * c->dv);
    }
}

/* ---- larger than a tile ---- */

static one *large(int64_t batch, int64_t heads, int64_t kv_heads, int64_t tq, int64_t tk, int64_t dk, int64_t dv, int64_t masks)
{
    static one c;
    draw_state = (uint32_t)(tq * 131 + tk + masks);
    c.batch = batch, c.heads = heads, c.kv_heads = kv_heads, c.tq = tq, c.tk = tk, c.dk = dk, c.dv = dv;
    draw_masks(&c, masks & 3);
    if (masks & 4) { /* the same map for every sequence and head */
        c.mask.keep = c.keep;
        memcpy(c.mask.keep_shape, (int64_t[]){ 1, 1, tq, 1 }, sizeof c.mask.keep_shape);
        for (int64_t i = 0; i < tq; i++) c.keep[i] = below(9) != 0;
    }
    if (masks & 8) {
        c.mask.bias = c.bias;
        memcpy(c.mask.bias_shape, (int64_t[]){ 1, heads, 1, tk }, sizeof c.mask.bias_shape);
        for (int64_t i = 0; i < heads * tk; i++) c.bias[i] = below(9) ? (float)below(100) / 50 : -INFINITY;
    }
    draw_operands(&c);
    return &c;
}

static void instruction_sets_against_reference(void **state)
{
    (void)state;
    static const int64_t shapes[][7] = { { 1, 2, 1, 150, 213, 40, 24 }, { 2, 2, 2, 97, 96, 17, 33 },
                                         { 1, 4, 2, 33, 193, 64, 64 },  { 3, 1, 1, 1, 300, 8, 5 },
                                         { 1, 1, 1, 200, 7, 3, 16 },    { 1, 2, 2, 16, 16, 1, 1 } };
    static result expected, got;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int64_t masks = 0; masks < 32; masks++) { /* the sixteen masks, without and with dropout */
            const int64_t *n = shapes[s];
            const one *c = large(n[0], n[1], n[2], n[3], n[4], n[5], n[6], masks % 16);
            qkv_attention_opts opts = { .dropout = masks < 16 ? 0 : 0.3f };
            qkv_set_isa("ref");
            assert_int_equal(run(c, false, &opts, &(qkv_tape_opts){ .train = 1, .seed = 3 }, &expected), QKV_OK);
            for (int i = 1; qkv_isa_at(i); i++) {
                qkv_set_isa(qkv_isa_at(i));
                assert_int_equal(run(c, i % 2, &opts, &(qkv_tape_opts){ .train = 1, .seed = 3 }, &got), QKV_OK);
                compare_results((int)(s * 100 + (size_t)masks), c, &got, &expected);
            }
        }
}

/* Windows of no whole tile, with every mask; caps where there is no bias. */
static void windows_and_caps_against_reference(void **state)
{
    (void)state;
    static const int64_t windows[] = { 1, 70, 140 };
    static result expected, got;
    for (int64_t number = 0; number < 48; number++) {
        const one *c = large(1, 2, 1, 150, 213, 24, 24, number % 16);
        qkv_attention_opts opts = { .size = sizeof opts, .window = windows[number / 16] };
        opts.softcap = c->mask.bias ? 0 : 0.7f;
        qkv_set_isa("ref");
        assert_int_equal(run(c, false, &opts, &(qkv_tape_opts){ .train = 1, .seed = 3 }, &expected), QKV_OK);
        for (int i = 1; qkv_isa_at(i); i++) {
            qkv_set_isa(qkv_isa_at(i));
            assert_int_equal(run(c, i % 2, &opts, &(qkv_tape_opts){ .train = 1, .seed = 3 }, &got), QKV_OK);
            compare_results((int)number, c, &got, &expected);
        }
    }
    const one *c = large(1, 1, 1, 5, 5, 4, 4, 8);
    qkv_attention_opts wrong[] = { { .size = sizeof *wrong, .softcap = 1 },
                                   { .size = sizeof *wrong, .window = -1 },
                                   { .size = sizeof *wrong, .softcap = NAN } };
    for (int i = 0; i < 3; i++) assert_int_equal(run(c, false, &wrong[i], NULL, &got), QKV_USAGE);
}

/* ---- bits ---- */

static void digest(const one *c, const qkv_attention_opts *opts, const qkv_tape_opts *tape, char text[65])
{
    static result r;
    sha256 s;
    sha256_start(&s);
    for (int columns = 0; columns < 2; columns++) {
        assert_int_equal(run(c, columns, opts, tape, &r), QKV_OK);
        sha256_add(&s, r.y, sizeof(float) * (size_t)(c->batch * c->heads * c->tq * c->dv));
        sha256_add(&s, r.q, sizeof(float) * (size_t)(c->batch * c->heads * c->tq * c->dk));
        sha256_add(&s, r.k, sizeof(float) * (size_t)(c->batch * c->kv_heads * c->tk * c->dk));
        sha256_add(&s, r.v, sizeof(float) * (size_t)(c->batch * c->kv_heads * c->tk * c->dv));
    }
    sha256_end(&s, text);
}

static void same_bits_on_any_threads(void **state)
{
    (void)state;
    const one *c = large(2, 4, 2, 150, 170, 24, 20, 3);
    const qkv_attention_opts opts = { .dropout = 0.1f };
    const qkv_tape_opts tape = { .train = 1, .seed = 9 };
    char first[65], text[65];
    for (int threads = 1; threads <= 4; threads++) {
        qkv_set_num_threads(threads);
        digest(c, &opts, &tape, threads == 1 ? first : text);
        print_message("attention, %d threads: sha256 %s\n", threads, threads == 1 ? first : text);
        if (threads > 1) assert_string_equal(first, text);
    }
    qkv_set_num_threads(0);
}

/* Asking for weights and scores, here or by the tape, changes no bit of anything else. */
static void asking_changes_no_bit(void **state)
{
    (void)state;
    const one *c = large(2, 4, 2, 50, 120, 24, 20, 3);
    char plain[65], asked[65];
    qkv_tensor *weights, *scaled, *scores;
    digest(c, NULL, NULL, plain);
    digest(c, &(qkv_attention_opts){ .weights = &weights, .scaled = &scaled, .scores = &scores },
           &(qkv_tape_opts){ .keep_attention = 1 }, asked);
    assert_string_equal(plain, asked);
}

static qkv_tensor *slice_of(qkv_tape *t, const float *x, int64_t b, int64_t from, int64_t to, int64_t length, int64_t d)
{
    return qkv_constant(t, QKV_SHAPE(1, to - from, d), x + (b * length + from) * d);
}

/* A sequence alone, with its own length, and a query alone, with the keys it sees, give the bits they give in a padded batch
 * of 7. */
static void same_bits_alone_as_in_a_batch(void **state)
{
    (void)state;
    enum { B = 7, T = 130, H = 3, D = H * 20 };
    static float q[B * T * D], k[B * T * D], v[B * T * D];
    int32_t lengths[B] = { 130, 1, 97, 96, 50, 17, 129 };
    for (int64_t i = 0; i < B * T * D; i++)
        q[i] = (float)below(1000) / 500, k[i] = (float)below(1000) / 500, v[i] = (float)below(1000) / 500;
    const qkv_attention_opts opts = { .heads = H };
    for (int isa = 0; qkv_isa_at(isa); isa++) {
        qkv_set_isa(qkv_isa_at(isa));
        qkv_tape *t = qkv_tape_new(NULL);
        qkv_tensor *all = qkv_attention(qkv_constant(t, QKV_SHAPE(B, T, D), q), qkv_constant(t, QKV_SHAPE(B, T, D), k),
                                        qkv_constant(t, QKV_SHAPE(B, T, D), v),
                                        &(qkv_mask){ .causal = 1, .key_lengths = lengths }, &opts);
        for (int b = 0; b < B; b++) {
            int64_t n = lengths[b], row = n / 2;
            qkv_tensor *alone = qkv_attention(slice_of(t, q, b, 0, n, T, D), slice_of(t, k, b, 0, n, T, D),
                                              slice_of(t, v, b, 0, n, T, D), QKV_CAUSAL, &opts);
            qkv_tensor *cached = qkv_attention(slice_of(t, q, b, row, row + 1, T, D), slice_of(t, k, b, 0, row + 1, T, D),
                                               slice_of(t, v, b, 0, row + 1, T, D), QKV_CAUSAL, &opts);
            assert_int_equal(qkv_tape_status(t), QKV_OK);
            assert_memory_equal(qkv_tensor_data(alone), qkv_tensor_data(all) + b * T * D, sizeof(float) * (size_t)(n * D));
            assert_memory_equal(qkv_tensor_data(cached), qkv_tensor_data(all) + (b * T + row) * D, sizeof(float) * D);
        }
        qkv_tape_free(t);
    }
}

/* ---- masks and numbers ---- */

/* Weights of every case: 0 where hidden, rows that sum to 1 or are all 0, the output is their sum of values. */
static void weights_are_weights(void **state)
{
    (void)state;
    for (int number = 0; number < CASES; number++) {
        const one *c = drawn(number);
        qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .keep_attention = 1 });
        qkv_tensor *scaled;
        qkv_attention(operand(t, c->q, c->batch, c->heads, c->tq, c->dk, false),
                      operand(t, c->k, c->batch, c->kv_heads, c->tk, c->dk, false),
                      operand(t, c->v, c->batch, c->kv_heads, c->tk, c->dv, false), &c->mask,
                      &(qkv_attention_opts){ .scaled = &scaled });
        const float *w = qkv_tensor_data(qkv_tape_attention(t, 0)), *s = qkv_tensor_data(scaled);
        assert_null(qkv_tape_attention(t, 1));
        for (int64_t row = 0; row < c->batch * c->heads * c->tq; row++, w += c->tk, s += c->tk) {
            double sum = 0;
            int64_t seen = 0;
            for (int64_t j = 0; j < c->tk; j++) {
                sum += (double)w[j];
                seen += s[j] > -INFINITY;
                if (s[j] == -INFINITY) assert_true(w[j] == 0);
            }
            assert_true(seen ? fabs(sum - 1) < 1e-6 : sum == 0);
        }
        qkv_tape_free(t);
    }
}

static void assert_all_zero(const float *x, int64_t n)
{
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) assert_true(x[i] == 0);
}

/* Nothing to see, in each of the ways that can be said: zeros, and gradients of zero. */
static void nothing_to_see(void **state)
{
    (void)state;
    static result r;
    static uint8_t none[64];
    float hidden[1] = { -INFINITY };
    const qkv_mask masks[] = { { .key_lengths = (int32_t[]){ 0, 0 } },
                               { .keep = none, .keep_shape = { 1, 1, 1, 1 } },
                               { .bias = hidden, .bias_shape = { 1, 1, 1, 1 } } };
    for (size_t i = 0; i < 3; i++)
        for (int isa = 0; qkv_isa_at(isa); isa++) {
            qkv_set_isa(qkv_isa_at(isa));
            one *c = large(2, 2, 1, 20, 30, 8, 6, 0);
            c->mask = masks[i];
            assert_int_equal(run(c, false, NULL, NULL, &r), QKV_OK);
            assert_all_zero(r.y, 2 * 2 * 20 * 6);
            assert_all_zero(r.q, 2 * 2 * 20 * 8);
            assert_all_zero(r.k, 2 * 1 * 30 * 8);
            assert_all_zero(r.v, 2 * 1 * 30 * 6);
        }
}

/* Scores of +-1e4 stay finite, and the largest one wins by what it leads. */
static void large_scores(void **state)
{
    (void)state;
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_tensor *weights;
    qkv_tensor *q = qkv_variable(t, QKV_SHAPE(2, 1), F(100, -100)), *k = qkv_variable(t, QKV_SHAPE(3, 1), F(100, 99.99f, -100));
    qkv_tensor *y = qkv_attention(q, k, qkv_variable(t, QKV_SHAPE(3, 1), F(1, 2, 3)), NULL,
                                  &(qkv_attention_opts){ .weights = &weights });
    assert_int_equal(qkv_backward(qkv_sum(y, QKV_ALL_DIMS)), QKV_OK);
    float lead = expf(100 * (99.99f - 100)); /* the second of 99.99 as a float */
    assert_near(qkv_tensor_data(weights), F(1 / (1 + lead), lead / (1 + lead), 0, 0, 0, 1), 6, 1e-3f);
    for (int i = 0; i < 2; i++) {
        float sum = qkv_tensor_data(weights)[3 * i] + qkv_tensor_data(weights)[3 * i + 1] + qkv_tensor_data(weights)[3 * i + 2];
        assert_true(fabsf(sum - 1) < 1e-6f);
        assert_true(isfinite(qkv_tensor_data(y)[i]) && isfinite(qkv_tensor_grad(q)[i]) && isfinite(qkv_tensor_grad(k)[i]));
    }
    qkv_tape_free(t);
}

static void empty_and_single(void **state)
{
    (void)state;
    static result r;
    for (int64_t tq = 0; tq < 2; tq++)
        for (int64_t tk = 0; tk < 2; tk++) {
            one *c = large(1, 2, 2, tq, tk, 3, 4, 0);
            assert_int_equal(run(c, false, NULL, NULL, &r), QKV_OK);
            if (tq && tk) assert_memory_equal(r.y, c->v, sizeof(float) * 8); /* one key: its value */
            else assert_all_zero(r.y, tq * 8);
        }
    assert_int_equal(run(large(0, 2, 2, 3, 3, 3, 4, 1), false, NULL, NULL, &r), QKV_OK);
    assert_int_equal(run(large(1, 2, 2, 3, 3, 3, 0, 1), true, NULL, NULL, &r), QKV_OK);
}

/* Hidden keys may hold anything. */
static void hidden_keys_are_not_read(void **state)
{
    (void)state;
    static result clean, dirty;
    one *c = large(1, 2, 2, 10, 40, 8, 8, 0);
    c->mask.key_lengths = (int32_t[]){ 21 };
    assert_int_equal(run(c, false, NULL, NULL, &clean), QKV_OK);
    for (int64_t h = 0; h < 2; h++)
        for (int64_t i = (h * 40 + 21) * 8; i < (h * 40 + 40) * 8; i++) c->k[i] = c->v[i] = NAN;
    assert_int_equal(run(c, false, NULL, NULL, &dirty), QKV_OK);
    assert_memory_equal(clean.y, dirty.y, sizeof(float) * 2 * 10 * 8);
    assert_memory_equal(clean.q, dirty.q, sizeof(float) * 2 * 10 * 8);
}

/* Dropout zeroes about p of the weights and scales the others; the weights shown are those before it. */
static void dropout(void **state)
{
    (void)state;
    enum { T = 300 };
    static float zeros[T], identity[T * T];
    for (int i = 0; i < T; i++) identity[i * T + i] = 1;
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .train = 1, .seed = 5 });
    qkv_tensor *weights;
    /* equal scores and one-hot values: y is the weights after dropout */
    qkv_tensor *y = qkv_attention(qkv_constant(t, QKV_SHAPE(T, 1), zeros), qkv_constant(t, QKV_SHAPE(T, 1), zeros),
                                  qkv_constant(t, QKV_SHAPE(T, T), identity), NULL,
                                  &(qkv_attention_opts){ .dropout = 0.25f, .weights = &weights });
    assert_int_equal(qkv_tape_status(t), QKV_OK);
    int64_t dropped = 0;
    for (int64_t i = 0; i < T * T; i++) {
        assert_true(fabsf(qkv_tensor_data(weights)[i] - 1.0f / T) < 1e-8f);
        dropped += qkv_tensor_data(y)[i] == 0;
        if (qkv_tensor_data(y)[i] != 0) assert_true(fabsf(qkv_tensor_data(y)[i] - 1 / (0.75f * T)) < 1e-7f);
    }
    assert_true(llabs((long long)dropped - T * T / 4) < 600); /* 4.6 standard deviations */
    qkv_tape_free(t);
}

/* ---- bad input ---- */

typedef struct refusal {
    int64_t q[6], k[6], v[6]; /* dimensions, 0 ends them */
    qkv_mask mask;
    qkv_attention_opts opts;
    qkv_status status;
    const char *words;
} refusal;

static qkv_tensor *of_shape(qkv_tape *t, const int64_t *shape)
{
    int n = 0;
    while (shape[n]) n++;
    return qkv_constant(t, n, shape, NULL);
}

static void bad_input(void **state)
{
    (void)state;
    static const float nan[1] = { NAN }, inf[1] = { INFINITY };
    static const uint8_t two[1] = { 2 };
    const refusal rows[] = {
        { { 3 }, { 3 }, { 3 }, { 0 }, { .scale = 0 }, QKV_USAGE, "q has shape (3), expected 2 or 3 dimensions" },
        { { 1, 1, 2, 3, 4 },
          { 1, 1, 2, 3, 4 },
          { 1, 1, 2, 3, 4 },
          { 0 },
          { .scale = 0 },
          QKV_USAGE,
          "expected 2 or 3 dimensions" },
        { { 2, 3 }, { 1, 2, 3 }, { 1, 2, 3 }, { 0 }, { .scale = 0 }, QKV_USAGE, "as many dimensions" },
        { { 2, 3 }, { 2, 4 }, { 2, 4 }, { 0 }, { .scale = 0 }, QKV_USAGE, "same width" },
        { { 2, 3 }, { 2, 3 }, { 4, 3 }, { 0 }, { .scale = 0 }, QKV_USAGE, "same length" },
        { { 2, 2, 3 }, { 3, 2, 3 }, { 3, 2, 3 }, { 0 }, { .scale = 0 }, QKV_USAGE, "same batch" },
        { { 1, 6, 2, 3 }, { 1, 4, 2, 3 }, { 1, 4, 2, 3 }, { 0 }, { .scale = 0 }, QKV_USAGE, "q has 6 heads, k has 4" },
        { { 1, 6, 2, 3 }, { 1, 2, 2, 3 }, { 1, 3, 2, 3 }, { 0 }, { .scale = 0 }, QKV_USAGE, "same heads" },
        { { 2, 6 }, { 2, 6 }, { 2, 6 }, { 0 }, { .heads = 4 }, QKV_USAGE, "4 heads do not divide" },
        { { 2, 6 }, { 2, 6 }, { 2, 6 }, { 0 }, { .heads = -2 }, QKV_USAGE, "negative" },
        { { 2, 3 },
          { 2, 3 },
          { 2, 3 },
          { .keep = two, .keep_shape = { 1, 1, 1, 1 } },
          { .scale = 0 },
          QKV_USAGE,
          "keep[0] is 2" },
        { { 2, 3 },
          { 2, 3 },
          { 2, 3 },
          { .keep = two, .keep_shape = { 1, 1, 1, 3 } },
          { .scale = 0 },
          QKV_USAGE,
          "does not stretch" },
        { { 2, 3 },
          { 2, 3 },
          { 2, 3 },
          { .bias = nan, .bias_shape = { 1, 1, 1, 1 } },
          { .scale = 0 },
          QKV_NUMERIC,
          "bias[0] is NaN" },
        { { 2, 3 },
          { 2, 3 },
          { 2, 3 },
          { .bias = inf, .bias_shape = { 1, 1, 1, 1 } },
          { .scale = 0 },
          QKV_NUMERIC,
          "bias[0] is +inf" },
        { { 2, 3 },
          { 2, 3 },
          { 2, 3 },
          { .bias = nan, .bias_shape = { 2, 1, 1, 1 } },
          { .scale = 0 },
          QKV_USAGE,
          "does not stretch" },
        { { 2, 3 },
          { 2, 3 },
          { 2, 3 },
          { .key_lengths = (int32_t[]){ 3 } },
          { .scale = 0 },
          QKV_USAGE,
          "key length 0 is 3, expected 0 to 2" },
        { { 2, 3 }, { 2, 3 }, { 2, 3 }, { .key_lengths = (int32_t[]){ -1 } }, { .scale = 0 }, QKV_USAGE, "key length 0 is -1" },
        { { 2, 3 }, { 2, 3 }, { 2, 3 }, { 0 }, { .dropout = 1 }, QKV_USAGE, "dropout is 1" },
        { { 2, 3 }, { 2, 3 }, { 2, 3 }, { 0 }, { .dropout = NAN }, QKV_USAGE, "dropout is nan" },
        { { 2, 3 }, { 2, 3 }, { 2, 3 }, { 0 }, { .scale = NAN }, QKV_NUMERIC, "scale is nan" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_tape *t = qkv_tape_new(NULL);
        qkv_tensor *weights = NULL;
        qkv_attention_opts opts = rows[i].opts;
        opts.weights = &weights;
        assert_null(
            qkv_attention(of_shape(t, rows[i].q), of_shape(t, rows[i].k), of_shape(t, rows[i].v), &rows[i].mask, &opts));
        assert_null(weights);
        assert_int_equal(qkv_tape_status(t), rows[i].status);
        if (!strstr(qkv_error(), rows[i].words))
            fail_msg("row %zu says \"%s\", expected \"%s\"", i, qkv_error(), rows[i].words);
        qkv_tape_free(t);
    }
}

static qkv_status masked_forward_and_backward(void)
{
    one *c = large(1, 2, 2, 20, 30, 8, 8, 15);
    qkv_tensor *weights, *scores;
    return run(c, false, &(qkv_attention_opts){ .weights = &weights, .scores = &scores, .dropout = 0.1f },
               &(qkv_tape_opts){ .train = 1, .keep_attention = 1 }, NULL);
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        qkv_set_num_threads(threads);
        assert_true(each_allocation_fails(masked_forward_and_backward) > 3);
    }
    qkv_set_num_threads(0);
}

/* Forward and backward at 4,096 queries and keys: one map of weights alone would be 64 MiB. */
static void memory_is_linear(void **state)
{
    (void)state;
    enum { T = 4096, D = 8 };
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_tensor *x = qkv_variable(t, QKV_SHAPE(T, D), NULL);
    for (int64_t i = 0; i < T * D; i++) qkv_tensor_data_mut(x)[i] = (float)below(100) / 100;
    assert_int_equal(qkv_backward(qkv_sum(qkv_attention(x, x, x, QKV_CAUSAL, NULL), QKV_ALL_DIMS)), QKV_OK);
    assert_true(qkv_tape_peak_bytes(t) < 4 << 20);
    qkv_tape_free(t);
}

static int best_isa(void **state)
{
    (void)state;
    int n = 0;
    while (qkv_isa_at(n + 1)) n++;
    return (int)qkv_set_isa(qkv_isa_at(n));
}

#define TEST(name) cmocka_unit_test_setup(name, best_isa)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(worked_examples),
        TEST(worked_self_attention),
        TEST(golden),
        TEST(finite_differences),
        TEST(instruction_sets_against_reference),
        TEST(windows_and_caps_against_reference),
        TEST(same_bits_on_any_threads),
        TEST(asking_changes_no_bit),
        TEST(same_bits_alone_as_in_a_batch),
        TEST(weights_are_weights),
        TEST(nothing_to_see),
        TEST(large_scores),
        TEST(empty_and_single),
        TEST(hidden_keys_are_not_read),
        TEST(dropout),
        TEST(bad_input),
        TEST(any_allocation_may_fail),
        TEST(memory_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
