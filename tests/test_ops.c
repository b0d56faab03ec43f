/* test_ops.c: every row of ops.def: gradients against finite differences, results and gradients against PyTorch, the same bits
 * on any number of threads. */
#include <qkv/tensor.h>
#include <qkv/unstable/util.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing.h"
#include "tensor/inplace.h"

/* ---- what the rows are made of; tests/golden/make_ops.py has the same ---- */

static void lcg(uint32_t seed, float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / 16777216.0f * 4.0f - 2.0f;
    }
}

static int64_t rows(const qkv_tensor *x) { return qkv_tensor_count(x) / qkv_tensor_dim(x, -1); }

static qkv_tape *tape_in_use;

/* A constant of x's shape. */
static qkv_tensor *like(const qkv_tensor *x)
{
    qkv_tensor *y = x ? qkv_constant(tape_in_use, qkv_tensor_ndim(x), qkv_tensor_shape(x), NULL) : NULL;
    if (y) lcg(99, qkv_tensor_data_mut(y), qkv_tensor_count(y));
    return y;
}

/* The operations copy what they keep, so one array of each kind is enough. */
enum { MOST = 1 << 16 };

static const int32_t *ids(int64_t n, int64_t limit)
{
    static int32_t all[MOST];
    assert_true(n <= MOST);
    for (int64_t i = 0; i < n; i++) all[i] = (int32_t)((i * 7 + 3) % limit);
    return all;
}

/* Some rows do not count. */
static const int32_t *some_ids(int64_t n, int64_t limit, int32_t ignored)
{
    static int32_t some[MOST];
    const int32_t *all = ids(n, limit);
    for (int64_t i = 0; i < n; i++) some[i] = all[i] == ignored ? QKV_IGNORE : all[i];
    return some;
}

static const float *harmonic(int64_t n)
{
    static float all[MOST];
    assert_true(n <= MOST);
    for (int64_t i = 0; i < n; i++) all[i] = 1.0f / (float)(1 + i);
    return all;
}

/* Of large inputs one that begins in the middle of a tile of keys. */
static int64_t windowed(const qkv_tensor *q) { return qkv_tensor_dim(q, -2) < 20 ? 3 : 70; }

/* Every part of a mask at once, for q (B,H,Tq,..) and k (B,H,Tk,..). */
static const qkv_mask *all_masks(const qkv_tensor *q, const qkv_tensor *k)
{
    static uint8_t keep[MOST];
    static float bias[MOST];
    static int32_t lengths[MOST];
    int64_t batch = qkv_tensor_dim(q, 0), heads = qkv_tensor_dim(q, 1), n_q = qkv_tensor_dim(q, 2), n_k = qkv_tensor_dim(k, 2);
    assert_true(batch * n_q * n_k <= MOST && heads * n_k <= MOST);
    for (int64_t i = 0; i < batch * n_q * n_k; i++) keep[i] = (i * 7 + 3) % 5 != 0;
    for (int64_t i = 0; i < heads * n_k; i++) bias[i] = (float)(i % 3) * 0.5f;
    for (int64_t i = 0; i < batch; i++) lengths[i] = (int32_t)(n_k > 2 * i ? n_k - 2 * i : 0);
    static qkv_mask mask;
    mask = (qkv_mask){ .causal = 1,
                       .key_lengths = lengths,
                       .keep = keep,
                       .keep_shape = { batch, 1, n_q, n_k },
                       .bias = bias,
                       .bias_shape = { 1, heads, 1, n_k } };
    return &mask;
}

/* ---- the table ---- */

enum { MAX_IN = 4 };

typedef struct shape {
    int ndim;
    int64_t dim[QKV_MAX_DIMS];
} shape;

typedef struct op {
    const char *name;
    shape small[MAX_IN + 1], large[MAX_IN + 1]; /* up to the first of -1 dimensions */
    qkv_tensor *(*run)(qkv_tape *t, qkv_tensor *a, qkv_tensor *b, qkv_tensor *c, qkv_tensor *d);
} op;

