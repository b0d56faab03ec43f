/* alignment.c: which token of a source each token of its translation attends to. */
#include "attend.h"

#include "../base/memory.h"

/* The translation, whose cross is there; NULL, with the error said, when there is none. */
static const qkv_translation *attending(const qkv_translations *t, int64_t i, int k, const void *out)
{
    const qkv_translation *x = NULL;
    if (!t || !out) return qkv__fail(QKV_USAGE, "alignment: translations and a place for the result are needed"), NULL;
    if (i < 0 || i >= t->n || k < 0 || k >= t->n_best)
        return qkv__fail(QKV_USAGE, "alignment: there is no translation %d of text %lld", k, (long long)i), NULL;
    x = &t->best[i * t->n_best + k];
    if (x->n_ids >= 0 && x->cross) return x;
    return qkv__fail(QKV_USAGE, "alignment: no attention was kept of translation %d of text %lld", k, (long long)i), NULL;
}

static qkv_status average_maps(const qkv_translations *t, const qkv_translation *x, int64_t columns, float *mean)
{
    const qkv_axis rows = { .n = x->n_ids + 1, .n_tokens = x->n_ids + 1 }, sources = { .n = columns, .n_tokens = columns };
    return qkv__join_maps(&(qkv__joining){
        .blocks = &x->cross, .n_blocks = 1, .heads = t->layers * t->heads, .rows = rows, .columns = sources, .out = mean });
}

qkv_status qkv_translation_attention(const qkv_translations *t, int64_t i, int k, float *mean)
{
    const qkv_translation *x = attending(t, i, k, mean);
    return x ? average_maps(t, x, t->n_source[i], mean) : QKV_USAGE;
}

qkv_status qkv_translation_alignment(const qkv_translations *t, int64_t i, int k, int64_t *source)
{
    const qkv_translation *x = attending(t, i, k, source);
    if (!x) return QKV_USAGE;
    const int64_t columns = t->n_source[i], tokens = columns - t->source_around;
    const size_t bytes = (size_t)((x->n_ids + 1) * columns) * sizeof(float);
    float *mean = qkv__alloc(bytes);
    qkv_status status = mean ? average_maps(t, x, columns, mean) : QKV_MEMORY;
    for (int64_t row = 0; row < x->n_ids && !status; row++) {
        const float *weights = mean + row * columns;
        source[row] = 0;
        for (int64_t j = 1; j < tokens; j++)
            if (weights[j] > weights[source[row]]) source[row] = j;
    }
    qkv__release(mean, bytes);
    return status;
}
