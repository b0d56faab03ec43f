/* test_kernels.c: every kernel of every instruction set of this machine against the plain-C reference, at all sizes 0..67, at
 * addresses that are no multiple of a vector, with guards around what it writes. Products have their own file. */
#include "kern/kern.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { LONGEST = 67, ROWS = 3, ROOM = ROWS * LONGEST * 2 + 64 };

/* An array that starts one float after a multiple of 64 bytes, with guards before and after. */
typedef struct guarded {
    _Alignas(64) float all[ROOM];
} guarded;

enum { GUARD = 17 };
static const float guard_value = 12345.678f;

static float *at(guarded *g) { return g->all + GUARD; }

static uint32_t lcg = 1;
static float next_value(void)
{
    lcg = lcg * 1664525u + 1013904223u;
    return (float)(lcg >> 8) / 16777216.0f * 4.0f - 2.0f;
}

static void fill(guarded *g, int64_t n)
{
    for (int i = 0; i < ROOM; i++) g->all[i] = guard_value;
    for (int64_t i = 0; i < n; i++) at(g)[i] = next_value();
}

static const char *running; /* instruction set and kernel, for messages */
static void run_name(const qkv__kernels *k, const char *name)
{
    static char text[64];
    snprintf(text, sizeof text, "%s %s", k->isa, name);
    running = text;
}

static void same_value(float value, float expected, double tolerance, int64_t n, int64_t i)
{
    if (isnan(expected) && isnan(value)) return;
    if (value == expected || fabs((double)value - (double)expected) <= tolerance * fmax(1, fabs((double)expected))) return;
    fail_msg("%s: n %lld, element %lld: %.9g, expected %.9g", running, (long long)n, (long long)i, (double)value,
             (double)expected);
}

/* The n values, and the guards around them. */
static void same(guarded *result, guarded *expected, int64_t n, double tolerance)
{
    for (int64_t i = 0; i < n; i++) same_value(at(result)[i], at(expected)[i], tolerance, n, i);
    for (int i = 0; i < ROOM; i++)
        if ((i < GUARD || i >= GUARD + n) && result->all[i] != guard_value)
            fail_msg("%s: n %lld: wrote outside, at %lld", running, (long long)n, (long long)(i - GUARD));
}

static guarded a, b, c, d, got, want, got_too, want_too;

static const double close = 1e-6;
static double sum_close(int64_t n) { return 2e-7 * (double)(n + 8); }

#define FOR_SIZES(n) for (int64_t n = 0; n <= LONGEST; n++)

/* ---- by kind, from kernels.def ---- */

static void compare_map(void (*f)(float *, const float *, int64_t), void (*ref)(float *, const float *, int64_t))
{
    FOR_SIZES(n)
    {
        fill(&a, n), fill(&got, 0), fill(&want, 0);
        f(at(&got), at(&a), n);
        ref(at(&want), at(&a), n);
        same(&got, &want, n, close);
        for (int64_t i = 0; i < n; i++) { /* the bits do not depend on the place */
            float alone;
            f(&alone, at(&a) + i, 1);
            assert_memory_equal(&alone, at(&got) + i, sizeof alone);
        }
    }
}

typedef void three(float *, const float *, const float *, int64_t);

static void compare_three(three *f, three *ref)
{
    FOR_SIZES(n)
    {
        fill(&a, n), fill(&b, n), fill(&got, n);
        want = got;
        f(at(&got), at(&a), at(&b), n);
        ref(at(&want), at(&a), at(&b), n);
        same(&got, &want, n, close);
    }
}

static void compare_sum(float (*f)(const float *, int64_t), float (*ref)(const float *, int64_t))
{
    FOR_SIZES(n)
    {
        fill(&a, n);
        same_value(f(at(&a), n), ref(at(&a), n), sum_close(n), n, 0);
    }
}

typedef float two_sum(const float *, const float *, int64_t);

static void compare_sum2(two_sum *f, two_sum *ref)
{
    FOR_SIZES(n)
    {
        fill(&a, n), fill(&b, n);
        same_value(f(at(&a), at(&b), n), ref(at(&a), at(&b), n), sum_close(n), n, 0);
    }
}

