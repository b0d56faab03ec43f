/* norm.h: clipping gradients that ranks have summed. */
#ifndef QKV_SRC_NORM_H
#define QKV_SRC_NORM_H

#include "../dist/slices.h"

#include <qkv/nn.h>

/* As qkv_params_clip_grad(), with a norm whose bits do not depend on the number of ranks: squares are summed by units, and units
 * in their order. Of several ranks each has and scales the gradients of its slices. NUMERIC, IO, MEMORY. */
qkv_status qkv__clip_slices(qkv_params *p, const qkv__slices *s, float max_norm, float *norm);

#endif
