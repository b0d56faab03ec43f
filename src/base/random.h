/* random.h: random numbers from a counter (Threefry-2x32, 20 rounds; Salmon et al. 2011): a number depends on its key and its
 * place only, so threads, batches and resumed runs all see the same ones. */
#ifndef QKV_SRC_RANDOM_H
#define QKV_SRC_RANDOM_H

#include <stdint.h>

typedef struct qkv__key {
    uint32_t word[2];
} qkv__key;

static inline uint32_t qkv__rotate(uint32_t x, int by) { return x << by | x >> (32 - by); }

/* Two random words for the counter (c0, c1). */
static inline void qkv__threefry(qkv__key key, uint32_t c0, uint32_t c1, uint32_t out[2])
{
    static const int turn[8] = { 13, 15, 26, 6, 17, 29, 16, 24 };
    const uint32_t k[3] = { key.word[0], key.word[1], 0x1BD11BDAu ^ key.word[0] ^ key.word[1] };
    uint32_t a = c0 + k[0], b = c1 + k[1];
    for (uint32_t round = 0; round < 20; round++) {
        a += b;
        b = qkv__rotate(b, turn[round % 8]) ^ a;
        if (round % 4 == 3) {
            uint32_t inject = round / 4 + 1;
            a += k[inject % 3];
            b += k[(inject + 1) % 3] + inject;
        }
    }
    out[0] = a;
    out[1] = b;
}

/* A key for one use of random numbers: by seed, by step, by stream (which use within the step). */
static inline qkv__key qkv__key_for(uint64_t seed, uint64_t step, uint64_t stream)
{
    const uint64_t parts[2] = { step, stream };
    qkv__key key = { { (uint32_t)seed, (uint32_t)(seed >> 32) } };
    for (int i = 0; i < 2; i++) {
        uint32_t out[2];
        qkv__threefry(key, (uint32_t)parts[i], (uint32_t)(parts[i] >> 32), out);
        key = (qkv__key){ { out[0], out[1] } };
    }
    return key;
}

/* Uniform in (0, 1), never the ends: 24 bits of the word, moved by half a step. */
static inline double qkv__uniform(uint32_t word) { return ((word >> 8) + 0.5) * (1.0 / 16777216.0); }

/* Dropout keeps an element when its word is below this. */
static inline uint32_t qkv__keep_below(float p)
{
    double limit = (1.0 - (double)p) * 4294967296.0;
    return limit >= 4294967295.0 ? 4294967295u : (uint32_t)limit;
}

#endif
