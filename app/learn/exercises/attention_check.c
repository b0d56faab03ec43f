#include "check.h"

void attention(const float *q, const float *k, const float *v, int n_q, int n_k, int d, int d_v, float *out);

int main(void)
{
    float out[4] = { 0 };
    attention((float[]){ 1, 0 }, (float[]){ 1, 0, 0, 1, 1, 0 }, (float[]){ 10, 0, 0, 20, 30, 0 }, 1, 3, 2, 2, out);
    check_close("one query, three keys", out, (float[]){ 16.044484f, 3.955516f }, 2);
    attention((float[]){ 1 }, (float[]){ 1, 2, 0.5f }, (float[]){ 10, 20, 5 }, 1, 3, 1, 1, out);
    check_close("one number each", out, (float[]){ 15.584095f }, 1);
    attention((float[]){ 1, 0 }, (float[]){ 1, 0, 0, 1 }, (float[]){ 5, 0, 0, 10 }, 1, 2, 2, 2, out);
    check_close("two keys", out, (float[]){ 3.348808f, 3.302385f }, 2);
    attention((float[]){ 1, 0, 0, 1 }, (float[]){ 1, 0, 0, 1 }, (float[]){ 1, 2 }, 2, 2, 2, 1, out);
    check_close("two queries, d_v = 1", out, (float[]){ 1.330238f, 1.669762f }, 2);
    return check_result();
}
