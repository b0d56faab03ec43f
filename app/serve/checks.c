/* checks.c: whether the headers of a request let it in. */
#include "serve.h"
#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *header(const qkv__request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

/* ---- Host and Origin: a page of another site must not reach the model through the browser of a user ---- */

typedef struct counting {
    const char *name;
    int n;
} counting;

static enum MHD_Result count(void *data, enum MHD_ValueKind kind, const char *name, const char *value)
{
    counting *c = data;
    (void)kind, (void)value;
    c->n += !strcasecmp(name, c->name);
    return MHD_YES;
}

static int count_headers(const qkv__request *r, const char *name)
{
    counting c = { .name = name };
    MHD_get_connection_values(r->connection, MHD_HEADER_KIND, count, &c);
    return c.n;
}

/* "NAME:PORT", or "NAME" for the port 80; any name where the server listens on every address, for it cannot know them all. */
static bool is_ours(const qkv_server *s, const char *host)
{
    const char *const names[] = { s->address, "localhost", s->host };
    const char *colon = strrchr(host, ':');
    if (colon && strchr(colon, ']')) colon = NULL; /* of an address in brackets */
    size_t length = colon ? (size_t)(colon - host) : strlen(host);
    char port[16];
    snprintf(port, sizeof port, "%d", s->port);
    if (strcmp(colon ? colon + 1 : "80", port)) return false;
    for (int i = 0; i < 3; i++)
        if (names[i] && strlen(names[i]) == length && !strncasecmp(names[i], host, length)) return true;
    return s->is_any && length > 0;
}

static bool is_allowed_origin(const qkv_server *s, const char *origin)
{
    for (int i = 0; i < s->n_origins; i++)
        if (!strcmp(s->origins[i], "*") || !strcasecmp(s->origins[i], origin)) return true;
    return false;
}

/* What a page asks for before a request is granted as it asks: whether the request itself fits is looked at when it comes. */
static void add_preflight(const qkv__request *r, struct MHD_Response *response)
{
    const char *headers = header(r, "Access-Control-Request-Headers");
    MHD_add_response_header(response, "Access-Control-Allow-Methods", "GET, HEAD, POST");
    if (headers) MHD_add_response_header(response, "Access-Control-Allow-Headers", headers);
    if (header(r, "Access-Control-Request-Private-Network"))
        MHD_add_response_header(response, "Access-Control-Allow-Private-Network", "true");
    MHD_add_response_header(response, "Access-Control-Max-Age", "600");
}

void qkv__add_origin(const qkv__request *r, struct MHD_Response *response)
{
    MHD_add_response_header(response, "Access-Control-Allow-Origin", r->origin);
    MHD_add_response_header(response, "Vary", "Origin");
    if (r->is_preflight) add_preflight(r, response);
}

static void check_origin(qkv__request *r)
{
    static const char scheme[] = "http://";
    const char *origin = header(r, "Origin");
    if (!origin) return;
    if (is_allowed_origin(r->server, origin)) {
        r->origin = origin;
        r->is_preflight = !strcmp(r->method, "OPTIONS") && header(r, "Access-Control-Request-Method");
        return;
    }
    bool fits = !strncasecmp(origin, scheme, strlen(scheme)) && is_ours(r->server, origin + strlen(scheme));
    /* A server on every address knows its own pages only by the name they were asked for. */
    if (fits && r->server->is_any) fits = !strcasecmp(origin + strlen(scheme), header(r, "Host"));
    if (!fits) qkv__refuse(r, MHD_HTTP_FORBIDDEN, "the Origin \"%s\" is not this server", origin);
}

void qkv__check_host(qkv__request *r)
{
    const char *host = header(r, "Host");
    if (!host || count_headers(r, "Host") != 1) {
        qkv__refuse(r, MHD_HTTP_BAD_REQUEST, "a request needs one Host");
        return;
    }
    if (!is_ours(r->server, host)) qkv__refuse(r, MHD_HTTP_FORBIDDEN, "the Host \"%s\" is not this server", host);
    else if (count_headers(r, "Origin") > 1) qkv__refuse(r, MHD_HTTP_BAD_REQUEST, "a request has one Origin at most");
    else check_origin(r);
}

/* ---- the token ---- */

/* In a time that depends on the given text alone. */
static bool is_same(const char *given, const char *token)
{
    size_t n = strlen(given), wanted = strlen(token);
    unsigned char differs = n != wanted;
    for (size_t i = 0; i < n; i++) differs |= (unsigned char)(given[i] ^ token[i % wanted]);
    return !differs;
}

void qkv__check_key(qkv__request *r)
{
    const qkv__json_value *given = qkv__json_get(r->body, "api_key");
    const char *key = qkv__json_text(given);
    if (!r->wants_key || (key && strlen(key) == qkv__json_length(given) && is_same(key, r->server->token))) return;
    qkv__refuse(r, MHD_HTTP_UNAUTHORIZED,
                key ? "the api_key is not this server's token"
                    : "this server wants its token as \"api_key\" or \"Authorization: Bearer TOKEN\"");
}

