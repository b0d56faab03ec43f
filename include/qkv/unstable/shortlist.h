/* qkv/unstable/shortlist.h: the target tokens that a source may have.
 *
 * Threads: a list that nobody changes is read by any number of threads. */
#ifndef QKV_UNSTABLE_SHORTLIST_H
#define QKV_UNSTABLE_SHORTLIST_H

#ifndef QKV_UNSTABLE
#error "qkv/unstable/ may change in every release: define QKV_UNSTABLE before including it"
#endif

#include <qkv/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a shortlist: which target tokens a sentence may have ----
 * For every source token its likeliest targets, learned from aligned text; what a sentence may have is those of all its tokens,
 * and those that may always come. The output layer is then computed for these alone. */
typedef struct qkv_shortlist qkv_shortlist;

QKV_API void qkv_shortlist_free(qkv_shortlist *s);

/* A list as a safetensors file: vectors of I32 named "always" (ids of targets that may always come), "counts" (how many targets
 * each source has) and "ids" (the targets of source 0, of source 1, ..), each list ascending; and the notes "format", which is
 * "qkv-shortlist-1", "target_vocabulary" and, where the model has tokenizers, "tokenizers": a number made of all spellings, by
 * which the list of another model is refused. IO, MEMORY; loading also FORMAT for a file that is not so, LIMIT. */
QKV_API qkv_status qkv_shortlist_save(const qkv_shortlist *s, const char *path);
QKV_API qkv_shortlist *qkv_shortlist_load(const char *path);

#ifdef __cplusplus
}
#endif
#endif