#define OP(name, small, large, result)                                                                     \
    static qkv_tensor *run_##name(qkv_tape *t, qkv_tensor *a, qkv_tensor *b, qkv_tensor *c, qkv_tensor *d) \
    {                                                                                                      \
        (void)t, (void)a, (void)b, (void)c, (void)d;                                                       \
        return result;                                                                                     \
    }
#include "ops.def"
#undef OP

#define IN(...) { (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), { __VA_ARGS__ } },
#define SCALAR { 0, { 0 } },
#define OP(name, small, large, result) { #name, { small{ -1, { 0 } } }, { large{ -1, { 0 } } }, run_##name },
static const op ops[] = {
#include "ops.def"
};
enum { N_OPS = sizeof ops / sizeof *ops };

/* ---- running a row ---- */

typedef struct values {
    float *data;
    int64_t n;
} values;

/* A row's inputs, and what came of them. */
typedef struct outcome {
    int n_in;
    values in[MAX_IN], y, grad[MAX_IN];
} outcome;

static values new_values(int64_t n)
{
    values v = { malloc(sizeof(float) * (size_t)(n + 1)), n };
    assert_non_null(v.data);
    return v;
}

static values copy_values(const float *from, int64_t n)
{
    values v = new_values(n);
    assert_non_null(from);
    memcpy(v.data, from, sizeof(float) * (size_t)n);
    return v;
}

static outcome inputs_of(const shape *in)
{
    outcome o = { 0 };
    for (; in[o.n_in].ndim >= 0; o.n_in++) {
        int64_t n = 1;
        for (int d = 0; d < in[o.n_in].ndim; d++) n *= in[o.n_in].dim[d];
        o.in[o.n_in] = new_values(n);
        lcg(12345u + 1000u * (uint32_t)o.n_in, o.in[o.n_in].data, n);
    }
    return o;
}

static void free_outcome(outcome *o)
{
    free(o->y.data);
    for (int i = 0; i < MAX_IN; i++) {
        free(o->in[i].data);
        free(o->grad[i].data);
    }
}

static qkv_tape *new_tape(void)
{
    tape_in_use = qkv_tape_new(&(qkv_tape_opts){ .train = 1, .seed = 5 });
    assert_non_null(tape_in_use);
    return tape_in_use;
}

static qkv_tensor *run(const op *f, const shape *in, const outcome *o, qkv_tape *t, qkv_tensor *x[MAX_IN])
{
    for (int i = 0; i < MAX_IN; i++) x[i] = i < o->n_in ? qkv_variable(t, in[i].ndim, in[i].dim, o->in[i].data) : NULL;
    qkv_tensor *y = f->run(t, x[0], x[1], x[2], x[3]);
    if (!y) fail_msg("%s: %s", f->name, qkv_error());
    return y;
}

static qkv_tensor *weights_for(qkv_tape *t, const qkv_tensor *y)
{
    qkv_tensor *w = qkv_constant(t, qkv_tensor_ndim(y), qkv_tensor_shape(y), NULL);
    lcg(777, qkv_tensor_data_mut(w), qkv_tensor_count(w));
    return w;
}

/* The result and the gradients of sum(result * weights). */
static void run_both_ways(const op *f, const shape *in, outcome *o)
{
    qkv_tape *t = new_tape();
    qkv_tensor *x[MAX_IN], *y = run(f, in, o, t, x);
    if (qkv_backward(qkv_sum(qkv_mul(y, weights_for(t, y)), QKV_ALL_DIMS))) fail_msg("%s: %s", f->name, qkv_error());
    o->y = copy_values(qkv_tensor_data(y), qkv_tensor_count(y));
    for (int i = 0; i < o->n_in; i++) o->grad[i] = copy_values(qkv_tensor_grad(x[i]), qkv_tensor_count(x[i]));
    qkv_tape_free(t);
}

/* ---- gradients against finite differences ---- */

static double weighted_sum(const op *f, const outcome *o)
{
    qkv_tape *t = new_tape();
    qkv_tensor *x[MAX_IN], *y = run(f, f->small, o, t, x), *w = weights_for(t, y);
    double sum = 0;
    for (int64_t i = 0; i < qkv_tensor_count(y); i++) sum += (double)qkv_tensor_data(y)[i] * (double)qkv_tensor_data(w)[i];
    qkv_tape_free(t);
    return sum;
}

