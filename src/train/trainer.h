/* trainer.h: what a checkpoint knows of its model. */
#ifndef QKV_SRC_TRAINER_H
#define QKV_SRC_TRAINER_H

#include <qkv/nn.h>

/* Differs where an option does: a checkpoint fits no other model. Two models of the same options have the same hash in every
 * release; qkv/transformer.def says how. */
uint64_t qkv__transformer_hash(const qkv_transformer_opts *o);

#endif
