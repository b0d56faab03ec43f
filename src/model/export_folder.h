/* export_folder.h: what an exported folder has besides its config and its weights. */
#ifndef QKV_SRC_EXPORT_FOLDER_H
#define QKV_SRC_EXPORT_FOLDER_H

#include <qkv/model.h>

#include "model.h"

/* Of a model that was trained here: tokenizer.json (and target_tokenizer.json) once more, now with the tokens that stand around a
 * text, tokenizer_config.json and special_tokens_map.json. Of one that decodes, generation_config.json. Of one that comes from
 * the folder of a training, the card README.md. IO, LIMIT, MEMORY; the errors of qkv__special_tokens_of(). */
qkv_status qkv__export_folder(const qkv_model *m, const char *folder);

/* config.json of such a model says these ids too. `end` is room for one of them; info, yours, borrows from m and from it. */
qkv__model_info qkv__exported_info(const qkv_model *m, int32_t *end);

/* UNSUPPORTED: why a model cannot be written as this family, and what would have allowed it. */
qkv_status qkv__refuse_export(const qkv_model *m, const char *type, const char *problem);

#endif
