/* config.h: a model's options as config.json. */
#ifndef QKV_SRC_CONFIG_H
#define QKV_SRC_CONFIG_H

#include <qkv/nn.h>

#include "../base/status.h"

/* Errors as in qkv_model_load() and qkv_model_save(). */
qkv_status qkv__config_read(const char *path, qkv_transformer_opts *o);
qkv_status qkv__config_write(const char *path, const qkv_transformer_opts *o);

#endif
