/* optimizer.h: what a checkpoint needs of an optimizer. */
#ifndef QKV_SRC_OPTIMIZER_H
#define QKV_SRC_OPTIMIZER_H

#include "../dist/slices.h"

#include <qkv/train.h>

/* An optimizer of the slices of one rank: its state is that of these floats, and a step changes them and leaves
 * what it changed where their gradients were (dist/changes.h). Of one rank: of all floats, as qkv_optimizer_new(). */
qkv_optimizer *qkv__optimizer_new_of(qkv_params *p, const qkv_optimizer_opts *opts, qkv__slices slices);

/* As qkv_optimizer_step(), which tells from time to time that all floats before one are as they shall be. */
qkv_status qkv__optimizer_step_in_order(qkv_optimizer *o, void (*tell)(void *data, int64_t to), void *data);

/* The i-th state, as long as the params' block, or the slices one after the other; NULL after the last. */
float *qkv__optimizer_state(const qkv_optimizer *o, int i);
/* Where in the block of the weights the last step left a part with a value, of a weight or of a state, that is not finite; -1:
 * nowhere. */
int64_t qkv__optimizer_lost(const qkv_optimizer *o);

float qkv__optimizer_lr(const qkv_optimizer *o);
int64_t qkv__optimizer_steps(const qkv_optimizer *o); /* taken */
void qkv__optimizer_set_steps(qkv_optimizer *o, int64_t steps);

#endif
