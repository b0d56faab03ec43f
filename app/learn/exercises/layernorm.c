#include <math.h>

/* y = gain (x - mean) / sqrt(variance + eps) + bias over n numbers; the variance is divided by n. */
void layernorm(const float *x, const float *gain, const float *bias, float eps, int n, float *y)
{
#ifdef SOLUTION
    float mean = 0, variance = 0;
    for (int i = 0; i < n; i++) mean += x[i] / (float)n;
    for (int i = 0; i < n; i++) variance += (x[i] - mean) * (x[i] - mean) / (float)n;
    for (int i = 0; i < n; i++) y[i] = gain[i] * (x[i] - mean) / sqrtf(variance + eps) + bias[i];
#else
    /* TODO */
    (void)x, (void)gain, (void)bias, (void)eps, (void)n, (void)y;
#endif
}
