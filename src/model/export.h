/* export.h: config.json as a published family has it. */
#ifndef QKV_SRC_EXPORT_H
#define QKV_SRC_EXPORT_H

#include <qkv/model.h>

#include "family.h"

/* Of a model whose options the family has. IO, MEMORY. */
qkv_status qkv__export_config(const char *path, const qkv__family *f, const qkv_model *m, const qkv__labels *labels);

#endif
