/* connections.c: connections, the time they have, and turns at the model. */
#include "server.h"

#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum {
    LEAST_TURNS = 2,
    LOOK_EVERY = 250 /* milliseconds: for clients that leave while they wait */,
    REST = 1000,
    LONG_WORK = 10000
};

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits until something changes or the time has come; the lock is held. */
static void wait_until(qkv__connections *l, int64_t when)
{
    const struct timespec t = { .tv_sec = (time_t)(when / 1000), .tv_nsec = (long)(when % 1000) * 1000000 };
    pthread_cond_timedwait(&l->changed, &l->lock, &t);
}

/* A connection is in the list while its socket is open, so no other file is ever hit. MHD sees the end of the stream and closes
 * it. */
static void drop_link(qkv__connections *l, qkv__link *x)
{
    shutdown(x->fd, SHUT_RDWR);
    x->deadline = 0;
    x->is_dropped = true;
    l->n--;
}

/* ---- the watch ---- */

/* Ends connections whose time is up, and gives the next time to look. */
static int64_t end_late_connections(qkv__connections *l, int64_t time)
{
    int64_t next = time + 60000;
    for (qkv__link *x = l->first; x; x = x->next) {
        if (x->deadline && x->deadline <= time) drop_link(l, x);
        if (x->deadline && x->deadline < next) next = x->deadline;
    }
    return next;
}

/* After a burst malloc keeps what was needed most. The lock is held, but not while the memory goes. */
static void trim_memory(qkv__connections *l)
{
    l->trim_at = 0;
    pthread_mutex_unlock(&l->lock);
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    pthread_mutex_lock(&l->lock);
}

static void *watch(void *data)
{
    qkv__connections *l = data;
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        int64_t next = end_late_connections(l, now());
        if (l->trim_at && l->trim_at <= now()) trim_memory(l);
        else wait_until(l, l->trim_at && l->trim_at < next ? l->trim_at : next);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

qkv_status qkv__connections_begin(qkv__connections *l, int timeout, int most_of_address, int batch)
{
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&l->changed, &steady);
    pthread_condattr_destroy(&steady);
    pthread_mutex_init(&l->lock, NULL);
    l->patience = (int64_t)timeout * 1000;
    l->most_of_address = most_of_address;
    l->most[QKV__TURN_MODEL] = qkv_num_threads() > LEAST_TURNS ? qkv_num_threads() : LEAST_TURNS;
    l->most[QKV__TURN_BATCH] = batch;
    l->is_watching = !pthread_create(&l->watch, NULL, watch, l);
    return l->is_watching ? QKV_OK : qkv__fail(QKV_MEMORY, "serve: a thread could not be had");
}

void qkv__connections_end(qkv__connections *l)
{
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    if (l->is_watching) pthread_join(l->watch, NULL);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
}

void qkv__connections_drain(qkv__connections *l)
{
    pthread_mutex_lock(&l->lock);
    int64_t end = now() + l->patience;
    while (l->active && now() < end) wait_until(l, end);
    atomic_store(&l->hurry, true);
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

/* ---- the share of an address ---- */

/* A client of IPv6 has a network of addresses to itself. An address of IPv4 keeps its form where IPv6 is listened on. */
static void note_client(qkv__link *x, const struct sockaddr *a)
{
    static const unsigned char four[12] = { [10] = 0xFF, [11] = 0xFF };
    memcpy(x->address, four, sizeof four);
    if (a->sa_family == AF_INET) memcpy(x->address + 12, &((const struct sockaddr_in *)a)->sin_addr, 4);
    if (a->sa_family != AF_INET6) return;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)a)->sin6_addr;
    memset(x->address, 0, sizeof x->address);
    memcpy(x->address, six, IN6_IS_ADDR_V4MAPPED(six) ? 16 : 8);
}

static bool is_same_client(const qkv__link *a, const qkv__link *b)
{
    return !memcmp(a->address, b->address, sizeof a->address);
}

