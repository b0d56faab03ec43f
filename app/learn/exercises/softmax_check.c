#include "check.h"

void softmax(const float *x, int n, float *y);

int main(void)
{
    float y[3] = { 0 };
    softmax((float[]){ 2, 1, 0.1f }, 3, y);
    check_close("softmax([2, 1, 0.1])", y, (float[]){ 0.659001f, 0.242433f, 0.098566f }, 3);
    softmax((float[]){ 1000, 1000 }, 2, y);
    check_close("large scores stay finite", y, (float[]){ 0.5f, 0.5f }, 2);
    softmax((float[]){ -3, -3, -3 }, 3, y);
    check_close("equal scores", y, (float[]){ 1 / 3.0f, 1 / 3.0f, 1 / 3.0f }, 3);
    return check_result();
}
