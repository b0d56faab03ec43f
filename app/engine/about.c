/* about.c: what a model is and what its tokens are, as JSON. */
#include "about.h"

#include <string.h>

/* ---- what the model does ---- */

const char *qkv__job_name(qkv__job job)
{
    switch (job) {
    case QKV__TRANSLATES: return "translate";
    case QKV__CLASSIFIES: return "classify";
    case QKV__GENERATES: return "generate";
    default: return "encode";
    }
}

qkv__job qkv__job_of(const qkv_model *m)
{
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    if (o.encoder_layers && o.decoder_layers) /* BART's classifier has both */
        return qkv_model_get_info(m)->can & QKV_CAN_TRANSLATE ? QKV__TRANSLATES : QKV__CLASSIFIES;
    if (o.decoder_layers) return QKV__GENERATES;
    return o.classes && o.classes_of == QKV_CLASSES_OF_TEXTS ? QKV__CLASSIFIES : QKV__ENCODES;
}

/* ---- what is known of it ---- */

static void put_labels(qkv__json *j, const qkv_model *m)
{
    if (!qkv_model_label(m, 0)) return;
    qkv__put_raw(j, ",\"labels\":[");
    const char *label;
    for (int64_t i = 0; (label = qkv_model_label(m, i)); i++) {
        if (i) qkv__put_raw(j, ",");
        qkv__put_name(j, label);
    }
    qkv__put_raw(j, "]");
}

void qkv__put_model_info(qkv__json *j, const qkv_model *m, const char *name)
{
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    qkv__put_raw(j, "{\"name\":");
    qkv__put_name(j, name);
    qkv__put_raw(j, ",\"task\":");
    qkv__put_name(j, qkv__job_name(qkv__job_of(m)));
    qkv__put_named_whole(j, "parameters", qkv_model_get_info(m)->parameters);
    qkv__put_named_whole(j, "encoder_layers", o.encoder_layers);
    qkv__put_named_whole(j, "decoder_layers", o.decoder_layers);
    qkv__put_named_whole(j, "heads", o.heads);
    qkv__put_named_whole(j, "vocabulary", o.vocab_size);
    put_labels(j, m);
    qkv__put_raw(j, ",\"version\":");
    qkv__put_name(j, qkv_version());
}

void qkv__put_info(qkv__json *j, const qkv_model *m, const char *name)
{
    qkv__put_model_info(j, m, name);
    qkv__put_raw(j, "}");
}

/* ---- tokens ---- */

void qkv__put_token_list(qkv__json *j, const qkv_tokenizer *t, const qkv_encoding *ids)
{
    qkv__put_raw(j, "{\"ids\":");
    qkv__put_ids(j, ids->ids, ids->n);
    qkv__put_raw(j, ",\"tokens\":[");
    for (int64_t i = 0; i < ids->n; i++) {
        if (i) qkv__put_raw(j, ",");
        qkv__put_name(j, qkv_tokenizer_token(t, ids->ids[i]));
    }
    qkv__put_raw(j, "],\"spans\":[");
    for (int64_t i = 0; i < ids->n; i++) {
        qkv__put_raw(j, i ? ",[" : "[");
        qkv__put_whole(j, (int64_t)ids->spans[i].begin);
        qkv__put_raw(j, ",");
        qkv__put_whole(j, (int64_t)ids->spans[i].end);
        qkv__put_raw(j, "]");
    }
    qkv__put_raw(j, "]}");
}

qkv_status qkv__get_tokenizer(const qkv__json_value *body, const qkv_model *m, const qkv_tokenizer **t)
{
    const char *side = "source";
    size_t length = 6;
    qkv_status status = qkv__get_string(body, "side", &side, &length);
    if (status) return status;
    if (!strcmp(side, "source")) *t = qkv_model_tokenizer(m, QKV_SIDE_SOURCE);
    else if (!strcmp(side, "target")) *t = qkv_model_tokenizer(m, QKV_SIDE_TARGET);
    else return qkv__fail(QKV_USAGE, "\"side\" is \"%.40s\": it is \"source\" or \"target\"", side);
    return QKV_OK;
}
