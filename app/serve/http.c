/* http.c: a request from its first line to its answer. */
#include "serve.h"

#include <qkv/unstable/util.h>
#include "server.h"

#include <stdio.h>
#include <string.h>

static const qkv__route routes[] = {
    { "/", .is_open = true, .answer = qkv__serve_page },
    { "/health", .is_open = true, .answer = qkv__serve_health },
    { "/info", .answer = qkv__serve_info },
    { "/languages", .jobs = QKV__TRANSLATES, .is_libre = true, .answer = qkv__serve_languages },
    { "/v1/models", .answer = qkv__serve_models },
    { "/v1/models/", .has_rest = true, .answer = qkv__serve_one_model },
    { "/live", .is_open = true, .answer = qkv__serve_live_page },
    { "/engine", .is_post = true, .answer = qkv__serve_engine },
    { "/tokenize", .is_post = true, .answer = qkv__serve_tokens },
    { "/detokenize", .is_post = true, .answer = qkv__serve_detokenized },
    { "/attention", .is_post = true, .answer = qkv__serve_attention },
    { "/translate", .is_post = true, .jobs = QKV__TRANSLATES, .is_libre = true, .turn = QKV__TURN_BATCH,
      .answer = qkv__serve_translation },
    { "/classify", .is_post = true, .jobs = QKV__CLASSIFIES, .turn = QKV__TURN_BATCH, .answer = qkv__serve_classes },
    { "/tag", .is_post = true, .can = QKV_CAN_TAG, .answer = qkv__serve_tags },
    { "/answer", .is_post = true, .can = QKV_CAN_ANSWER, .answer = qkv__serve_answers },
    { "/rank", .is_post = true, .can = QKV_CAN_RANK, .answer = qkv__serve_ranks },
    { "/v1/completions", .is_post = true, .jobs = QKV__GENERATES, .turn = QKV__TURN_BATCH, .answer = qkv__serve_completions },
    { "/v1/chat/completions", .is_post = true, .jobs = QKV__GENERATES, .turn = QKV__TURN_BATCH, .answer = qkv__serve_chat },
    { "/v1/embeddings", .is_post = true, .jobs = QKV__TRANSLATES | QKV__CLASSIFIES | QKV__ENCODES, .takes_large = true,
      .turn = QKV__TURN_BATCH, .answer = qkv__serve_embeddings },
};
enum { N_ROUTES = sizeof routes / sizeof *routes };

void qkv__refuse(qkv__request *r, unsigned status, const char *format, ...)
{
    va_list args;
    if (r->refused) return;
    va_start(args, format);
    vsnprintf(r->reason, sizeof r->reason, format, args);
    va_end(args);
    r->refused = status;
}

/* ---- answers ---- */

void qkv__put_error(qkv__json *j, unsigned status, const char *sentence)
{
    qkv_text *text = NULL;
    if (!j->status) j->status = qkv_utf8_repair(qkv_cstr(sentence), &text);
    qkv__put_raw(j, "{\"error\":{\"message\":");
    if (!j->status) qkv__put_string(j, text->data, text->length);
    qkv__put_raw(j, status < 500 ? ",\"type\":\"invalid_request_error\"" : ",\"type\":\"server_error\"");
    qkv__put_raw(j, ",\"code\":");
    qkv__put_whole(j, status);
    qkv__put_raw(j, "}}");
    qkv_free(text);
}

/* {"error": "the sentence"} */
static void put_libre_error(qkv__json *j, const char *sentence)
{
    qkv_text *text = NULL;
    j->status = qkv_utf8_repair(qkv_cstr(sentence), &text);
    qkv__put_raw(j, "{\"error\":");
    if (!j->status) qkv__put_string(j, text->data, text->length);
    qkv__put_raw(j, "}");
    qkv_free(text);
}

static void add_headers(const qkv__request *r, struct MHD_Response *response, unsigned status)
{
    const char *policy = status == MHD_HTTP_OK ? qkv__page_policy(r) : NULL;
    bool has_body = status != MHD_HTTP_NO_CONTENT;
    const char *type = policy ? "text/html; charset=utf-8" : r->stream ? "text/event-stream" : "application/json";
    if (has_body) MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    if (r->origin) qkv__add_origin(r, response);
    if (policy) {
        MHD_add_response_header(response, "Content-Security-Policy", policy);
        MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    }
    if (status == MHD_HTTP_UNAUTHORIZED) MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", r->route->is_post ? "POST" : "GET, HEAD");
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE) MHD_add_response_header(response, "Retry-After", "1");
    if (status >= 500 || r->is_unread) MHD_add_response_header(response, "Connection", "close");
}

