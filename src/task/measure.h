/* measure.h: what the nats of a text are made of. */
#ifndef QKV_SRC_MEASURE_H
#define QKV_SRC_MEASURE_H

#include <qkv/task.h>

#include "../dist/deal.h"

/* qkv_log_likelihood() with the windows dealt out to the ranks: each has the nats of its own in the deal, and sum->nats is left
 * as it is. deal NULL: all of them are here, and in the sum. */
qkv_status qkv__measure_shared(const qkv_model *m, const char *text, size_t length, int64_t context, int64_t stride,
                               qkv__deal *deal, qkv_nll *sum);

#endif
