/* trainer.h: what a checkpoint knows of its model; and how ranks have the same. */
#ifndef QKV_SRC_TRAINER_H
#define QKV_SRC_TRAINER_H

#include <qkv/train.h>

/* Differs where an option does: a checkpoint fits no other model. Two models of the same options have the same hash in every
 * release; qkv/transformer.def says how. */
uint64_t qkv__transformer_hash(const qkv_transformer_opts *o);

/* Every rank's trainer goes on where rank 0's is: weights, optimizer, position and the best so far. IO, MEMORY. */
qkv_status qkv__trainer_share(qkv_trainer *t);

#endif
