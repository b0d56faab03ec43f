/* about.c: the page, and what the server and its model are. */
#include "server.h"

#include "page.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *qkv__page_policy(void) { return qkv__explorer_policy; }

qkv_status qkv__serve_page(qkv__request *r)
{
    qkv__put_bytes(&r->answer, qkv__explorer_page, qkv__explorer_size);
    return QKV_OK;
}

qkv_status qkv__serve_health(qkv__request *r)
{
    qkv__put_raw(&r->answer, "{\"status\":\"ok\"}\n");
    return QKV_OK;
}

/* ---- GET /info ---- */

static void put_named_number(qkv__json *j, const char *name, int64_t x)
{
    qkv__put_raw(j, ",");
    qkv__put_name(j, name);
    qkv__put_raw(j, ":");
    qkv__put_whole(j, x);
}

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

/* All but the brace that ends it. */
static void put_model_info(qkv__json *j, const qkv_model *m, const char *name)
{
    const qkv_transformer_opts *o = qkv_transformer_options(qkv_model_transformer(m));
    qkv__put_raw(j, "{\"name\":");
    qkv__put_name(j, name);
    qkv__put_raw(j, ",\"task\":");
    qkv__put_name(j, qkv__job_name(qkv__job_of(m)));
    put_named_number(j, "parameters", qkv_params_count(qkv_model_params(m)));
    put_named_number(j, "encoder_layers", o->encoder_layers);
    put_named_number(j, "decoder_layers", o->decoder_layers);
    put_named_number(j, "heads", o->heads);
    put_named_number(j, "vocabulary", o->vocabulary);
    put_labels(j, m);
    qkv__put_raw(j, ",\"version\":");
    qkv__put_name(j, qkv_version());
}

void qkv__put_info(qkv__json *j, const qkv_model *m, const char *name)
{
    put_model_info(j, m, name);
    qkv__put_raw(j, "}");
}

qkv_status qkv__serve_info(qkv__request *r)
{
    put_model_info(&r->answer, r->server->model, r->server->name);
    qkv__put_raw(&r->answer, ",\"example\":");
    qkv_status status = qkv__put_example(&r->answer, r->server->model, r->server->source_language);
    qkv__put_raw(&r->answer, "}\n");
    return status;
}

/* ---- GET /v1/models ---- */

static void put_model(qkv__json *j, const char *name)
{
    qkv__put_raw(j, "{\"id\":");
    qkv__put_name(j, name);
    qkv__put_raw(j, ",\"object\":\"model\",\"created\":0,\"owned_by\":\"qkv\"}");
}

qkv_status qkv__serve_models(qkv__request *r)
{
    qkv__put_raw(&r->answer, "{\"object\":\"list\",\"data\":[");
    put_model(&r->answer, r->server->name);
    qkv__put_raw(&r->answer, "]}\n");
    return QKV_OK;
}

qkv_status qkv__serve_one_model(qkv__request *r)
{
    put_model(&r->answer, r->server->name);
    qkv__put_raw(&r->answer, "\n");
    return QKV_OK;
}

/* The byte that a part of an address starts with, which may be written by its number as in "%20"; *used is how long it is. */
static unsigned char byte_of_address(const char *part, size_t *used)
{
    bool is_number = *part == '%' && isxdigit((unsigned char)part[1]) && isxdigit((unsigned char)part[2]);
    *used = is_number ? 3 : 1;
    return (unsigned char)(is_number ? strtoul((char[]){ part[1], part[2], '\0' }, NULL, 16) : (unsigned char)*part);
}

/* The name as it is, or with signs written by their number, as clients put it into an address. */
void qkv__check_model(qkv__request *r, const char *name)
{
    const char *ours = r->server->name;
    size_t used = 0;
    for (; *ours && *name && byte_of_address(name, &used) == (unsigned char)*ours; ours++) name += used;
    if (!*ours && !*name) return;
    qkv__refuse(r, MHD_HTTP_NOT_FOUND, "the model of this server is \"%s\"", r->server->name);
}

/* ---- POST /tokenize ---- */

static void put_token_list(qkv__json *j, const qkv_tokenizer *t, const qkv_ids *ids)
{
    qkv__put_raw(j, "{\"ids\":");
    qkv__put_ids(j, ids->ids, (int64_t)ids->n);
    qkv__put_raw(j, ",\"tokens\":[");
    for (size_t i = 0; i < ids->n; i++) {
        if (i) qkv__put_raw(j, ",");
        qkv__put_name(j, qkv_tokenizer_token(t, ids->ids[i]));
    }
    qkv__put_raw(j, "],\"spans\":[");
    for (size_t i = 0; i < ids->n; i++) {
        qkv__put_raw(j, i ? ",[" : "[");
        qkv__put_whole(j, (int64_t)ids->spans[i].begin);
        qkv__put_raw(j, ",");
        qkv__put_whole(j, (int64_t)ids->spans[i].end);
        qkv__put_raw(j, "]");
    }
    qkv__put_raw(j, "]}");
}

static qkv_status get_side(const json_t *body, const qkv_model *m, const qkv_tokenizer **t)
{
    const char *side = "source";
    size_t length = 6;
    qkv_status status = qkv__get_string(body, "side", &side, &length);
    if (status) return status;
    if (!strcmp(side, "source")) *t = qkv_model_source_tokenizer(m);
    else if (!strcmp(side, "target")) *t = qkv_model_target_tokenizer(m);
    else return qkv__fail(QKV_USAGE, "\"side\" is \"%.40s\": it is \"source\" or \"target\"", side);
    return QKV_OK;
}

qkv_status qkv__serve_tokens(qkv__request *r)
{
    const qkv_tokenizer *t = NULL;
    qkv__strings given;
    qkv_ids ids = { 0 };
    qkv_status status = qkv__need_strings(r->body, "text", &given);
    if (!status) status = get_side(r->body, r->server->model, &t);
    if (given.is_array) qkv__put_raw(&r->answer, "{\"results\":[");
    for (int64_t i = 0; i < given.n && !status; i++) {
        status = qkv_tokenizer_encode(t, given.texts[i], given.lengths[i], NULL, &ids);
        if (i) qkv__put_raw(&r->answer, ",");
        if (!status) put_token_list(&r->answer, t, &ids);
    }
    qkv__put_raw(&r->answer, given.is_array ? "]}\n" : "\n");
    qkv_ids_free(&ids);
    return status;
}
