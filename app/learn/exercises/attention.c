#include <math.h>

/* q (n_q, d), k (n_k, d), v (n_k, d_v), out (n_q, d_v), all row by row; n_k is at most 64. */
void attention(const float *q, const float *k, const float *v, int n_q, int n_k, int d, int d_v, float *out)
{
#ifdef SOLUTION
    for (int i = 0; i < n_q; i++) {
        float weight[64], most = -INFINITY, sum = 0;
        for (int j = 0; j < n_k; j++) {
            weight[j] = 0;
            for (int c = 0; c < d; c++) weight[j] += q[i * d + c] * k[j * d + c];
            weight[j] /= sqrtf((float)d);
            most = fmaxf(most, weight[j]);
        }
        for (int j = 0; j < n_k; j++) sum += weight[j] = expf(weight[j] - most);
        for (int c = 0; c < d_v; c++) {
            out[i * d_v + c] = 0;
            for (int j = 0; j < n_k; j++) out[i * d_v + c] += weight[j] / sum * v[j * d_v + c];
        }
    }
#else
    /* TODO */
    (void)q, (void)k, (void)v, (void)n_q, (void)n_k, (void)d, (void)d_v, (void)out;
#endif
}
