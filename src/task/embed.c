/* embed.c: a vector for a text. */
#include "texts.h"

#include <math.h>

static qkv_tensor *pool(const qkv_model *m, qkv_tensor *hidden, const int32_t *lengths, const void *data)
{
    return qkv_transformer_pool(qkv_model_transformer(m), hidden, lengths, *(const qkv_pooling *)data);
}

static void normalize(float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    for (int64_t i = 0; i < n && sum > 0; i++) x[i] = (float)((double)x[i] / sqrt(sum));
}

qkv_status qkv_embed_texts(const qkv_model *m, const qkv_texts *texts, const qkv_embed_opts *opts, qkv_rows *out)
{
    static const qkv_embed_opts none = { 0 };
    const qkv_transformer_opts *o = qkv_transformer_options(qkv_model_transformer(m));
    if (!opts) opts = &none;
    qkv_status status = qkv__read_texts(m, texts, &opts->reading, pool, &opts->pooling, o ? o->dim : 0, out);
    for (int64_t i = 0; opts->normalized && !status && i < out->n; i++) normalize(out->data + i * out->width, out->width);
    return status;
}
