#include <math.h>

/* y = max(0, x W_1 + b_1) W_2 + b_2 for one token: x (d), w_1 (d, d_ff), w_2 (d_ff, d), y (d); d_ff is at most 64. */
void feed_forward(const float *x, const float *w_1, const float *b_1, const float *w_2, const float *b_2, int d, int d_ff,
                  float *y)
{
#ifdef SOLUTION
    float inner[64];
    for (int j = 0; j < d_ff; j++) {
        inner[j] = b_1[j];
        for (int i = 0; i < d; i++) inner[j] += x[i] * w_1[i * d_ff + j];
        inner[j] = fmaxf(0, inner[j]);
    }
    for (int i = 0; i < d; i++) {
        y[i] = b_2[i];
        for (int j = 0; j < d_ff; j++) y[i] += inner[j] * w_2[j * d + i];
    }
#else
    /* TODO */
    (void)x, (void)w_1, (void)b_1, (void)w_2, (void)b_2, (void)d, (void)d_ff, (void)y;
#endif
}
