/* links.c: connections, the time they have, and turns at the model. */
#include "server.h"

#include <poll.h>
#include <sys/socket.h>
#include <time.h>

/* Further connections are answered 503; MHD itself takes some more, so that they can be. */
enum { MOST_LINKS = 128, LEAST_TURNS = 2, LOOK_EVERY = 250 /* milliseconds: for clients that leave while they wait */ };

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits until something changes or the time has come; the lock is held. */
static void wait_until(qkv__links *l, int64_t when)
{
    const struct timespec t = { .tv_sec = (time_t)(when / 1000), .tv_nsec = (long)(when % 1000) * 1000000 };
    pthread_cond_timedwait(&l->changed, &l->lock, &t);
}

/* ---- the watch ---- */

/* Ends connections whose time is up, and gives the next time to look. A connection is in the list while its socket is open, so
 * no other file is ever hit. MHD sees the end of the stream and closes it. */
static int64_t end_late_links(qkv__links *l, int64_t time)
{
    int64_t next = time + 60000;
    for (qkv__link *x = l->first; x; x = x->next) {
        if (x->deadline && x->deadline <= time) {
            shutdown(x->fd, SHUT_RDWR);
            x->deadline = 0;
        }
        if (x->deadline && x->deadline < next) next = x->deadline;
    }
    return next;
}

static void *watch(void *data)
{
    qkv__links *l = data;
    pthread_mutex_lock(&l->lock);
    while (!l->stop) wait_until(l, end_late_links(l, now()));
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

qkv_status qkv__links_begin(qkv__links *l, int timeout)
{
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&l->changed, &steady);
    pthread_condattr_destroy(&steady);
    pthread_mutex_init(&l->lock, NULL);
    l->patience = (int64_t)timeout * 1000;
    l->most = qkv_threads() > LEAST_TURNS ? qkv_threads() : LEAST_TURNS;
    l->is_watching = !pthread_create(&l->watch, NULL, watch, l);
    return l->is_watching ? QKV_OK : qkv__fail(QKV_MEMORY, "serve: a thread could not be had");
}

void qkv__links_end(qkv__links *l)
{
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    if (l->is_watching) pthread_join(l->watch, NULL);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
}

void qkv__links_drain(qkv__links *l)
{
    pthread_mutex_lock(&l->lock);
    int64_t end = now() + l->patience;
    while (l->active && now() < end) wait_until(l, end);
    atomic_store(&l->hurry, true);
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

/* ---- connections ---- */

static void open_link(qkv__links *l, struct MHD_Connection *c, void **context)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    qkv__link *x = qkv__alloc_zero(sizeof *x);
    if (!x || !info) {
        qkv__release(x, sizeof *x);
        return;
    }
    pthread_mutex_lock(&l->lock);
    *x = (qkv__link){ .fd = info->connect_fd, .deadline = now() + l->patience, .next = l->first, .from = &l->first };
    x->is_surplus = ++l->n > MOST_LINKS;
    if (l->first) l->first->from = &x->next;
    l->first = x;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    *context = x;
}

static void close_link(qkv__links *l, qkv__link *x)
{
    if (!x) return;
    pthread_mutex_lock(&l->lock);
    *x->from = x->next;
    if (x->next) x->next->from = x->from;
    l->n--;
    pthread_mutex_unlock(&l->lock);
    qkv__release(x, sizeof *x);
}

void qkv__link_event(void *links, struct MHD_Connection *c, void **context, enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED) open_link(links, c, context);
    else close_link(links, *context);
}

qkv__link *qkv__link_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void count_active(qkv__links *l, qkv__link *link, int by)
{
    pthread_mutex_lock(&l->lock);
    l->active += by;
    if (link) link->deadline = by > 0 ? 0 : now() + l->patience;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

void qkv__link_busy(qkv__links *l, qkv__link *link) { count_active(l, link, 1); }
void qkv__link_idle(qkv__links *l, qkv__link *link) { count_active(l, link, -1); }

bool qkv__link_is_left(const qkv__link *link)
{
    struct pollfd p = { .fd = link ? link->fd : -1, .events = POLLRDHUP };
    return poll(&p, 1, 0) > 0;
}

/* ---- turns ---- */

bool qkv__work_begin(qkv__links *l, const qkv__link *link)
{
    bool is_left;
    pthread_mutex_lock(&l->lock);
    while (!(is_left = qkv__link_is_left(link)) && l->working >= l->most && !atomic_load(&l->hurry))
        wait_until(l, now() + LOOK_EVERY);
    bool may = !is_left && l->working < l->most;
    l->working += may;
    pthread_mutex_unlock(&l->lock);
    return may;
}

void qkv__work_end(qkv__links *l)
{
    pthread_mutex_lock(&l->lock);
    l->working--;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}
