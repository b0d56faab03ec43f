/* pool.c: one vector for a row of hidden states, and the classifier on top of it. */
#include "layer.h"

#include "../tensor/tape.h"

/* A row without tokens has no first and no last one, and its neighbour's must not stand in. */
static bool check_pool_lengths(qkv_tape *t, const int32_t *lengths, int64_t batch, int64_t length)
{
    for (int64_t b = 0; b < batch; b++) {
        int64_t n = lengths ? lengths[b] : length;
        if (n < 1 || n > length)
            return qkv__error(t, QKV_USAGE, "pool: row %lld has %lld tokens, expected 1 to %lld", (long long)b, (long long)n,
                              (long long)length);
    }
    return true;
}

/* One token of each row: the first, or the last real one. */
static qkv_tensor *pick(qkv_tensor *hidden, const int32_t *lengths, bool last)
{
    qkv_tape *t = hidden->tape;
    int64_t batch = qkv_tensor_dim(hidden, 0), length = qkv_tensor_dim(hidden, 1);
    int32_t *places = qkv__save(t, sizeof *places * (size_t)batch);
    if (!places) return NULL;
    for (int64_t b = 0; b < batch; b++) places[b] = (int32_t)(b * length + (last ? (lengths ? lengths[b] : length) - 1 : 0));
    return qkv_gather(t, qkv_reshape(hidden, QKV_SHAPE(batch * length, qkv_tensor_dim(hidden, 2))), places, 1, &batch);
}

/* softmax(q h^T / sqrt(dim)) h over the real tokens; a query of zeros sees them all alike. */
static qkv_tensor *pool_by_attention(qkv_tensor *hidden, const int32_t *lengths, qkv_tensor *query)
{
    qkv_tape *t = hidden->tape;
    int64_t batch = qkv_tensor_dim(hidden, 0), dim = qkv_tensor_dim(hidden, 2);
    int32_t *zeros = qkv__save(t, sizeof *zeros * (size_t)batch);
    for (int64_t b = 0; zeros && b < batch; b++) zeros[b] = 0;
    qkv_tensor *q = zeros ? qkv_gather(t, query, zeros, 2, (int64_t[]){ batch, 1 }) : NULL;
    return qkv_reshape(qkv_attention(q, hidden, hidden, &(qkv_mask){ .key_lengths = lengths }, NULL), QKV_SHAPE(batch, dim));
}

qkv_tensor *qkv__transformer_pool(const qkv__transformer *m, qkv_tensor *hidden, const int32_t *lengths, qkv_pooling how)
{
    if (!m || !hidden) return NULL;
    qkv_tape *t = hidden->tape;
    if (qkv_tensor_ndim(hidden) != 3) return qkv__error(t, QKV_USAGE, "pool: hidden states of 3 dimensions are needed");
    if (!check_pool_lengths(t, lengths, qkv_tensor_dim(hidden, 0), qkv_tensor_dim(hidden, 1))) return NULL;
    if (how == QKV_POOLING_FIRST || how == QKV_POOLING_LAST) return pick(hidden, lengths, how == QKV_POOLING_LAST);
    if (how == QKV_POOLING_MEAN)
        return pool_by_attention(hidden, lengths, qkv_constant(t, QKV_SHAPE(1, qkv_tensor_dim(hidden, 2)), NULL));
    if (how != QKV_POOLING_ATTENTION || !m->pool_query)
        return qkv__error(t, QKV_USAGE, "pool: the model has no weights for such a pooling");
    return pool_by_attention(hidden, lengths, m->pool_query);
}

static qkv_tensor *densely(const qkv__transformer *m, qkv_tensor *pooled)
{
    if (m->o.pooler == QKV_POOLER_NONE) return pooled;
    if (m->o.pooler == QKV_POOLER_HEAD) return qkv__head_forward(m, pooled);
    qkv_tensor *x = qkv_linear_forward(&m->pooler, pooled);
    if (m->o.pooler == QKV_POOLER_GELU) return qkv_gelu(x);
    return m->o.pooler == QKV_POOLER_TANH ? qkv_tanh(x) : qkv_relu(x);
}

qkv_tensor *qkv__transformer_classify(const qkv__transformer *m, qkv_tensor *hidden, const int32_t *lengths)
{
    if (!m || !hidden) return NULL;
    if (!m->o.classes || m->o.classes_of)
        return qkv__error(hidden->tape, QKV_USAGE, "classify: the model has no classifier of texts");
    qkv_tensor *pooled = densely(m, qkv__transformer_pool(m, hidden, lengths, m->o.pooling));
    return qkv_linear_forward(&m->classifier, qkv_dropout(pooled, m->o.dropout));
}

qkv_tensor *qkv__transformer_tag(const qkv__transformer *m, qkv_tensor *hidden)
{
    if (!m || !hidden) return NULL;
    if (!m->o.classes || !m->o.classes_of)
        return qkv__error(hidden->tape, QKV_USAGE, "tag: the model has no classifier of tokens");
    if (m->o.pooler == QKV_POOLER_HEAD) hidden = qkv__head_forward(m, hidden);
    return qkv_linear_forward(&m->classifier, qkv_dropout(hidden, m->o.dropout));
}
