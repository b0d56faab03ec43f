/* clock.h: the time that has passed. */
#ifndef QKV_SRC_CLOCK_H
#define QKV_SRC_CLOCK_H

#include <time.h>

/* Seconds since some moment that stays the same; setting the clock does not change them. */
static inline double qkv__seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
