/* read_side.c: a text as a model's encoder or decoder reads it in one forward: its ids and what stands around them. */
#include "../token/encoder.h"
#include "model_info.h"
#include "special_tokens.h"
#include "model.h"

#include <qkv/model.h>

#include <stdbool.h>
#include <string.h>

/* What a side has around its texts, as ids; -1: nothing. */
typedef struct frame {
    int32_t start, end;
    bool by_tokenizer; /* the tokenizer adds what belongs there, and special tokens in a text are those */
} frame;

/* A decoder alone reads what generation reads: <s> also where no template of a tokenizer's file puts it, as of a Llama with a
 * SentencePiece file. An encoder alone of ours is read as it is. */
static qkv_status find_frame(const qkv_model *m, qkv_side side, frame *f)
{
    qkv_special_tokens ids;
    qkv__special_tokens all;
    const qkv_config *o = qkv__model_config(m);
    bool is_pair = o->encoder_layers && o->decoder_layers, is_published = qkv__info_is_published(qkv_model_get_info(m));
    *f = (frame){ -1, -1, false };
    if (!o->encoder_layers) {
        qkv_status status = qkv__special_tokens_of(m, &all);
        if (!status) *f = (frame){ all.single.before.n ? all.single.before.ids[0] : -1, -1, is_published };
        return status;
    }
    if (!is_pair && !is_published) return QKV_OK;
    qkv_status status = qkv_model_special_tokens(m, &ids);
    if (status) return status;
    if (side == QKV_SIDE_SOURCE) *f = (frame){ is_pair ? -1 : ids.start, ids.source_end, is_published };
    else *f = (frame){ is_pair ? ids.start : -1, -1, false };
    return QKV_OK;
}

/* An id before the others, from no place of the text. */
static qkv_status put_first(qkv_ids *out, int32_t id)
{
    qkv_status status = qkv__put_id(out, id, 0, 0);
    if (status) return status;
    memmove(out->ids + 1, out->ids, (out->n - 1) * sizeof *out->ids);
    memmove(out->spans + 1, out->spans, (out->n - 1) * sizeof *out->spans);
    memmove(out->types + 1, out->types, (out->n - 1) * sizeof *out->types);
    out->ids[0] = id;
    out->spans[0] = (qkv_span){ 0, 0 };
    out->types[0] = 0;
    return QKV_OK;
}

qkv_status qkv_model_tokenize(const qkv_model *m, qkv_side side, const char *text, size_t length, int raw, qkv_ids *out)
{
    frame f = { -1, -1, false };
    if (!m || !out || (side != QKV_SIDE_SOURCE && side != QKV_SIDE_TARGET))
        return qkv__fail(QKV_USAGE, "read side: a model, a side and a place for the ids are needed");
    const qkv_tokenizer *t = side == QKV_SIDE_SOURCE ? qkv_model_tokenizer(m, QKV_SIDE_SOURCE)
                                                     : qkv_model_tokenizer(m, QKV_SIDE_TARGET);
    out->n = out->second = 0;
    if (!t) return qkv__refuse_without_tokenizer(m, NULL);
    qkv_status status = raw ? QKV_OK : find_frame(m, side, &f);
    const bool is_decoder = !qkv__model_config(m)->encoder_layers;
    if (!status && !text && (f.start < 0 || is_decoder)) return QKV_OK;
    const qkv_encode_opts opts = { .specials = f.by_tokenizer, .with_special_tokens = f.by_tokenizer };
    if (!status && text) status = qkv_tokenizer_encode(t, text, length, &opts, out);
    bool is_started = out->n && out->ids[0] == f.start, is_ended = out->n && out->ids[out->n - 1] == f.end;
    if (!status && f.start >= 0 && !is_started) status = put_first(out, f.start);
    if (!status && f.end >= 0 && !is_ended) status = qkv__put_id(out, f.end, length, length);
    out->second = out->n;
    if (status) out->n = out->second = 0;
    return status;
}
