/* optimizer.h: what a checkpoint needs of an optimizer. */
#ifndef QKV_SRC_OPTIMIZER_H
#define QKV_SRC_OPTIMIZER_H

#include <qkv/train.h>

/* The i-th state, as long as the params' block; NULL after the last. */
float *qkv__optimizer_state(const qkv_optimizer *o, int i);
/* Where in the block of the weights the last step left a part with a value, of a weight or of a state, that is not finite; -1:
 * nowhere. */
int64_t qkv__optimizer_lost(const qkv_optimizer *o);

void qkv__optimizer_set_steps(qkv_optimizer *o, int64_t steps);

#endif
