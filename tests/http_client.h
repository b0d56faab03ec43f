/* http_client.h: raw HTTP on 127.0.0.1 for the tests of the server: any bytes out, one answer in. */
#ifndef QKV_TESTS_HTTP_CLIENT_H
#define QKV_TESTS_HTTP_CLIENT_H

#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* An answer. Its text is the whole of it and ends with a NUL; status 0: the connection ended without one. */
typedef struct reply {
    char *text;
    size_t length, room;
    int status;
    const char *body; /* inside text */
    size_t body_length;
} reply;

static inline void free_reply(reply *r)
{
    free(r->text);
    *r = (reply){ 0 };
}

/* From an address of 127.0.0.0/8, of which every Linux has all. */
static inline int connect_from(unsigned from, int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) }, own = to;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    own.sin_addr.s_addr = htonl(from);
    own.sin_port = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval patience = { .tv_sec = 120 };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (fd >= 0 && !bind(fd, (struct sockaddr *)&own, sizeof own) && !connect(fd, (struct sockaddr *)&to, sizeof to)) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

static inline int connect_to(int port) { return connect_from(INADDR_LOOPBACK, port); }

/* False when the other side has ended the connection, which may have answered before. */
static inline bool send_bytes(int fd, const void *bytes, size_t size)
{
    for (const char *at = bytes; size > 0;) {
        ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
        if (n <= 0) return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

/* Adds what comes next; false at the end. */
static inline bool receive_some(int fd, reply *r)
{
    if (r->room - r->length < 4096) {
        r->room = r->room * 2 + 8192;
        r->text = realloc(r->text, r->room);
        if (!r->text) abort();
    }
    ssize_t n = recv(fd, r->text + r->length, r->room - r->length - 1, 0);
    if (n > 0) r->length += (size_t)n;
    r->text[r->length] = '\0';
    return n > 0;
}

/* The value of a header, with what follows it; NULL when it is not there. */
static inline const char *reply_header(const reply *r, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = r->text; line && line + 2 < r->body; line = strstr(line, "\r\n")) {
        if (line != r->text) line += 2;
        if (!strncasecmp(line, name, length) && line[length] == ':') return line + length + 1 + strspn(line + length + 1, " ");
    }
    return NULL;
}

static inline void join_chunks(reply *r)
{
    char *to = r->text + (r->body - r->text), *from = to, *end = r->text + r->length;
    for (;;) {
        char *line;
        size_t n = strtoul(from, &line, 16);
        if (!n || (size_t)(end - line) < n + 2) break;
        memmove(to, line + 2, n);
        to += n;
        from = line + 2 + n + 2;
    }
    r->body_length = (size_t)(to - r->body);
    *to = '\0';
}

static inline bool is_whole(reply *r, bool is_head)
{
    const char *end = r->text ? strstr(r->text, "\r\n\r\n") : NULL;
    if (!end) return false;
    r->body = end + 4;
    const char *size = reply_header(r, "Content-Length");
    if (is_head) return true;
    if (size) return r->length - (size_t)(r->body - r->text) >= strtoul(size, NULL, 10);
    return reply_header(r, "Transfer-Encoding") && r->length >= 5 && !memcmp(r->text + r->length - 5, "0\r\n\r\n", 5);
}

/* One answer; those of "100 Continue" are passed over. */
static inline void receive_reply(int fd, reply *r, bool is_head)
{
    do {
        static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
        size_t n = strlen(go_on);
        if (r->length >= n && !memcmp(r->text, go_on, n)) {
            memmove(r->text, r->text + n, r->length - n + 1);
            r->length -= n;
        }
    } while (!is_whole(r, is_head) && receive_some(fd, r));
    if (!r->text || r->length < 12 || memcmp(r->text, "HTTP/1.", 7)) return;
    r->status = atoi(r->text + 9);
    const char *end = strstr(r->text, "\r\n\r\n");
    r->body = end ? end + 4 : r->text + r->length;
    r->body_length = r->length - (size_t)(r->body - r->text);
    if (reply_header(r, "Transfer-Encoding")) join_chunks(r);
}

/* Sends bytes on a connection of their own and takes the answer. */
static inline reply ask_raw(int port, const void *bytes, size_t size)
{
    reply r = { 0 };
    int fd = connect_to(port);
    if (fd < 0) return r;
    send_bytes(fd, bytes, size);
    receive_reply(fd, &r, size > 5 && !memcmp(bytes, "HEAD ", 5));
    close(fd);
    return r;
}

/* What makes a request; NULL where the usual is meant: GET, "/", our own Host, JSON, no body. */
typedef struct request {
    const char *method, *path, *host, *headers, *type, *body;
    size_t length; /* of the body; 0: it ends with a NUL */
    bool no_type, no_length, no_host;
} request;

static inline size_t write_request(int port, const request *q, char **bytes)
{
    size_t length = q->length || !q->body ? q->length : strlen(q->body);
    const char *headers = q->headers ? q->headers : "";
    size_t room = length + strlen(headers) + (q->path ? strlen(q->path) : 1) + 1024 + (q->host ? strlen(q->host) : 0);
    char *text = malloc(room), host[64], size[64] = "";
    if (!text) abort();
    snprintf(host, sizeof host, "127.0.0.1:%d", port);
    if (q->body && !q->no_length) snprintf(size, sizeof size, "Content-Length: %zu\r\n", length);
    int n = snprintf(text, room, "%s %s HTTP/1.1\r\n%s%s%s%s%s%s%s%s\r\n",
                     q->method ? q->method
                     : q->body ? "POST"
                               : "GET",
                     q->path ? q->path : "/", q->no_host ? "" : "Host: ",
                     q->no_host ? ""
                     : q->host  ? q->host
                                : host,
                     q->no_host ? "" : "\r\n", q->body && !q->no_type ? "Content-Type: " : "",
                     q->body && !q->no_type ? q->type ? q->type : "application/json" : "", q->body && !q->no_type ? "\r\n" : "",
                     size, headers);
    if (q->body) memcpy(text + n, q->body, length);
    *bytes = text;
    return (size_t)n + (q->body ? length : 0);
}

static inline reply ask(int port, const request *q)
{
    char *bytes;
    size_t size = write_request(port, q, &bytes);
    reply r = ask_raw(port, bytes, size);
    free(bytes);
    return r;
}

static inline reply post(int port, const char *path, const char *body)
{
    return ask(port, &(request){ .path = path, .body = body });
}

static inline reply get(int port, const char *path) { return ask(port, &(request){ .path = path }); }

#endif