static int count_of_client(const qkv__connections *l, const qkv__link *as)
{
    int n = 0;
    for (const qkv__link *x = l->first; x; x = x->next) n += !x->is_dropped && is_same_client(x, as);
    return n;
}

/* Where there is one too many, of the client or of all, the one that has waited longest for a request to arrive makes room: so
 * nobody can shut others out by connections that ask for nothing. Where all are being answered the new one is surplus. */
static void close_idle_link(qkv__connections *l, qkv__link *added)
{
    bool is_greedy = count_of_client(l, added) > l->most_of_address;
    if (!is_greedy && l->n <= QKV__LINKS) return;
    qkv__link *longest = NULL;
    for (qkv__link *x = l->first; x; x = x->next)
        if (x != added && x->deadline && (!is_greedy || is_same_client(x, added)) &&
            (!longest || x->deadline <= longest->deadline))
            longest = x;
    if (longest) drop_link(l, longest);
    added->is_surplus = l->n > QKV__LINKS || count_of_client(l, added) > l->most_of_address;
}

/* ---- connections ---- */

static void open_link(qkv__connections *l, struct MHD_Connection *c, void **context)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    qkv__link *x = qkv__alloc_zero(sizeof *x);
    const union MHD_ConnectionInfo *client = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (!x || !info || !client) {
        qkv__release(x, sizeof *x);
        return;
    }
    pthread_mutex_lock(&l->lock);
    *x = (qkv__link){ .fd = info->connect_fd, .deadline = now() + l->patience, .next = l->first, .from = &l->first };
    if (l->first) l->first->from = &x->next;
    l->first = x;
    l->n++;
    note_client(x, client->client_addr);
    close_idle_link(l, x);
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    *context = x;
}

static void close_link(qkv__connections *l, qkv__link *x)
{
    if (!x) return;
    pthread_mutex_lock(&l->lock);
    *x->from = x->next;
    if (x->next) x->next->from = x->from;
    l->n -= !x->is_dropped;
    pthread_mutex_unlock(&l->lock);
    qkv__release(x, sizeof *x);
}

void qkv__link_event(void *connections, struct MHD_Connection *c, void **context, enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED) open_link(connections, c, context);
    else close_link(connections, *context);
}