/* The slope by four points: its error falls with step^4, so the step may be large enough for floats. */
static double slope(const op *f, const outcome *o, float *x)
{
    const float step = 1.0f / 64, at = *x;
    double value[5];
    for (int i = 0; i < 5; i++) {
        *x = at + step * (float)(i - 2);
        value[i] = i == 2 ? 0 : weighted_sum(f, o);
    }
    *x = at;
    return (8 * (value[3] - value[1]) - (value[4] - value[0])) / (12 * (double)step);
}

static void gradients_are_slopes(void **state)
{
    (void)state;
    for (int k = 0; k < N_OPS; k++) {
        outcome o = inputs_of(ops[k].small);
        run_both_ways(&ops[k], ops[k].small, &o);
        for (int i = 0; i < o.n_in; i++)
            for (int64_t j = 0; j < o.in[i].n; j++) {
                double expected = slope(&ops[k], &o, &o.in[i].data[j]), got = (double)o.grad[i].data[j];
                if (!(fabs(got - expected) <= 2e-4 * fmax(1, fabs(expected))))
                    fail_msg("%s: gradient of input %d at %lld is %g, the slope is %g", ops[k].name, i, (long long)j, got,
                             expected);
            }
        free_outcome(&o);
    }
}

/* ---- PyTorch's numbers ---- */

typedef struct golden {
    char *text, *data; /* the header, and what follows it */
} golden;

static golden read_golden(void)
{
    FILE *f = fopen(GOLDEN_OPS, "rb");
    uint64_t length;
    assert_non_null(f);
    assert_int_equal(fread(&length, 8, 1, f), 1);
    assert_true(length < 1 << 20);
    golden g = { calloc(1, length + 1), calloc(1, 1 << 20) };
    assert_true(g.text && g.data);
    assert_int_equal(fread(g.text, 1, length, f), length);
    assert_true(fread(g.data, 1, 1 << 20, f) > 0);
    fclose(f);
    return g;
}

static void same_as_golden(const golden *g, const char *name, const char *part, values got, double tolerance)
{
    char key[128];
    unsigned long from, to;
    snprintf(key, sizeof key, "\"%s.%s\":", name, part);
    const char *found = strstr(g->text, key);
    if (!found || !(found = strstr(found, "data_offsets\":["))) {
        fail_msg("golden/ops.safetensors has no %s: run make_ops.py", key);
        return;
    }
    assert_int_equal(sscanf(found, "data_offsets\":[%lu,%lu]", &from, &to), 2);
    assert_int_equal(to - from, sizeof(float) * (size_t)got.n);
    for (int64_t i = 0; i < got.n; i++) {
        float expected;
        memcpy(&expected, g->data + from + sizeof(float) * (size_t)i, sizeof expected);
        if (!(fabs((double)got.data[i] - (double)expected) <= tolerance * fmax(1, fabs((double)expected))))
            fail_msg("%s.%s at %lld on %s: %.9g, PyTorch says %.9g", name, part, (long long)i, qkv_isa(), (double)got.data[i],
                     (double)expected);
    }
}

static void same_as_pytorch(void **state)
{
    (void)state;
    golden g = read_golden();
    const char *isa, *best = qkv_isa();
    for (int s = 0; (isa = qkv_isa_at(s)); s++)
        for (int k = 0; k < N_OPS; k++) {
            assert_int_equal(qkv_set_isa(isa), QKV_OK);
            outcome o = inputs_of(ops[k].small);
            run_both_ways(&ops[k], ops[k].small, &o);
            same_as_golden(&g, ops[k].name, "y", o.y, 1e-5);
            for (int i = 0; i < o.n_in; i++)
                same_as_golden(&g, ops[k].name, (char[]){ 'g', (char)('0' + i), 0 }, o.grad[i], 1e-4);
            free_outcome(&o);
        }
    qkv_set_isa(best);
    free(g.text);
    free(g.data);
}

