/* test_products.c: the matrix product: every instruction set against the reference, and the same bits however it is cut. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tensor/affine.h"
#include "tensor/packed.h"
#include "tensor/quantized.h"
#include "sha256.h"

enum { MOST = 1 << 20 };

static float a[MOST], b[MOST], bias[MOST], c[MOST], expected[MOST];
static char scratch_memory[QKV__PRODUCT_SCRATCH + 64];

static float *scratch(void) { return (float *)(scratch_memory + (64 - (uintptr_t)scratch_memory % 64)); }

static uint32_t state_of_draw = 1;

static void draw(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        state_of_draw = state_of_draw * 1664525u + 1013904223u;
        x[i] = (float)(state_of_draw >> 8) / 8388608.0f - 1;
    }
}

/* The three products of a layer, and one more: y = x w^T, dx = dy w, dw = dy^T x, and both transposed. Rows of c are longer
 * than n, and everything starts at an address that no vector is aligned to. */
static qkv__product product(int form, int64_t m, int64_t n, int64_t k, bool add)
{
    bool a_turned = form >= 2, b_turned = form == 0 || form == 3;
    int64_t a_long = (a_turned ? m : k) + 1, b_long = (b_turned ? k : n) + 2;
    return (qkv__product){ .a = a + 1,
                           .b = b + 3,
                           .c = c + 1,
                           .bias = n % 2 ? bias + 1 : NULL,
                           .m = m,
                           .n = n,
                           .k = k,
                           .a_row = a_turned ? 1 : a_long,
                           .a_col = a_turned ? a_long : 1,
                           .b_row = b_turned ? 1 : b_long,
                           .b_col = b_turned ? b_long : 1,
                           .c_row = n + 3,
                           .add = add };
}

static void check(const qkv__kernels *fast, int form, int64_t m, int64_t n, int64_t k, bool add)
{
    qkv__product p = product(form, m, n, k, add);
    int64_t room = m * p.c_row + 64;
    assert_true(room < MOST);
    draw(c, room);
    memcpy(expected, c, sizeof(float) * (size_t)room);
    fast->multiply(&p, scratch());
    qkv__product q = p;
    q.c = expected + 1;
    qkv__kernels_available(0)->multiply(&q, scratch());
    float tolerance = 1e-6f * (2 + sqrtf((float)k));
    for (int64_t i = 0; i < room; i++) { /* what lies between and after the rows too */
        bool inside = i >= 1 && (i - 1) / p.c_row < m && (i - 1) % p.c_row < n;
        if (inside ? !(fabsf(c[i] - expected[i]) <= tolerance) : c[i] != expected[i])
            fail_msg("%s, form %d, %lld x %lld x %lld%s: element %lld is %g, expected %g", fast->isa, form, (long long)m,
                     (long long)n, (long long)k, add ? ", added" : "", (long long)i, (double)c[i], (double)expected[i]);
    }
}

static void against_reference(void **state)
{
    (void)state;
    static const int64_t around[] = { 0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 48, 49, 67 };
    enum { N = sizeof around / sizeof *around };
    const qkv__kernels *fast;
    draw(a, MOST);
    draw(b, MOST);
    draw(bias, MOST);
    for (int i = 1; (fast = qkv__kernels_available(i)); i++)
        for (int form = 0; form < 4; form++) {
            for (int64_t size = 0; size <= 67; size++) { /* each dimension through all sizes */
                check(fast, form, size, 19, 21, size % 2);
                check(fast, form, 13, size, 21, size % 2);
                check(fast, form, 13, 19, size, size % 2);
                check(fast, form, size, size, size, !(size % 2));
            }
            for (int m = 0; m < N; m++) /* few rows, with more than one block of k */
                for (int n = 0; n < N; n++) check(fast, form, around[m], around[n], 257 + 1024 * (n % 2), n % 3 == 0);
            check(fast, form, 200, 100, 300, true); /* more than one block of rows */
            check(fast, form, 50, 1100, 70, false); /* and of columns */
        }
}