void qkv__check_token(qkv__request *r)
{
    static const char scheme[] = "Bearer ";
    if (!r->server->token) return;
    const char *given = header(r, "Authorization");
    if ((r->wants_key = !given && r->route->is_libre)) return;
    if (!given || strncasecmp(given, scheme, strlen(scheme)))
        qkv__refuse(r, MHD_HTTP_UNAUTHORIZED, "this server wants \"Authorization: Bearer TOKEN\"");
    else if (!is_same(given + strlen(scheme), r->server->token))
        qkv__refuse(r, MHD_HTTP_UNAUTHORIZED, "the token is not this server's");
}

/* ---- the body ---- */

/* Whether a type is this one, with no charset but UTF-8. */
static bool is_type(const char *given, const char *type)
{
    size_t length = strlen(type);
    if (strncasecmp(given, type, length)) return false;
    const char *rest = given + length + strspn(given + length, " \t");
    if (!*rest) return true;
    if (*rest != ';') return false;
    rest += 1 + strspn(rest + 1, " \t");
    return !*rest || !strcasecmp(rest, "charset=utf-8") || !strcasecmp(rest, "charset=\"utf-8\"");
}

/* Without a type it is JSON. A page elsewhere can send that without a preflight, but not without an Origin. */
static void check_type(qkv__request *r)
{
    static const char multipart[] = "multipart/form-data;";
    const char *type = header(r, "Content-Type");
    if (!type || is_type(type, "application/json")) return;
    if (is_type(type, "application/x-www-form-urlencoded")) r->body_kind = QKV__FORM;
    else if (r->route->is_libre && !strncasecmp(type, multipart, strlen(multipart))) r->body_kind = QKV__MULTIPART;
    else
        qkv__refuse(r, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "the Content-Type must be application/json%s, in UTF-8",
                    r->route->is_libre ? " or that of a form" : "");
}

bool qkv__has_query(const qkv__request *r)
{
    return MHD_get_connection_values(r->connection, MHD_GET_ARGUMENT_KIND, NULL, NULL) > 0;
}

size_t qkv__most_bytes(const qkv__request *r)
{
    return r->server->max_request * (r->route && r->route->takes_large ? QKV__LARGE : 1);
}

bool qkv__reserve_body(qkv__request *r, size_t bytes)
{
    if (qkv__link_reserve(&r->server->connections, r->link, bytes, QKV__LARGE_BODIES * qkv__most_bytes(r))) return true;
    qkv__refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "other requests have large bodies: try again");
    return false;
}

/* Whether a length, digits alone, is over the limit. */
static bool is_over(const char *length, size_t limit)
{
    size_t n = 0;
    for (; *length >= '0' && *length <= '9'; length++) {
        n = n * 10 + (size_t)(*length - '0');
        if (n > limit) return true;
    }
    return false;
}

/* Headers that say where a body ends, and whether some may say it to others alone. */
typedef struct body_ends {
    int n;
    bool is_hidden;
} body_ends;

/* MHD puts the rest of a folded line behind the name, and takes a space before the colon for a part of it. */
static enum MHD_Result note_end(void *data, enum MHD_ValueKind kind, const char *name, const char *value)
{
    static const char *const ends[] = { "Content-Length", "Transfer-Encoding" };
    body_ends *b = data;
    (void)kind;
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(ends[i]);
        if (strncasecmp(name, ends[i], length)) continue;
        b->n++;
        b->is_hidden |= name[length] != '\0';
    }
    for (const char *c = name; *c; c++) b->is_hidden |= *c <= ' ' || *c >= 127 || *c == ':';
    b->is_hidden |= value && strchr(value, '\r');
    return MHD_YES;
}

/* Where a body ends must have one answer: a proxy in front that takes another would see other requests than we do. */
static bool refuses_ends(qkv__request *r)
{
    body_ends b = { 0 };
    MHD_get_connection_values(r->connection, MHD_HEADER_KIND, note_end, &b);
    if (!b.is_hidden && b.n <= 1) return false;
    r->refused = 0; /* whatever else is wrong, this is what ends the connection */
    if (b.is_hidden)
        qkv__refuse(r, MHD_HTTP_BAD_REQUEST, "a header is folded, or its name is not followed by the colon, or a CR is in it");
    else qkv__refuse(r, MHD_HTTP_BAD_REQUEST, "a request has one Content-Length, or one Transfer-Encoding, not both");
    return true;
}

void qkv__check_body(qkv__request *r)
{
    const char *length = header(r, "Content-Length"), *coding = header(r, "Transfer-Encoding");
    if ((r->is_unread = refuses_ends(r))) return;
    bool is_unknown = coding && strcasecmp(coding, "chunked");
    bool is_large = !coding && length && is_over(length, qkv__most_bytes(r));
    bool is_more = !is_large && !r->refused && !coding && length && is_over(length, r->server->max_request);
    bool is_crowded = is_more && !qkv__reserve_body(r, (size_t)strtoull(length, NULL, 10));
    r->is_unread = is_unknown || is_large || is_crowded;
    if (is_unknown) qkv__refuse(r, MHD_HTTP_NOT_IMPLEMENTED, "the only Transfer-Encoding here is chunked");
    if (is_large) qkv__refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, "a body has at most %zu bytes", qkv__most_bytes(r));
    if (!r->route || !r->route->is_post || r->is_preflight) return;
    if (coding || length) check_type(r);
    else if (!r->route->is_libre || !qkv__has_query(r))
        qkv__refuse(r, MHD_HTTP_LENGTH_REQUIRED, "a body with its Content-Length is needed");
}
