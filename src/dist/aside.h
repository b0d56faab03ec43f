/* aside.h: a thread that speaks to the other ranks while this one computes, and a mark by which one tells the other how far it
 * has come. */
#ifndef QKV_SRC_DIST_ASIDE_H
#define QKV_SRC_DIST_ASIDE_H

#include "dist.h"

#include "../base/status.h"

#include <pthread.h>

/* A number that one thread raises and another waits for: what was written before it was raised is seen by who waited. */
typedef struct qkv__mark {
    pthread_mutex_t lock;
    pthread_cond_t is_raised;
    int64_t at;
} qkv__mark;

void qkv__mark_init(qkv__mark *m);
void qkv__mark_destroy(qkv__mark *m);
void qkv__mark_raise(qkv__mark *m, int64_t to); /* one that is there already stays */
void qkv__mark_wait(qkv__mark *m, int64_t least);
bool qkv__mark_is_at(qkv__mark *m, int64_t least); /* without waiting */

/* Work in a thread of its own, where the ranks may speak in one. */
typedef struct qkv__aside {
    qkv_status (*work)(void *data);
    void *data;
    pthread_t thread;
    bool has_thread, is_done; /* is_done: without a thread */
    qkv_status status;
    char sentence[QKV_SENTENCE_MAX];
} qkv__aside;

void qkv__aside_begin(qkv__aside *a, qkv_status (*work)(void *data), void *data);

/* Without a thread it is done here and now; with one this does nothing. */
void qkv__aside_need(qkv__aside *a);

/* The status of the work, which without a thread is done here at the latest. */
qkv_status qkv__aside_end(qkv__aside *a);

/* Nobody needs it: a thread is waited for, and without one nothing is done that was not. No error is set. */
void qkv__aside_abandon(qkv__aside *a);

#endif