/* What is sent lies in the request, which lives until it is sent. */
static enum MHD_Result reply(qkv__request *r, unsigned status)
{
    struct MHD_Response *response = r->stream ? qkv__events_response(r->stream)
                                              : MHD_create_response_from_buffer(r->answer.text.length, r->answer.text.data,
                                                                                MHD_RESPMEM_PERSISTENT);
    if (!response) return MHD_NO;
    add_headers(r, response, status);
    r->status = status;
    enum MHD_Result sent = MHD_queue_response(r->connection, status, response);
    MHD_destroy_response(response);
    return sent;
}

static enum MHD_Result reply_error(qkv__request *r, unsigned status, const char *sentence)
{
    qkv_buffer_free(&r->answer.text);
    r->answer.status = QKV_OK;
    if (r->route && r->route->is_libre) put_libre_error(&r->answer, sentence);
    else qkv__put_error(&r->answer, status, sentence);
    qkv__put_raw(&r->answer, "\n");
    return r->answer.status ? MHD_NO : reply(r, status);
}

/* ---- the body ---- */

static qkv_status read_json(qkv__request *r)
{
    size_t good = qkv_utf8_valid(r->received.data, r->received.length);
    if (good < r->received.length) return qkv__fail(QKV_FORMAT, "byte %zu of the body is not UTF-8", good + 1);
    const qkv__json_source source = {
        .name = "the body", .text = r->received.data, .length = r->received.length, .flags = QKV__JSON_NUL
    };
    qkv_status status = qkv__json_parse(&source, &r->sent);
    if (status) return status;
    return qkv__json_is_object(r->sent.top) ? QKV_OK : qkv__fail(QKV_FORMAT, "the body must be a JSON object");
}

static bool looks_like_json(const qkv_buffer *text)
{
    size_t at = 0;
    while (at < text->length && strchr(" \t\r\n", text->data[at])) at++;
    return at < text->length && text->data[at] == '{';
}

static qkv_status read_form(const qkv__request *r, qkv__json_writer *w)
{
    const char *type = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "Content-Type");
    if (r->body_kind == QKV__MULTIPART) return qkv__multipart_read(type, r->received.data, r->received.length, w);
    return qkv__form_read(r->received.data, r->received.length, w);
}

/* One object of the members of a JSON body or the fields of a form, and the fields of the query. */
static qkv_status read_fields(qkv__request *r, bool is_form)
{
    qkv__json_writer w = { 0 };
    qkv__json_doc all = { 0 };
    qkv__json_open_object(&w, NULL);
    for (size_t i = 0; i < qkv__json_size(r->sent.top); i++)
        qkv__json_put_value(&w, qkv__json_key(r->sent.top, i), qkv__json_at(r->sent.top, i));
    qkv_status status = is_form ? read_form(r, &w) : QKV_OK;
    if (!status) status = qkv__query_read(r->connection, &w);
    qkv__json_close(&w);
    if (!status) status = w.status;
    const qkv__json_source source = {
        .name = "the form", .text = w.text, .length = w.length, .flags = QKV__JSON_NUL | QKV__JSON_REPEATED
    };
    if (!status) status = qkv__json_parse(&source, &all);
    for (size_t i = 0; i < qkv__json_size(all.top) && !status; i++) {
        const char *name = qkv__json_key(all.top, i);
        if (qkv__json_find(all.top, name, strlen(name)) > i)
            status = qkv__fail(QKV_FORMAT, "the form has the field \"%s\" twice", name);
    }
    qkv__json_writer_free(&w);
    qkv__json_free(&r->sent);
    r->sent = all;
    return status;
}

