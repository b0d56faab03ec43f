/* classes.c: the logits of a classifier. */
#include "classes.h"

#include "../nn/ngrams.h"
#include "../tensor/tape.h"
#include "model_info.h"
#include "special_tokens.h"
#include "model.h"

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

qkv_tensor *qkv__class_logits(const qkv_model *m, qkv_tensor *hidden, const qkv_tokens *x)
{
    const qkv__transformer *f = qkv__model_transformer(m);
    const qkv__model_info *info = qkv__model_get_info(m);
    if (!hidden || !qkv__transformer_config(f)->decoder_layers || !qkv__info_is_published(info))
        return qkv__transformer_classify(f, hidden, x->lengths);
    qkv_tape *t = hidden->tape;
    if (info->start < 0) return qkv__error(t, QKV_UNSUPPORTED, "classify: the model does not say what its decoder starts with");
    int32_t *ids = qkv__save(t, sizeof *ids * (size_t)(x->rows * x->length));
    for (int64_t i = 0; ids && i < x->rows * x->length; i++) ids[i] = i % x->length ? x->ids[i - 1] : info->start;
    if (ids)
        hidden = qkv__transformer_decode(
            f, t, &(qkv_tokens){ .ids = ids, .rows = x->rows, .length = x->length, .lengths = x->lengths }, hidden, x->lengths);
    return ids ? qkv__transformer_classify(f, hidden, x->lengths) : NULL;
}

qkv_tensor *qkv__batch_logits(const qkv_model *m, qkv_tape *t, const qkv_batch *b, qkv_tokens *s)
{
    qkv__special_tokens f;
    if (qkv__special_tokens_of(m, &f)) f.has_types = false; /* a batch of ids needs no text */
    const int32_t *types = f.has_types ? batch_types(&f, t, b) : NULL;
    if (f.has_types && !types) return NULL;
    *s = (qkv_tokens){
        .ids = b->source, .types = types, .rows = b->rows, .length = b->source_length, .lengths = b->source_lengths
    };
    return qkv__class_logits(m, qkv__transformer_encode(qkv__model_transformer(m), t, s), s);
}

qkv_tensor *qkv__classify_batch(const qkv_model *m, qkv_tape *t, const qkv_batch *b)
{
    qkv_tokens s;
    return m && t && b ? qkv__ngrams_add(qkv__model_transformer(m), qkv__batch_logits(m, t, b, &s), &s, NULL) : NULL;
}
