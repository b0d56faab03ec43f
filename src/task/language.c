/* language.c: the log-likelihood of a text by a decoder alone. */
#include "measure.h"
#include "texts.h"

#include <qkv/data.h>
#include <qkv/session.h>

#include "../base/options.h"
#include "../base/result.h"
#include "../base/size.h"
#include "../model/model.h"

#include <math.h>

/* Tokens from `from` on, each given those before it in the window that begins at `begin`. */
static qkv_status measure_window(qkv_session *s, const int32_t *ids, int32_t *labels, int64_t begin, int64_t from, int64_t to,
                                 double *nats)
{
    int64_t n = to - begin - 1;
    for (int64_t i = 0; i < n; i++) labels[i] = begin + i + 1 < from ? QKV_IGNORED : ids[begin + i + 1];
    qkv_status status = qkv_session_start(s, 1);
    if (!status) status = qkv_session_read(s, ids + begin, &n, QKV_LOGITS_ALL);
    if (status) return status;
    qkv_tensor *mean = qkv_cross_entropy(qkv_session_logits(s), labels, NULL);
    if (!mean) return qkv_error_status();
    *nats = (double)qkv_tensor_item(mean) * (double)(to - from);
    return isfinite(*nats) ? QKV_OK : qkv__fail(QKV_NUMERIC, "perplexity: the loss is not finite");
}

/* A session is made for the first window that is measured. */
static qkv_status measure_nll(const qkv_model *m, const qkv__reader *r, const qkv_likelihood_opts *o,
                              const qkv__window_share *share, qkv_nll *sum)
{
    qkv_session *s = NULL;
    size_t bytes = sizeof(int32_t) * (size_t)qkv__min(o->context, r->n);
    int32_t *labels = qkv__alloc(bytes);
    qkv_status status = labels ? QKV_OK : QKV_MEMORY;
    for (int64_t begin = 0, from = 1, to; from < r->n && !status; begin += o->stride, from = to) {
        bool is_own = true;
        double nats = 0;
        to = qkv__min(begin + o->context + 1, r->n);
        status = qkv__cancelled(o->hooks, "perplexity");
        if (!status && share) status = share->take(share->data, to - begin, &is_own);
        if (!status && is_own && !s && !(s = qkv_session_new(m, NULL))) status = qkv_error_status();
        if (!status && is_own) status = measure_window(s, r->ids, labels, begin, from, to, &nats);
        if (status) break;
        if (share) share->put(share->data, nats);
        else sum->nats += nats;
        sum->tokens += to - from;
    }
    qkv__release(labels, bytes);
    qkv_session_free(s);
    return status;
}

qkv_status qkv__log_likelihood(const qkv_model *m, qkv_str text, const qkv_likelihood_opts *opts,
                               const qkv__window_share *share, qkv_nll *sum)
{
    enum { DEFAULT_CONTEXT = 256 };
    qkv_likelihood_opts own;
    const qkv_config *o = qkv__model_config(m);
    if (QKV__READ_OPTIONS(&own, hooks, opts, "perplexity")) return QKV_USAGE;
    if (!own.context) own.context = DEFAULT_CONTEXT;
    if (!own.stride) own.stride = own.context;
    if (!o || o->encoder_layers || !sum || (text.length && !text.data))
        return qkv__fail(QKV_USAGE, "perplexity: a decoder alone, a text and a place for the result are needed");
    if (own.context < 1 || own.stride < 1 || own.stride > own.context)
        return qkv__fail(QKV_USAGE, "perplexity: a context of at least 1 and a stride from 1 to it are needed");
    qkv__reader r = { 0 };
    qkv_status status = qkv__reader_document(&r, m, text.data, text.length);
    int64_t positions = qkv__max_positions(o);
    if (!status && r.n - 1 > positions)
        status = qkv__check_length(QKV_USAGE, "perplexity: a context of", own.context, positions);
    if (!status) status = measure_nll(m, &r, &own, share, sum);
    qkv__reader_free(&r);
    return status;
}

qkv_status qkv_log_likelihood(const qkv_model *m, qkv_str text, const qkv_likelihood_opts *opts, qkv_nll *sum)
{
    return qkv__log_likelihood(m, text, opts, NULL, sum);
}
