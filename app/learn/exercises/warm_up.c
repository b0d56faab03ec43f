#include <math.h>

/* The paper's learning rate at a step, from 1. */
double learning_rate(int step, int d_model, int warmup)
{
#ifdef SOLUTION
    return pow(d_model, -0.5) * fmin(pow(step, -0.5), step * pow(warmup, -1.5));
#else
    /* TODO */
    (void)step, (void)d_model, (void)warmup;
    return 0;
#endif
}
