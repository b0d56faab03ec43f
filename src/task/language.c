/* language.c: a decoder alone learns which token comes next. */
#include "texts.h"

#include "../base/size.h"
#include "../tensor/tape.h"

#include <math.h>

static qkv_tensor *next_token_loss(const qkv_objective *o, const qkv_model *m, qkv_tape *t, const qkv_batch *b, float smoothing)
{
    (void)o;
    const qkv_transformer *x = qkv_model_transformer(m);
    qkv_tensor *hidden = qkv_transformer_decode(x, t, b->target, b->rows, b->target_length, b->target_lengths, NULL, NULL);
    const qkv_cross_entropy_opts opts = { .smoothing = smoothing, .ignore = QKV_IGNORED, .has_ignore = 1 };
    return qkv_cross_entropy_with(qkv_transformer_logits(x, hidden), b->labels, &opts);
}

qkv_objective qkv_generating(void) { return (qkv_objective){ .loss = next_token_loss, .name = 0x6e657874 }; }

/* What a document begins with, the text, what it ends with. */
static qkv_status read_document(qkv__reader *r, const qkv_model *m, const char *text, size_t length)
{
    qkv__framing f;
    qkv__marks begin, end;
    qkv_status status = qkv__framing_document(m, &f, &begin, &end);
    if (!status) status = qkv__reader_put(r, &begin);
    if (!status) status = qkv__reader_encode(r, f.source, text, length);
    return status ? status : qkv__reader_put(r, &end);
}

qkv_status qkv_pairs_add_document(qkv_pairs *p, const qkv_model *m, const char *text, size_t length, int64_t context)
{
    if (!p || (length && !text) || context < 1)
        return qkv__fail(QKV_USAGE, "documents: pairs, a text and a context of at least 1 token are needed");
    qkv__reader r = { 0 };
    qkv_status status = read_document(&r, m, text, length);
    for (int64_t at = 0; at + 1 < r.n && !status; at += context)
        status = qkv_pairs_add(p, NULL, 0, r.ids + at, (size_t)qkv__min(context + 1, r.n - at));
    qkv__reader_free(&r);
    return status;
}

/* ---- measuring ---- */

/* Tokens from `from` on, each given those before it in the window that begins at `begin`. */
static qkv_status measure_window(const qkv_transformer *x, qkv_tape *t, const int32_t *ids, int64_t begin, int64_t from,
                                 int64_t to, qkv_surprise *sum)
{
    int64_t n = to - begin - 1;
    int32_t *labels = qkv__save(t, sizeof *labels * (size_t)n);
    for (int64_t i = 0; labels && i < n; i++) labels[i] = begin + i + 1 < from ? QKV_IGNORED : ids[begin + i + 1];
    const qkv_cross_entropy_opts opts = { .ignore = QKV_IGNORED, .has_ignore = 1 };
    qkv_tensor *hidden = labels ? qkv_transformer_decode(x, t, ids + begin, 1, n, NULL, NULL, NULL) : NULL;
    qkv_tensor *mean = qkv_cross_entropy_with(qkv_transformer_logits(x, hidden), labels, &opts);
    if (!mean) return qkv_tape_status(t);
    double nats = (double)qkv_item(mean) * (double)(to - from);
    qkv_tape_reset(t);
    if (!isfinite(nats)) return qkv__fail(QKV_NUMERIC, "perplexity: the loss is not finite");
    sum->nats += nats;
    sum->tokens += to - from;
    return QKV_OK;
}

static qkv_status measure(const qkv_model *m, const qkv__reader *r, int64_t context, int64_t stride, qkv_surprise *sum)
{
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .no_grad = 1 });
    qkv_status status = t ? QKV_OK : qkv_error_status();
    for (int64_t begin = 0, from = 1; from < r->n && !status; begin += stride) {
        int64_t to = qkv__min(begin + context + 1, r->n);
        status = measure_window(qkv_model_transformer(m), t, r->ids, begin, from, to, sum);
        from = to;
    }
    qkv_tape_free(t);
    return status;
}

qkv_status qkv_measure_text(const qkv_model *m, const char *text, size_t length, int64_t context, int64_t stride,
                            qkv_surprise *sum)
{
    const qkv_transformer_opts *o = qkv_transformer_options(qkv_model_transformer(m));
    if (!stride) stride = context;
    if (!o || o->encoder_layers || !sum || (length && !text))
        return qkv__fail(QKV_USAGE, "perplexity: a decoder alone, a text and a place for the result are needed");
    if (context < 1 || stride < 1 || stride > context)
        return qkv__fail(QKV_USAGE, "perplexity: a context of at least 1 and a stride from 1 to it are needed");
    qkv__reader r = { 0 };
    qkv_status status = read_document(&r, m, text, length);
    if (!status) status = measure(m, &r, context, stride, sum);
    qkv__reader_free(&r);
    return status;
}
