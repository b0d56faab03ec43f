/* tile.h: the innermost product, a tile of c kept in registers while k runs. The matrix product and attention are built of it.
 * Included only by per-instruction-set sources, after vec.h.
 *
 * Registers: MR rows by NV vectors of accumulators, NV vectors of b and one of a must fit (16 on x86-64, 32 on AVX-512 and ARM). */
#ifndef QKV_SRC_TILE_H
#define QKV_SRC_TILE_H

#include "vec.h"

#if QKV_VECTOR_BYTES == 64
enum { MR = 12, NV = 2 };
#elif defined(__aarch64__)
enum { MR = 6, NV = 4 };
#else
enum { MR = 6, NV = 2 };
#endif
enum { NR = NV * W };

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif
#define UNROLL_K _Pragma("GCC unroll 4") /* gcc steps fewer pointers then; clang unrolls by itself */
#define ALWAYS static inline __attribute__((always_inline))

/* c[i][j] (+)= sum over p of a[i*a_i + p*a_k] * b[p*b_k + j],   i < mr, j < nv*W; mr and nv are constants where it is called.
 * The sum is one chain from 0 in the order of p, added to c at the end.
 * Every loop over accumulators is unrolled, the stores too: otherwise gcc keeps them in memory. */
ALWAYS void tile(const int mr, const int nv, const float *a, int64_t a_i, int64_t a_k, const float *b, int64_t b_k, float *c,
                 int64_t c_i, int64_t k, bool add)
{
    vf sum[2 * MR][8];
    UNROLL for (int i = 0; i < mr; i++) UNROLL for (int v = 0; v < nv; v++) sum[i][v] = (vf){ 0 };
    UNROLL_K for (int64_t p = 0; p < k; p++, a += a_k, b += b_k) {
        vf row[8];
        UNROLL for (int v = 0; v < nv; v++) row[v] = load(b + v * W);
        UNROLL for (int i = 0; i < mr; i++) {
            vf value = set1(a[i * a_i]);
            UNROLL for (int v = 0; v < nv; v++) sum[i][v] += value * row[v];
        }
    }
    if (add) {
        UNROLL for (int i = 0; i < mr; i++) UNROLL for (int v = 0; v < nv; v++)
            sum[i][v] = load(c + i * c_i + v * W) + sum[i][v];
    }
    UNROLL for (int i = 0; i < mr; i++) UNROLL for (int v = 0; v < nv; v++) store(c + i * c_i + v * W, sum[i][v]);
}

#endif
