/* pool.c: work shared by threads. Tasks are taken from a counter, so uneven tasks and noisy cores balance; results do not
 * depend on who runs what. Workers spin for a moment before they sleep: a training step has hundreds of short parallel calls,
 * and waking a sleeping thread costs more than most of them. */
#include "pool.h"

#include <qkv/unstable/util.h>


#include <ctype.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- how many threads ---- */

static int threads_wanted; /* 0: not chosen yet */
static const char *threads_source = "";

static int usable_cpus(void)
{
#ifdef __linux__
    cpu_set_t allowed;
    if (!sched_getaffinity(0, sizeof allowed, &allowed)) return CPU_COUNT(&allowed);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

/* The cores this process may run on, counting hyper-threads of one core once. */
static int physical_cores(void)
{
#ifdef __linux__
    cpu_set_t allowed, counted;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return 1;
    int cores = 0;
    CPU_ZERO(&counted);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || CPU_ISSET(cpu, &counted)) continue;
        cores++;
        char path[96], text[256] = "";
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list", cpu);
        FILE *f = fopen(path, "r");
        if (!f) continue;
        if (!fgets(text, sizeof text, f)) text[0] = '\0';
        fclose(f);
        for (char *at = text; isdigit((unsigned char)*at);) { /* "0,4" or "0-1" */
            long from = strtol(at, &at, 10), to = from;
            if (*at == '-') to = strtol(at + 1, &at, 10);
            for (long i = from; i <= to && i < CPU_SETSIZE; i++) CPU_SET((size_t)i, &counted);
            if (*at == ',') at++;
        }
    }
    return cores > 0 ? cores : 1;
#else
    return usable_cpus();
#endif
}

static int threads_from_environment(const char *name)
{
    const char *text = getenv(name);
    if (!text || !isdigit((unsigned char)*text)) return 0;
    char *end;
    long n = strtol(text, &end, 10); /* OMP_NUM_THREADS may be a list, "4,2": the first counts */
    if ((*end && *end != ',') || n < 1) return 0;
    return n > QKV_MAX_THREADS ? QKV_MAX_THREADS : (int)n;
}

static void choose_threads(void)
{
    static const char *const names[] = { "QKV_THREADS", "OMP_NUM_THREADS" };
    for (int i = 0; i < 2; i++) {
        threads_source = names[i];
        if ((threads_wanted = threads_from_environment(names[i]))) return;
    }
    threads_source = "physical cores";
    threads_wanted = physical_cores();
    if (threads_wanted > QKV_MAX_THREADS) threads_wanted = QKV_MAX_THREADS;
}

static pthread_mutex_t choose_lock = PTHREAD_MUTEX_INITIALIZER;

int qkv_num_threads(void)
{
    pthread_mutex_lock(&choose_lock);
    if (!threads_wanted) choose_threads();
    int n = threads_wanted;
    pthread_mutex_unlock(&choose_lock);
    return n;
}

const char *qkv__threads_source(void)
{
    qkv_num_threads();
    return threads_source;
}

qkv_status qkv_set_num_threads(int n)
{
    if (n < 0 || n > QKV_MAX_THREADS)
        return qkv__fail(QKV_USAGE, "qkv_set_num_threads: %d threads, expected 1 to %d (0: choose)", n, QKV_MAX_THREADS);
    qkv_shutdown();
    pthread_mutex_lock(&choose_lock);
    threads_wanted = n;
    threads_source = "qkv_set_num_threads";
    if (!n) choose_threads();
    pthread_mutex_unlock(&choose_lock);
    return QKV_OK;
}

/* ---- the pool ---- */

enum { CLOSED = 1 << 20 };

typedef struct worker {
    pthread_t thread;
    void *scratch;
    size_t scratch_bytes;
} worker;

