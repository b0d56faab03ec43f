#include <math.h>

/* x (n, d), w_q, w_k, w_v (d, d) with rows for inputs: Q = X W_q. out (n, d). n and d are at most 16. */
void self_attention(const float *x, const float *w_q, const float *w_k, const float *w_v, int n, int d, float *out)
{
#ifdef SOLUTION
    float q[256] = { 0 }, k[256] = { 0 }, v[256] = { 0 };
    for (int i = 0; i < n; i++)
        for (int a = 0; a < d; a++)
            for (int b = 0; b < d; b++) {
                q[i * d + b] += x[i * d + a] * w_q[a * d + b];
                k[i * d + b] += x[i * d + a] * w_k[a * d + b];
                v[i * d + b] += x[i * d + a] * w_v[a * d + b];
            }
    for (int i = 0; i < n; i++) {
        float weight[16], sum = 0;
        for (int j = 0; j < n; j++) {
            float score = 0;
            for (int c = 0; c < d; c++) score += q[i * d + c] * k[j * d + c];
            sum += weight[j] = expf(score / sqrtf((float)d));
        }
        for (int c = 0; c < d; c++) {
            out[i * d + c] = 0;
            for (int j = 0; j < n; j++) out[i * d + c] += weight[j] / sum * v[j * d + c];
        }
    }
#else
    /* TODO */
    (void)x, (void)w_q, (void)w_k, (void)w_v, (void)n, (void)d, (void)out;
#endif
}
