/* likeliest.c: the likeliest of all ids, by their logits. */
#include <qkv/session.h>

#include "../base/status.h"

#include <math.h>

/* Inserts i among the found ones, best first; of equal ones the first stays before. */
static int insert_id(const float *logits, int32_t i, int k, int found, int32_t *ids)
{
    int at = found < k ? found++ : k;
    for (; at > 0 && logits[i] > logits[ids[at - 1]]; at--)
        if (at < k) ids[at] = ids[at - 1];
    if (at < k) ids[at] = i;
    return found;
}

qkv_status qkv_top_k(const float *logits, int64_t n, int k, int32_t *ids, double *p)
{
    if (!logits || !ids || !p || n < 1 || n > INT32_MAX || k < 1 || k > n)
        return qkv__fail(QKV_USAGE, "likeliest: %d of %lld logits, and places for them, are needed", k, (long long)n);
    int found = 0;
    double sum = 0;
    for (int32_t i = 0; i < n; i++) found = insert_id(logits, i, k, found, ids);
    for (int64_t i = 0; i < n; i++) sum += exp((double)(logits[i] - logits[ids[0]]));
    for (int i = 0; i < k; i++) p[i] = exp((double)(logits[ids[i]] - logits[ids[0]])) / sum;
    return QKV_OK;
}
