/* events.c: server-sent events, made on one thread and sent by another. What waits to be sent is not bounded here: a generation
 * has so many tokens at most, and one that waited for a slow reader would keep its turn at the model. */
#include "serve.h"
#include "server.h"

#include <string.h>

struct qkv__events {
    qkv_server *server;
    struct MHD_Connection *connection;
    qkv__link *link;
    qkv__events_fill *fill;
    void *data;
    void (*release)(void *data);
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    qkv__json waiting; /* bytes to be sent */
    size_t sent;       /* of them */
    uint64_t all_sent;
    bool has_begun, is_done;
    atomic_bool is_left; /* nobody listens any more */
    qkv_status status;
    char sentence[QKV_SENTENCE_MAX];
};

/* ---- making ---- */

static void put_event(qkv__json *to, const qkv__json *event)
{
    qkv__put_raw(to, "data: ");
    qkv__put_bytes(to, event->text.data, event->text.length);
    qkv__put_raw(to, "\n\n");
}

qkv_status qkv__events_put(struct qkv__events *s, qkv__json *event)
{
    if (event->status) return event->status;
    if (atomic_load(&s->is_left) || atomic_load(&s->server->is_ending)) return qkv__fail(QKV_FAILURE, "the server is ending");
    pthread_mutex_lock(&s->lock);
    put_event(&s->waiting, event);
    qkv_status status = s->waiting.status;
    if (!status) s->has_begun = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    qkv__buffer_clear(&event->text);
    return status;
}

/* An error when the headers are gone already can only be told as an event. */
static void put_end(struct qkv__events *s)
{
    qkv__json error = { 0 };
    if (s->status && s->has_begun) {
        qkv__put_error(&error, 500, s->sentence);
        if (!error.status) put_event(&s->waiting, &error);
    } else if (!s->status) qkv__put_raw(&s->waiting, "data: [DONE]\n\n");
    qkv_buffer_free(&error.text);
}

static void *send_events(void *data)
{
    struct qkv__events *s = data;
    qkv_status status = s->fill(s, s->data);
    qkv__work_end(&s->server->connections, s->link);
    pthread_mutex_lock(&s->lock);
    if ((s->status = status)) strcpy(s->sentence, qkv_error());
    put_end(s);
    s->is_done = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- sending ---- */

static bool has_bytes(const struct qkv__events *s) { return s->sent < s->waiting.text.length; }

/* Called by the thread of the connection alone, which may wait here. The timeout of the connection is for its client. */
static ssize_t send_some(void *data, uint64_t at, char *to, size_t room)
{
    struct qkv__events *s = data;
    (void)at;
    pthread_mutex_lock(&s->lock);
    if (!has_bytes(s) && !s->is_done) {
        MHD_set_connection_option(s->connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
        while (!has_bytes(s) && !s->is_done) pthread_cond_wait(&s->changed, &s->lock);
        MHD_set_connection_option(s->connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)s->server->timeout);
    }
    size_t left = s->waiting.text.length - s->sent, n = left < room ? left : room;
    if (n) memcpy(to, s->waiting.text.data + s->sent, n);
    s->sent += n;
    s->all_sent += n;
    if (n && !has_bytes(s)) {
        qkv__buffer_clear(&s->waiting.text);
        s->sent = 0;
    }
    bool failed = s->waiting.status != QKV_OK;
    pthread_mutex_unlock(&s->lock);
    if (n) return (ssize_t)n;
    return failed ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
}

uint64_t qkv__events_sent(const struct qkv__events *s) { return s->all_sent; }

struct MHD_Response *qkv__events_response(struct qkv__events *s)
{
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, send_some, s, NULL);
}

/* ---- beginning and end ---- */

static qkv_status begin_events(struct qkv__events *s, qkv__request *r)
{
    if (pthread_create(&s->thread, NULL, send_events, s)) return qkv__fail(QKV_MEMORY, "a thread could not be had");
    r->stream = s;
    pthread_mutex_lock(&s->lock);
    while (!s->has_begun && !s->is_done) pthread_cond_wait(&s->changed, &s->lock);
    bool failed = s->is_done && s->status && !s->has_begun;
    pthread_mutex_unlock(&s->lock);
    return failed ? qkv__fail_again(s->status, s->sentence) : QKV_OK;
}

static void release_events(struct qkv__events *s)
{
    s->release(s->data);
    qkv_buffer_free(&s->waiting.text);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    qkv__release(s, sizeof *s);
}

qkv_status qkv__events_start(qkv__request *r, qkv__events_fill *fill, void *data, void (*release_data)(void *data))
{
    struct qkv__events *s = qkv__alloc_zero(sizeof *s);
    if (!s) return release_data(data), QKV_MEMORY;
    s->server = r->server;
    s->connection = r->connection;
    s->link = r->link;
    s->fill = fill;
    s->data = data;
    s->release = release_data;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    qkv_status status = begin_events(s, r);
    if (!status) return QKV_OK;
    if (r->stream) qkv__events_free(s);
    else release_events(s);
    r->stream = NULL;
    return status;
}

void qkv__events_free(struct qkv__events *s)
{
    if (!s) return;
    atomic_store(&s->is_left, true);
    pthread_join(s->thread, NULL);
    release_events(s);
}