qkv__link *qkv__link_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void count_active(qkv__connections *l, qkv__link *link, int by)
{
    pthread_mutex_lock(&l->lock);
    l->active += by;
    if (link && !link->is_dropped) link->deadline = by > 0 ? 0 : now() + l->patience;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

void qkv__link_busy(qkv__connections *l, qkv__link *link) { count_active(l, link, 1); }
void qkv__link_idle(qkv__connections *l, qkv__link *link) { count_active(l, link, -1); }

bool qkv__link_reserve(qkv__connections *l, qkv__link *link, size_t bytes, size_t most)
{
    if (!link) return false;
    pthread_mutex_lock(&l->lock);
    size_t all = bytes, own = bytes;
    link->reserved = 0;
    for (const qkv__link *x = l->first; x; x = x->next) {
        all += x->reserved;
        own += is_same_client(x, link) ? x->reserved : 0;
    }
    bool fits = all <= most && own <= most / 2;
    if (fits) link->reserved = bytes;
    pthread_mutex_unlock(&l->lock);
    return fits;
}

bool qkv__link_is_left(const qkv__link *link)
{
    struct pollfd p = { .fd = link ? link->fd : -1, .events = POLLRDHUP };
    return poll(&p, 1, 0) > 0;
}

/* ---- turns ---- */

static int turns_of_client(const qkv__connections *l, const qkv__link *as, qkv__turn turn)
{
    int n = 0;
    for (const qkv__link *x = l->first; x; x = x->next) n += x->has_turn && x->turn == turn && is_same_client(x, as);
    return n;
}

static uint64_t client_served(const qkv__connections *l, const qkv__link *as)
{
    uint64_t last = 0;
    for (const qkv__link *x = l->first; x; x = x->next)
        if (is_same_client(x, as) && x->served > last) last = x->served;
    return last;
}

uint64_t qkv__client_served(qkv__connections *l, const qkv__link *link)
{
    pthread_mutex_lock(&l->lock);
    uint64_t last = client_served(l, link);
    pthread_mutex_unlock(&l->lock);
    return last;
}

void qkv__serve_client(qkv__connections *l, qkv__link *link)
{
    pthread_mutex_lock(&l->lock);
    link->served = ++l->clock;
    pthread_mutex_unlock(&l->lock);
}

static bool comes_before(const qkv__connections *l, const qkv__waiter *a, const qkv__waiter *b)
{
    int turns[] = { turns_of_client(l, a->link, a->turn), turns_of_client(l, b->link, b->turn) };
    uint64_t served[] = { client_served(l, a->link), client_served(l, b->link) };
    if (turns[0] != turns[1]) return turns[0] < turns[1];
    return served[0] != served[1] ? served[0] < served[1] : a->came < b->came;
}

static bool may_work(const qkv__connections *l, const qkv__waiter *w)
{
    const bool is_extra = w->turn == QKV__TURN_BATCH && !turns_of_client(l, w->link, w->turn);
    if (l->working[w->turn] >= l->most[w->turn] * (is_extra ? 2 : 1)) return false;
    for (const qkv__waiter *x = l->waiting; x; x = x->next)
        if (x != w && x->turn == w->turn && comes_before(l, x, w)) return false;
    return true;
}

static int waiting_of_client(const qkv__connections *l, const qkv__link *as)
{
    int n = 0;
    for (const qkv__waiter *x = l->waiting; x; x = x->next) n += is_same_client(x->link, as);
    return n;
}

/* The lock is held. */
static qkv_status wait_for_turn(qkv__connections *l, qkv__link *link, qkv__turn turn)
{
    bool is_left = false, may = false;
    qkv__waiter w = { .link = link, .turn = turn, .came = ++l->clock, .next = l->waiting }, **at = &l->waiting;
    l->waiting = &w;
    while (!(is_left = qkv__link_is_left(link)) && !(may = may_work(l, &w)) && !atomic_load(&l->hurry))
        wait_until(l, now() + LOOK_EVERY);
    while (*at != &w) at = &(*at)->next;
    *at = w.next;
    if (may) {
        l->working[turn]++;
        link->has_turn = true;
        link->turn = turn;
        link->served = ++l->clock;
    }
    pthread_cond_broadcast(&l->changed); /* another one is next */
    return may ? QKV_OK : qkv__fail(QKV_FAILURE, is_left ? "the client has left" : "the server is ending");
}

static void give_turn_up(qkv__connections *l, qkv__link *link)
{
    if (!link->has_turn) return;
    link->has_turn = false;
    l->working[link->turn]--;
    bool is_resting = !l->working[QKV__TURN_MODEL] && !l->working[QKV__TURN_BATCH];
    int64_t at = now() + (is_resting ? REST : LONG_WORK);
    if (!l->trim_at || at < l->trim_at) l->trim_at = at;
    pthread_cond_broadcast(&l->changed);
}

qkv_status qkv__work_begin(qkv__connections *l, qkv__link *link, qkv__turn turn)
{
    pthread_mutex_lock(&l->lock);
    qkv_status status = waiting_of_client(l, link) < QKV__WAITING
                            ? wait_for_turn(l, link, turn)
                            : qkv__fail(QKV_LIMIT, "%d requests of this client wait: try again", QKV__WAITING);
    pthread_mutex_unlock(&l->lock);
    return status;
}

qkv_status qkv__work_yield(qkv__connections *l, qkv__link *link)
{
    pthread_mutex_lock(&l->lock);
    give_turn_up(l, link);
    qkv_status status = wait_for_turn(l, link, link->turn);
    pthread_mutex_unlock(&l->lock);
    return status;
}

void qkv__work_end(qkv__connections *l, qkv__link *link)
{
    pthread_mutex_lock(&l->lock);
    give_turn_up(l, link);
    pthread_mutex_unlock(&l->lock);
}
