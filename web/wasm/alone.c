/* alone.c: src/dist of a page, which is one rank. */
#include "../../src/dist/reduction.h"

#include <string.h>

int qkv_dist_rank(void) { return 0; }
int qkv_dist_size(void) { return 1; }
int64_t qkv_dist_first(const size_t *lengths, int64_t n, int r) { return lengths && r ? n : 0; }

qkv_status qkv__dist_agree(const void *bytes, size_t n, const char *what) { return (void)bytes, (void)n, (void)what, QKV_OK; }
qkv_status qkv__dist_copy(void *bytes, size_t n) { return (void)bytes, (void)n, QKV_OK; }
qkv_status qkv__dist_fast_sum(float *values, size_t n) { return (void)values, (void)n, QKV_OK; }
qkv_status qkv__dist_join(void *array, const size_t *ends) { return (void)array, (void)ends, QKV_OK; }
qkv_status qkv__dist_post_join(void *array, const size_t *ends, void **posted)
{
    *posted = NULL;
    return qkv__dist_join(array, ends);
}
qkv_status qkv__dist_finish(void *posted) { return (void)posted, QKV_OK; }
qkv_status qkv__dist_post_some(const void *own, size_t bytes, void *const *others, const size_t *most, void **posted)
{
    (void)own, (void)bytes, (void)others, (void)most;
    *posted = NULL;
    return QKV_OK;
}
qkv_status qkv__dist_finish_some(void *posted, size_t *received) { return (void)posted, (void)received, QKV_OK; }
bool qkv__dist_is_threaded(void) { return false; }
void qkv__dist_hurry(int by) { (void)by; }

qkv_status qkv__dist_exchange(const void *const *send, const size_t *send_bytes, void *const *receive,
                              const size_t *receive_bytes)
{
    (void)receive_bytes;
    memmove(receive[0], send[0], send_bytes[0]);
    return QKV_OK;
}

/* One rank adds nothing up. */
qkv__reduction *qkv__reduction_begin(const qkv__reduction_opts *o) { return (void)o, NULL; }
void qkv__reduction_ready(qkv__reduction *r, int64_t from) { (void)r, (void)from; }
qkv_status qkv__reduction_end(qkv__reduction *r) { return (void)r, QKV_OK; }
