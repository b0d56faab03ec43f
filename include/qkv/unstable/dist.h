/* qkv/unstable/dist.h: distributed training and inference. Several processes (ranks), started by mpirun or srun
 * on one or more machines, work as one.
 *
 * The library does not require MPI. Under a launcher, qkv_dist_init() loads the plugin for the launcher's MPI library
 * (libqkv-mpi-openmpi.so or libqkv-mpi-mpich.so, in the directory of libqkv). Otherwise there is a single rank. After
 * initialization, ranks share the micro-batches of a trainer (<qkv/train.h>), the batches of qkv_evaluate(), the windows of
 * perplexity and the texts of qkv_embed(). All ranks must make the same calls with the same arguments. The number of ranks
 * changes no bit of the results: see docs/scaling.md.
 *
 * Threads: one thread at a time. If one rank fails, the others wait: end all of them by qkv_dist_abort() or
 * qkv_dist_finalize(). */
#ifndef QKV_UNSTABLE_DIST_H
#define QKV_UNSTABLE_DIST_H

#ifndef QKV_UNSTABLE
#error "qkv/unstable/ may change in every release: define QKV_UNSTABLE before including it"
#endif

#include <qkv/unstable/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Under a launcher: connects the ranks, selects the best instruction set supported by all, and divides the cores of each
 * machine among its ranks, unless QKV_THREADS, OMP_NUM_THREADS or `threads` (0: not set) gives the number of threads. Otherwise
 * does nothing. QKV_MPI=openmpi or mpich selects the plugin; QKV_MPI=none gives a single rank. UNSUPPORTED if the plugin is
 * missing, or if no instruction set is common to all ranks; IO if MPI does not start. */
QKV_API qkv_status qkv_dist_init(int threads);

QKV_API int qkv_dist_rank(void); /* from 0; 0 for a single rank */
QKV_API int qkv_dist_size(void); /* 1 unless started by a launcher */

/* The setup found by qkv_dist_init(). */
typedef struct qkv_dist_info {
    int rank, ranks, hosts;     /* 0, 1 and 0 if not started */
    const char *library, *host; /* "Open MPI 4.1.4"; the host name of this rank; "" if not started. Static text */
    int threads;                /* of this rank */
    int has_threads;            /* 1: threads was set explicitly, 0: it is this rank's share of the cores */
    int sharing, cores;         /* ranks that may run on this rank's cores; number of those cores */
} qkv_dist_info;

/* Static; unchanged by qkv_dist_finalize(). */
QKV_API const qkv_dist_info *qkv_dist_get_info(void);

/* The i-th installed plugin, "openmpi" or "mpich"; NULL after the last. */
QKV_API const char *qkv_dist_plugin(int i);

/* Broadcast: every rank gets rank 0's *text. */
QKV_API qkv_status qkv_dist_broadcast(qkv_buffer *text);

/* Scatter: rank r gets parts[r] of rank 0. Other ranks may pass NULL. *own is emptied first. */
QKV_API qkv_status qkv_dist_scatter(const qkv_buffer *parts, qkv_buffer *own);

/* Gather: rank 0 gets the bytes of each rank in all[0] to all[ranks - 1], each emptied first. Other ranks may pass NULL. */
QKV_API qkv_status qkv_dist_gather(const char *bytes, size_t n, qkv_buffer *all);

/* The index of the first text of rank r when n texts, of these lengths in bytes, are divided into consecutive parts of about
 * equal work; n for r = ranks. 0 for NULL. */
QKV_API int64_t qkv_dist_first(const size_t *lengths, int64_t n, int r);

/* Shuts down all ranks together. Each rank passes its status and gets the first that is not OK. *others is 1 if rank 0 has an
 * error itself and reports for all, else 0. A rank with an error waits two seconds for the others, which may have failed in the
 * same way. If they do not arrive, *others is -1: call qkv_dist_abort(), which ends them. */
QKV_API qkv_status qkv_dist_finalize(qkv_status status, int *others);

/* Ends all ranks now with this exit status. Prints the reason, the rank and the host on standard error. Does not return under a
 * launcher; does nothing otherwise. */
QKV_API void qkv_dist_abort(qkv_status status, const char *why);

#ifdef __cplusplus
}
#endif
#endif
