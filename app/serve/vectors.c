/* vectors.c: POST /classify and POST /v1/embeddings: an encoder turns texts into numbers. */
#include "../../src/base/size.h"
#include "../engine/attention_capture.h"
#include "../../src/task/embed.h"
#include "prompts.h"
#include "server.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- classes ---- */

static void put_all_classes(qkv__json *j, const qkv_model *m, const qkv__strings *given, const qkv_matrix *rows)
{
    qkv__put_raw(j, given->is_array ? "{\"results\":[" : "{");
    for (int64_t i = 0; i < rows->rows; i++) {
        if (given->is_array) qkv__put_raw(j, i ? ",{" : "{");
        qkv__put_classes(j, m, rows->data + i * rows->width, rows->width);
        if (given->is_array) qkv__put_raw(j, "}");
    }
    if (given->is_array) qkv__put_raw(j, "]");
    qkv__put_raw(j, ",\"cut\":");
    qkv__put_whole(j, rows->truncated);
    qkv__put_raw(j, "}\n");
}

static qkv_status classify_texts(const qkv_model *m, const qkv__joint_texts *texts, const qkv__part *first,
                                 const qkv_hooks *hooks, qkv__joint_result *out)
{
    const qkv_encoder_opts opts = { .hooks = hooks };
    (void)first;
    qkv_status status = qkv_classify(m, texts->texts, texts->n, &opts, &out->rows);
    if (!status) out->truncated = out->rows->truncated;
    return status;
}

qkv_status qkv__serve_classes(qkv__request *r)
{
    qkv__strings given;
    qkv__part part = { .request = r, .run = classify_texts };
    qkv_status status = qkv__need_strings(r->body, "text", &given);
    part.texts = (qkv__joint_texts){ .texts = given.texts, .n = given.n };
    if (!status) status = qkv__join(&r->served->joint, &part);
    const qkv_matrix rows = status ? (qkv_matrix){ 0 } : qkv__part_rows(&part);
    if (!status) put_all_classes(&r->answer, r->served->model, &given, &rows);
    qkv__part_free(&r->served->joint, &part);
    return status;
}

/* ---- embeddings ---- */

/* SLICE: texts per turn. */
enum { MOST_INPUTS = 2048, SLICE = 64 };

typedef struct embeddings {
    qkv__prompts inputs;
    bool is_base64;
    qkv__embed_limits limits;
    int64_t dimensions; /* of a vector that are wanted */
    int64_t tokens;     /* that were read */
    float *vector;      /* (dimensions) */
    int32_t *ids;       /* of a slice's texts */
    size_t bytes;
    qkv_encoding *encoded;
} embeddings;

