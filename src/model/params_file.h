/* params_file.h: a safetensors file that has the weights of params. */
#ifndef QKV_SRC_PARAMS_FILE_H
#define QKV_SRC_PARAMS_FILE_H

#include <qkv/model.h>

#include "../io/safetensors.h"

/* Reads a file and holds it against p, as qkv_params_load() says; a checkpoint may have the optimizer's numbers too. *out is
 * yours when it fits, and nothing else is. */
qkv_status qkv__params_read(const qkv_params *p, const char *path, bool checkpoint, qkv__safetensors *out);

/* A weight to write as float32 under that name, from where it lies: nothing is copied. */
qkv__to_store qkv__weight_to_store(const char *name, const qkv_tensor *w);

#endif