/* A row alone has the bits it has among others, whichever way the product takes for so many rows. */
static void a_row_alone(void **state)
{
    (void)state;
    const qkv__kernels *k;
    for (int i = 1; (k = qkv__kernels_available(i)); i++)
        for (int form = 0; form < 4; form++)
            for (int64_t rows = 1; rows <= 210; rows += rows < 70 ? 1 : 70) {
                qkv__product p = product(form, rows, 41, rows % 3 ? 66 : 1031, false);
                k->multiply(&p, scratch());
                for (int64_t row = 0; row < rows; row += 1 + rows / 5) {
                    qkv__product alone = p;
                    alone.a += row * p.a_row;
                    alone.c = expected;
                    alone.m = 1;
                    k->multiply(&alone, scratch());
                    if (memcmp(expected, p.c + row * p.c_row, sizeof(float) * 41))
                        fail_msg("%s, form %d: row %lld of %lld differs from the row alone", k->isa, form, (long long)row,
                                 (long long)rows);
                }
            }
}

/* Weights of 16 bits, widened as they are read, give the bits they give widened: numbers of every size, too small to be normal
 * too, and rows of any length. */
static void weights_of_16_bits(void **state)
{
    (void)state;
    static uint16_t narrow[MOST];
    const qkv__kernels *k;
    draw(a, MOST);
    for (int64_t i = 0; i < MOST; i++) narrow[i] = (uint16_t)(i * 40503 % 0x7c00 | (i % 2) << 15);
    for (int i = 0; (k = qkv__kernels_available(i)); i++)
        for (int is_half = 0; is_half < 2; is_half++)
            for (int64_t m = 1; m <= QKV__DOTS_ROWS; m++)
                for (int64_t length = 0; length < 1100; length += length < 70 ? 1 : 137) {
                    qkv__product p = product(0, m, 7 + length % 12, length, length % 2);
                    (is_half ? k->widen_half : k->widen_bfloat)(b, narrow, p.n * p.b_col + 3);
                    draw(c, m * p.c_row + 1);
                    memcpy(expected, c, sizeof(float) * (size_t)(m * p.c_row + 1));
                    k->multiply(&p, scratch());
                    p.c = expected + 1;
                    (is_half ? k->dots_half : k->dots_bfloat)(&p, narrow + 3);
                    if (memcmp(c, expected, sizeof(float) * (size_t)(m * p.c_row + 1)))
                        fail_msg("%s, %s, %lld rows of %lld: not as widened", k->isa, is_half ? "halves" : "bfloats",
                                 (long long)m, (long long)length);
                }
    draw(b, MOST);
}

/* However thin a product is, cutting it for threads ends, and covers it. */
static void thin_products(void **state)
{
    (void)state;
    static const int64_t sizes[] = { 1, 10, 12, 13, 32, 33, 500 };
    enum { N = sizeof sizes / sizeof *sizes };
    assert_non_null(qkv_isa());
    qkv_set_num_threads(3);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            qkv__product p = product(i % 4, sizes[i], sizes[j], 1500, false);
            p.c = expected;
            qkv__kern->multiply(&p, scratch());
            p.c = c;
            memset(c, 0, sizeof c);
            assert_int_equal(qkv__multiply(&p), QKV_OK);
            for (int64_t row = 0; row < p.m; row++)
                assert_memory_equal(c + row * p.c_row, expected + row * p.c_row, sizeof(float) * (size_t)p.n);
        }
    qkv_set_num_threads(0);
}

static void multiply_inside(void *work, int64_t task, void *scratch_of_task)
{
    (void)scratch_of_task;
    qkv__product p = *(const qkv__product *)work;
    p.c = task ? c + MOST / 2 : c;
    assert_true(qkv__is_alone());
    assert_int_equal(qkv__multiply(&p), QKV_OK);
}

