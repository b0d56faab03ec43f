/* test_quantized.c: weights in 8 and 4 bits, and bfloats times bfloats: every instruction set has the bits of the reference. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tensor/product.h"

#include <qkv/unstable/util.h>
#include "tensor/types.h"

static uint32_t drawn = 1;
static uint32_t draw(void) { return (drawn = drawn * 1664525u + 1013904223u) >> 8; }
static float draw_float(void) { return (float)draw() / 8388608.0f - 1; }

/* ---- kernels ---- */

/* The same sources for vectors of 64 bytes, in plain C: what AVX-512, VNNI, BF16 and AMX run is tried where there is none. */
#define K(kind, result, name, parameters) result qkv__wide_##name parameters;
#include "kern/kernels.def"
#undef K
static const qkv__kernels wide = { .isa = "64 bytes",
                                   .quantize_rows = qkv__wide_quantize_rows,
                                   .multiply_int8 = qkv__wide_multiply_int8,
                                   .multiply_int4 = qkv__wide_multiply_int4 };
extern const qkv__kernels qkv__wide_dots_kernels, qkv__wide_tiles_kernels, qkv__wide_pairs_kernels;

enum { PLAIN = 4 };
static qkv__kernels plain[PLAIN];

static void make_plain_sets(void)
{
    plain[0] = wide, plain[1] = qkv__wide_dots_kernels, plain[2] = qkv__wide_pairs_kernels;
    plain[3] = qkv__wide_tiles_kernels;
    for (int i = 1; i < PLAIN; i++) qkv__kernels_inherit(&plain[i], &plain[i - 1]);
}

/* Set i of this machine, then those; NULL after the last. */
static const qkv__kernels *kernels_at(int i)
{
    int n = 0;
    while (qkv__kernels_available(n)) n++;
    return i < n ? qkv__kernels_available(i) : i < n + PLAIN ? &plain[i - n] : NULL;
}

static void sets_that_were_not_run(void **state)
{
    (void)state;
    static const char *const names[] = { "avx2", "avx_vnni", "avx512", "avx512_vnni", "avx512_bf16", "amx", "neon_dot" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bool is_there = false;
        for (int set = 0; qkv_isa_at(set); set++) is_there = is_there || !strcmp(qkv_isa_at(set), names[i]);
        if (!is_there) print_message("skipped: %s, which this machine or build does not have\n", names[i]);
    }
}

enum { MOST = 1 << 18 };

