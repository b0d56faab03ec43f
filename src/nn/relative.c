/* relative.c: the bias of scores by the distance of key and query: T5's buckets (Raffel et al. 2020, section 2.1), which MPNet has
 * too. */
#include "layer.h"

#include "../tensor/tape.h"

#include <math.h>

/* Of a key `distance` > 0 away. Half of the n buckets are for one distance each; the other half grow by a ratio up to `farthest`.
 * In float, as the published models were trained: at a bound between two buckets the roundings count. */
static int32_t bucket_of(int64_t distance, int64_t n, int64_t farthest)
{
    int64_t exact = n / 2;
    if (distance < exact) return (int32_t)distance;
    float ratio = logf((float)distance / (float)exact) / (float)log((double)farthest / (double)exact);
    int64_t bucket = exact + (int64_t)(ratio * (float)(n - exact));
    return (int32_t)(bucket < n ? bucket : n - 1);
}

/* Of key j and query i where distance is j - i. */
static int32_t bucket_at(int64_t distance, int64_t n, int64_t farthest, bool causal)
{
    if (causal) return distance < 0 ? bucket_of(-distance, n, farthest) : 0;
    int64_t side = n / 2;
    return distance > 0 ? (int32_t)side + bucket_of(distance, side, farthest) : bucket_of(-distance, side, farthest);
}

qkv_tensor *qkv__relative_bias(qkv_tape *t, qkv_tensor *table, int64_t n, int64_t farthest, bool causal)
{
    int64_t width = 2 * n - 1;
    if (!table || n < 1) return NULL;
    int32_t *buckets = qkv__save(t, sizeof *buckets * (size_t)width);
    for (int64_t i = 0; buckets && i < width; i++)
        buckets[i] = bucket_at(i - n + 1, table->shape[0], farthest ? farthest : 128, causal);
    qkv_tensor *rows = buckets ? qkv_gather(t, table, buckets, 1, &width) : NULL;
    return rows ? qkv_permute(rows, (int[]){ 1, 0 }) : NULL;
}

void qkv__set_relative(const qkv__transformer *m, qkv_tape *t, qkv__pass *pass)
{
    qkv_tensor *table = m->stacks[pass->stack].layers[pass->layer].relative;
    if (pass->relative && !m->o.relative_per_layer) return; /* all have the same */
    pass->relative = qkv__relative_bias(t, table, pass->longest, m->o.relative_max_distance, pass->stack == QKV__DECODER);
}

qkv__relative qkv__relative_of(const qkv_tensor *bias)
{
    if (!bias) return (qkv__relative){ 0 };
    int64_t width = qkv_tensor_dim(bias, 1);
    return (qkv__relative){ qkv_tensor_data(bias) + width / 2, width };
}