/* A thread that has nobody to share with cuts nothing, and finds the same bits. */
static void products_inside_a_task(void **state)
{
    (void)state;
    qkv__product p = product(0, 500, 301, 384, false);
    p.c = expected;
    qkv_set_num_threads(2);
    assert_false(qkv__is_alone());
    assert_int_equal(qkv__multiply(&p), QKV_OK);
    assert_int_equal(qkv__parallel(2, 0, multiply_inside, &p), QKV_OK);
    for (int64_t i = 0; i < 2 * p.m; i++)
        assert_memory_equal((i < p.m ? c : c + MOST / 2) + i % p.m * p.c_row, expected + i % p.m * p.c_row,
                            sizeof(float) * (size_t)p.n);
    qkv_set_num_threads(0);
}

/* ---- an affine layer ---- */

static void affine_digest(int64_t rows, int64_t in, int64_t out, char text[65])
{
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_tensor *x = qkv_variable(t, QKV_SHAPE(rows, in), a), *w = qkv_variable(t, QKV_SHAPE(out, in), b);
    qkv_tensor *bias_of = qkv_variable(t, QKV_SHAPE(out), bias), *y = qkv_affine(x, w, bias_of);
    assert_int_equal(qkv_backward(qkv_sum(qkv_mul(y, y), QKV_ALL_DIMS)), QKV_OK);
    sha256 s;
    sha256_start(&s);
    sha256_add(&s, qkv_tensor_data(y), sizeof(float) * (size_t)qkv_tensor_count(y));
    sha256_add(&s, qkv_tensor_grad(x), sizeof(float) * (size_t)qkv_tensor_count(x));
    sha256_add(&s, qkv_tensor_grad(w), sizeof(float) * (size_t)qkv_tensor_count(w));
    sha256_add(&s, qkv_tensor_grad(bias_of), sizeof(float) * (size_t)qkv_tensor_count(bias_of));
    sha256_end(&s, text);
    qkv_tape_free(t);
}

static void same_bits_on_any_threads(void **state)
{
    (void)state;
    char first[65], text[65];
    for (int threads = 1; threads <= 4; threads++) {
        qkv_set_num_threads(threads);
        affine_digest(301, 300, 500, threads == 1 ? first : text);
        print_message("affine, %d threads: sha256 %s\n", threads, threads == 1 ? first : text);
        if (threads > 1) assert_string_equal(first, text);
    }
    qkv_set_num_threads(0);
}

static void a_row_of_an_affine_layer(void **state)
{
    (void)state;
    enum { ROWS = 7, IN = 1100, OUT = 333 };
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_tensor *w = qkv_constant(t, QKV_SHAPE(OUT, IN), b), *bias_of = qkv_constant(t, QKV_SHAPE(OUT), bias);
    qkv_tensor *all = qkv_affine(qkv_constant(t, QKV_SHAPE(ROWS, IN), a), w, bias_of);
    for (int row = 0; row < ROWS; row++) {
        qkv_tensor *alone = qkv_affine(qkv_constant(t, QKV_SHAPE(1, IN), a + row * IN), w, bias_of);
        assert_int_equal(qkv_tape_status(t), QKV_OK);
        assert_memory_equal(qkv_tensor_data(alone), qkv_tensor_data(all) + row * OUT, sizeof(float) * OUT);
    }
    qkv_tape_free(t);
}

