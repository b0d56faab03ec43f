/* norm.h: clipping gradients that ranks have summed. */
#ifndef QKV_SRC_NORM_H
#define QKV_SRC_NORM_H

#include "../dist/slices.h"

#include <qkv/nn.h>

/* As qkv_params_clip_grad(), with a norm whose bits do not depend on whether a rank has all gradients, or those of its slices
 * alone (is_sharded), which are then all that is scaled: squares are added up by units, and units in their order. NUMERIC, IO,
 * MEMORY. */
qkv_status qkv__clip_slices(qkv_params *p, const qkv__slices *s, bool is_sharded, float max_norm, float *norm);

#endif
