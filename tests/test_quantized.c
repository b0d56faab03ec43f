/* test_quantized.c: weights in 8 and 4 bits: every instruction set has the bits of the reference. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "kern/kern.h"

static uint32_t drawn = 1;
static uint32_t draw(void) { return (drawn = drawn * 1664525u + 1013904223u) >> 8; }
static float draw_float(void) { return (float)draw() / 8388608.0f - 1; }

/* ---- kernels ---- */

/* The same sources for vectors of 64 bytes, in plain C: what AVX-512 and VNNI run is tried where there is none. */
#define K(kind, result, name, parameters) result qkv__wide_##name parameters;
#include "kern/kernels.def"
#undef K
static const qkv__kernels wide = { .isa = "64 bytes",
                                   .quantize_rows = qkv__wide_quantize_rows,
                                   .multiply_int8 = qkv__wide_multiply_int8,
                                   .multiply_int4 = qkv__wide_multiply_int4 };
extern const qkv__kernels qkv__wide_dots_kernels;

enum { PLAIN = 2 };
static qkv__kernels plain[PLAIN];

static void make_plain_sets(void)
{
    plain[0] = wide, plain[1] = qkv__wide_dots_kernels;
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
    static const char *const names[] = { "avx2", "avx_vnni", "avx512", "avx512_vnni", "neon_dot" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bool is_there = false;
        for (int set = 0; qkv_isa_available(set); set++) is_there = is_there || !strcmp(qkv_isa_available(set), names[i]);
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
    size_t bytes = sizeof *c * (size_t)(s->m * p.c_row);
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

int main(void)
{
    make_plain_sets();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_have_one_meaning),
        cmocka_unit_test(activations_by_hand),
        cmocka_unit_test(products_have_the_same_bits_everywhere),
        cmocka_unit_test(products_by_hand),
        cmocka_unit_test(sets_that_were_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
