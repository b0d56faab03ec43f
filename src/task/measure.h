/* measure.h: the likelihood of a text whose windows others measure too. */
#ifndef QKV_SRC_MEASURE_H
#define QKV_SRC_MEASURE_H

#include <qkv/task.h>

#include <stdbool.h>

/* Which windows are measured here: take() is called for each, with the tokens that it reads, and then put() with its nats, 0
 * for one that is not measured here. */
typedef struct qkv__window_share {
    qkv_status (*take)(void *data, int64_t tokens, bool *is_own);
    void (*put)(void *data, double nats);
    void *data;
} qkv__window_share;

/* qkv_log_likelihood(); with a share sum->nats stays as it is, and sum->tokens has those of all windows. share NULL: all windows
 * are measured here. */
qkv_status qkv__log_likelihood(const qkv_model *m, qkv_str text, const qkv_likelihood_opts *opts,
                               const qkv__window_share *share, qkv_nll *sum);

#endif
