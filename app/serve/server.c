/* server.c: from options to a server that listens, and its end. */
#include "serve.h"

#include <qkv/unstable/util.h>
#include "server.h"

#include "../../src/base/options.h"
#include "../../src/base/size.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    DEFAULT_TIMEOUT = 10,
    DEFAULT_OF_ADDRESS = QKV__LINKS * 3 / 4,
    DEFAULT_BATCH = 16,
    MHD_LINKS = QKV__LINKS + 32, /* more than those that are served, so that the others can be told */
    HEADERS_BYTES = 32 << 10,    /* of one request; more is 431 */
    MOST_REQUEST = 64 << 20,
    MOST_TIMEOUT = 3600,
    BACKLOG = 64
};
#define DEFAULT_REQUEST ((size_t)1 << 20)
#define DEFAULT_PREFIX_CACHE ((int64_t)256 << 20)

/* ---- options ---- */

/* A token goes into a header: visible ASCII alone. */
static bool is_token(const char *token)
{
    for (const char *c = token; *c; c++)
        if (*c <= ' ' || *c > '~') return false;
    return *token;
}

static qkv_status check_text(const char *what, const char *text)
{
    if (!text || (*text && qkv_utf8_valid(text, strlen(text)) == strlen(text))) return QKV_OK;
    return qkv__fail(QKV_USAGE, "serve: the %s is empty or not UTF-8", what);
}

/* Scheme, host and port as a browser sends them: a slash at the end would never fit. */
static bool is_origin(const char *origin)
{
    const char *host = origin ? strstr(origin, "://") : NULL;
    if (!origin || !strcmp(origin, "*") || !strcmp(origin, "null")) return origin;
    return host && host > origin && is_token(origin) && host[3] && !strpbrk(host + 3, "/?#@*,");
}

static qkv_status check_origins(const qkv_server_opts *o)
{
    if (o->n_origins < 0 || o->n_origins > QKV__ORIGINS || (o->n_origins && !o->origins))
        return qkv__fail(QKV_USAGE, "serve: there are at most %d other origins", QKV__ORIGINS);
    for (int i = 0; i < o->n_origins; i++)
        if (!is_origin(o->origins[i]))
            return qkv__fail(QKV_USAGE,
                             "serve: \"%s\" is no origin: one looks like https://example.org or http://localhost:3000",
                             o->origins[i] ? o->origins[i] : "");
    return QKV_OK;
}

static qkv_status check_server_options(const qkv_model *m, const qkv_server_opts *o)
{
    if (!m) return qkv__fail(QKV_USAGE, "serve: a model is needed");
    if (o->port < 0 || o->port > 65535) return qkv__fail(QKV_USAGE, "serve: port %d: ports are 0 to 65535", o->port);
    if (o->timeout < 0 || o->timeout > MOST_TIMEOUT)
        return qkv__fail(QKV_USAGE, "serve: a timeout of %d seconds: it must be from 1 to %d", o->timeout, MOST_TIMEOUT);
    if (o->connections_per_address < 0 || o->connections_per_address > QKV__LINKS)
        return qkv__fail(QKV_USAGE, "serve: %d connections an address: it must be from 1 to %d", o->connections_per_address,
                         QKV__LINKS);
    if (o->batch < 0 || o->batch > QKV__LINKS)
        return qkv__fail(QKV_USAGE, "serve: a batch of %d: it must be from 1 to %d", o->batch, QKV__LINKS);
    if (o->max_request > MOST_REQUEST) return qkv__fail(QKV_USAGE, "serve: a request has at most %d bytes", MOST_REQUEST);
    if (o->token && !is_token(o->token))
        return qkv__fail(QKV_USAGE, "serve: a token is one or more visible ASCII characters, without spaces");
    qkv_status status = check_origins(o);
    if (!status) status = check_text("name", o->name);
    if (!status) status = check_text("source language", o->source_language);
    return status ? status : check_text("target language", o->target_language);
}

static qkv_status copy_options(qkv_server *s, const qkv_server_opts *o)
{
    const struct {
        char **to;
        const char *from;
    } texts[] = { { &s->host, o->host },
                  { &s->token, o->token },
                  { &s->name, o->name ? o->name : "qkv" },
                  { &s->source_language, o->source_language },
                  { &s->target_language, o->target_language },
                  { &s->folder, o->folder },
                  { &s->template_file, o->template_file } };
    for (int i = 0; i < 7; i++)
        if (texts[i].from && !(*texts[i].to = qkv__copy_text(texts[i].from))) return QKV_MEMORY;
    for (int i = 0; i < o->n_origins; i++)
        if (!(s->origins[s->n_origins] = qkv__copy_text(o->origins[i]))) return QKV_MEMORY;
        else s->n_origins++;
    s->each_access = o->each_access;
    s->each_access_data = o->each_access_data;
    s->timeout = o->timeout ? o->timeout : DEFAULT_TIMEOUT;
    s->max_request = o->max_request ? o->max_request : DEFAULT_REQUEST;
    s->batch = o->batch ? o->batch : DEFAULT_BATCH;
    s->prefix_cache = (size_t)(o->prefix_cache ? qkv__max(o->prefix_cache, 0) : DEFAULT_PREFIX_CACHE);
    return QKV_OK;
}

/* ---- listening ---- */

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET) return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

static bool is_any(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET) return ((const struct sockaddr_in *)a)->sin_addr.s_addr == htonl(INADDR_ANY);
    return a->sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