static void compare_rows(void (*f)(float *, const float *, int64_t, int64_t),
                         void (*ref)(float *, const float *, int64_t, int64_t))
{
    FOR_SIZES(n)
    {
        fill(&a, n * ROWS), fill(&got, 0), fill(&want, 0);
        f(at(&got), at(&a), ROWS, n);
        ref(at(&want), at(&a), ROWS, n);
        same(&got, &want, n * ROWS, close);
    }
}

typedef void three_rows(float *, const float *, const float *, int64_t, int64_t);

static void compare_rows_add(three_rows *f, three_rows *ref)
{
    FOR_SIZES(n)
    {
        fill(&a, n * ROWS), fill(&b, n * ROWS), fill(&got, n * ROWS);
        want = got;
        f(at(&got), at(&a), at(&b), ROWS, n);
        ref(at(&want), at(&a), at(&b), ROWS, n);
        same(&got, &want, n * ROWS, 2e-4); /* exp(y) times a sum of 67 */
    }
}

#define TEST_MAP(name) compare_map(k->name, ref->name)
#define TEST_MAP_ADD(name) compare_three(k->name, ref->name)
#define TEST_ZIP(name) compare_three(k->name, ref->name)
#define TEST_SUM(name) compare_sum(k->name, ref->name)
#define TEST_SUM2(name) compare_sum2(k->name, ref->name)
#define TEST_ROWS(name) compare_rows(k->name, ref->name)
#define TEST_ROWS_ADD(name) compare_rows_add(k->name, ref->name)
#define TEST_OTHER(name) (void)0

