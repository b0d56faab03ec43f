/* read_side.c: a text as a model's encoder or decoder reads it in one forward: its ids and what stands around them. */
#include "../base/options.h"
#include "../token/encode.h"
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
    qkv_special_tokens ids = { .size = sizeof ids };
    qkv__special_tokens all;
    const qkv_config *o = qkv__model_config(m);
    bool is_pair = o->encoder_layers && o->decoder_layers, is_published = qkv__info_is_published(qkv__model_get_info(m));
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
static qkv_status put_first(qkv__ids *out, int32_t id)
{
    qkv_status status = qkv__put_id(out, id, 0, 0);
    if (status) return status;
    memmove(out->ids + 1, out->ids, (out->n - 1) * sizeof *out->ids);
    memmove(out->spans + 1, out->spans, (out->n - 1) * sizeof *out->spans);
    memmove(out->types + 1, out->types, (out->n - 1) * sizeof *out->types);
    out->ids[0] = id;
    out->spans[0] = (qkv_span){ 0, 0 };
    out->types[0] = 0;
    out->second++;
    return QKV_OK;
}

static qkv_status tokenize_side(const qkv_model *m, qkv_side side, qkv_str text, const qkv_encode_opts *opts, qkv__ids *out)
{
    frame f = { -1, -1, false };
    qkv_encode_opts o = { 0 };
    if (!m || (side != QKV_SIDE_SOURCE && side != QKV_SIDE_TARGET))
        return qkv__fail(QKV_USAGE, "tokenize: a model and a side are needed");
    const qkv_tokenizer *t = qkv_model_tokenizer(m, side);
    if (!t) return qkv__refuse_without_tokenizer(m, NULL);
    qkv_status status = QKV__READ_OPTIONS(&o, allow_invalid_utf8, opts, "tokenize");
    if (!status && !o.no_special) status = find_frame(m, side, &f);
    o.add_special = f.by_tokenizer;
    o.parse_special |= f.by_tokenizer;
    if (!status) status = qkv__encode(t, text.data, text.length, &o, out);
    bool is_started = out->n && out->ids[0] == f.start, is_ended = out->n && out->ids[out->n - 1] == f.end;
    if (!status && f.start >= 0 && !is_started) status = put_first(out, f.start);
    if (status || f.end < 0 || is_ended) return status;
    if (!o.pair.data) out->second++;
    return qkv__put_id(out, f.end, o.pair.data ? o.pair.length : text.length, o.pair.data ? o.pair.length : text.length);
}

qkv_status qkv_model_tokenize(const qkv_model *m, qkv_side side, qkv_str text, const qkv_encode_opts *opts, qkv_encoding **out)
{
    qkv__ids *ids = qkv__encoding_begin(out);
    return ids ? qkv__encoding_end(*out, tokenize_side(m, side, text, opts, ids)) : qkv_error_status();
}
