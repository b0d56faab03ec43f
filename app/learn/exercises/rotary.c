#include <math.h>

/* Turns x (d numbers, d even) in place: pair i is (x[i], x[i + d/2]), its angle pos * 10000^(-2i/d). */
void rotary(float *x, int d, int pos)
{
#ifdef SOLUTION
    for (int i = 0; i < d / 2; i++) {
        double angle = pos * pow(10000, -2.0 * i / d);
        float a = x[i], b = x[i + d / 2];
        x[i] = (float)(a * cos(angle) - b * sin(angle));
        x[i + d / 2] = (float)(a * sin(angle) + b * cos(angle));
    }
#else
    /* TODO */
    (void)x, (void)d, (void)pos;
#endif
}
