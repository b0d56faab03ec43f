/* narrow.c: weights that are kept in 16 bits. */
#include "narrow.h"

#include "op.h"

void qkv__widen(const qkv_tensor *w, int64_t from, int64_t n, float *to)
{
    if (!w->narrow) memcpy(to, qkv_data(w) + from, sizeof(float) * (size_t)n);
    else if (w->is_half) kern->widen_half(to, w->narrow + from, n);
    else kern->widen_bfloat(to, w->narrow + from, n);
}
