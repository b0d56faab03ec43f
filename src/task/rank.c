/* rank.c: which passages answer a query best, by a cross-encoder. */
#include "texts.h"

#include "../base/options.h"
#include "../base/size.h"

#include <math.h>
#include <stdlib.h>

static int best_first(const void *a, const void *b)
{
    const qkv_ranked *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void sort_passages(const qkv_matrix *logits, bool scores_logits, qkv_ranked *all)
{
    for (int64_t i = 0; i < logits->n; i++) {
        float x = logits->data[i];
        all[i] = (qkv_ranked){ scores_logits ? x : (float)(1 / (1 + exp(-(double)x))), x, i };
    }
    qsort(all, (size_t)logits->n, sizeof *all, best_first);
}

/* The query before every passage. */
static qkv_status score_passages(const qkv_model *m, const char *query, size_t length, const qkv_texts *passages,
                                 const qkv_encoder_opts *opts, qkv_matrix *logits)
{
    size_t n = (size_t)passages->n, bytes;
    if (!qkv__size_mul(n, sizeof query + sizeof length, &bytes)) return qkv__fail(QKV_LIMIT, "rank: too many passages");
    const char **queries = qkv__alloc(bytes);
    if (!queries) return QKV_MEMORY;
    size_t *lengths = (size_t *)(queries + n);
    for (size_t i = 0; i < n; i++) queries[i] = query, lengths[i] = length;
    const qkv_texts pairs = {
        .texts = queries, .pairs = passages->texts, .lengths = lengths, .pair_lengths = passages->lengths, .n = passages->n
    };
    qkv_status status = qkv_classify(m, &pairs, opts, logits);
    qkv__release(queries, bytes);
    return status;
}

qkv_status qkv_rank(const qkv_model *m, const char *query, size_t length, const qkv_texts *passages,
                    const qkv_encoder_opts *opts, int64_t n, qkv_ranked *out, int64_t *cut)
{
    if (!m || !query || !passages || !out || n < 0 || passages->n < 0 || (passages->n && !passages->texts))
        return qkv__fail(QKV_USAGE, "rank: a model, a query, passages and a place for the best are needed");
    qkv_encoder_opts own;
    qkv_status status = QKV__READ_OPTIONS(&own, each_step_data, opts, "rank");
    if (!status) status = qkv_model_check_ability(m, QKV_CAN_RANK);
    if (status) return status;
    qkv_matrix logits = { 0 };
    size_t bytes = sizeof(qkv_ranked) * (size_t)qkv__max(passages->n, 1);
    qkv_ranked *all = qkv__alloc(bytes);
    status = all ? score_passages(m, query, length, passages, &own, &logits) : QKV_MEMORY;
    if (!status) {
        sort_passages(&logits, qkv_model_get_info(m)->scores_logits, all);
        for (int64_t i = 0; i < n; i++) out[i] = i < logits.n ? all[i] : (qkv_ranked){ 0, 0, -1 };
        if (cut) *cut = logits.cut;
    }
    qkv__release(all, bytes);
    qkv_matrix_free(&logits);
    return status;
}
