#include "check.h"

void causal_mask(int n, float *mask);

int main(void)
{
    float mask[16], hidden[16];
    for (int i = 0; i < 16; i++) mask[i] = 9;
    causal_mask(4, mask);
    for (int i = 0; i < 16; i++) hidden[i] = isinf(mask[i]) && mask[i] < 0 ? 1 : mask[i];
    check_close("4 x 4", hidden, (float[]){ 0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0 }, 16);
    causal_mask(1, mask);
    check_close("a single token sees itself", mask, (float[]){ 0 }, 1);
    return check_result();
}