static void by_kind(const qkv__kernels *k, const qkv__kernels *ref)
{
#define K(kind, result, name, parameters) \
    run_name(k, #name);                   \
    TEST_##kind(name);
#include "kern/kernels.def"
#undef K
}

/* ---- those with a test of their own ---- */

static void scaled(const qkv__kernels *k, const qkv__kernels *ref)
{
    FOR_SIZES(n)
    {
        fill(&a, n), fill(&b, n), fill(&got, n);
        want = got;
        run_name(k, "scale");
        k->scale(at(&got), at(&a), 1.7f, n);
        ref->scale(at(&want), at(&a), 1.7f, n);
        same(&got, &want, n, close);
        run_name(k, "axpy");
        k->axpy(at(&got), at(&b), -0.3f, n);
        ref->axpy(at(&want), at(&b), -0.3f, n);
        same(&got, &want, n, close);
        run_name(k, "add_difference");
        k->add_difference(at(&got), at(&a), at(&b), 0.9f, n);
        ref->add_difference(at(&want), at(&a), at(&b), 0.9f, n);
        same(&got, &want, n, close);
    }
}

typedef void gated_grad(float *dgate, float *dx, const float *gate, const float *x, const float *dy, int64_t n);

static void check_gated_grad(gated_grad *f, gated_grad *ref)
{
    FOR_SIZES(n) for (int wanted = 0; wanted < 4; wanted++)
    {
        fill(&a, n), fill(&b, n), fill(&c, n), fill(&got, n), fill(&got_too, n);
        want = got, want_too = got_too;
        f(wanted & 1 ? at(&got) : NULL, wanted & 2 ? at(&got_too) : NULL, at(&a), at(&b), at(&c), n);
        ref(wanted & 1 ? at(&want) : NULL, wanted & 2 ? at(&want_too) : NULL, at(&a), at(&b), at(&c), n);
        same(&got, &want, n, close);
        same(&got_too, &want_too, n, close);
    }
}

static void gated_grads(const qkv__kernels *k, const qkv__kernels *ref)
{
    run_name(k, "silu_gated_grad");
    check_gated_grad(k->silu_gated_grad, ref->silu_gated_grad);
    run_name(k, "gelu_gated_grad");
    check_gated_grad(k->gelu_gated_grad, ref->gelu_gated_grad);
}

static void dropout(const qkv__kernels *k, const qkv__kernels *ref)
{
    static const int64_t firsts[] = { 0, 32, 96, (int64_t)1 << 33, ((int64_t)1 << 33) - 32 }; /* counters past 32 bits too */
    qkv__key key = { { 7, 9 } };
    run_name(k, "dropout");
    FOR_SIZES(n) for (size_t f = 0; f < sizeof firsts / sizeof *firsts; f++)
    {
        fill(&a, n), fill(&got, n);
        want = got;
        k->dropout(at(&got), at(&a), n, firsts[f], key, qkv__keep_below(0.4f), 1 / 0.6f);
        ref->dropout(at(&want), at(&a), n, firsts[f], key, qkv__keep_below(0.4f), 1 / 0.6f);
        same(&got, &want, n, 0);
        k->dropout_grad(at(&got), at(&a), n, firsts[f], key, qkv__keep_below(0.4f), 1 / 0.6f);
        ref->dropout_grad(at(&want), at(&a), n, firsts[f], key, qkv__keep_below(0.4f), 1 / 0.6f);
        same(&got, &want, n, close);
    }
}

static void add_rows(const qkv__kernels *k, const qkv__kernels *ref)
{
    run_name(k, "add_rows");
    FOR_SIZES(n)
    {
        fill(&a, ROWS * (n + 1)), fill(&got, n);
        want = got;
        k->add_rows(at(&got), at(&a), ROWS, n + 1, n);
        ref->add_rows(at(&want), at(&a), ROWS, n + 1, n);
        same(&got, &want, n, 0);
    }
}

static void norms(const qkv__kernels *k, const qkv__kernels *ref, float shift)
{
    for (int64_t n = 1; n <= LONGEST; n++) {
        const double tolerance = n < 3 ? 1e-3 : 2e-5; /* two numbers that are nearly equal have a steep norm */
        run_name(k, "layernorm");
        fill(&a, ROWS * n), fill(&b, n), fill(&c, n), fill(&d, ROWS * n), fill(&got, 0), fill(&got_too, 0);
        for (int64_t i = 0; i < ROWS * n; i++) at(&a)[i] += shift;
        want = got, want_too = got_too;
        const float *bias = n % 2 ? at(&c) : NULL;
        k->layernorm(at(&got), at(&got_too), at(&a), at(&b), bias, 1e-5f, ROWS, n);
        ref->layernorm(at(&want), at(&want_too), at(&a), at(&b), bias, 1e-5f, ROWS, n);
        same(&got, &want, ROWS * n, tolerance);
        for (int r = 0; r < ROWS; r++) same_value(at(&got_too)[3 * r + 2], at(&want_too)[3 * r + 2], tolerance, n, r);
        fill(&got, ROWS * n);
        want = got;
        k->layernorm_grad(at(&got), at(&a), at(&d), at(&b), at(&want_too), ROWS, n);
        ref->layernorm_grad(at(&want), at(&a), at(&d), at(&b), at(&want_too), ROWS, n);
        same(&got, &want, ROWS * n, n < 3 ? 1e-2 : 2e-5);
        run_name(k, "rmsnorm");
        k->rmsnorm(at(&got), at(&got_too), at(&a), at(&b), 1e-5f, ROWS, n);
        ref->rmsnorm(at(&want), at(&want_too), at(&a), at(&b), 1e-5f, ROWS, n);
        same(&got, &want, ROWS * n, close);
        same(&got_too, &want_too, ROWS * 3, close);
        k->rmsnorm_grad(at(&got), at(&a), at(&d), at(&b), at(&want_too), ROWS, n);
        ref->rmsnorm_grad(at(&want), at(&a), at(&d), at(&b), at(&want_too), ROWS, n);
        same(&got, &want, ROWS * n, 2e-5);
    }
}

static void norms_about_zero(const qkv__kernels *k, const qkv__kernels *ref) { norms(k, ref, 0); }
static void norms_about_2000(const qkv__kernels *k, const qkv__kernels *ref) { norms(k, ref, 2000); }

static void norm_grad_gain(const qkv__kernels *k, const qkv__kernels *ref)
{
    run_name(k, "norm_grad_gain");
    FOR_SIZES(n) for (int wanted = 0; wanted < 4; wanted++)
    {
        fill(&a, ROWS * (n + 1)), fill(&b, ROWS * (n + 1)), fill(&c, 3 * ROWS), fill(&got, n), fill(&got_too, n);
        want = got, want_too = got_too;
        k->norm_grad_gain(wanted & 1 ? at(&got) : NULL, wanted & 2 ? at(&got_too) : NULL, at(&a), at(&b), at(&c), ROWS, n + 1,
                          n);
        ref->norm_grad_gain(wanted & 1 ? at(&want) : NULL, wanted & 2 ? at(&want_too) : NULL, at(&a), at(&b), at(&c), ROWS,
                            n + 1, n);
        same(&got, &want, n, 4e-6);
        same(&got_too, &want_too, n, 4e-6);
    }
}

static void cross_entropy(const qkv__kernels *k, const qkv__kernels *ref)
{
    run_name(k, "log_sum, cross_entropy_grad");
    for (int64_t n = 1; n <= LONGEST; n++) {
        float row[3], expected[3];
        fill(&a, n), fill(&got, n);
        want = got;
        k->log_sum(row, at(&a), n);
        ref->log_sum(expected, at(&a), n);
        for (int i = 0; i < 3; i++) same_value(row[i], expected[i], sum_close(n), n, i);
        for (int add_to = 1; add_to >= 0; add_to--) {
            k->cross_entropy_grad(at(&got), at(&a), row[0], row[1], 0.01f, 0.7f, add_to, n);
            ref->cross_entropy_grad(at(&want), at(&a), row[0], row[1], 0.01f, 0.7f, add_to, n);
            same(&got, &want, n, close);
        }
    }
}

/* Every number of 16 bits, bit for bit; and any count of them at any place. */
static void widen(const qkv__kernels *k, const qkv__kernels *ref)
{
    run_name(k, "widen_bfloat, widen_half");
    enum { ALL = 1 << 16 };
    static uint16_t narrow[ALL];
    static float wide[ALL + 1], expected[ALL];
    for (int i = 0; i < ALL; i++) narrow[i] = (uint16_t)i;
    for (int is_half = 0; is_half < 2; is_half++) {
        (is_half ? ref->widen_half : ref->widen_bfloat)(expected, narrow, ALL);
        (is_half ? k->widen_half : k->widen_bfloat)(wide, narrow, ALL);
        assert_memory_equal(wide, expected, sizeof expected);
        for (int n = 0; n < 70; n++) {
            wide[n] = 12345;
            (is_half ? k->widen_half : k->widen_bfloat)(wide, narrow + 15000 + n, n);
            assert_memory_equal(wide, expected + 15000 + n, sizeof(float) * (size_t)n);
            assert_true(wide[n] == 12345);
        }
    }
    assert_true(expected[0x3C00] == 1 && expected[0xC000] == -2 && expected[1] == 0x1p-24f && isinf(expected[0x7C00]));
}

static void rotary(const qkv__kernels *k, const qkv__kernels *ref)
{
    run_name(k, "angles, rotary");
    double frequency[LONGEST];
    FOR_SIZES(n) for (int interleaved = 0; interleaved < 2; interleaved++)
    {
        for (int64_t i = 0; i < n; i++) frequency[i] = pow(10000, -(double)i / (double)n);
        double position = (double)(n * n * 97 - 1000);
        fill(&a, 0), fill(&b, 0), fill(&c, 2 * n), fill(&got, 0), fill(&got_too, 0);
        want = got, want_too = got_too;
        k->angles(at(&got), at(&got_too), frequency, position, n);
        ref->angles(at(&want), at(&want_too), frequency, position, n);
        same(&got, &want, n, 1e-7);
        same(&got_too, &want_too, n, 1e-7);
        k->rotary(at(&a), at(&c), at(&want), at(&want_too), n, interleaved);
        ref->rotary(at(&b), at(&c), at(&want), at(&want_too), n, interleaved);
        same(&a, &b, 2 * n, close);
        k->rotary_grad(at(&a), at(&c), at(&want), at(&want_too), n, interleaved);
        ref->rotary_grad(at(&b), at(&c), at(&want), at(&want_too), n, interleaved);
        same(&a, &b, 2 * n, close);
    }
}

static void additive(const qkv__kernels *k, const qkv__kernels *ref)
{
    run_name(k, "additive_score, additive_grad");
    FOR_SIZES(n)
    {
        guarded w1, w2;
        fill(&a, n), fill(&b, n), fill(&c, n), fill(&got, n), fill(&got_too, n), fill(&w1, n);
        want = got, want_too = got_too, w2 = w1;
        same_value(k->additive_score(at(&a), at(&b), at(&c), n), ref->additive_score(at(&a), at(&b), at(&c), n), sum_close(n),
                   n, 0);
        k->additive_grad(at(&got), at(&got_too), at(&w1), at(&a), at(&b), at(&c), 0.6f, n);
        ref->additive_grad(at(&want), at(&want_too), at(&w2), at(&a), at(&b), at(&c), 0.6f, n);
        same(&got, &want, n, close);
        same(&got_too, &want_too, n, close);
        same(&w1, &w2, n, close);
        k->additive_grad(NULL, NULL, NULL, at(&a), at(&b), at(&c), 0.6f, n);
    }
}

/* ---- accuracy and special values ---- */

/* Relative errors, in the far tails and near zero too, where an absolute one would hide them. */
static void relative(const qkv__kernels *k, const char *name, void (*f)(float *, const float *, int64_t),
                     void (*ref)(float *, const float *, int64_t), float from, float to, double tolerance)
{
    run_name(k, name);
    for (int i = 0; i <= 20000; i++) {
        float x = from + (to - from) * (float)i / 20000.0f, y, expected;
        f(&y, &x, 1);
        ref(&expected, &x, 1);
        if (!(fabs((double)y - (double)expected) <= tolerance * fabs((double)expected)))
            fail_msg("%s(%.9g) is %.9g, expected %.9g", running, (double)x, (double)y, (double)expected);
    }
}

static void relative_errors(const qkv__kernels *k, const qkv__kernels *ref)
{
    relative(k, "exp", k->exp, ref->exp, -87.3f, 88.7f, 2.5e-7);
    relative(k, "gelu", k->gelu, ref->gelu, -13.0f, 10.0f, 5e-7);
    relative(k, "tanh", k->tanh, ref->tanh, -12.0f, 12.0f, 2.5e-7);
    relative(k, "tanh", k->tanh, ref->tanh, -1e-3f, 1e-3f, 2.5e-7);
    relative(k, "tanh", k->tanh, ref->tanh, -1e-30f, 1e-30f, 2.5e-7);
    relative(k, "sigmoid", k->sigmoid, ref->sigmoid, -87.0f, 30.0f, 4e-7);
    relative(k, "silu", k->silu, ref->silu, -87.0f, 30.0f, 4e-7);
    relative(k, "gelu_tanh", k->gelu_tanh, ref->gelu_tanh, -3.0f, 10.0f, 2e-6);
}

static float one(void (*f)(float *, const float *, int64_t), float x)
{
    float y;
    f(&y, &x, 1);
    return y;
}

static void special_values(const qkv__kernels *k, const qkv__kernels *ref)
{
    (void)ref;
    run_name(k, "special values");
    assert_true(one(k->exp, -INFINITY) == 0 && one(k->exp, INFINITY) == INFINITY && one(k->exp, 0) == 1);
    assert_true(one(k->tanh, INFINITY) == 1 && one(k->tanh, -INFINITY) == -1 && one(k->tanh, 0) == 0);
    assert_true(one(k->sigmoid, INFINITY) == 1 && one(k->sigmoid, -INFINITY) == 0);
    assert_true(one(k->gelu, 1e20f) == 1e20f && one(k->gelu, -1e20f) == 0 && one(k->gelu, INFINITY) == INFINITY);
    assert_true(one(k->gelu_tanh, 1e20f) == 1e20f && one(k->gelu_tanh, -1e20f) == 0 && one(k->silu, -1e20f) == 0);
    float (*const sums[])(const float *, int64_t) = { k->sum, k->sum_squares };
    for (int i = 0; i < 2; i++) assert_true(isnan(sums[i]((float[]){ 1, NAN, 2 }, 3)));
    void (*const maps[])(float *, const float *, int64_t) = { k->exp,  k->relu, k->gelu,   k->gelu_tanh,
                                                              k->silu, k->tanh, k->sigmoid };
    for (int i = 0; i < 7; i++) assert_true(isnan(one(maps[i], NAN)));
    float slope = 0, big = 1e20f, unit = 1;
    k->gelu_tanh_grad(&slope, &big, &unit, 1);
    assert_true(slope == 1);
}

static void softmax_of_infinities(const qkv__kernels *k, const qkv__kernels *ref)
{
    (void)ref;
    run_name(k, "softmax");
    FOR_SIZES(n)
    {
        fill(&a, n), fill(&got, 0);
        for (int64_t i = 0; i < n; i++) at(&a)[i] = -INFINITY;
        k->softmax(at(&got), at(&a), 1, n);
        for (int64_t i = 0; i < n; i++) assert_true(at(&got)[i] == 0);
        k->log_softmax(at(&got), at(&a), 1, n);
        for (int64_t i = 0; i < n; i++) assert_true(at(&got)[i] == -INFINITY);
        if (!n) continue;
        at(&a)[n / 2] = -3.0f;
        k->softmax(at(&got), at(&a), 1, n);
        for (int64_t i = 0; i < n; i++) assert_true(at(&got)[i] == (i == n / 2 ? 1.0f : 0.0f));
    }
}

/* ---- random numbers ---- */

/* Known answers published with the generator (Random123, threefry2x32, 20 rounds). */
static void threefry_known_answers(void **state)
{
    (void)state;
    uint32_t out[2];
    qkv__threefry((qkv__key){ { 0, 0 } }, 0, 0, out);
    assert_int_equal(out[0], 0x6b200159u);
    assert_int_equal(out[1], 0x99ba4efeu);
    qkv__threefry((qkv__key){ { 0xffffffffu, 0xffffffffu } }, 0xffffffffu, 0xffffffffu, out);
    assert_int_equal(out[0], 0x1cb996fcu);
    assert_int_equal(out[1], 0xbb002be7u);
}

typedef void kernel_test(const qkv__kernels *k, const qkv__kernels *ref);

static void each_isa(void **state)
{
    kernel_test *const *test = *state;
    const qkv__kernels *k, *ref = qkv__kernels_available(0);
    assert_string_equal(ref->isa, "ref");
    for (int i = 0; (k = qkv__kernels_available(i)); i++) (*test)(k, ref);
}

#define EACH(name)                                    \
    {                                                 \
#name, each_isa, NULL, NULL, &(static_##name) \
    }
#define TESTS(T)        \
    T(by_kind)          \
    T(scaled)           \
    T(gated_grads)      \
    T(dropout)          \
    T(add_rows)         \
    T(norms_about_zero) \
    T(norms_about_2000) \
    T(norm_grad_gain)   \
    T(cross_entropy) T(widen) T(rotary) T(additive) T(relative_errors) T(special_values) T(softmax_of_infinities)
#define POINTER(name) static kernel_test *static_##name = name;
TESTS(POINTER)

static float another_sum(const float *x, int64_t n)
{
    (void)x;
    return (float)n;
}

/* A table with one kernel has all of them after inheriting, and its own is its own. */
static void tables_inherit(void **state)
{
    (void)state;
    qkv__kernels own = { .isa = "own", .sum = another_sum };
    const qkv__kernels *ref = qkv__kernels_available(0);
    qkv__kernels_inherit(&own, ref);
    assert_string_equal(own.isa, "own");
    assert_ptr_equal(own.sum, another_sum);
#define K(kind, result, name, parameters) assert_non_null(own.name);
#include "kern/kernels.def"
#undef K
    assert_ptr_equal(own.dot, ref->dot);
}

int main(void)
{
#define ROW(name) \
    EACH (name) ,
    const struct CMUnitTest tests[] = { TESTS(ROW) cmocka_unit_test(threefry_known_answers), cmocka_unit_test(tables_inherit) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
