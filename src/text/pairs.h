/* pairs.h: how many ids stay in memory. */
#ifndef QKV_SRC_PAIRS_H
#define QKV_SRC_PAIRS_H

#include <qkv/text.h>

/* qkv_pairs_new() with another bound than QKV_PAIRS_IN_MEMORY. */
qkv_pairs *qkv__pairs_new_with_limit(size_t bytes);

#endif
