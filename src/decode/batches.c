/* batches.c: batches of texts, each on a thread of its own. */
#include "batches.h"

#include "../base/pool.h"
#include "../base/size.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct running {
    const qkv__batches *b;
    pthread_t caller;
    pthread_mutex_t lock;
    /* under the lock */
    void *spare[QKV_MAX_THREADS]; /* what threads have left for the next batch */
    int n_spare;
    int64_t failed; /* the first batch that did; n: none; -1: each_step ended all */
    qkv_status status;
    char sentence[QKV_SENTENCE_MAX];
} running;

/* ---- what fails ---- */

static void keep_failure(running *r, int64_t batch, qkv_status status)
{
    pthread_mutex_lock(&r->lock);
    if (batch < r->failed) {
        r->failed = batch;
        r->status = status;
        snprintf(r->sentence, sizeof r->sentence, "%s", qkv_error());
    }
    pthread_mutex_unlock(&r->lock);
}

static bool is_wanted(running *r, int64_t batch)
{
    pthread_mutex_lock(&r->lock);
    bool wanted = batch < r->failed;
    pthread_mutex_unlock(&r->lock);
    return wanted;
}

/* The caller's each_step is called on the caller's thread; the others only learn that it has ended the work. */
static qkv_status batch_step(void *data)
{
    running *r = data;
    if (!is_wanted(r, 0)) return qkv__fail(QKV_FAILURE, "the work was ended");
    if (!r->b->each_step || !pthread_equal(r->caller, pthread_self())) return QKV_OK;
    qkv_status status = r->b->each_step(r->b->each_step_data);
    if (status) keep_failure(r, -1, status);
    return status;
}

/* ---- one batch ---- */

static void *take_own(running *r)
{
    pthread_mutex_lock(&r->lock);
    void *own = r->n_spare ? r->spare[--r->n_spare] : NULL;
    pthread_mutex_unlock(&r->lock);
    return own ? own : r->b->start(r->b->work);
}

static void leave_own(running *r, void *own)
{
    pthread_mutex_lock(&r->lock);
    bool kept = r->n_spare < QKV_MAX_THREADS;
    if (kept) r->spare[r->n_spare++] = own;
    pthread_mutex_unlock(&r->lock);
    if (!kept) r->b->end(own);
}

static void run_batch_number(running *r, int64_t batch)
{
    if (!is_wanted(r, batch)) return;
    void *own = take_own(r);
    qkv_status status = own ? r->b->run(r->b->work, own, batch, batch_step, r) : qkv_error_status();
    if (status) keep_failure(r, batch, status);
    if (own) leave_own(r, own);
}

/* The last batch has the longest texts: what starts last should end soon. */
static void run_batch_task(void *work, int64_t task, void *scratch)
{
    (void)scratch;
    running *r = work;
    run_batch_number(r, r->b->n - 1 - task);
}

qkv_status qkv__run_batches(const qkv__batches *b)
{
    running r = { .b = b, .caller = pthread_self(), .lock = PTHREAD_MUTEX_INITIALIZER, .failed = b->n };
    int64_t threads = qkv_num_threads(), shared = b->n % threads;
    if (2 * shared > threads) shared = 0; /* most threads have one */
    if (b->n > shared && qkv__parallel(b->n - shared, 0, run_batch_task, &r)) return QKV_MEMORY;
    for (int64_t i = shared; i-- > 0;) run_batch_number(&r, i);
    while (r.n_spare) b->end(r.spare[--r.n_spare]);
    pthread_mutex_destroy(&r.lock);
    return r.failed < b->n ? qkv__fail_again(r.status, r.sentence) : QKV_OK;
}

int64_t qkv__count_batches(int64_t n, int64_t most, int64_t rows)
{
    enum { FEWEST = 8, FEWEST_ROWS = 32 }; /* with less, reading the weights takes longer than computing */
    int64_t batches = qkv__max(1, qkv__ceil_div(n, most)),
            even = qkv__round_up(batches, qkv__is_alone() ? 1 : qkv_num_threads());
    return n / even >= FEWEST && n / even * rows >= FEWEST_ROWS ? even : batches;
}
