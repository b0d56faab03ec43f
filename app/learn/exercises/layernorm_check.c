#include "check.h"

void layernorm(const float *x, const float *gain, const float *bias, float eps, int n, float *y);

int main(void)
{
    static const float x[] = { 140, 150, 160, 170, 180 }, one[] = { 1, 1, 1, 1, 1 }, zero[5] = { 0 };
    float y[5] = { 0 };
    layernorm(x, one, zero, 1e-5f, 5, y);
    check_close("[140 .. 180]", y, (float[]){ -1.414214f, -0.707107f, 0, 0.707107f, 1.414214f }, 5);
    layernorm(x, (float[]){ 2, 2, 2, 2, 2 }, one, 1e-5f, 5, y);
    check_close("gain 2, bias 1", y, (float[]){ -1.828427f, -0.414214f, 1, 2.414214f, 3.828427f }, 5);
    layernorm(one, one, zero, 1e-5f, 5, y);
    check_close("equal numbers", y, zero, 5);
    return check_result();
}