/* The address and port that were had, as a Host has them. */
static qkv_status note_address(qkv_server *s)
{
    struct sockaddr_storage bound;
    socklen_t size = sizeof bound;
    char address[48], port[8];
    struct sockaddr *a = (struct sockaddr *)&bound;
    if (getsockname(s->listening, a, &size) ||
        getnameinfo(a, size, address, sizeof address, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
        return qkv__fail(QKV_IO, "serve: the address cannot be told: %s", strerror(errno));
    snprintf(s->address, sizeof s->address, a->sa_family == AF_INET6 ? "[%s]" : "%s", address);
    s->is_any = is_any(a);
    for (const char *digit = port; *digit; digit++) s->port = s->port * 10 + (*digit - '0');
    return QKV_OK;
}

static qkv_status listen_on(qkv_server *s, const struct addrinfo *found, const char *host, int port)
{
    const int yes = 1;
    if (!is_loopback(found->ai_addr) && !s->token)
        return qkv__fail(QKV_USAGE, "serve: to listen on %s, which others can reach, a token is needed", host);
    s->listening = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->listening < 0) return qkv__fail(QKV_IO, "serve: a socket cannot be had: %s", strerror(errno));
    /* Else a port is not free for minutes after a server that had connections ended. */
    setsockopt(s->listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (!bind(s->listening, found->ai_addr, found->ai_addrlen) && !listen(s->listening, BACKLOG)) return note_address(s);
    if (errno == EADDRINUSE)
        return qkv__fail(QKV_IO, "serve: port %d of %s is taken by another program: choose another port", port, host);
    return qkv__fail(QKV_IO, "serve: cannot listen on port %d of %s: %s", port, host, strerror(errno));
}

static qkv_status find_address(qkv_server *s, int port)
{
    const struct addrinfo wanted = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
    const char *host = s->host ? s->host : "127.0.0.1";
    struct addrinfo *found;
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    int error = getaddrinfo(host, service, &wanted, &found);
    if (error) return qkv__fail(QKV_IO, "serve: %s is no address to listen on: %s", host, gai_strerror(error));
    qkv_status status = listen_on(s, found, host, port);
    freeaddrinfo(found);
    return status;
}

/* ---- the daemon ---- */

/* Paths are compared as they are written: "%00" would otherwise end one early. */
static size_t leave_escaped(void *data, struct MHD_Connection *c, char *text)
{
    (void)data, (void)c;
    return strlen(text);
}

static qkv_status start_daemon(qkv_server *s)
{
    const unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC;
    s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, qkv__handle, s, MHD_OPTION_LISTEN_SOCKET, s->listening,
                                 MHD_OPTION_CONNECTION_LIMIT, (unsigned)MHD_LINKS, MHD_OPTION_CONNECTION_TIMEOUT,
                                 (unsigned)s->timeout, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADERS_BYTES,
                                 MHD_OPTION_NOTIFY_COMPLETED, qkv__completed, s, MHD_OPTION_NOTIFY_CONNECTION, qkv__link_event,
                                 &s->connections, MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL, MHD_OPTION_END);
    return s->daemon ? QKV_OK : qkv__fail(QKV_IO, "serve: the server cannot start: %s", strerror(errno));
}

static qkv_status begin_server(qkv_server *s, const qkv_model *m, const qkv_server_opts *o)
{
    qkv_status status = copy_options(s, o);
    if (!status) status = qkv__served_new(s, m, NULL, &s->served);
    if (!status) status = find_address(s, o->port);
    int most_of_address = o->connections_per_address ? o->connections_per_address : DEFAULT_OF_ADDRESS;
    if (!status) status = qkv__connections_begin(&s->connections, s->timeout, most_of_address, s->batch);
    if (!status) status = qkv__reload_begin(s, o);
    return status ? status : start_daemon(s);
}

qkv_server *qkv_server_new(const qkv_model *m, const qkv_server_opts *opts)
{
    qkv_server_opts o;
    if (QKV__READ_OPTIONS(&o, connections_per_address, opts, "serve") || check_server_options(m, &o)) return NULL;
    qkv_server *s = qkv__alloc_zero(sizeof *s);
    if (!s) return NULL;
    s->listening = -1;
    pthread_mutex_init(&s->served_lock, NULL);
    if (!begin_server(s, m, &o)) return s;
    qkv_server_free(s);
    return NULL;
}

int qkv_server_port(const qkv_server *s) { return s ? s->port : 0; }

void qkv_server_free(qkv_server *s)
{
    if (!s) return;
    atomic_store(&s->is_ending, true);
    if (s->daemon) {
        MHD_quiesce_daemon(s->daemon); /* the socket is ours again */
        qkv__connections_drain(&s->connections);
        MHD_stop_daemon(s->daemon);
    }
    if (s->listening >= 0) close(s->listening);
    if (s->connections.is_watching) qkv__connections_end(&s->connections);
    qkv__reload_end(&s->reload);
    qkv__served_leave(s, s->served);
    pthread_mutex_destroy(&s->served_lock);
    char *const texts[] = { s->host, s->token, s->name, s->source_language, s->target_language, s->template_file, s->folder };
    for (int i = 0; i < 7; i++) qkv__release_text(texts[i]);
    for (int i = 0; i < s->n_origins; i++) qkv__release_text(s->origins[i]);
    qkv__release(s, sizeof *s);
}
