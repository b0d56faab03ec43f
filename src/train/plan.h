/* plan.h: how often a training is measured where nobody said so. */
#ifndef QKV_SRC_PLAN_H
#define QKV_SRC_PLAN_H

#include <qkv/train.h>

/* As often as there are epochs, within bounds: a text that is seen many times is not measured too often, and one that is not
 * seen once is measured all the same. */
int64_t qkv__validations(int64_t steps, int64_t epoch_steps);

#endif
