#include <math.h>

/* MultiHead(X) = Concat(head_1..head_h) W_o. x, out (n, d); w_q, w_k, w_v, w_o (d, d) with rows for inputs; causal: token i
 * sees 0..i only. d is a multiple of heads; n and d are at most 16. */
void multi_head(const float *x, const float *w_q, const float *w_k, const float *w_v, const float *w_o, int n, int d, int heads,
                int causal, float *out)
{
#ifdef SOLUTION
    float q[256] = { 0 }, k[256] = { 0 }, v[256] = { 0 }, concat[256] = { 0 };
    int d_k = d / heads;
    for (int i = 0; i < n; i++)
        for (int a = 0; a < d; a++)
            for (int b = 0; b < d; b++) {
                q[i * d + b] += x[i * d + a] * w_q[a * d + b];
                k[i * d + b] += x[i * d + a] * w_k[a * d + b];
                v[i * d + b] += x[i * d + a] * w_v[a * d + b];
            }
    for (int h = 0; h < heads; h++)
        for (int i = 0; i < n; i++) {
            int seen = causal ? i + 1 : n, first = h * d_k;
            float weight[16], sum = 0;
            for (int j = 0; j < seen; j++) {
                float score = 0;
                for (int c = first; c < first + d_k; c++) score += q[i * d + c] * k[j * d + c];
                sum += weight[j] = expf(score / sqrtf((float)d_k));
            }
            for (int j = 0; j < seen; j++)
                for (int c = first; c < first + d_k; c++) concat[i * d + c] += weight[j] / sum * v[j * d + c];
        }
    for (int i = 0; i < n; i++)
        for (int b = 0; b < d; b++) {
            out[i * d + b] = 0;
            for (int a = 0; a < d; a++) out[i * d + b] += concat[i * d + a] * w_o[a * d + b];
        }
#else
    /* TODO */
    (void)x, (void)w_q, (void)w_k, (void)w_v, (void)w_o, (void)n, (void)d, (void)heads, (void)causal, (void)out;
#endif
}
