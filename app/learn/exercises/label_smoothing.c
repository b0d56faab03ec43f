#include <math.h>

/* The cross-entropy of softmax(logits) over k classes: (1 - s) on the target and s / k on every class. */
float smoothed_loss(const float *logits, int k, int target, float s)
{
#ifdef SOLUTION
    float sum = 0, all = 0;
    for (int i = 0; i < k; i++) sum += expf(logits[i]);
    for (int i = 0; i < k; i++) all += logits[i] - logf(sum);
    return -(1 - s) * (logits[target] - logf(sum)) - s / (float)k * all;
#else
    /* TODO */
    (void)logits, (void)k, (void)target, (void)s;
    return 0;
#endif
}
