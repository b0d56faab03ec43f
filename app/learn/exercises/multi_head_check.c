#include "check.h"

void multi_head(const float *x, const float *w_q, const float *w_k, const float *w_v, const float *w_o, int n, int d, int heads,
                int causal, float *out);

int main(void)
{
    /* the numbers of lesson 14 */
    static const float x[] = { 1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 1 }, one[] = { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1 };
    static const float w_v[] = { 1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 1, -1, 0, 0, 1, 1 };
    static const float w_o[] = { 1, 0, 0, 1, 0, 1, 1, 0, 1, 0, -1, 0, 0, 1, 0, -1 };
    float out[12] = { 0 };
    multi_head(x, one, one, w_v, one, 3, 4, 2, 0, out);
    check_close(
        "two heads, W_o the identity", out,
        (float[]){ 2.598888f, 4, 1, -0.604448f, 3.005560f, 4.406672f, 1, -0.604448f, 3.006985f, 4.510477f, 1, 0.006985f }, 12);
    multi_head(x, one, one, w_v, w_o, 3, 4, 2, 0, out);
    check_close("and W_o", out,
                (float[]){ 3.598888f, 3.395552f, 3, 3.203336f, 4.005560f, 3.802224f, 3.406672f, 3.610008f, 4.006985f, 4.517462f,
                           3.510477f, 3 },
                12);
    multi_head(x, one, one, w_v, one, 3, 4, 2, 1, out);
    check_close("causal: the first token sees itself", out, (float[]){ 1, 2, 1, -1 }, 4);
    return check_result();
}
