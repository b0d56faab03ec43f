/* rank.c: which passages answer a query best, by a cross-encoder. */
#include "texts.h"

#include <qkv/unstable/util.h>

#include "../base/options.h"
#include "../base/size.h"
#include "../model/model.h"

#include <math.h>
#include <stdlib.h>

static int best_first(const void *a, const void *b)
{
    const qkv_ranked *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The query before every passage. */
static qkv_status score_passages(const qkv_model *m, qkv_str query, const qkv_str *passages, int64_t n,
                                 const qkv_encoder_opts *opts, qkv_matrix **logits)
{
    size_t bytes;
    qkv_encoder_opts o = *opts;
    o.size = sizeof o;
    o.pairs = passages;
    o.ids = NULL;
    if (!qkv__size_mul((size_t)n, sizeof query, &bytes)) return qkv__fail(QKV_LIMIT, "rank: too many passages");
    qkv_str *queries = qkv__alloc(bytes);
    if (!queries) return QKV_MEMORY;
    for (int64_t i = 0; i < n; i++) queries[i] = query;
    qkv_status status = qkv_classify(m, queries, n, &o, logits);
    qkv__release(queries, bytes);
    return status;
}

static qkv_status rank_passages(const qkv_model *m, qkv_str query, const qkv_str *passages, int64_t n,
                                const qkv_encoder_opts *opts, qkv_ranking *out)
{
    qkv_encoder_opts o;
    qkv_matrix *logits = NULL;
    qkv_ranked *all = NULL;
    if (!m || (!query.data && query.length) || n < 0 || (n && !passages))
        return qkv__fail(QKV_USAGE, "rank: a model, a query and passages are needed");
    qkv_status status = QKV__READ_OPTIONS(&o, hooks, opts, "rank");
    if (!status) status = qkv_model_check_ability(m, QKV_CAN_RANK);
    if (!status) status = score_passages(m, query, passages, n, &o, &logits);
    if (!status && !(all = qkv__result_alloc(out, sizeof *all * (size_t)n))) status = QKV_MEMORY;
    const bool scores_logits = !status && qkv__model_get_info(m)->scores_logits;
    for (int64_t i = 0; i < n && !status; i++) {
        const float x = logits->data[i];
        all[i] = (qkv_ranked){ i, scores_logits ? x : (float)(1 / (1 + exp(-(double)x))), x };
    }
    if (!status) {
        qsort(all, (size_t)n, sizeof *all, best_first);
        *out = (qkv_ranking){ n, all, logits->truncated };
    }
    qkv_free(logits);
    return status;
}

qkv_status qkv_rank(const qkv_model *m, qkv_str query, const qkv_str *passages, int64_t n, const qkv_encoder_opts *opts,
                    qkv_ranking **out)
{
    static const qkv__result_kind kind = { sizeof(qkv_ranking), NULL };
    if (!out) return qkv__fail(QKV_USAGE, "rank: a place for the best is needed");
    qkv_ranking *ranking = qkv__result_begin(*out, &kind);
    if (!ranking) return qkv_error_status();
    *out = ranking;
    qkv_status status = rank_passages(m, query, passages, n, opts, ranking);
    if (status) qkv__result_clear(ranking);
    return status;
}
