/* peak.c: fused multiply-adds in registers and reading, as fast as one thread can. Compiled as the kernels are: gcc makes no
 * fused multiply-add of a product and a sum otherwise. */
#include "../../src/tensor/op.h"
#include "measure.h"

#include <string.h>

/* Twelve chains hide the latency of the multiply-add. The empty asm makes each chain's value unknown to the compiler, which
 * would otherwise merge chains that compute the same; a figure above the clock times lanes times four would betray it. */
/* clang-format off */
#define EACH_CHAIN(C) C(0) C(1) C(2) C(3) C(4) C(5) C(6) C(7) C(8) C(9) C(10) C(11)
#define START(i) vector x##i = term;
#define STEP(i) x##i = x##i * factor + term; __asm__ volatile("" : "+" REGISTER(x##i));
#define MULTIPLY_ADDS(name, bytes)                                                                                             \
    static double name(int64_t rounds)                                                                                         \
    {                                                                                                                          \
        typedef float vector __attribute__((vector_size(bytes)));                                                              \
        vector factor = 0.999f - (vector){ 0 }, term = 0.001f - (vector){ 0 };                                                 \
        EACH_CHAIN(START)                                                                                                      \
        for (int64_t r = 0; r < rounds; r++) { EACH_CHAIN(STEP) }                                                              \
        return 2.0 * (bytes / 4) * 12 * (double)rounds;                                                                        \
    }

/* Whole cache lines; four sums at once, so that the loop keeps up with a cache. */
#define READING(name, bytes)                                                                                                   \
    static uint64_t name(const uint64_t *words, int64_t n)                                                                     \
    {                                                                                                                          \
        typedef uint64_t vector __attribute__((vector_size(bytes)));                                                           \
        enum { WORDS = bytes / 8 };                                                                                            \
        const vector *x = (const vector *)(const void *)words;                                                                 \
        vector a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };                                                                     \
        for (int64_t i = 0; i + 4 * WORDS <= n; i += 4 * WORDS, x += 4) a += x[0], b += x[1], c += x[2], d += x[3];            \
        a += b + c + d;                                                                                                        \
        uint64_t sum = 0;                                                                                                      \
        for (int i = 0; i < WORDS; i++) sum += a[i];                                                                           \
        return sum;                                                                                                            \
    }

#if defined(__x86_64__)
#define REGISTER "v"
__attribute__((target("avx2,fma"))) MULTIPLY_ADDS(with_32_bytes, 32)
__attribute__((target("avx512f"))) MULTIPLY_ADDS(with_64_bytes, 64)
__attribute__((target("avx2"))) READING(read_by_32, 32)
__attribute__((target("avx512f"))) READING(read_by_64, 64)
#elif defined(__aarch64__)
#define REGISTER "w"
#else
#define REGISTER "m"
#endif
MULTIPLY_ADDS(with_16_bytes, 16)
READING(read_by_16, 16)

#if defined(__x86_64__)
static bool uses(const char *name) { return qkv_isa() && !strcmp(qkv__kern->floats, name); }
#endif
/* clang-format on */

double qkv__multiply_adds(int64_t rounds)
{
#if defined(__x86_64__)
    if (uses("avx512")) return with_64_bytes(rounds);
    if (uses("avx2")) return with_32_bytes(rounds);
#endif
    return with_16_bytes(rounds);
}

uint64_t qkv__read_words(const uint64_t *words, int64_t n)
{
#if defined(__x86_64__)
    if (uses("avx512")) return read_by_64(words, n);
    if (uses("avx2")) return read_by_32(words, n);
#endif
    return read_by_16(words, n);
}
