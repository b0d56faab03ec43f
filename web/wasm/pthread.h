/* pthread.h: a stand-in for WebAssembly, where there is one thread: locks are always free, nobody can be waited for, and no
 * thread can be started, which the pool takes as "work alone". */
#ifndef QKV_WASM_PTHREAD_H
#define QKV_WASM_PTHREAD_H

#include <errno.h>
#include <sys/types.h> /* has the types */
#include <time.h>

#define PTHREAD_MUTEX_INITIALIZER \
    {                             \
        0                         \
    }
#define PTHREAD_COND_INITIALIZER \
    {                            \
        0                        \
    }
#define PTHREAD_ONCE_INIT 0

static inline int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a) { return (void)m, (void)a, 0; }
static inline int pthread_mutex_destroy(pthread_mutex_t *m) { return (void)m, 0; }
static inline int pthread_mutex_lock(pthread_mutex_t *m) { return (void)m, 0; }
static inline int pthread_mutex_trylock(pthread_mutex_t *m) { return (void)m, 0; }
static inline int pthread_mutex_unlock(pthread_mutex_t *m) { return (void)m, 0; }

static inline int pthread_condattr_init(pthread_condattr_t *a) { return (void)a, 0; }
static inline int pthread_condattr_setclock(pthread_condattr_t *a, clockid_t clock) { return (void)a, (void)clock, 0; }
static inline int pthread_condattr_destroy(pthread_condattr_t *a) { return (void)a, 0; }
static inline int pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *a) { return (void)c, (void)a, 0; }
static inline int pthread_cond_destroy(pthread_cond_t *c) { return (void)c, 0; }
static inline int pthread_cond_broadcast(pthread_cond_t *c) { return (void)c, 0; }
static inline int pthread_cond_signal(pthread_cond_t *c) { return (void)c, 0; }
static inline int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m) { return (void)c, (void)m, __builtin_trap(), 0; }
static inline int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t)
{
    return (void)c, (void)m, (void)t, ETIMEDOUT;
}

static inline int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *data)
{
    return (void)t, (void)a, (void)run, (void)data, EAGAIN;
}
static inline int pthread_join(pthread_t t, void **result) { return (void)t, (void)result, EINVAL; }
static inline pthread_t pthread_self(void) { return NULL; }
static inline int pthread_equal(pthread_t a, pthread_t b) { return a == b; }
static inline int pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void))
{
    return (void)before, (void)parent, (void)child, 0;
}

static inline int pthread_once(pthread_once_t *once, void (*run)(void))
{
    if (!*once) *once = 1, run();
    return 0;
}

/* A thread's own value is freed when it ends: never, here. */
static inline int pthread_key_create(pthread_key_t *key, void (*free_value)(void *)) { return (void)free_value, *key = 0, 0; }
static inline int pthread_setspecific(pthread_key_t key, const void *value) { return (void)key, (void)value, 0; }

#endif