static struct {
    pthread_mutex_t busy; /* held by the thread that runs a parallel call */
    pthread_mutex_t lock; /* guards sleeping and waking */
    pthread_cond_t wake;
    worker *workers;   /* [0] is the calling thread: only its scratch is used */
    int n_workers;     /* 0: not started */
    int sleeping;      /* under lock */
    bool stopping;     /* under lock */
    int spins;         /* looks at the round before a worker sleeps */
    atomic_uint round; /* changes when there is new work */
    /* the work of this round */
    qkv__task *run;
    void *work;
    int64_t tasks;
    atomic_llong next;
    atomic_int joined; /* workers inside this round; CLOSED is set while nobody may come in */
} pool = { .busy = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };

static _Thread_local bool inside_task;

bool qkv__is_alone(void) { return inside_task; }

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Before the next look at what another thread is about to change. Where there are more threads than cores that one must run. */
static inline void relax_or_yield(int *looks)
{
    if (*looks < 10000) (*looks)++, relax();
    else sched_yield();
}

void qkv__wait_for(const atomic_int *x, int n)
{
    int looks = 0;
    while (atomic_load_explicit(x, memory_order_acquire) < n) relax_or_yield(&looks);
}

static void take_tasks(void *scratch)
{
    inside_task = true;
    for (;;) {
        int64_t task = atomic_fetch_add_explicit(&pool.next, 1, memory_order_relaxed);
        if (task >= pool.tasks) break;
        pool.run(pool.work, task, scratch);
    }
    inside_task = false;
}

/* Waits until round is no longer `seen`: first by spinning, then asleep. Gives false when the pool stops. */
static bool wait_for_round(unsigned seen)
{
    for (int spin = 0; spin < pool.spins; spin++) {
        if (atomic_load_explicit(&pool.round, memory_order_acquire) != seen) return true;
        relax();
    }
    pthread_mutex_lock(&pool.lock);
    pool.sleeping++;
    while (atomic_load(&pool.round) == seen && !pool.stopping) pthread_cond_wait(&pool.wake, &pool.lock);
    pool.sleeping--;
    bool go_on = atomic_load(&pool.round) != seen;
    pthread_mutex_unlock(&pool.lock);
    return go_on;
}

