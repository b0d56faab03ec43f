/* ref_products.c: what the matrix product and attention mean, in plain C with double sums. */
#include "isa.h"

void NAME(multiply)(const qkv__product *x, float *scratch)
{
    (void)scratch;
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t j = 0; j < x->n; j++) {
            double sum = x->add ? (double)x->c[i * x->c_row + j] : 0;
            for (int64_t p = 0; p < x->k; p++)
                sum += (double)x->a[i * x->a_row + p * x->a_col] * (double)x->b[p * x->b_row + j * x->b_col];
            x->c[i * x->c_row + j] = (float)sum + (x->bias ? x->bias[j] : 0);
        }
}
