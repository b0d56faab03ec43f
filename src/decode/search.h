/* search.h: what a search checks before it starts. */
#ifndef QKV_SRC_SEARCH_H
#define QKV_SRC_SEARCH_H

#include <qkv/decode.h>
#include <qkv/decode.h>

/* Puts the defaults of beam and n_best in and checks everything that does not depend on the sentences. USAGE. */
qkv_status qkv__search_resolve_options(const qkv_model *m, qkv_search_opts *o);

/* qkv_search() in a session of m's, so that batch after batch uses the same memory; what it is given is not NULL. */
qkv_status qkv__search_in(qkv_session *session, const qkv_model *m, const int32_t *ids, int64_t sentences, int64_t length,
                          const int32_t *lengths, const qkv_search_opts *opts, qkv_search_result *out);

#endif
