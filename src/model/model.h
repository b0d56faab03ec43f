/* model.h: what the library itself reads of a model. */
#ifndef QKV_SRC_MODEL_H
#define QKV_SRC_MODEL_H

#include "../nn/transformer.h"

/* NULL for NULL. They live as long as the model. */
const qkv_config *qkv__model_config(const qkv_model *m);
const qkv__transformer *qkv__model_transformer(const qkv_model *m);
qkv_params *qkv__model_params(const qkv_model *m);

#endif