/* curl -d sends JSON with the Content-Type of a form unless -H sets another. */
static qkv_status read_body(qkv__request *r)
{
    const bool is_libre = r->route->is_libre, is_json = r->body_kind == QKV__JSON || looks_like_json(&r->received);
    const bool is_form = !r->received.length || !is_json || r->body_kind == QKV__MULTIPART;
    qkv_status status = QKV_OK;
    if (!r->route->is_post && !is_libre) return QKV_OK;
    if (!r->received.length && (!is_libre || (r->route->is_post && !qkv__has_query(r))))
        return qkv__fail(QKV_FORMAT, "the body is empty");
    if (!is_json && !is_libre)
        qkv__refuse(r, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "the body is a form: %s takes JSON", r->route->path);
    else if (!is_form) status = read_json(r);
    if (!status && is_libre && (is_form || qkv__has_query(r))) status = read_fields(r, is_form && r->received.length);
    r->body = r->sent.top;
    qkv_buffer_free(&r->received);
    if (!status) qkv__check_key(r);
    return status;
}

static qkv_status receive(qkv__request *r, const char *bytes, size_t size)
{
    r->size = size > SIZE_MAX - r->size ? SIZE_MAX : r->size + size;
    if (r->size > qkv__most_bytes(r))
        qkv__refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, "a body has at most %zu bytes", qkv__most_bytes(r));
    else if (r->size > r->server->max_request && !r->refused && !r->link->reserved) qkv__reserve_body(r, qkv__most_bytes(r));
    if (r->refused) qkv_buffer_free(&r->received);
    return r->refused || !r->route->is_post ? QKV_OK : qkv__buffer_put(&r->received, bytes, size);
}

/* ---- from the first line to the end ---- */

static unsigned http_status(qkv_status status)
{
    switch (status) {
    case QKV_USAGE:
    case QKV_FORMAT:
    case QKV_LIMIT:
    case QKV_UNSUPPORTED: return MHD_HTTP_BAD_REQUEST;
    default: return MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
}

qkv_status qkv__request_step(void *request)
{
    qkv__request *r = request;
    atomic_fetch_add(&r->server->steps, 1);
    if (atomic_load(&r->server->connections.hurry)) return qkv__fail(QKV_FAILURE, "the server is ending");
    if (!qkv__link_is_left(r->link)) return QKV_OK;
    atomic_store(&r->is_left, true);
    return qkv__fail(QKV_FAILURE, "the client has left");
}

int qkv__request_cancel(void *request) { return qkv__request_step(request) != QKV_OK; }

/* What is given back instead of an answer when there is no turn for r: nothing, where the client has left. */
static enum MHD_Result reject_client(qkv__request *r, qkv_status status)
{
    bool is_left = status == QKV_FAILURE && !atomic_load(&r->server->connections.hurry);
    return is_left ? MHD_NO : reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, qkv_error());
}

static enum MHD_Result answer_request(qkv__request *r)
{
    if (r->refused) return reply_error(r, r->refused, r->reason);
    if (r->is_preflight) return reply(r, MHD_HTTP_NO_CONTENT);
    qkv_status status = read_body(r);
    if (r->refused) return reply_error(r, r->refused, r->reason);
    if (!status && r->route->is_post && qkv_model_check_files(r->served->model))
        return reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE,
                           r->server->reload.is_running
                               ? "the model's files have changed and are loaded again: try again"
                               : "the model's files have changed since the server started: restart the server");
    qkv_status turn = !status && r->route->is_post ? qkv__work_begin(&r->server->connections, r->link, r->route->turn) : QKV_OK;
    if (turn) return reject_client(r, turn);
    if (!status) status = r->route->answer(r);
    if (!status) status = r->answer.status;
    if (!r->stream) qkv__work_end(&r->server->connections, r->link);
    if (atomic_load(&r->is_left)) return MHD_NO;
    return status ? reply_error(r, http_status(status), qkv_error()) : reply(r, MHD_HTTP_OK);
}

/* The timeout of a connection is for waiting on the client: while we make it wait there is none. */
static enum MHD_Result answer_in_peace(qkv__request *r)
{
    r->is_busy = true;
    qkv__link_busy(&r->server->connections, r->link);
    MHD_set_connection_option(r->connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
    enum MHD_Result result = answer_request(r);
    MHD_set_connection_option(r->connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)r->server->timeout);
    return result;
}

