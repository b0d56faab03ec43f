/* vectors.c: POST /classify and POST /v1/embeddings: an encoder turns texts into numbers. */
#include "../engine/attention_capture.h"
#include "server.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static qkv_texts texts_of(const qkv__strings *s) { return (qkv_texts){ .texts = s->texts, .lengths = s->lengths, .n = s->n }; }

/* ---- classes ---- */

static void put_all_classes(qkv__json *j, const qkv_model *m, const qkv__strings *given, const qkv_matrix *rows)
{
    qkv__put_raw(j, given->is_array ? "{\"results\":[" : "{");
    for (int64_t i = 0; i < rows->n; i++) {
        if (given->is_array) qkv__put_raw(j, i ? ",{" : "{");
        qkv__put_classes(j, m, rows->data + i * rows->width, rows->width);
        if (given->is_array) qkv__put_raw(j, "}");
    }
    if (given->is_array) qkv__put_raw(j, "]");
    qkv__put_raw(j, ",\"cut\":");
    qkv__put_whole(j, rows->cut);
    qkv__put_raw(j, "}\n");
}

static qkv_status classify_texts(const qkv_model *m, const qkv_texts *texts, const qkv__part *first, qkv_each_step each_step,
                                 void *data, qkv__joint_result *out)
{
    const qkv_reading_opts opts = { .each_step = each_step, .each_step_data = data };
    (void)first;
    return qkv_classify(m, texts, &opts, &out->rows);
}

qkv_status qkv__serve_classes(qkv__request *r)
{
    qkv__strings given;
    qkv__part part = { .request = r, .run = classify_texts };
    qkv_status status = qkv__need_strings(r->body, "text", &given);
    part.texts = texts_of(&given);
    if (!status) status = qkv__join(&r->served->joint, &part);
    const qkv_matrix rows = status ? (qkv_matrix){ 0 } : qkv__part_rows(&part);
    if (!status) put_all_classes(&r->answer, r->served->model, &given, &rows);
    qkv__part_free(&r->served->joint, &part);
    return status;
}

/* ---- embeddings ---- */

static qkv_status get_encoding(const json_t *body, int64_t dim, bool *is_base64)
{
    const char *format = "float";
    size_t length = 5;
    int64_t wanted = dim;
    qkv_status status = qkv__get_string(body, "encoding_format", &format, &length);
    if (status) return status;
    *is_base64 = !strcmp(format, "base64");
    if (!*is_base64 && strcmp(format, "float"))
        return qkv__fail(QKV_USAGE, "\"encoding_format\" is \"%.40s\": it is \"float\" or \"base64\"", format);
    return qkv__get_whole(body, "dimensions", dim, dim, &wanted);
}

static void put_vector(qkv__json *j, const float *x, int64_t n, bool is_base64)
{
    if (is_base64) {
        qkv__put_float_base64(j, x, (size_t)n);
        return;
    }
    qkv__put_raw(j, "[");
    for (int64_t i = 0; i < n; i++) {
        if (i) qkv__put_raw(j, ",");
        qkv__put_float(j, x[i]);
    }
    qkv__put_raw(j, "]");
}

static void put_vectors(qkv__json *j, const qkv_matrix *rows, bool is_base64)
{
    qkv__put_raw(j, "{\"object\":\"list\",\"data\":[");
    for (int64_t i = 0; i < rows->n; i++) {
        qkv__put_raw(j, i ? ",{\"object\":\"embedding\",\"index\":" : "{\"object\":\"embedding\",\"index\":");
        qkv__put_whole(j, i);
        qkv__put_raw(j, ",\"embedding\":");
        put_vector(j, rows->data + i * rows->width, rows->width, is_base64);
        qkv__put_raw(j, "}");
    }
    qkv__put_raw(j, "]");
}

static qkv_status put_usage(qkv__json *j, const qkv__request *r, const qkv__strings *given)
{
    qkv_ids ids = { 0 };
    int64_t tokens = 0;
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < given->n && !status; i++) {
        status = qkv_tokenizer_encode(qkv_model_source_tokenizer(r->served->model), given->texts[i], given->lengths[i], NULL,
                                      &ids);
        tokens += (int64_t)ids.n;
    }
    qkv_ids_free(&ids);
    qkv__put_raw(j, ",\"model\":");
    qkv__put_name(j, r->server->name);
    qkv__put_raw(j, ",\"usage\":{\"prompt_tokens\":");
    qkv__put_whole(j, tokens);
    qkv__put_raw(j, ",\"total_tokens\":");
    qkv__put_whole(j, tokens);
    qkv__put_raw(j, "}}\n");
    return status;
}

static qkv_status embed_texts(const qkv_model *m, const qkv_texts *texts, const qkv__part *first, qkv_each_step each_step,
                              void *data, qkv__joint_result *out)
{
    const qkv_reading_opts reading = { .each_step = each_step, .each_step_data = data };
    const qkv_embed_opts opts = { .reading = &reading, .normalized = 1, .as_published = 1 };
    (void)first;
    qkv_status status = qkv_embed_texts(m, texts, &opts, &out->rows);
    out->rows.cut = 0; /* nobody is told */
    return status;
}

qkv_status qkv__serve_embeddings(qkv__request *r)
{
    const qkv_model *m = r->served->model;
    qkv__strings given;
    qkv__part part = { .request = r, .run = embed_texts };
    bool is_base64 = false;
    qkv_status status = qkv__need_strings(r->body, "input", &given);
    part.texts = texts_of(&given);
    if (!status) status = get_encoding(r->body, qkv_transformer_options(qkv_model_transformer(m))->dim, &is_base64);
    if (!status) status = qkv__join(&r->served->joint, &part);
    const qkv_matrix rows = status ? (qkv_matrix){ 0 } : qkv__part_rows(&part);
    if (!status) put_vectors(&r->answer, &rows, is_base64);
    if (!status) status = put_usage(&r->answer, r, &given);
    qkv__part_free(&r->served->joint, &part);
    return status;
}
