/* embed.c: a table of vectors, one for each token. */
#include "params.h"

#include <math.h>

qkv_embedding qkv_embedding_new(qkv_params *p, const char *name, int64_t vocabulary, int64_t dim)
{
    qkv_embedding e = { 0 };
    if (vocabulary >= 1 && dim >= 1)
        e.weight = qkv__add_part(p, name, "weight", 2, (int64_t[]){ vocabulary, dim }, QKV_INIT_NORMAL, 1 / sqrtf((float)dim));
    else
        qkv__params_fail(p, QKV_USAGE, "embedding \"%.200s\": %lld tokens of %lld numbers, expected at least 1 of each",
                         QKV_SHOWN(name), (long long)vocabulary, (long long)dim);
    return e;
}

qkv_tensor *qkv_embedding_forward(const qkv_embedding *e, qkv_tape *t, const int32_t *ids, int64_t batch, int64_t length)
{
    if (!e || !e->weight) return qkv__no_weights(t, "embedding");
    return qkv_gather(t, e->weight, ids, 2, (int64_t[]){ batch, length });
}
