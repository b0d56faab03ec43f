/* dist.h: what the ranks say to each other. Each function is called by all ranks, in the same order and with the same sizes; IO,
 * naming the rank, when MPI fails. With one rank they copy, or do nothing. */
#ifndef QKV_SRC_DIST_H
#define QKV_SRC_DIST_H

#include <qkv/unstable/dist.h>

#include <stdbool.h>

/* Sends send_bytes[r] bytes to each rank r, and receives receive_bytes[r] from it. */
qkv_status qkv__dist_exchange(const void *const *send, const size_t *send_bytes, void *const *receive,
                              const size_t *receive_bytes);

/* The same in two steps, so that the next exchange is on its way while this one ends. What the pointers point at stays until then;
 * the tables need not. What was posted must end, in the order it was posted, before anything else is said. */
qkv_status qkv__dist_post(const void *const *send, const size_t *send_bytes, void *const *receive, const size_t *receive_bytes,
                          void **posted);
qkv_status qkv__dist_finish(void *posted);

/* In two steps too: this rank's bytes to every other one, and theirs, at most most[r] of rank r, to others[r]; received[r] is how
 * many have come. Where ranks may speak in threads, one may do this while another says anything else. */
qkv_status qkv__dist_post_some(const void *own, size_t bytes, void *const *others, const size_t *most, void **posted);
qkv_status qkv__dist_finish_some(void *posted, size_t *received);

/* Every rank's bytes to every rank: those of rank r at all + r * bytes. */
qkv_status qkv__dist_share(const void *own, size_t bytes, void *all);

/* An array of which rank r has the bytes from ends[r-1] (0 for the first) to ends[r]: all of it to every rank. */
qkv_status qkv__dist_join(void *array, const size_t *ends);
qkv_status qkv__dist_post_join(void *array, const size_t *ends, void **posted);

/* Rank 0's bytes to every rank. */
qkv_status qkv__dist_copy(void *bytes, size_t n);

/* USAGE, naming the first rank, where its bytes are not rank 0's: `what` is what they are of, such as "the text". */
qkv_status qkv__dist_agree(const void *bytes, size_t n, const char *what);

/* Whether another thread than the one that started may do so: qkv__dist_post_some() at any time, the others while that one does
 * not. */
bool qkv__dist_is_threaded(void);

/* By 1 while this thread waits for what another one receives, and by -1 after it: see plugin.h. */
void qkv__dist_hurry(int by);

#endif
