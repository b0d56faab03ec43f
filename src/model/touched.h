/* touched.h: which changes a model can have. */
#ifndef QKV_SRC_TOUCHED_H
#define QKV_SRC_TOUCHED_H

#include <qkv/model.h>
#include <qkv/unstable/inspect.h>

/* OK, or what qkv_model_edit() gives for a change that does not fit a model of these options. */
qkv_status qkv__check_touch(const qkv_config *o, const qkv_edit *touch);

/* "encoder", "decoder" or "cross". */
const char *qkv__attention_kind_name(qkv_attention_kind kind);

#endif
