/* language.c: the log-likelihood of a text by a decoder alone. */
#include "measure.h"
#include "texts.h"

#include <qkv/data.h>
#include <qkv/session.h>

#include "../base/memory.h"
#include "../base/size.h"
#include "../model/model.h"

#include <math.h>

/* Tokens from `from` on, each given those before it in the window that begins at `begin`. */
static qkv_status measure_window(qkv_session *s, const int32_t *ids, int32_t *labels, int64_t begin, int64_t from, int64_t to,
                                 qkv_nll *sum)
{
    int64_t n = to - begin - 1;
    for (int64_t i = 0; i < n; i++) labels[i] = begin + i + 1 < from ? QKV_IGNORED : ids[begin + i + 1];
    qkv_status status = qkv_session_start(s, 1);
    if (!status) status = qkv_session_read(s, ids + begin, &n, QKV_LOGITS_ALL);
    if (status) return status;
    qkv_tensor *mean = qkv_cross_entropy(qkv_session_logits(s), labels, NULL);
    if (!mean) return qkv_error_status();
    double nats = (double)qkv_tensor_item(mean) * (double)(to - from);
    if (!isfinite(nats)) return qkv__fail(QKV_NUMERIC, "perplexity: the loss is not finite");
    sum->nats += nats;
    sum->tokens += to - from;
    return QKV_OK;
}

/* A window of a text whose windows the ranks share: its nats go to the deal, and its tokens to the sum. */
static qkv_status measure_dealt(qkv_session **s, const qkv_model *m, const int32_t *ids, int32_t *labels, int64_t begin,
                                int64_t from, int64_t to, qkv__deal *deal, qkv_nll *sum)
{
    bool is_own;
    qkv_nll one = { 0 };
    qkv_status status = qkv__deal_piece(deal, to - begin, &is_own);
    if (!status && is_own && !*s && !(*s = qkv_session_new(m, NULL))) status = qkv_error_status();
    if (!status && is_own) status = measure_window(*s, ids, labels, begin, from, to, &one);
    if (status) return status;
    deal->pieces[deal->n - 1].number = one.nats;
    sum->tokens += to - from;
    return QKV_OK;
}

static qkv_status measure_nll(const qkv_model *m, const qkv__reader *r, int64_t context, int64_t stride, qkv__deal *deal,
                              qkv_nll *sum)
{
    qkv_session *s = deal ? NULL : qkv_session_new(m, NULL);
    size_t bytes = sizeof(int32_t) * (size_t)qkv__min(context, r->n);
    int32_t *labels = s || deal ? qkv__alloc(bytes) : NULL;
    qkv_status status = labels ? QKV_OK : qkv_error_status();
    for (int64_t begin = 0, from = 1; from < r->n && !status; begin += stride) {
        int64_t to = qkv__min(begin + context + 1, r->n);
        status = deal ? measure_dealt(&s, m, r->ids, labels, begin, from, to, deal, sum)
                      : measure_window(s, r->ids, labels, begin, from, to, sum);
        from = to;
    }
    qkv__release(labels, bytes);
    qkv_session_free(s);
    return status;
}

qkv_status qkv__measure_shared(const qkv_model *m, const char *text, size_t length, int64_t context, int64_t stride,
                               qkv__deal *deal, qkv_nll *sum)
{
    const qkv_config *o = qkv__model_config(m);
    if (!stride) stride = context;
    if (!o || o->encoder_layers || !sum || (length && !text))
        return qkv__fail(QKV_USAGE, "perplexity: a decoder alone, a text and a place for the result are needed");
    if (context < 1 || stride < 1 || stride > context)
        return qkv__fail(QKV_USAGE, "perplexity: a context of at least 1 and a stride from 1 to it are needed");
    qkv__reader r = { 0 };
    qkv_status status = qkv__reader_document(&r, m, text, length);
    int64_t positions = qkv__max_positions(o);
    if (!status && r.n - 1 > positions) status = qkv__check_length(QKV_USAGE, "perplexity: a context of", context, positions);
    if (!status) status = measure_nll(m, &r, context, stride, deal, sum);
    qkv__reader_free(&r);
    return status;
}

qkv_status qkv_log_likelihood(const qkv_model *m, const char *text, size_t length, int64_t context, int64_t stride,
                              qkv_nll *sum)
{
    return qkv__measure_shared(m, text, length, context, stride, NULL, sum);
}
