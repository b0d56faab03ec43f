/* aside.c: a thread that speaks to the other ranks while this one computes. */
#include "aside.h"

#include "../base/memory.h"

#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

/* ---- a mark ---- */

void qkv__mark_init(qkv__mark *m)
{
    m->at = 0;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->is_raised, NULL);
}

void qkv__mark_destroy(qkv__mark *m)
{
    pthread_cond_destroy(&m->is_raised);
    pthread_mutex_destroy(&m->lock);
}

void qkv__mark_raise(qkv__mark *m, int64_t to)
{
    pthread_mutex_lock(&m->lock);
    if (to > m->at) m->at = to;
    pthread_cond_signal(&m->is_raised);
    pthread_mutex_unlock(&m->lock);
}

void qkv__mark_wait(qkv__mark *m, int64_t least)
{
    pthread_mutex_lock(&m->lock);
    while (m->at < least) pthread_cond_wait(&m->is_raised, &m->lock);
    pthread_mutex_unlock(&m->lock);
}

bool qkv__mark_is_at(qkv__mark *m, int64_t least)
{
    pthread_mutex_lock(&m->lock);
    bool is_at = m->at >= least;
    pthread_mutex_unlock(&m->lock);
    return is_at;
}

/* ---- the thread ---- */

/* A thread that wakes up for a moment must not wait until one that computes on the same core has had its time: since 6.12
 * Linux lets it go first where it asks for short slices. Elsewhere nothing changes. */
static void ask_for_short_slices(void)
{
#ifdef SYS_sched_setattr
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period; /* nanoseconds */
    } attributes = { .size = sizeof attributes,
                     .policy = (uint32_t)sched_getscheduler(0),
                     .nice = getpriority(PRIO_PROCESS, 0),
                     .runtime = 100000 };
    syscall(SYS_sched_setattr, 0, &attributes, 0);
#endif
}

/* Its error is told by the thread that waits for the end. */
static void do_work(qkv__aside *a)
{
    a->status = a->work(a->data);
    if (a->status) snprintf(a->sentence, sizeof a->sentence, "%s", qkv_error());
}

static void *aside_thread(void *data)
{
    ask_for_short_slices();
    do_work(data);
    return NULL;
}

void qkv__aside_begin(qkv__aside *a, qkv_status (*work)(void *data), void *data)
{
    a->work = work;
    a->data = data;
    a->has_thread = qkv__dist_is_threaded() && !pthread_create(&a->thread, NULL, aside_thread, a);
}

void qkv__aside_need(qkv__aside *a)
{
    if (a->has_thread || a->is_done) return;
    do_work(a);
    a->is_done = true;
}

void qkv__aside_abandon(qkv__aside *a)
{
    qkv__dist_hurry(1);
    if (a->has_thread) pthread_join(a->thread, NULL);
    qkv__dist_hurry(-1);
    if (a->status && qkv_dist_size() > 1) qkv__keep_memory(); /* what it had posted was not waited for */
}

qkv_status qkv__aside_end(qkv__aside *a)
{
    qkv__aside_need(a);
    qkv__aside_abandon(a);
    return a->status ? qkv__fail_again(a->status, a->sentence) : QKV_OK;
}
