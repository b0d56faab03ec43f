/* embed.c: a vector for a text. */
#include "embed.h"
#include "texts.h"

#include "../base/options.h"
#include "../base/size.h"
#include "../model/model_info.h"
#include "../model/sentence.h"
#include "../tensor/tape.h"
#include "../model/model.h"

#include <math.h>

static qkv_tensor *pool(const qkv_model *m, qkv_tensor *hidden, const qkv_tokens *x, const void *data)
{
    return qkv__transformer_pool(qkv__model_transformer(m), hidden, x->lengths, *(const qkv_pooling *)data);
}

/* ---- the modules of sentence-transformers ---- */

/* One of them, x being the hidden states of n tokens, to `out`. */
static void pool_tokens(int kind, const float *x, int64_t n, int64_t dim, double *out)
{
    double divisor = kind == QKV__POOL_MEAN_SQRT ? sqrt((double)n) : (double)n;
    if (kind == QKV__POOL_WEIGHTED) divisor = (double)n * (double)(n + 1) / 2;
    for (int64_t k = 0; k < dim; k++) {
        double sum = 0, most = (double)x[k];
        for (int64_t i = 0; i < n; i++) {
            double value = (double)x[i * dim + k];
            sum += kind == QKV__POOL_WEIGHTED ? value * (double)(i + 1) : value;
            most = fmax(most, value);
        }
        out[k] = kind == QKV__POOL_FIRST  ? (double)x[k]
                 : kind == QKV__POOL_LAST ? (double)x[(n - 1) * dim + k]
                 : kind == QKV__POOL_MAX  ? most
                                          : sum / divisor;
    }
}

static void run_dense(const qkv__dense *d, const double *x, double *y)
{
    for (int64_t i = 0; i < d->out; i++) {
        double sum = d->has_bias ? (double)d->weight[d->out * d->in + i] : 0;
        for (int64_t k = 0; k < d->in; k++) sum += (double)d->weight[i * d->in + k] * x[k];
        y[i] = d->f(sum);
    }
}

static int64_t widest_vector(const qkv__sentence *s, int64_t dim)
{
    int64_t widest = QKV__POOL_KINDS * dim;
    for (int i = 0; i < s->n_dense; i++) widest = qkv__max(widest, s->dense[i].out);
    return widest;
}

/* Where the vector is: in one of the two memories, or both. */
static const double *run_modules(const qkv__sentence *s, const float *x, int64_t n, int64_t dim, double *a, double *b)
{
    int64_t width = 0;
    for (int kind = 1; kind < 1 << QKV__POOL_KINDS; kind *= 2)
        if (s->poolings & kind) pool_tokens(kind, x, n, dim, a + width), width += dim;
    for (int i = 0; i < s->n_dense; i++) {
        double *y = i % 2 ? a : b;
        run_dense(&s->dense[i], i % 2 ? b : a, y);
    }
    return s->n_dense % 2 ? b : a;
}

static qkv_tensor *sentence_vectors(const qkv_model *m, qkv_tensor *hidden, const qkv_tokens *x, const void *data)
{
    (void)m;
    if (!hidden) return NULL;
    const qkv__sentence *s = data;
    int64_t rows = qkv_tensor_dim(hidden, 0), length = qkv_tensor_dim(hidden, 1), dim = qkv_tensor_dim(hidden, 2),
            widest = widest_vector(s, dim);
    qkv_tensor *out = qkv_constant(hidden->tape, QKV_SHAPE(rows, s->width), NULL);
    double *memory = out ? qkv__save(hidden->tape, 2 * sizeof *memory * (size_t)widest) : NULL;
    for (int64_t b = 0; memory && b < rows; b++) {
        const double *y = run_modules(s, qkv_tensor_data(hidden) + b * length * dim, x->lengths[b], dim, memory,
                                      memory + widest);
        for (int64_t k = 0; k < s->width; k++) qkv__tensor_data(out)[b * s->width + k] = (float)y[k];
    }
    return memory ? out : NULL;
}

/* ---- all models ---- */

void qkv__normalize(float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    for (int64_t i = 0; i < n && sum > 0; i++) x[i] = (float)((double)x[i] / sqrt(sum));
}

/* The published length counts every id, ours all but the last. */
static void resolve_embed_options(const qkv__model_info *info, qkv_embed_opts *o, qkv_encoder_opts *reading)
{
    if (!qkv__info_is_published(info)) return;
    o->pooling = info->pooling;
    if (info->normalise) o->normalize = 1;
    if (!reading->max_length && info->embed_length > 1) reading->max_length = info->embed_length - 1;
}

qkv_status qkv_embed(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_embed_opts *opts, qkv_matrix **out)
{
    const qkv_config *t = qkv__model_config(m);
    qkv_embed_opts o;
    qkv_encoder_opts reading;
    float *rows = NULL;
    qkv_status status = QKV__READ_OPTIONS(&o, normalize, opts, "embed");
    if (!status) status = QKV__READ_OPTIONS(&reading, hooks, o.reading, "embed");
    if (status) {
        if (out) qkv__result_clear(*out);
        return status;
    }
    reading.size = sizeof reading;
    if (o.as == QKV_EMBED_AS_PUBLISHED && t) resolve_embed_options(qkv__model_get_info(m), &o, &reading);
    const qkv__sentence *s = m && o.as == QKV_EMBED_AS_PUBLISHED ? qkv__model_sentence(m) : NULL;
    if (s && qkv__sentence_is_more(s))
        status = qkv__read_texts(m, texts, n, &reading, sentence_vectors, s, s->width, out, &rows);
    else status = qkv__read_texts(m, texts, n, &reading, pool, &o.pooling, t ? t->dim : 0, out, &rows);
    for (int64_t i = 0; o.normalize && !status && i < n; i++) qkv__normalize(rows + i * (*out)->width, (*out)->width);
    return status;
}

qkv_status qkv__embed_limits_of(const qkv_model *m, qkv__embed_limits *out)
{
    const qkv__sentence *s = qkv__model_sentence(m);
    qkv_embed_opts o = QKV_OPTS(qkv_embed_opts);
    qkv_encoder_opts reading = QKV_OPTS(qkv_encoder_opts);
    qkv__reading r = { .m = m };
    resolve_embed_options(qkv__model_get_info(m), &o, &reading);
    qkv_status status = qkv__reading_start(&r, &reading);
    out->room = r.room;
    out->around = r.f.single.before.n + r.f.single.after.n - !r.f.is_published;
    out->width = s && qkv__sentence_is_more(s) ? s->width : qkv__model_config(m)->dim;
    qkv__reading_free(&r);
    return status;
}
