/* classes.c: the logits of a classifier. */
#include "classes.h"

#include "../nn/ngrams.h"
#include "../tensor/tape.h"
#include "model_info.h"
#include "special_tokens.h"

/* Of each token in a batch; NULL with the error on the tape. */
static int32_t *batch_types(const qkv__special_tokens *f, qkv_tape *t, const qkv_batch *b)
{
    int32_t *types = qkv__save(t, sizeof *types * (size_t)(b->rows * b->source_length));
    for (int64_t i = 0; types && i < b->rows; i++) {
        int64_t at = i * b->source_length;
        for (int64_t k = b->source_lengths[i]; k < b->source_length; k++) types[at + k] = 0;
        qkv__token_types(f, b->source + at, b->source_lengths[i], types + at);
    }
    return types;
}

qkv_tensor *qkv__class_logits(const qkv_model *m, qkv_tensor *hidden, const qkv__sources *x)
{
    const qkv_transformer *f = qkv_model_transformer(m);
    const qkv_model_info *info = qkv_model_get_info(m);
    if (!hidden || !qkv_transformer_options(f)->decoder_layers || !qkv__info_is_published(info))
        return qkv_transformer_classify(f, hidden, x->lengths);
    qkv_tape *t = hidden->tape;
    if (info->start < 0) return qkv__error(t, QKV_UNSUPPORTED, "classify: the model does not say what its decoder starts with");
    int32_t *ids = qkv__save(t, sizeof *ids * (size_t)(x->rows * x->length));
    for (int64_t i = 0; ids && i < x->rows * x->length; i++) ids[i] = i % x->length ? x->ids[i - 1] : info->start;
    if (ids) hidden = qkv_transformer_decode(f, t, ids, x->rows, x->length, x->lengths, hidden, x->lengths);
    return ids ? qkv_transformer_classify(f, hidden, x->lengths) : NULL;
}

qkv_tensor *qkv__batch_logits(const qkv_model *m, qkv_tape *t, const qkv_batch *b, qkv__sources *s)
{
    qkv__special_tokens f;
    if (qkv__special_tokens_of(m, &f)) f.has_types = false; /* a batch of ids needs no text */
    const int32_t *types = f.has_types ? batch_types(&f, t, b) : NULL;
    if (f.has_types && !types) return NULL;
    const qkv_transformer *x = qkv_model_transformer(m);
    *s = (qkv__sources){ b->source, types, b->rows, b->source_length, b->source_lengths };
    return qkv__class_logits(m, qkv_transformer_encode_typed(x, t, s->ids, s->types, s->rows, s->length, s->lengths), s);
}

qkv_tensor *qkv__classify_batch(const qkv_model *m, qkv_tape *t, const qkv_batch *b)
{
    qkv__sources s;
    return m && t && b ? qkv__ngrams_add(qkv_model_transformer(m), qkv__batch_logits(m, t, b, &s), &s, NULL) : NULL;
}
