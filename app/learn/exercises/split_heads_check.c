#include "check.h"

void split_heads(const float *in, int tokens, int heads, int d_k, float *out);
void combine_heads(const float *in, int tokens, int heads, int d_k, float *out);

int main(void)
{
    static const float x[] = { 0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23 };
    float split[12] = { 0 }, back[12] = { 0 };
    split_heads(x, 3, 2, 2, split);
    check_close("two heads of 2", split, (float[]){ 0, 1, 10, 11, 20, 21, 2, 3, 12, 13, 22, 23 }, 12);
    combine_heads(split, 3, 2, 2, back);
    check_close("and back", back, x, 12);
    split_heads(x, 3, 4, 1, split);
    check_close("four heads of 1", split, (float[]){ 0, 10, 20, 1, 11, 21, 2, 12, 22, 3, 13, 23 }, 12);
    return check_result();
}
