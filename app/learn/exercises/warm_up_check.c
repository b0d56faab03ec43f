#include "check.h"

double learning_rate(int step, int d_model, int warmup);

int main(void)
{
    /* times 1000 */
    float rates[4];
    static const int steps[] = { 1, 1000, 4000, 16000 };
    for (int i = 0; i < 4; i++) rates[i] = (float)(1000 * learning_rate(steps[i], 512, 4000));
    check_close("d_model 512, warm-up 4000", rates, (float[]){ 0.000175f, 0.174693f, 0.698771f, 0.349386f }, 4);
    rates[0] = (float)(1000 * learning_rate(4000, 256, 4000));
    check_close("d_model 256", rates, (float[]){ 0.988212f }, 1);
    return check_result();
}