static qkv_status get_embeddings(const qkv__request *r, embeddings *e)
{
    const qkv_model *m = r->served->model;
    const char *format = "float";
    size_t length = 5;
    qkv_status status = qkv__embed_limits_of(m, &e->limits);
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    const int64_t vocabulary = o.vocab_size;
    if (!status) status = qkv__get_prompts(r->body, "input", MOST_INPUTS, vocabulary, &e->inputs);
    if (!status) status = qkv__get_string(r->body, "encoding_format", &format, &length);
    e->is_base64 = !strcmp(format, "base64");
    if (!status && !e->is_base64 && strcmp(format, "float"))
        status = qkv__fail(QKV_USAGE, "\"encoding_format\" is \"%.40s\": it is \"float\" or \"base64\"", format);
    e->dimensions = e->limits.width;
    if (!status) status = qkv__get_whole(r->body, "dimensions", 1, INT64_MAX, &e->dimensions);
    if (!status && e->dimensions > e->limits.width)
        status = qkv__fail(QKV_USAGE, "\"dimensions\" is %lld: the vectors of this model have %lld", (long long)e->dimensions,
                           (long long)e->limits.width);
    return status;
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

/* `first` is the number of the first of these rows in the answer. */
static void put_vectors(qkv__json *j, const embeddings *e, const qkv_matrix *rows, int64_t first)
{
    for (int64_t i = 0; i < rows->rows; i++) {
        float *x = e->vector;
        memcpy(x, rows->data + i * rows->width, sizeof *x * (size_t)e->dimensions);
        if (e->dimensions < rows->width) qkv__normalize(x, e->dimensions);
        qkv__put_raw(j, first + i ? ",{\"object\":\"embedding\",\"index\":" : "{\"object\":\"embedding\",\"index\":");
        qkv__put_whole(j, first + i);
        qkv__put_raw(j, ",\"embedding\":");
        put_vector(j, x, e->dimensions, e->is_base64);
        qkv__put_raw(j, "}");
    }
}

static qkv_status embed_texts(const qkv_model *m, const qkv__joint_texts *texts, const qkv__part *first, const qkv_hooks *hooks,
                              qkv__joint_result *out)
{
    const qkv_encoder_opts reading = { .ids = texts->ids, .n_ids = texts->n_ids, .hooks = hooks };
    const qkv_embed_opts opts = { .reading = &reading, .normalize = 1 };
    (void)first;
    return qkv_embed(m, NULL, texts->n, &opts, &out->rows);
}

/* Texts are tokenized here, so that the tokens that are read can be counted. */
static qkv_status encode_slice(const qkv__request *r, embeddings *e, int64_t from, int64_t n, const int32_t **ids,
                               int64_t *n_ids)
{
    const qkv_tokenizer *t = qkv_model_tokenizer(r->served->model, QKV_SIDE_SOURCE);
    size_t used = 0, at[SLICE];
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < n && !status; i++) {
        const qkv__prompt *x = &e->inputs.all[from + i];
        at[i] = used;
        n_ids[i] = x->n_ids;
        if (!x->ids) {
            status = qkv_tokenizer_encode(t, (qkv_str){ x->text, x->length }, NULL, &e->encoded);
            const size_t added = status ? 0 : (size_t)e->encoded->n;
            if (!status) status = qkv__grow((void **)&e->ids, &e->bytes, (used + added) * sizeof *e->ids);
            if (!status && added) memcpy(e->ids + used, e->encoded->ids, added * sizeof *e->ids);
            used += added;
            n_ids[i] = (int64_t)added;
        }
        e->tokens += qkv__min(n_ids[i], e->limits.room) + e->limits.around;
    }
    for (int64_t i = 0; i < n; i++) ids[i] = e->inputs.all[from + i].ids ? e->inputs.all[from + i].ids : e->ids + at[i];
    return status;
}

static qkv_status embed_slice(qkv__request *r, embeddings *e, int64_t from)
{
    const int64_t n = qkv__min(e->inputs.n - from, SLICE);
    const int32_t *ids[SLICE];
    int64_t n_ids[SLICE];
    qkv__part part = {
        .request = r, .run = embed_texts, .is_large = e->inputs.n > SLICE, .texts = { .ids = ids, .n_ids = n_ids, .n = n }
    };
    qkv_status status = encode_slice(r, e, from, n, ids, n_ids);
    if (!status) status = qkv__join(&r->served->joint, &part);
    const qkv_matrix rows = status ? (qkv_matrix){ 0 } : qkv__part_rows(&part);
    if (!status) put_vectors(&r->answer, e, &rows, from);
    qkv__part_free(&r->served->joint, &part);
    return status;
}

/* Clients take turns between slices, as between the texts of a completion. */
qkv_status qkv__serve_embeddings(qkv__request *r)
{
    embeddings e = { .tokens = 0 };
    qkv_status status = get_embeddings(r, &e);
    if (!status && !(e.vector = qkv__alloc(sizeof *e.vector * (size_t)e.dimensions))) status = QKV_MEMORY;
    qkv__put_raw(&r->answer, "{\"object\":\"list\",\"data\":[");
    for (int64_t from = 0; from < e.inputs.n && !status; from += SLICE) {
        if (from && (status = qkv__work_yield(&r->server->connections, r->link)))
            atomic_store(&r->is_left, qkv__link_is_left(r->link));
        if (!status) status = embed_slice(r, &e, from);
        if (!status) status = r->answer.status;
    }
    qkv__put_raw(&r->answer, "],\"model\":");
    qkv__put_name(&r->answer, r->server->name);
    qkv__put_raw(&r->answer, ",\"usage\":{\"prompt_tokens\":");
    qkv__put_whole(&r->answer, e.tokens);
    qkv__put_raw(&r->answer, ",\"total_tokens\":");
    qkv__put_whole(&r->answer, e.tokens);
    qkv__put_raw(&r->answer, "}}\n");
    qkv__prompts_free(&e.inputs);
    qkv__release(e.ids, e.bytes);
    if (e.vector) qkv__release(e.vector, sizeof *e.vector * (size_t)e.dimensions);
    qkv_free(e.encoded);
    return status;
}
