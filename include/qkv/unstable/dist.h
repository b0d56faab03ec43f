/* qkv/unstable/dist.h: several processes, called ranks, that work as one: started by mpirun or srun, on one machine or on many.
 *
 * The library needs no MPI. Under a launcher qkv_dist_init() loads the plugin of the MPI library that started it
 * (libqkv-mpi-openmpi.so or libqkv-mpi-mpich.so, beside libqkv); otherwise all of this is a single rank. Once started, a
 * trainer (<qkv/train.h>) shares its micro-batches among the ranks, qkv_evaluate() its batches, perplexity its
 * windows and qkv_embed() its texts: all of them must make the same calls with the same arguments. The bits of what
 * comes out do not depend on how many ranks there are: docs/scaling.md says why.
 *
 * Threads: for one thread at a time. An error of one rank leaves the others waiting: end all of them by qkv_dist_abort() or
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

/* Under a launcher: finds the other ranks, agrees with them on the best instruction set that all have, and shares the cores of
 * each machine among its ranks, unless QKV_THREADS, OMP_NUM_THREADS or `threads` (0: not given) says how many. Without one:
 * nothing. QKV_MPI=openmpi or mpich chooses the plugin, QKV_MPI=none stays alone. UNSUPPORTED where there is no such plugin, or
 * no instruction set that all ranks have; IO where MPI does not start. */
QKV_API qkv_status qkv_dist_init(int threads);

QKV_API int qkv_dist_rank(void); /* from 0; 0 when there is one */
QKV_API int qkv_dist_size(void); /* 1 unless started by a launcher */

/* What qkv_dist_init() found. */
typedef struct qkv_dist_info {
    int rank, ranks, hosts;     /* 0, 1 and 0 when not started */
    const char *library, *host; /* "Open MPI 4.1.4"; the name of this rank's machine; "" when not started. Static text */
    int threads;                /* of this rank */
    int has_threads;            /* 1: they were asked for, 0: they are this rank's share of the cores */
    int sharing, cores;         /* ranks that may run on the same cores as this one; those cores */
} qkv_dist_info;

/* Static; qkv_dist_finalize() changes nothing there. */
QKV_API const qkv_dist_info *qkv_dist_get_info(void);

/* The i-th plugin that is there, "openmpi" or "mpich"; NULL after the last. */
QKV_API const char *qkv_dist_plugin(int i);

/* Every rank gets what rank 0 has in *text. */
QKV_API qkv_status qkv_dist_broadcast(qkv_buffer *text);

/* Every rank gets its part of parts[0] to parts[ranks - 1], which rank 0 has; the others may give NULL. *own is emptied
 * first. */
QKV_API qkv_status qkv_dist_scatter(const qkv_buffer *parts, qkv_buffer *own);

/* Rank 0 gets what each rank gives, all[0] to all[ranks - 1], each emptied first; the others nothing, and may give NULL. */
QKV_API qkv_status qkv_dist_gather(const char *bytes, size_t n, qkv_buffer *all);

/* The first of n texts, of these lengths in bytes, that rank r has when they are shared so that all have about as much to do,
 * in parts that follow each other; n for r = ranks. 0 for NULL. */
QKV_API int64_t qkv_dist_first(const size_t *lengths, int64_t n, int r);

/* The ranks come together to end, each with its status, and each gets the first that is not OK; *others is then whether rank
 * 0 has one itself (it speaks for all). A rank that comes with an error waits two seconds for the others, which may have met
 * the same; if they do not come, it has to end them: *others is -1, then call qkv_dist_abort(). */
QKV_API qkv_status qkv_dist_finalize(qkv_status status, int *others);

/* Ends all ranks now, with this exit status, and says why, and on which rank and host, on standard error. Does not come back
 * where it was started by a launcher, and does nothing where it was not. */
QKV_API void qkv_dist_abort(qkv_status status, const char *why);

#ifdef __cplusplus
}
#endif
#endif
