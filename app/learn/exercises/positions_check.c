#include "check.h"

void positions(int n, int d, float *pe);

int main(void)
{
    float pe[5 * 6] = { 0 };
    positions(5, 4, pe);
    check_close("PE(0), d = 4", pe, (float[]){ 0, 1, 0, 1 }, 4);
    check_close("PE(4), d = 4", pe + 16, (float[]){ -0.756802f, -0.653644f, 0.039989f, 0.999200f }, 4);
    positions(5, 6, pe);
    check_close("PE(3), d = 6", pe + 18, (float[]){ 0.141120f, -0.989992f, 0.138798f, 0.990321f, 0.006463f, 0.999979f }, 6);
    return check_result();
}