static bool is_route(const qkv__route *route, const char *path)
{
    size_t length = strlen(route->path);
    return route->has_rest ? !strncmp(route->path, path, length) && path[length] : !strcmp(route->path, path);
}

static void find_route(qkv__request *r, const char *path, const char *method)
{
    for (int i = 0; i < N_ROUTES; i++)
        if (is_route(&routes[i], path)) r->route = &routes[i];
    if (!r->route) {
        qkv__refuse(r, MHD_HTTP_NOT_FOUND, "there is nothing at \"%s\"", path);
        return;
    }
    if (r->route->has_rest) qkv__check_model(r, path + strlen(r->route->path));
    if (r->is_preflight) return;
    bool fits = r->route->is_post ? !strcmp(method, "POST") : !strcmp(method, "GET") || !strcmp(method, "HEAD");
    if (!fits)
        qkv__refuse(r, MHD_HTTP_METHOD_NOT_ALLOWED, "%s takes %s, not %s", path, r->route->is_post ? "POST" : "GET", method);
}

static void refuse_job(qkv__request *r, const char *path)
{
    const char *other = NULL;
    for (int i = N_ROUTES - 1; i >= 0; i--)
        if (routes[i].is_post && routes[i].jobs & (int)r->served->job) other = routes[i].path;
    qkv__refuse(r, MHD_HTTP_NOT_FOUND, "%s is not for the model of this server, whose task is %s%s%s", path,
                qkv__job_name(r->served->job), other ? ": POST " : "", other ? other : "");
}

static void check_request(qkv__request *r, const char *path, const char *method)
{
    const qkv_server *s = r->server;
    if (!r->link || r->link->is_surplus) qkv__refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "too many connections: try again");
    if (atomic_load(&s->is_ending)) qkv__refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "the server is ending");
    qkv__check_host(r);
    find_route(r, path, method);
    if (r->route && !r->route->is_open && !r->is_preflight) qkv__check_token(r);
    if (r->route && r->route->jobs && !(r->route->jobs & (int)r->served->job)) refuse_job(r, path);
    if (r->route && qkv_model_check_ability(r->served->model, r->route->can))
        qkv__refuse(r, MHD_HTTP_NOT_FOUND, "%s is not for the model of this server: %s", path, qkv_error());
    qkv__check_body(r);
}

static qkv__request *begin_request(qkv_server *s, struct MHD_Connection *c, const char *path, const char *method)
{
    qkv__request *r = qkv__alloc_zero(sizeof *r);
    if (!r) return NULL;
    r->server = s;
    r->served = qkv__served_take(s);
    r->connection = c;
    r->link = qkv__link_of(c);
    r->path = path;
    r->method = method;
    r->began = qkv__microseconds();
    check_request(r, path, method);
    return r;
}

/* A body that is too large, or whose end cannot be told, is not read: the answer goes out at once, and the connection ends with
 * it. Any other body is, so that the answer is not lost in a reset. */
enum MHD_Result qkv__handle(void *server, struct MHD_Connection *c, const char *path, const char *method, const char *version,
                            const char *bytes, size_t *size, void **request)
{
    qkv__request *r = *request;
    (void)version;
    if (!r) {
        if (!(r = *request = begin_request(server, c, path, method))) return MHD_NO;
        return r->is_unread ? reply_error(r, r->refused, r->reason) : MHD_YES;
    }
    if (!*size) return answer_in_peace(r);
    qkv_status status = receive(r, bytes, *size);
    *size = 0;
    return status ? MHD_NO : MHD_YES;
}

void qkv__completed(void *server, struct MHD_Connection *c, void **request, enum MHD_RequestTerminationCode how)
{
    qkv_server *s = server;
    qkv__request *r = *request;
    (void)c, (void)how;
    if (!r) return;
    *request = NULL;
    if (s->each_access) qkv__tell_access(r);
    qkv__events_free(r->stream);
    if (r->is_busy) qkv__link_idle(&s->connections, r->link);
    qkv__link_reserve(&s->connections, r->link, 0, 0);
    qkv__json_free(&r->sent);
    qkv_buffer_free(&r->received);
    qkv_buffer_free(&r->answer.text);
    qkv__served_leave(s, r->served);
    qkv__release(r, sizeof *r);
}
