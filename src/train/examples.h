/* examples.h: what the target ids of an example say. */
#ifndef QKV_SRC_EXAMPLES_H
#define QKV_SRC_EXAMPLES_H

#include <qkv/train.h>

#include <stdbool.h>

/* Labels an id, a bit each: every text has as many ids, so that batches are sorted by the texts alone. */
enum { QKV__LABEL_BITS = 32 };

bool qkv__labels_have(const int32_t *target, int64_t label); /* of QKV_EXAMPLE_LABELS */
float qkv__label_value(const int32_t *target);               /* of QKV_EXAMPLE_VALUE, whose bits are the id */

#endif
