/* access.c: what is told of a request when it is over. */
#include "serve.h"
#include "server.h"

#include "../report/out.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int64_t qkv__microseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void find_client(const qkv__request *r, char *address, size_t room)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *a = info ? info->client_addr : NULL;
    socklen_t size = a && a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (!a || getnameinfo(a, size, address, (socklen_t)room, NULL, 0, NI_NUMERICHOST)) strcpy(address, "-");
}

void qkv__tell_access(const qkv__request *r)
{
    char address[64];
    find_client(r, address, sizeof address);
    bool has_body = r->status && strcmp(r->method, "HEAD") != 0;
    const qkv_access a = { .address = address,
                           .method = r->method,
                           .path = r->path,
                           .status = (int)r->status,
                           .bytes = !has_body   ? 0
                                    : r->stream ? qkv__events_sent(r->stream)
                                                : r->answer.text.length,
                           .milliseconds = (double)(qkv__microseconds() - r->began) / 1000 };
    r->server->each_access(r->server->each_access_data, &a);
}

/* ---- as text ---- */

/* Visible ASCII as it is, without what would end or fake a field; a path is what a stranger sent. */
static void put_log_field(qkv__out *out, const char *text)
{
    for (const char *c = text ? text : "-"; *c; c++)
        if (*c > ' ' && *c < 127 && *c != '"' && *c != '\\') qkv__out_bytes(out, c, 1);
        else qkv__out_printf(out, "\\x%02x", (unsigned char)*c);
}

qkv_status qkv_access_text(const qkv_access *a, int64_t when, qkv_buffer *out)
{
    char date[32] = "-";
    struct tm utc;
    const time_t seconds = (time_t)when;
    if (!a || !out) return qkv__fail(QKV_USAGE, "access: a request and a place for its line are needed");
    if (gmtime_r(&seconds, &utc)) strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    qkv__out line = qkv__out_begin(out);
    qkv__out_printf(&line, "%s ", date);
    put_log_field(&line, a->address);
    qkv__out_printf(&line, " ");
    put_log_field(&line, a->method);
    qkv__out_printf(&line, " ");
    put_log_field(&line, a->path);
    qkv__out_printf(&line, " %d %llu %.1f", a->status, (unsigned long long)a->bytes, a->milliseconds);
    return qkv__out_end(&line);
}

/* The address that the routing table chooses for other networks. Connecting a datagram socket sends nothing. */
static bool find_own_address(int family, char *address, size_t room)
{
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(9) };
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
    struct sockaddr_storage own;
    socklen_t size = sizeof own, to_size = family == AF_INET ? sizeof four : sizeof six;
    inet_pton(AF_INET, "192.0.2.1", &four.sin_addr); /* an address reserved for documentation */
    inet_pton(AF_INET6, "2001:db8::1", &six.sin6_addr);
    const struct sockaddr *to = family == AF_INET ? (struct sockaddr *)&four : (struct sockaddr *)&six;
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool found = fd >= 0 && !connect(fd, to, to_size) && !getsockname(fd, (struct sockaddr *)&own, &size) &&
                 !getnameinfo((struct sockaddr *)&own, size, address, (socklen_t)room, NULL, 0, NI_NUMERICHOST);
    if (fd >= 0) close(fd);
    return found;
}

/* A browser cannot open 0.0.0.0. */
static const char *host_of(const qkv_server *s, char *address, size_t room)
{
    const char *host = s->host ? s->host : "127.0.0.1";
    if (!s->is_any) return host;
    const bool is_six = *s->address == '[';
    if ((is_six && find_own_address(AF_INET6, address, room)) || find_own_address(AF_INET, address, room)) return address;
    return is_six ? "::1" : "127.0.0.1";
}

/* Signs of a token that mean something in an address are written by their number. */
qkv_status qkv_server_address(const qkv_server *s, qkv_buffer *out)
{
    if (!s || !out) return qkv__fail(QKV_USAGE, "address: a server and a place for its address are needed");
    char own[64];
    const char *host = host_of(s, own, sizeof own);
    bool is_six = strchr(host, ':') != NULL;
    qkv__out text = qkv__out_begin(out);
    qkv__out_printf(&text, "http://%s%s%s:%d", is_six ? "[" : "", host, is_six ? "]" : "", qkv_server_port(s));
    if (s->token) qkv__out_printf(&text, "/#token=");
    for (const char *c = s->token; c && *c; c++)
        qkv__out_printf(&text, isalnum((unsigned char)*c) || strchr("-._~", *c) ? "%c" : "%%%02X", *c);
    return qkv__out_end(&text);
}
