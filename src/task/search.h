/* search.h: what a search checks before it starts. */
#ifndef QKV_SRC_SEARCH_H
#define QKV_SRC_SEARCH_H

#include <qkv/task.h>

/* Puts the defaults of beam and n_best in and checks everything that does not depend on the sentences. USAGE. */
qkv_status qkv__search_settle(const qkv_model *m, qkv_search_opts *o);

#endif
