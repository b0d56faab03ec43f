#include <math.h>

/* pe (n, d), d even: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same. */
void positions(int n, int d, float *pe)
{
#ifdef SOLUTION
    for (int pos = 0; pos < n; pos++)
        for (int i = 0; i < d / 2; i++) {
            double angle = pos / pow(10000, 2.0 * i / d);
            pe[pos * d + 2 * i] = (float)sin(angle);
            pe[pos * d + 2 * i + 1] = (float)cos(angle);
        }
#else
    /* TODO */
    (void)n, (void)d, (void)pe;
#endif
}
