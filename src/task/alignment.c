/* alignment.c: which token of a source each token of its translation attends to. */
#include "../base/status.h"

#include <qkv/task.h>

#include <stddef.h>

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

static float mean_weight(const qkv_translations *t, const qkv_translation *x, int64_t columns, int64_t cell)
{
    int64_t cells = (x->n_ids + 1) * columns, maps = (int64_t)t->layers * t->heads;
    double sum = 0;
    for (int64_t m = 0; m < maps; m++) sum += (double)x->cross[m * cells + cell];
    return (float)(sum / (double)maps);
}

qkv_status qkv_translation_attention(const qkv_translations *t, int64_t i, int k, float *mean)
{
    const qkv_translation *x = attending(t, i, k, mean);
    if (!x) return QKV_USAGE;
    const int64_t columns = t->n_source[i];
    for (int64_t cell = 0; cell < (x->n_ids + 1) * columns; cell++) mean[cell] = mean_weight(t, x, columns, cell);
    return QKV_OK;
}

qkv_status qkv_translation_alignment(const qkv_translations *t, int64_t i, int k, int64_t *source)
{
    const qkv_translation *x = attending(t, i, k, source);
    if (!x) return QKV_USAGE;
    const int64_t columns = t->n_source[i], tokens = columns - t->source_around;
    for (int64_t row = 0; row < x->n_ids; row++) {
        float most = -1;
        source[row] = 0;
        for (int64_t j = 0; j < tokens; j++) {
            float weight = mean_weight(t, x, columns, row * columns + j);
            if (weight > most) most = weight, source[row] = j;
        }
    }
    return QKV_OK;
}
