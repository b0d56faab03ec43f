/* generate.h: a text that goes on beside others. */
#ifndef QKV_SRC_GENERATE_H
#define QKV_SRC_GENERATE_H

#include <qkv/task.h>

#include "../decode/batcher.h"

/* qkv_generate() that reads by a batcher of m's (NULL: in a session of its own), with the same result. Each call on a thread
 * of its own. LIMIT when the batcher has no row left. */
qkv_status qkv__generate(const qkv_model *m, qkv_str prompt, const qkv_generate_opts *opts, qkv__batcher *batcher,
                         qkv_generated **out);

#endif
