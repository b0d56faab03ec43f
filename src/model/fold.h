/* fold.h: a model in the shape of a family that differs from it in nothing that weights cannot make up for. */
#ifndef QKV_SRC_FOLD_H
#define QKV_SRC_FOLD_H

#include "family.h"

/* Options of the family's shape that give the same numbers with the weights of qkv__fold_weights(); false: there are none.
 *   sines and cosines that alternate, where the family has all sines first: every hidden state in another order
 *   embeddings times sqrt(dim), where it does not scale: a scaled table, and the old one as an output layer of its own */
bool qkv__fold_options(const qkv__family *f, const qkv_config *o, qkv_config *folded);

/* `to`, of the folded options, gets the weights of `from`, of o. MEMORY. */
qkv_status qkv__fold_weights(const qkv_config *o, const qkv_params *from, const qkv_config *folded, const qkv_params *to);

#endif
