/* embed.c: a vector for a text. */
#include "texts.h"

#include "../base/options.h"
#include "../model/model_info.h"

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

/* The published length counts every id, ours all but the last. */
static void resolve_embed_options(const qkv_model_info *info, qkv_embed_opts *o, qkv_reading_opts *reading)
{
    if (!qkv__info_is_published(info)) return;
    o->pooling = info->pooling;
    if (info->normalise) o->normalized = 1;
    if (!reading->max_length && info->embed_length > 1) reading->max_length = info->embed_length - 1;
}

qkv_status qkv_embed_texts(const qkv_model *m, const qkv_texts *texts, const qkv_embed_opts *opts, qkv_matrix *out)
{
    const qkv_transformer_opts *t = qkv_transformer_options(qkv_model_transformer(m));
    qkv_embed_opts o;
    qkv_reading_opts reading;
    qkv_status status = QKV__READ_OPTIONS(&o, as_published, opts, "embed");
    if (!status) status = QKV__READ_OPTIONS(&reading, each_step_data, o.reading, "embed");
    if (status) return status;
    if (!opts) o.as_published = 1;
    if (o.as_published && t) resolve_embed_options(qkv_model_info_of(m), &o, &reading);
    status = qkv__read_texts(m, texts, &reading, pool, &o.pooling, t ? t->dim : 0, out);
    for (int64_t i = 0; o.normalized && !status && i < out->n; i++) normalize(out->data + i * out->width, out->width);
    return status;
}
