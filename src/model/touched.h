/* touched.h: which changes a model can have. */
#ifndef QKV_SRC_TOUCHED_H
#define QKV_SRC_TOUCHED_H

#include <qkv/model.h>

/* OK, or what qkv_model_touched() gives for a change that does not fit a model of these options. */
qkv_status qkv__check_touch(const qkv_transformer_opts *o, const qkv_touch *touch);

#endif
