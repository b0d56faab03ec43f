/* nearest.c: which vectors are most similar to one. */
#include "results.h"
#include "../../src/base/memory.h"
#include "../../src/base/size.h"

#include <qkv/task.h>

#include <math.h>
#include <stdlib.h>

/* What is not a number comes last: every pair must have an order. */
static int most_similar_first(const void *a, const void *b)
{
    const qkv_neighbour *x = a, *y = b;
    const int no_number = (isnan(x->similarity) != 0) - (isnan(y->similarity) != 0);
    if (no_number) return no_number;
    if (x->similarity > y->similarity || x->similarity < y->similarity) return x->similarity > y->similarity ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static float similarity(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return (float)sum;
}

qkv_status qkv_nearest(const qkv_matrix *vectors, const float *query, int64_t n, qkv_neighbour *out)
{
    if (!vectors || !query || !out)
        return qkv__fail(QKV_USAGE, "nearest: vectors, a query and a place for the result are needed");
    if (n < 0) return qkv__fail(QKV_USAGE, "nearest: %lld neighbours", (long long)n);
    const int64_t all = vectors->rows, width = vectors->width;
    size_t bytes = sizeof(qkv_neighbour) * (size_t)qkv__max(all, 1); /* the vectors are larger, and fit */
    qkv_neighbour *found = qkv__alloc(bytes);
    if (!found) return QKV_MEMORY;
    for (int64_t i = 0; i < all; i++) found[i] = (qkv_neighbour){ similarity(query, vectors->data + i * width, width), i };
    qsort(found, (size_t)all, sizeof *found, most_similar_first);
    for (int64_t i = 0; i < n; i++) out[i] = i < all ? found[i] : (qkv_neighbour){ 0, -1 };
    qkv__release(found, bytes);
    return QKV_OK;
}
