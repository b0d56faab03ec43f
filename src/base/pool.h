/* pool.h: work shared by threads. */
#ifndef QKV_SRC_POOL_H
#define QKV_SRC_POOL_H

#include "memory.h"

#include <stdatomic.h>
#include <stdbool.h>

/* One piece of the work; scratch is private to the thread while it runs, not cleared, at a multiple of 64 bytes. */
typedef void qkv__task(void *work, int64_t task, void *scratch);

/* Runs run(work, i, scratch) for i = 0 .. tasks-1, begun in this order, on all threads, and returns when all are done. Which thread
 * runs a task must not matter to its result. MEMORY, with nothing run, when the scratch cannot be had. Called from inside a
 * task, or while another thread uses the pool, it runs everything on the calling thread. */
qkv_status qkv__parallel(int64_t tasks, size_t scratch_bytes, qkv__task *run, void *work);

/* Waits until *x is at least n. A task may wait so for what one with a lower number does. */
void qkv__wait_for(const atomic_int *x, int n);

/* Whether this is inside a task: there is nobody to share work with, and none need be cut. */
bool qkv__is_alone(void);

/* Where qkv_num_threads() came from: "QKV_THREADS", "OMP_NUM_THREADS", "physical cores" or "qkv_set_num_threads". */
const char *qkv__threads_source(void);

#endif
