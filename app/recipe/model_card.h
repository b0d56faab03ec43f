/* model_card.h: README.md of an exported folder. */
#ifndef QKV_SRC_MODEL_CARD_H
#define QKV_SRC_MODEL_CARD_H

#include <qkv/model.h>

/* The card of a model whose folder has training.json: what it is, its data, options and scores. Nothing where it has none, or is
 * of no folder. IO, LIMIT, FORMAT for a record that is no object, MEMORY. */
qkv_status qkv__write_card(const qkv_model *m, const char *folder, const char *family);

#endif
