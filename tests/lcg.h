/* lcg.h: the generator of golden/lcg.py, so that tests and golden numbers start from the same values. */
#ifndef QKV_TESTS_LCG_H
#define QKV_TESTS_LCG_H

#include <stdint.h>

static uint32_t lcg_state = 1;

static inline float lcg(void)
{
    lcg_state = lcg_state * 1664525u + 1013904223u;
    return (float)((int)(lcg_state >> 16) % 2001 - 1000) / 1024.0f;
}

static inline void lcg_fill(float *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = lcg();
}

#endif