/* ---- bits ---- */

static void same_bits(const op *f, int threads, const char *what, values a, values b)
{
    if (memcmp(a.data, b.data, sizeof(float) * (size_t)a.n))
        fail_msg("%s: with %d threads the bits of %s are others than with 1", f->name, threads, what);
}

static void same_bits_on_any_threads(void **state)
{
    (void)state;
    for (int k = 0; k < N_OPS; k++) {
        outcome first = inputs_of(ops[k].large);
        qkv_set_num_threads(1);
        run_both_ways(&ops[k], ops[k].large, &first);
        for (int threads = 2; threads <= 4; threads++) {
            outcome o = inputs_of(ops[k].large);
            qkv_set_num_threads(threads);
            run_both_ways(&ops[k], ops[k].large, &o);
            same_bits(&ops[k], threads, "the result", first.y, o.y);
            for (int i = 0; i < o.n_in; i++) same_bits(&ops[k], threads, "a gradient", first.grad[i], o.grad[i]);
            free_outcome(&o);
        }
        free_outcome(&first);
    }
    qkv_set_num_threads(0);
    qkv_shutdown();
}

/* Gradients add up: an input used twice gets twice the gradient, also where the operation would rather set than add. */
static void gradients_add(void **state)
{
    (void)state;
    for (int k = 0; k < N_OPS; k++) {
        outcome once = inputs_of(ops[k].small);
        run_both_ways(&ops[k], ops[k].small, &once);
        qkv_tape *t = new_tape();
        qkv_tensor *x[MAX_IN], *y = run(&ops[k], ops[k].small, &once, t, x);
        qkv_tensor *loss = qkv_sum(qkv_mul(y, weights_for(t, y)), QKV_ALL_DIMS);
        for (int i = 0; i < once.n_in; i++)
            loss = qkv_add(loss, qkv_sum(x[i], QKV_ALL_DIMS)); /* runs first in backward: slope 1 */
        assert_int_equal(qkv_backward(loss), QKV_OK);
        for (int i = 0; i < once.n_in; i++)
            for (int64_t j = 0; j < once.grad[i].n; j++) {
                double expected = (double)once.grad[i].data[j] + 1, got = (double)qkv_tensor_grad(x[i])[j];
                if (!(fabs(got - expected) <= 2e-5 * fmax(1, fabs(expected))))
                    fail_msg("%s: input %d at %lld: %g, expected %g", ops[k].name, i, (long long)j, got, expected);
            }
        qkv_tape_free(t);
        free_outcome(&once);
    }
}

/* ---- memory that runs out ---- */

static const op *tried;

/* Like run_both_ways, but errors are expected: an operation whose operand is NULL gives NULL. */
static qkv_status try_both_ways(void)
{
    outcome o = inputs_of(tried->large);
    qkv_tensor *x[MAX_IN];
    qkv_status status = QKV_MEMORY;
    if ((tape_in_use = qkv_tape_new(&(qkv_tape_opts){ .train = 1, .seed = 5 }))) {
        for (int i = 0; i < MAX_IN; i++)
            x[i] = i < o.n_in ? qkv_variable(tape_in_use, tried->large[i].ndim, tried->large[i].dim, o.in[i].data) : NULL;
        bool whole = true;
        for (int i = 0; i < o.n_in; i++) whole &= x[i] != NULL;
        if (whole) status = qkv_backward(qkv_sum(tried->run(tape_in_use, x[0], x[1], x[2], x[3]), QKV_ALL_DIMS));
        else status = qkv_tape_status(tape_in_use);
        qkv_tape_free(tape_in_use);
    }
    free_outcome(&o);
    return status;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    qkv_set_num_threads(2);
    for (int k = 0; k < N_OPS; k++) {
        tried = &ops[k];
        assert_true(each_allocation_fails(try_both_ways) > 2);
    }
    qkv_set_num_threads(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_slopes),     cmocka_unit_test(same_as_pytorch),          cmocka_unit_test(gradients_add),
        cmocka_unit_test(same_bits_on_any_threads), cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