/* Several maps of one x, by one call: widths that are cut, one that is not, with and without a bias, and all of backward. */
static void affine_maps_together(void **state)
{
    (void)state;
    enum { IN = 300, N = 3 };
    static const int64_t outs[N] = { 500, 7, 130 };
    qkv_set_num_threads(3);
    for (int64_t rows = 1; rows <= 81; rows += 16) {
        const float *grads[2][2 + N] = { { 0 } };
        qkv_tape *tapes[2];
        qkv_tensor *y[2][N];
        for (int together = 0; together < 2; together++) {
            qkv_tape *t = tapes[together] = qkv_tape_new(&(qkv_tape_opts){ .keep_grads = 1 });
            qkv_tensor *x = qkv_variable(t, QKV_SHAPE(rows, IN), a), *w[N], *bias_of[N], *sum = NULL;
            for (int i = 0; i < N; i++) {
                w[i] = qkv_variable(t, QKV_SHAPE(outs[i], IN), b + i);
                bias_of[i] = i == 1 ? NULL : qkv_variable(t, QKV_SHAPE(outs[i]), bias + i);
            }
            if (together) assert_true(qkv__affine_together(x, w, bias_of, N, y[1]));
            else
                for (int i = 0; i < N; i++) y[0][i] = qkv_affine(x, w[i], bias_of[i]);
            for (int i = 0; i < N; i++) {
                qkv_tensor *square = qkv_sum(qkv_mul(y[together][i], y[together][i]), QKV_ALL_DIMS);
                sum = sum ? qkv_add(sum, square) : square;
            }
            assert_int_equal(qkv_backward(sum), QKV_OK);
            grads[together][0] = qkv_tensor_grad(x);
            for (int i = 0; i < N; i++) grads[together][1 + i] = qkv_tensor_grad(w[i]);
        }
        for (int i = 0; i < N; i++) {
            assert_memory_equal(qkv_tensor_data(y[0][i]), qkv_tensor_data(y[1][i]), sizeof(float) * (size_t)(rows * outs[i]));
            assert_memory_equal(grads[0][1 + i], grads[1][1 + i], sizeof(float) * (size_t)(outs[i] * IN));
        }
        assert_memory_equal(grads[0][0], grads[1][0], sizeof(float) * (size_t)(rows * IN));
        for (int i = 0; i < 2; i++) qkv_tape_free(tapes[i]);
    }
    qkv_set_num_threads(0);
}

typedef struct maps {
    qkv_tensor *x, **w, **bias_of, **y;
    int n;
} maps;

static void map_inside(void *work, int64_t task, void *scratch_of_task)
{
    (void)task, (void)scratch_of_task;
    const maps *m = work;
    assert_true(qkv__is_alone());
    assert_true(qkv__affine_together(m->x, m->w, m->bias_of, m->n, m->y));
}

/* The same with weights that do not change, which are packed at their second use: x is packed once for all of them where they are
 * cut into the same rows, as they are inside a task. k beyond a block, columns that fill no panel and more than a block, every
 * number of rows behind whole tiles, more rows than a block. */
static void packed_maps_together(void **state)
{
    (void)state;
    enum { IN = 1030, N = 3 };
    static const int64_t outs[N] = { 550, 7, 64 };
    for (int64_t rows = 17; rows <= 260; rows += rows < 40 ? 1 : 31) {
        qkv__packing packing[N] = { { 0 } };
        qkv_tape *t = qkv_tape_new(NULL);
        qkv_tensor *x = qkv_constant(t, QKV_SHAPE(rows, IN), a), *w[N], *bias_of[N], *alone[N], *y[N];
        for (int i = 0; i < N; i++) {
            w[i] = qkv_constant(t, QKV_SHAPE(outs[i], IN), b + i);
            bias_of[i] = i == 1 ? NULL : qkv_constant(t, QKV_SHAPE(outs[i]), bias + i);
            alone[i] = qkv_affine(x, w[i], bias_of[i]);
            assert_non_null(alone[i]);
            w[i]->packing = &packing[i];
        }
        for (int threads = 0; threads <= 3; threads++) { /* 0: the first use, unpacked */
            qkv_set_num_threads(threads ? threads : 1);
            if (threads == 3) assert_int_equal(qkv__parallel(1, 0, map_inside, &(maps){ x, w, bias_of, y, N }), QKV_OK);
            else assert_true(qkv__affine_together(x, w, bias_of, N, y));
            for (int i = 0; i < N; i++)
                assert_memory_equal(qkv_tensor_data(alone[i]), qkv_tensor_data(y[i]), sizeof(float) * (size_t)(rows * outs[i]));
        }
        for (int i = 0; i < N; i++) {
            if (kern->packed_floats(outs[i], IN)) assert_non_null(packing[i].values);
            w[i]->packing = NULL;
            qkv__packing_free(&packing[i]);
        }
        qkv_tape_free(t);
    }
    qkv_set_num_threads(0);
}

