/* about.c: the page, and what the server and its model are. */
#include "server.h"

#include "page.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *qkv__page_policy(const qkv__request *r)
{
    qkv__answer *answer = r->route ? r->route->answer : NULL;
    return answer == qkv__serve_page ? qkv__explorer_policy : answer == qkv__serve_live_page ? qkv__live_policy : NULL;
}

qkv_status qkv__serve_live_page(qkv__request *r)
{
    qkv__put_bytes(&r->answer, qkv__live_page, qkv__live_size);
    return QKV_OK;
}

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

qkv_status qkv__serve_info(qkv__request *r)
{
    qkv__put_model_info(&r->answer, r->served->model, r->server->name);
    qkv__put_raw(&r->answer, ",\"example\":");
    const char *recorded = qkv_model_get_info(r->served->model)->source_language;
    const char *language = r->server->source_language ? r->server->source_language : recorded;
    qkv_status status = qkv__put_example(&r->answer, r->served->model, language);
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
