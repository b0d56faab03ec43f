/* model_info.h: what a folder's files say of a model besides its options. */
#ifndef QKV_SRC_MODEL_INFO_H
#define QKV_SRC_MODEL_INFO_H

#include <qkv/model.h>

#include "family.h"

/* Of a model with these options of ours. */
qkv_facts qkv__facts_of(const qkv_transformer_opts *o);

/* Those of a published model, from its folder; *facts is what qkv__facts_of() gave. FORMAT for a value of another type or an id
 * outside the vocabulary, the file and the key named; UNSUPPORTED; IO; MEMORY. On error there is nothing to free. */
qkv_status qkv__facts_read(const qkv__family *f, const qkv__published *p, const char *folder, const qkv_transformer_opts *o,
                           qkv_facts *facts);
qkv_status qkv__facts_copy(const qkv_facts *from, qkv_facts *to);
void qkv__facts_free(qkv_facts *facts);

/* The names of the classes: "id2label", or LABEL_0, LABEL_1, ... */
qkv_status qkv__labels_read(const qkv__published *p, int64_t classes, qkv__labels *out);

/* Adds what config.json has of them; false when memory is out. */
bool qkv__facts_write(const qkv_facts *facts, json_t *config);

#endif
