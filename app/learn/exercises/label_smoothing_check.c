#include "check.h"

float smoothed_loss(const float *logits, int k, int target, float s);

int main(void)
{
    static const float a[] = { 2, 1, 0.1f }, b[] = { 0.5f, 2.5f, 0.3f };
    float loss = (smoothed_loss(a, 3, 0, 0.1f) + smoothed_loss(b, 3, 1, 0.1f)) / 2;
    check_close("smoothing 0.1", &loss, (float[]){ 0.436873f }, 1);
    loss = (smoothed_loss(a, 3, 0, 0) + smoothed_loss(b, 3, 1, 0)) / 2;
    check_close("no smoothing", &loss, (float[]){ 0.318540f }, 1);
    return check_result();
}