/* A worker that wakes after the work is done stays outside: the caller never waits for a sleeper. */
static bool join_round(void)
{
    int joined = atomic_load_explicit(&pool.joined, memory_order_relaxed);
    while (!(joined & CLOSED))
        if (atomic_compare_exchange_weak_explicit(&pool.joined, &joined, joined + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    return false;
}

static void *worker_main(void *argument)
{
    worker *self = argument;
    for (unsigned seen = 0; wait_for_round(seen);) {
        seen = atomic_load_explicit(&pool.round, memory_order_acquire);
        if (!join_round()) continue;
        take_tasks(self->scratch);
        atomic_fetch_sub_explicit(&pool.joined, 1, memory_order_release);
    }
    return NULL;
}

static void stop_pool(void)
{
    pthread_mutex_lock(&pool.lock);
    pool.stopping = true;
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < pool.n_workers; i++) {
        if (i) pthread_join(pool.workers[i].thread, NULL);
        qkv__release(pool.workers[i].scratch, pool.workers[i].scratch_bytes);
    }
    qkv__release(pool.workers, sizeof(worker) * (size_t)QKV_MAX_THREADS);
    pool.workers = NULL;
    pool.n_workers = 0;
    pool.stopping = false;
}

/* A child of fork() has no workers: it starts its own. */
static void forget_pool_after_fork(void)
{
    pthread_mutex_init(&pool.busy, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pool.workers = NULL;
    pool.n_workers = pool.sleeping = 0;
    atomic_store(&pool.round, 0);
}

/* Fewer threads than wanted are used where the system gives no more: results are the same. */
static qkv_status start_pool(void)
{
    static bool registered;
    if (!registered) registered = !pthread_atfork(NULL, NULL, forget_pool_after_fork);

    int wanted = qkv_num_threads();
    pool.workers = qkv__alloc_zero(sizeof(worker) * (size_t)QKV_MAX_THREADS);
    if (!pool.workers) return QKV_MEMORY;
    atomic_store(&pool.round, 0);
    atomic_store(&pool.joined, CLOSED);
    /* About a millisecond; none where threads share cores and would spin against work. */
    pool.spins = wanted <= usable_cpus() ? 30000 : 0;
    pool.n_workers = 1;
    while (pool.n_workers < wanted) {
        worker *w = &pool.workers[pool.n_workers];
        if (pthread_create(&w->thread, NULL, worker_main, w)) break;
        pool.n_workers++;
    }
    return QKV_OK;
}

static qkv_status prepare(size_t scratch_bytes)
{
    if (!pool.n_workers && start_pool()) return QKV_MEMORY;
    for (int i = 0; i < pool.n_workers; i++)
        if (qkv__grow(&pool.workers[i].scratch, &pool.workers[i].scratch_bytes, scratch_bytes)) return QKV_MEMORY;
    return QKV_OK;
}

static void run_on_all(void)
{
    atomic_store_explicit(&pool.joined, 0, memory_order_release);
    pthread_mutex_lock(&pool.lock);
    atomic_fetch_add_explicit(&pool.round, 1, memory_order_release);
    if (pool.sleeping) pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
    take_tasks(pool.workers[0].scratch);
    atomic_fetch_or_explicit(&pool.joined, CLOSED, memory_order_relaxed);
    int looks = 0;
    while (atomic_load_explicit(&pool.joined, memory_order_acquire) != CLOSED) relax_or_yield(&looks);
}

/* ---- alone ---- */

/* Of a thread that runs calls alone again and again: the pool's scratch belongs to whoever uses the pool now, and large blocks
 * come from the system, which clears them each time. */
static _Thread_local struct {
    void *memory;
    size_t bytes;
    bool in_use;
} own_scratch;
static pthread_key_t own_scratch_key; /* calls free_own_scratch() at the end of a thread */
static pthread_once_t own_scratch_once = PTHREAD_ONCE_INIT;

static void free_own_scratch(void *unused)
{
    (void)unused;
    qkv__release(own_scratch.memory, own_scratch.bytes);
    own_scratch.memory = NULL;
    own_scratch.bytes = 0;
}

static void make_own_scratch_key(void) { pthread_key_create(&own_scratch_key, free_own_scratch); }

static qkv_status run_alone(int64_t tasks, size_t scratch_bytes, qkv__task *run, void *work)
{
    void *scratch = NULL;
    bool was_in_use = own_scratch.in_use; /* by a call around this one */
    if (scratch_bytes && was_in_use) {
        if (!(scratch = qkv__alloc(scratch_bytes))) return QKV_MEMORY;
    } else if (scratch_bytes) {
        pthread_once(&own_scratch_once, make_own_scratch_key);
        if (qkv__grow(&own_scratch.memory, &own_scratch.bytes, scratch_bytes)) return QKV_MEMORY;
        pthread_setspecific(own_scratch_key, own_scratch.memory);
        own_scratch.in_use = true;
    }
    for (int64_t i = 0; i < tasks; i++) run(work, i, scratch ? scratch : own_scratch.memory);
    own_scratch.in_use = was_in_use;
    qkv__release(scratch, scratch_bytes);
    return QKV_OK;
}

qkv_status qkv__parallel(int64_t tasks, size_t scratch_bytes, qkv__task *run, void *work)
{
    if (tasks <= 0) return QKV_OK;
    if (inside_task || pthread_mutex_trylock(&pool.busy)) return run_alone(tasks, scratch_bytes, run, work);
    qkv_status status = prepare(scratch_bytes);
    if (!status) {
        pool.run = run;
        pool.work = work;
        pool.tasks = tasks;
        atomic_store_explicit(&pool.next, 0, memory_order_relaxed);
        if (tasks == 1 || pool.n_workers == 1) take_tasks(pool.workers[0].scratch);
        else run_on_all();
    }
    pthread_mutex_unlock(&pool.busy);
    return status;
}

void qkv_shutdown(void)
{
    pthread_mutex_lock(&pool.busy);
    if (pool.n_workers) stop_pool();
    pthread_mutex_unlock(&pool.busy);
    if (!own_scratch.in_use) free_own_scratch(NULL);
}
