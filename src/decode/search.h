/* search.h: what a search checks before it starts, and what it divides by. */
#ifndef QKV_SRC_SEARCH_H
#define QKV_SRC_SEARCH_H

#include <qkv/session.h>

/* Puts the defaults of beam and n_best in and checks everything that does not depend on the sentences. USAGE. */
qkv_status qkv__search_resolve_options(const qkv_model *m, qkv_search_opts *o);

/* What the log-probability of so many tokens, the end counted, is divided by to be a score; length_penalty is at least 0. */
double qkv__search_penalty(const qkv_search_opts *o, int64_t length);

/* qkv_beam_search() in a session of m's, so that batch after batch uses the same memory; what it is given is not NULL. */
qkv_status qkv__search_in(qkv_session *session, const qkv_model *m, const int32_t *ids, int64_t sentences, int64_t length,
                          const int32_t *lengths, const qkv_search_opts *opts, qkv_search_result *out);

#endif