/* Products are cut at the tiles of any instruction set, those of sets that this machine lacks too: cutting comes to an end, and no
 * bits depend on it. */
static void rows_cut_at_any_tile(void **state)
{
    static const int64_t tiles[] = { 1, 16, 32, 96 };
    static qkv__kernels other;
    char usual_digest[65], digest[65];
    const qkv__kernels *usual = kern;
    qkv_set_num_threads(2);
    affine_digest(301, 300, 500, usual_digest);
    other = *usual;
    qkv__kern = &other;
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        other.row_tile = tiles[i];
        qkv_set_num_threads(2);
        affine_digest(301, 300, 500, digest);
        assert_string_equal(digest, usual_digest);
        packed_maps_together(state);
    }
    qkv__kern = usual;
}

/* packed_maps_together() for weights in 8 and 4 bits, whose rows of x are quantized once for all of them; and a mixture of both. */
static void quantized_maps_together(void **state)
{
    (void)state;
    enum { IN = 300, N = 3, GROUPS = 10, LARGEST = 500 };
    static const int64_t outs[N] = { LARGEST, 7, 130 };
    static const int bits[][N] = { { 8, 8, 8 }, { 4, 4, 4 }, { 8, 4, 8 } };
    static int8_t values[N][LARGEST * GROUPS * 32];
    static float scales[N][LARGEST * GROUPS];
    qkv_set_num_threads(3);
    for (int64_t rows = 1, kind = 0; rows <= 81; rows += 4, kind = (kind + 1) % 3) {
        qkv_tape *t = qkv_tape_new(NULL);
        qkv_tensor *x = qkv_constant(t, QKV_SHAPE(rows, IN), a), *w[N], *bias_of[N], *y[N];
        for (int i = 0; i < N; i++) {
            w[i] = qkv_constant(t, QKV_SHAPE(outs[i], IN), b + i);
            bias_of[i] = i == 1 ? NULL : qkv_constant(t, QKV_SHAPE(outs[i]), bias + i);
            w[i]->type = qkv__type_quantized(bits[kind][i]);
            assert_true(qkv__quantize_weight(w[i]->type, qkv_tensor_data(w[i]), outs[i], IN, values[i], scales[i]));
            w[i]->values = values[i], w[i]->scales = scales[i], w[i]->data = NULL;
        }
        assert_true(qkv__affine_together(x, w, bias_of, N, y));
        for (int i = 0; i < N; i++) {
            qkv_tensor *alone = qkv_affine(x, w[i], bias_of[i]);
            assert_non_null(alone);
            assert_memory_equal(qkv_tensor_data(alone), qkv_tensor_data(y[i]), sizeof(float) * (size_t)(rows * outs[i]));
        }
        qkv_tape_free(t);
    }
    qkv_set_num_threads(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_reference),        cmocka_unit_test(a_row_alone),
        cmocka_unit_test(weights_of_16_bits),       cmocka_unit_test(thin_products),
        cmocka_unit_test(same_bits_on_any_threads), cmocka_unit_test(a_row_of_an_affine_layer),
        cmocka_unit_test(affine_maps_together),     cmocka_unit_test(packed_maps_together),
        cmocka_unit_test(quantized_maps_together),  cmocka_unit_test(products_inside_a_task),
        cmocka_unit_test(rows_cut_at_any_tile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
