/* number.h: numbers as files store them. */
#ifndef QKV_SRC_NUMBER_H
#define QKV_SRC_NUMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Files are written and whole float32 blocks are read as they lie in memory. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the files of this library are little endian");

/* An unsigned integer of 1 to 8 bytes. */
static inline uint64_t qkv__load(const unsigned char *bytes, int size, bool big_endian)
{
    uint64_t word = 0;
    for (int i = 0; i < size; i++) word |= (uint64_t)bytes[i] << 8 * (big_endian ? size - 1 - i : i);
    return word;
}

static inline float qkv__float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline double qkv__double_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* IEEE half: 1 sign, 5 exponent and 10 fraction bits. */
static inline float qkv__float_of_half(uint32_t half)
{
    uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31, fraction = half & 0x3FFu;
    if (exponent == 0) { /* zero and subnormal: fraction * 2^-24 */
        float magnitude = (float)fraction * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    uint32_t wide = exponent == 31 ? 255 : exponent + (127 - 15); /* infinities and NaN stay themselves */
    return qkv__float_of_bits(sign | wide << 23 | fraction << 13);
}

static inline float qkv__float_of_bfloat(uint32_t bfloat) { return qkv__float_of_bits(bfloat << 16); }

/* Whether none of n floats is an infinity or NaN, which have an exponent of ones. Without a branch, so that it is a vector
 * loop. */
static inline bool qkv__all_finite(int64_t n, const float *x)
{
    const uint32_t exponent = 0x7F800000u;
    uint32_t lost = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        lost |= (bits & exponent) == exponent;
    }
    return !lost;
}

#endif
