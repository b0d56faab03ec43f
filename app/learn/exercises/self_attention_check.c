#include "check.h"

void self_attention(const float *x, const float *w_q, const float *w_k, const float *w_v, int n, int d, float *out);

int main(void)
{
    static const float one[] = { 1, 0, 0, 1 }, w_v[] = { 1, 2, 3, 4 }, w_q[] = { 2, 0, 0, 0 };
    float out[6] = { 0 };
    self_attention(one, one, one, w_v, 2, 2, out);
    check_close("X = W_q = W_k = identity", out, (float[]){ 1.660477f, 2.660477f, 2.339523f, 3.339523f }, 4);
    self_attention(one, w_q, one, w_v, 2, 2, out);
    check_close("rows of W are inputs", out, (float[]){ 1.391115f, 2.391115f, 2, 3 }, 4);
    return check_result();
}
