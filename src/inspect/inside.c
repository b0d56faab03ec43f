/* inside.c: a model over the tokens of a capture, for lens, why and walk. */
#include "inside.h"

#include <qkv/unstable/util.h>

#include "../base/memory.h"
#include "../model/model.h"

#include <math.h>
#include <string.h>

qkv_status qkv__inside_read(const char *call, const qkv_model *m, const qkv_attention_capture *a, qkv__inside *in)
{
    const qkv__capture *w = qkv__capture_of(a);
    *in = (qkv__inside){ .x = qkv__model_transformer(m) };
    const qkv_config *o = qkv__transformer_config(in->x);
    if (!a->heads) return qkv__fail(QKV_USAGE, "%s: the capture holds nothing: qkv_attend() makes one", call);
    if (!o->encoder_layers != !a->layers[QKV_ATTENTION_ENCODER] || !o->decoder_layers != !a->layers[QKV_ATTENTION_DECODER])
        return qkv__fail(QKV_USAGE, "%s: the capture is of a model of another kind", call);
    in->stack = o->decoder_layers ? QKV__DECODER : QKV__ENCODER;
    in->tokenizer = o->decoder_layers ? qkv_model_tokenizer(m, QKV_SIDE_TARGET) : qkv_model_tokenizer(m, QKV_SIDE_SOURCE);
    in->source = w->source.ids;
    in->n_source = o->encoder_layers ? w->source.n : 0;
    in->read = w->target.ids;
    in->n_read = o->decoder_layers ? a->target.n_tokens : 0;
    in->next = in->n_read ? in->read + 1 : in->source;
    in->n_next = in->n_read ? w->target.n - 1 : in->n_source;
    return QKV_OK;
}

qkv_status qkv__inside_run(qkv__inside *in, const qkv_tape_opts *opts)
{
    if (!(in->tape = qkv_tape_new(opts))) return qkv_error_status();
    if (in->n_source)
        in->memory = qkv__transformer_encode(in->x, in->tape,
                                             &(qkv_tokens){ .ids = in->source, .rows = 1, .length = in->n_source });
    in->last = in->memory;
    if (in->n_read)
        in->last = qkv__transformer_decode(in->x, in->tape, &(qkv_tokens){ .ids = in->read, .rows = 1, .length = in->n_read },
                                           in->memory, NULL);
    qkv_status status = qkv_tape_status(in->tape);
    for (int64_t i = 0; !status && i < qkv_tensor_count(in->last); i++)
        if (!isfinite(qkv_tensor_data(in->last)[i])) return qkv__fail(QKV_NUMERIC, "the model's states are not finite");
    return status;
}

void qkv__inside_free(qkv__inside *in)
{
    qkv_tape_free(in->tape);
    in->tape = NULL;
}

qkv_tensor *qkv__inside_hidden(const qkv__inside *in, int stack, int i)
{
    bool is_behind = stack == QKV__DECODER && in->n_source;
    return qkv_tape_hidden(in->tape, (is_behind ? in->x->stacks[QKV__ENCODER].n + 1 : 0) + i);
}

bool qkv__inside_speaks(const qkv_model *m, const qkv__inside *in)
{
    return in->stack == QKV__DECODER || qkv__model_get_info(m)->can & QKV_CAN_FILL;
}
