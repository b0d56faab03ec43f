/* flushed.h: steps of units that take numbers too small to be normal for zero, in plain C: their meaning, and what stands in for
 * them where there is no such unit. */
#ifndef QKV_SRC_FLUSHED_H
#define QKV_SRC_FLUSHED_H

#include <float.h>
#include <math.h>

static inline float qkv__flushed(float x) { return fabsf(x) < FLT_MIN ? copysignf(0, x) : x; }

/* sum + a b by one rounding; zero where it is below the smallest normal number after it was rounded to 24 bits. a and b are
 * bfloats: their product has 16 bits, so that the sum as a double is exact wherever that is in doubt. */
static inline float qkv__add_flushed(float sum, float a, float b)
{
    const double least = (double)FLT_MIN - 0x1p-151;
    double exact = (double)sum + (double)a * (double)b;
    return fabs(exact) < least ? copysignf(0, (float)exact) : fmaf(a, b, sum);
}

#endif
