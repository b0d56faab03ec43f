/* forward.c: a model's forward pass on a tape of the caller's. */
#include "model.h"

#include "../base/options.h"
#include "../tensor/tape.h"

/* The caller's tokens; false with the error on the tape. */
static bool read_tokens(qkv_tape *t, const qkv_tokens *given, const char *call, qkv_tokens *x)
{
    if (!t) return false;
    if (!given) return qkv__error(t, QKV_USAGE, "%s: tokens are needed", call);
    return !QKV__READ_OPTIONS(x, lengths, given, call) || qkv__error_below(t);
}

qkv_tensor *qkv_model_encode(const qkv_model *m, qkv_tape *t, const qkv_tokens *source)
{
    qkv_tokens x;
    return read_tokens(t, source, "encode", &x) ? qkv__transformer_encode(qkv__model_transformer(m), t, &x) : NULL;
}

qkv_tensor *qkv_model_decode(const qkv_model *m, qkv_tape *t, const qkv_tokens *target, qkv_tensor *memory,
                             const int32_t *memory_lengths)
{
    qkv_tokens x;
    if (!read_tokens(t, target, "decode", &x)) return NULL;
    if (x.types) return qkv__error(t, QKV_USAGE, "decode: a decoder's tokens have no types");
    return qkv__transformer_decode(qkv__model_transformer(m), t, &x, memory, memory_lengths);
}

qkv_tensor *qkv_model_logits(const qkv_model *m, qkv_tensor *hidden)
{
    return qkv__transformer_logits(qkv__model_transformer(m), hidden);
}

qkv_tensor *qkv_model_pool(const qkv_model *m, qkv_tensor *hidden, const int32_t *lengths, qkv_pooling how)
{
    return qkv__transformer_pool(qkv__model_transformer(m), hidden, lengths, how);
}

qkv_tensor *qkv_model_classify(const qkv_model *m, qkv_tensor *hidden, const int32_t *lengths)
{
    const qkv__transformer *x = qkv__model_transformer(m);
    if (x && qkv__transformer_config(x)->classes_of) return qkv__transformer_tag(x, hidden);
    return qkv__transformer_classify(x, hidden, lengths);
}
