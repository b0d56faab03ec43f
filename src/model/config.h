/* config.h: a model's options as config.json. */
#ifndef QKV_SRC_CONFIG_H
#define QKV_SRC_CONFIG_H

#include <qkv/nn.h>

#include "../base/status.h"

/* Names of classes, in one block. Zero: none. */
typedef struct qkv__labels {
    int64_t n;
    const char **names;
    size_t bytes;
} qkv__labels;
qkv_status qkv__labels_copy(qkv__labels *to, const char *const *names, int64_t n);
void qkv__labels_free(qkv__labels *l);

/* Errors as in qkv_model_load() and qkv_model_save(). */
qkv_status qkv__config_read(const char *path, qkv_transformer_opts *o, qkv__labels *labels);
qkv_status qkv__config_write(const char *path, const qkv_transformer_opts *o, const qkv__labels *labels);

#endif
