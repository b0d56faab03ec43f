/* search.h: what a search checks before it starts, and what it divides by. */
#ifndef QKV_SRC_SEARCH_H
#define QKV_SRC_SEARCH_H

#include <qkv/session.h>

/* Puts the defaults of beam_size and n_best in and checks everything that does not depend on the sentences. USAGE. */
qkv_status qkv__search_resolve_options(const qkv_model *m, qkv_search_opts *o);

/* What the log-probability of so many tokens, the end counted, is divided by to be a score; length_penalty is at least 0. */
double qkv__search_penalty(const qkv_search_opts *o, int64_t length);

/* qkv_beam_search() in a session of m's, so that batch after batch uses the same memory; no argument is NULL, and the size of
 * the tokens is not read. each_step, which may be NULL, takes the place of the hooks. */
qkv_status qkv__search_in(qkv_session *session, const qkv_model *m, const qkv_tokens *source, const qkv_search_opts *opts,
                          qkv_each_step each_step, void *each_step_data, qkv_search_result **out);

#endif
