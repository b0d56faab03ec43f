/* sha256.h: SHA-256 (FIPS 180-4), for tests that show the bits of a result as one line. */
#ifndef QKV_TESTS_SHA256_H
#define QKV_TESTS_SHA256_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct sha256 {
    uint32_t h[8];
    uint64_t bytes;
    unsigned char block[64];
} sha256;

/* The first 32 bits of the fractional part of x. */
static inline uint32_t sha256_fraction(double x) { return (uint32_t)(uint64_t)((x - floor(x)) * 4294967296.0); }

static inline int sha256_prime(int n)
{
    int found = 0, p = 1;
    while (found <= n) {
        int divisor = 2;
        for (p++; divisor * divisor <= p && p % divisor; divisor++) continue;
        found += divisor * divisor > p;
    }
    return p;
}

static inline void sha256_start(sha256 *s)
{
    *s = (sha256){ .bytes = 0 };
    for (int i = 0; i < 8; i++) s->h[i] = sha256_fraction(sqrt(sha256_prime(i)));
}

static inline uint32_t sha256_turn(uint32_t x, int by) { return x >> by | x << (32 - by); }

static inline void sha256_block(sha256 *s)
{
    static uint32_t k[64];
    for (int i = 0; !k[63] && i < 64; i++) k[i] = sha256_fraction(cbrt(sha256_prime(i)));
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)s->block[4 * i] << 24 | (uint32_t)s->block[4 * i + 1] << 16 | (uint32_t)s->block[4 * i + 2] << 8 |
               s->block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (sha256_turn(a, 7) ^ sha256_turn(a, 18) ^ a >> 3) +
               (sha256_turn(b, 17) ^ sha256_turn(b, 19) ^ b >> 10);
    }
    memcpy(v, s->h, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t a = v[0], e = v[4];
        uint32_t t1 = v[7] + (sha256_turn(e, 6) ^ sha256_turn(e, 11) ^ sha256_turn(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + k[i] +
                      w[i];
        uint32_t t2 = (sha256_turn(a, 2) ^ sha256_turn(a, 13) ^ sha256_turn(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, sizeof(uint32_t) * 7);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++) s->h[i] += v[i];
}

static inline void sha256_add(sha256 *s, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++) {
        s->block[s->bytes++ % 64] = at[i];
        if (s->bytes % 64 == 0) sha256_block(s);
    }
}

static inline void sha256_end(sha256 *s, char text[65])
{
    uint64_t bits = s->bytes * 8;
    sha256_add(s, "\x80", 1);
    while (s->bytes % 64 != 56) sha256_add(s, "", 1);
    for (int i = 7; i >= 0; i--) sha256_add(s, &(unsigned char){ (unsigned char)(bits >> 8 * i) }, 1);
    for (int i = 0; i < 8; i++) snprintf(text + 8 * i, 9, "%08x", s->h[i]);
}

#endif