/* Memory that ends where nothing may be read. */
static char *room_before_a_wall(size_t bytes)
{
    static char *room;
    enum { ROOM = 1 << 20, PAGE = 4096 };
    if (!room) {
        room = mmap(NULL, ROOM + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(room != MAP_FAILED);
        assert_int_equal(mprotect(room + ROOM, PAGE, PROT_NONE), 0);
    }
    assert_true(bytes <= ROOM);
    return room + ROOM - bytes;
}

static float x[MOST], a_scales[MOST], w_scales[MOST], bias[MOST], c[MOST], expected[MOST];
static int8_t a[MOST], other_a[MOST];
static char scratch_memory[1 << 21];

static void *scratch(void) { return scratch_memory + (64 - (uintptr_t)scratch_memory % 64); }

/* Every kind of row: numbers of all sizes, zeros, one number alone, ties, and what is not finite. */
static float activation(int kind, int64_t i)
{
    switch (kind % 8) {
    case 0: return draw_float() * ldexpf(1, (int)(draw() % 40) - 20);
    case 1: return 0;
    case 2: return i == 5 ? -3.25f : 0;
    case 3: return (float)((int)(draw() % 509) - 254) / 2; /* halves, which are ties where the largest is 127 */
    case 4: return draw_float() * 3e38f;
    case 5: return draw_float() * 1e-31f;
    case 6: return i == 3 ? INFINITY : draw_float();
    default: return i == 7 ? NAN : draw_float();
    }
}

static const int64_t lengths[] = { 1, 2, 15, 16, 31, 32, 33, 63, 64, 100, 255, 256, 257, 320, 1000 };
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static void activations_have_one_meaning(void **state)
{
    (void)state;
    const qkv__kernels *ref = qkv__kernels_available(0), *k;
    for (int l = 0; l < LENGTHS; l++)
        for (int by_groups = 0; by_groups < 2; by_groups++)
            for (int set = 1; (k = kernels_at(set)); set++) {
                enum { ROWS = 16 };
                int64_t n = lengths[l], group = by_groups ? QKV__GROUP : n, scales = ROWS * qkv__ceil_div(n, group);
                for (int64_t i = 0; i < ROWS * n; i++) x[i + 1] = activation((int)(i / n), i % n);
                memset(a, 99, sizeof a), memset(other_a, 99, sizeof other_a);
                ref->quantize_rows(a + 1, qkv__whole_groups(n), a_scales + 1, x + 1, ROWS, n, group);
                k->quantize_rows(other_a + 1, qkv__whole_groups(n), w_scales + 1, x + 1, ROWS, n, group);
                assert_memory_equal(a, other_a, sizeof a);
                for (int64_t i = 1; i <= scales; i++)
                    if (memcmp(&a_scales[i], &w_scales[i], sizeof *a_scales) && !(isnan(a_scales[i]) && isnan(w_scales[i])))
                        fail_msg("%s, %lld numbers: scale %lld is %g, not %g", k->isa, (long long)n, (long long)i,
                                 (double)w_scales[i], (double)a_scales[i]);
            }
}

/* What the rounding gives, by hand: 127 is the largest; 0.5 and 2.5 are ties. */
static void activations_by_hand(void **state)
{
    (void)state;
    static const float row[] = { 127, -127, 0.5f, 1.5f, 2.5f, -0.5f, -3.5f, 126.4f };
    static const int8_t rounded[] = { 127, -127, 0, 2, 2, 0, -4, 126 };
    const qkv__kernels *k;
    for (int set = 0; (k = kernels_at(set)); set++) {
        k->quantize_rows(a, QKV__GROUP, a_scales, row, 1, 8, 8);
        assert_memory_equal(a, rounded, sizeof rounded);
        for (int i = 8; i < QKV__GROUP; i++) assert_int_equal(a[i], 0);
        assert_true(a_scales[0] == 1);
        float odd[2] = { 1, NAN };
        k->quantize_rows(a, QKV__GROUP, a_scales, odd, 1, 2, 2);
        assert_true(isnan(a_scales[0]) && a[0] == 0 && a[1] == 0);
    }
}

typedef struct shape {
    int64_t m, n, k;
} shape;

/* Weights that end at the wall; their values at the ends of the range where they are drawn so. */
static void draw_product(const shape *s, bool int4, qkv__quantized *p)
{
    int64_t groups = qkv__groups(s->k), bytes = int4 ? s->n * groups * QKV__GROUP_BYTES : s->n * s->k;
    char *w = room_before_a_wall((size_t)bytes);
    for (int64_t i = 0; i < bytes; i++) {
        int8_t value = (int8_t)(draw() % 255) - 127;
        if (draw() % 4 == 0) value = draw() % 2 ? 127 : -128; /* -128: only a file of somebody else has it */
        w[i] = int4 ? (char)draw() : value;
    }
    for (int64_t i = 0; i < s->m * s->k; i++) x[i] = draw_float();
    for (int64_t i = 0; i < s->k; i++) x[i] = s->m > 1 ? 0 : draw() % 2 ? 127 : -127; /* a row of zeros, or of ends */
    qkv__kernels_available(0)->quantize_rows(a, groups * QKV__GROUP, a_scales, x, s->m, s->k, int4 ? QKV__GROUP : s->k);
    for (int64_t j = 0; j < (int4 ? s->n * groups : s->n); j++) {
        if (int4) ((uint16_t *)w_scales)[j] = (uint16_t)(draw() % 0x7c00);
        else w_scales[j] = ldexpf(draw_float() + 1.5f, (int)(draw() % 60) - 50);
    }
    for (int64_t j = 0; j < s->n; j++) bias[j] = draw_float();
    *p = (qkv__quantized){
        .a = a, .a_scales = a_scales, .w = w, .w_scales = w_scales, .c = c, .m = s->m, .n = s->n, .k = s->k
    };
    p->c_row = s->n + 3;
    p->bias = s->n % 2 ? bias : NULL;
}

static void check_product(const shape *s, bool int4)
{
    const qkv__kernels *ref = qkv__kernels_available(0), *k;
    qkv__quantized p;
    draw_product(s, int4, &p);
    enum { BEHIND = 16 }; /* rows that must stay as they are */
    size_t bytes = sizeof *c * (size_t)((s->m + BEHIND) * p.c_row);
    assert_true(bytes <= sizeof c);
    assert_true(qkv__quantized_scratch(s->k) + 64 <= sizeof scratch_memory);
    memset(c, 0, bytes);
    (int4 ? ref->multiply_int4 : ref->multiply_int8)(&p, scratch());
    memcpy(expected, c, bytes);
    for (int set = 1; (k = kernels_at(set)); set++) {
        memset(c, 0, bytes);
        (int4 ? k->multiply_int4 : k->multiply_int8)(&p, scratch());
        if (memcmp(c, expected, bytes))
            fail_msg("%s, %d bits, %lld x %lld x %lld: not the bits of the reference", k->isa, int4 ? 4 : 8, (long long)s->m,
                     (long long)s->n, (long long)s->k);
    }
}

static void products_have_the_same_bits_everywhere(void **state)
{
    (void)state;
    static const int64_t rows[] = { 1, 2, 4, 5, 8, 9, 17, 33, 64, 65, 130 }, columns[] = { 1, 3, 4, 13, 24, 25 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < sizeof columns / sizeof *columns; j++)
            for (int l = 0; l < LENGTHS; l++)
                for (int int4 = 0; int4 < 2; int4++) check_product(&(shape){ rows[i], columns[j], lengths[l] }, int4);
    check_product(&(shape){ 3 * QKV__QUANTIZED_ROWS + 5, 301, 65 }, false); /* more rows and columns than are packed at once */
    check_product(&(shape){ 1030, 70, 33 }, false);
}

/* Against the numbers themselves: a row of w times a row of a, both made by hand. */
static void products_by_hand(void **state)
{
    (void)state;
    const qkv__kernels *k;
    enum { K = 33 };
    int8_t w[K] = { 1, 2, 3 };
    uint8_t nibbles[2 * QKV__GROUP_BYTES];
    float w_scale = 0.5f, row[K] = { 127, 1, -2, [32] = 4 }, out;
    uint16_t halves[2] = { 0x3800, 0x4000 }; /* 0.5 and 2 */
    w[32] = -100;
    memset(nibbles, 0x88, sizeof nibbles);
    nibbles[0] = 0x8f, nibbles[1] = 0x80, nibbles[2] = 0x8a, nibbles[QKV__GROUP_BYTES] = 0x85; /* 7, -8, 2; -3 */
    for (int set = 0; (k = kernels_at(set)); set++) {
        float scales[2];
        qkv__quantized p = { .a = a, .a_scales = scales, .w = w, .w_scales = &w_scale, .c = &out, .m = 1, .n = 1, .k = K };
        k->quantize_rows(a, 2 * QKV__GROUP, scales, row, 1, K, K);
        k->multiply_int8(&p, scratch());
        assert_true(out == (127 + 2 - 6 - 400) * 0.5f);
        k->quantize_rows(a, 2 * QKV__GROUP, scales, row, 1, K, QKV__GROUP);
        p.w = nibbles, p.w_scales = halves;
        k->multiply_int4(&p, scratch());
        assert_true(out == (889 - 8 - 4) * 0.5f + (127 * -3) * (4.0f / 127.0f * 2));
    }
}

/* ---- bfloats on both sides ---- */

/* Of all sizes; some so small that their products are no normal numbers, or that they are none themselves. */
static float draw_of_any_size(void)
{
    return draw_float() * ldexpf(1, (int)(draw() % 8 ? draw() % 16 : draw() % 150) - 140 / (1 + (int)(draw() % 9)));
}

/* In blocks, as AMX sums, or in pairs, as AVX512_BF16 does. NULL where a set lacks it. */
static qkv__bfloat_product *bfloat_product(const qkv__kernels *k, bool in_pairs)
{
    return in_pairs ? k->multiply_pairs : k->multiply_bfloat;
}

static void check_bfloats(const shape *s, bool in_pairs, bool add)
{
    const qkv__kernels *k;
    qkv__bfloat_product *ref = bfloat_product(qkv__kernels_available(0), in_pairs), *fast;
    /* at any even address, as files may have them: with an odd m not at a multiple of 4 where the others are */
    uint16_t *w = (uint16_t *)(void *)room_before_a_wall((size_t)(s->n * s->k + s->m % 2) * sizeof *w);
    qkv__product p = { .a = x, .c = c, .m = s->m, .n = s->n, .k = s->k, .a_row = s->k, .a_col = 1, .b_row = 1, .b_col = s->k };
    size_t bytes = sizeof *c * (size_t)(s->m * (s->n + 3));
    static float before[MOST];
    for (int64_t i = 0; i < s->m * s->k; i++) x[i] = draw_of_any_size();
    for (int64_t i = 0; i < s->n * s->k; i++) {
        float value = draw_of_any_size();
        memcpy(&w[i], (char *)&value + 2, sizeof *w); /* the upper half: this is tried on little-endian machines alone */
    }
    for (int64_t i = 0; i < s->m * (s->n + 3); i++) before[i] = draw_float();
    for (int64_t j = 0; j < s->n; j++) bias[j] = draw_float();
    p.c_row = s->n + 3, p.add = add, p.bias = s->n % 2 ? bias : NULL;
    assert_true(qkv__bfloat_scratch(s->k) + 64 <= sizeof scratch_memory);
    memcpy(c, before, bytes);
    ref(&p, w, scratch());
    memcpy(expected, c, bytes);
    for (int set = 1; (k = kernels_at(set)); set++) {
        if (!(fast = bfloat_product(k, in_pairs)) || fast == ref) continue;
        memcpy(c, before, bytes);
        fast(&p, w, scratch());
        for (size_t i = 0; i < bytes / sizeof *c; i++)
            if (memcmp(&c[i], &expected[i], sizeof *c))
                fail_msg("%s, %lld x %lld x %lld: number %zu is %a, not %a", k->isa, (long long)s->m, (long long)s->n,
                         (long long)s->k, i, (double)c[i], (double)expected[i]);
    }
}

static void bfloats_have_one_meaning(void **state)
{
    (void)state;
    static const int64_t rows[] = { 1, 2, 3, 4, 7, 16, 17, 32, 33, 40, 65, 260 }, columns[] = { 1, 17, 32, 33, 70 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < sizeof columns / sizeof *columns; j++)
            for (int l = 0; l < LENGTHS; l++)
                for (int in_pairs = 0; in_pairs < 2; in_pairs++)
                    check_bfloats(&(shape){ rows[i], columns[j], lengths[l] }, in_pairs, l % 2);
}

static float product_by_hand(qkv__bfloat_product *multiply, const float *row, const uint16_t *w, int64_t n)
{
    float out;
    qkv__product p = {
        .a = row, .c = &out, .m = 1, .n = 1, .k = n, .a_row = n, .a_col = 1, .b_row = 1, .b_col = n, .c_row = 1
    };
    multiply(&p, w, scratch());
    return out;
}

/* 1 + 2^-8 is a tie, and becomes 1; 1 + 3 2^-8 becomes 1 + 2^-6. What is too small to be normal is zero. In blocks, even and
 * odd numbers of k are summed apart: 1 that is added to 2^24 is lost, unless it is in the other chain, whose sum of 2 is not.
 * In pairs, what is behind 2^24 in its chain is number 33 first, and then 32. In both it is the rounded sum that is too small. */
static void bfloats_by_hand(void **state)
{
    (void)state;
    enum { K = 66 };
    static const float ties[K] = { 1 + 0x1p-8f, 1 + 3 * 0x1p-8f }, chains[K] = { 0x1p24f, 1, 1, 1, 1, [32] = 1, [33] = 4 };
    static const float odd_first[K] = { [1] = 0x1p24f, [32] = 1, [33] = -0x1p24f }, small[K] = { 0x1p-100f, 0x1p-130f };
    static const float minus[K] = { 0x1p-100f, [32] = -0x1.8p-100f, [64] = -0x1p-110f, [65] = -0x1p-110f };
    uint16_t one[K], tiny[K];
    for (int i = 0; i < K; i++) one[i] = 0x3f80, tiny[i] = 0x3280; /* 2^-26 */
    const qkv__kernels *k;
    for (int set = 0; (k = kernels_at(set)); set++)
        for (int in_pairs = 0; in_pairs < 2; in_pairs++) {
            qkv__bfloat_product *f = bfloat_product(k, in_pairs);
            if (!f) continue;
            assert_true(product_by_hand(f, ties, one, K) == 2 + 0x1p-6f);
            assert_true(product_by_hand(f, small, tiny, K) == 0x1p-126f);
            assert_true(product_by_hand(f, (const float[K]){ 0x1p-101f }, tiny, K) == 0);
            if (in_pairs) {
                assert_true(product_by_hand(f, odd_first, one, K) == 1);
                assert_true(product_by_hand(f, (const float[K]){ -0x1p-125f, 0x1p-100f }, tiny, K) == 0x1p-126f); /* a tie */
                assert_true(product_by_hand(f, (const float[K]){ -0x1p-124f, 0x1p-100f }, tiny, K) == 0);
            } else {
                /* 2^24 + 2, and 5 of the second block; 2^24 + 7 is a tie */
                assert_true(product_by_hand(f, chains, one, K) == 0x1p24f + 8);
                assert_true(product_by_hand(f, (const float[K]){ [1] = 0x1p-100f, [3] = -0x1p-125f }, tiny, K) == 0x1p-126f);
                assert_true(product_by_hand(f, (const float[K]){ [1] = 0x1p-100f, [3] = -0x1p-124f }, tiny, K) == 0);
                /* two blocks that are -0 together, and one of -0 in both chains, which the zeros behind k make 0 */
                assert_false(signbit(product_by_hand(f, minus, tiny, K)));
            }
        }
}

/* Products of all threads, one and several at once, are those of the kernel: any number of rows, any cut. */
static void products_take_the_unit(void **state)
{
    (void)state;
    enum { N = 70, LENGTH = 100, MOST_ROWS = 800 };
    static const int64_t rows[] = { 1, 4, 5, 49, MOST_ROWS };
    static uint16_t w[N * LENGTH];
    assert_non_null(qkv_isa());
    const qkv__kernels *best = qkv__kern, *ref = qkv__kernels_available(0);
    qkv_tensor weight = { .ndim = 2, .shape = { N, LENGTH }, .count = N * LENGTH, .values = w, .type = qkv__type_bf16_both() };
    for (int64_t i = 0; i < MOST_ROWS * LENGTH; i++) x[i] = draw_float();
    for (int i = 0; i < N * LENGTH; i++) w[i] = (uint16_t)(0x3c00 + draw() % 0x400 + draw() % 2 * 0x8000);
    qkv__product p = { .a = x, .n = N, .k = LENGTH, .a_row = LENGTH, .a_col = 1, .b_row = 1, .b_col = LENGTH, .c_row = N };
    for (int in_pairs = 0; in_pairs < 2; in_pairs++) {
        qkv__kernels with_unit = *best;
        with_unit.multiply_bfloat = in_pairs ? ref->multiply_bfloat : plain[PLAIN - 1].multiply_bfloat;
        with_unit.multiply_pairs = plain[PLAIN - 1].multiply_pairs;
        p.m = MOST_ROWS, p.c = expected;
        bfloat_product(ref, in_pairs)(&p, w, scratch());
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (int threads = 1; threads <= 4; threads *= 2)
                for (int together = 0; together < 2; together++) {
                    size_t bytes = sizeof *c * (size_t)(rows[i] * N);
                    qkv__product both[2] = { p, p };
                    qkv_tensor *weights[2] = { &weight, &weight };
                    qkv__kern = &with_unit;
                    qkv_set_num_threads(threads);
                    both[0].m = both[1].m = rows[i], both[0].c = c, both[1].c = c + rows[i] * N;
                    if (together) assert_int_equal(qkv__multiply_weights(both, weights, 2), QKV_OK);
                    else assert_int_equal(qkv__multiply_weight(both, &weight), QKV_OK);
                    assert_memory_equal(c, expected, bytes);
                    if (together) assert_memory_equal(both[1].c, expected, bytes);
                }
    }
    qkv__kern = best;
    qkv_set_num_threads(0);
}

int main(void)
{
    make_plain_sets();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_have_one_meaning),
        cmocka_unit_test(activations_by_hand),
        cmocka_unit_test(products_have_the_same_bits_everywhere),
        cmocka_unit_test(products_by_hand),
        cmocka_unit_test(bfloats_have_one_meaning),
        cmocka_unit_test(bfloats_by_hand),
        cmocka_unit_test(products_take_the_unit),
        cmocka_unit_test(sets_that_were_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
