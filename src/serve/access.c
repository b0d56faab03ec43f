/* access.c: what is told of a request when it is over. */
#include "server.h"

#include <netdb.h>
#include <string.h>
#include <time.h>

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
