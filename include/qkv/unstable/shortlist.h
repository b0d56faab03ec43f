/* qkv/unstable/shortlist.h: target vocabulary shortlists for translation.
 *
 * Threads: any number of threads may read a shortlist that is not being changed. */
#ifndef QKV_UNSTABLE_SHORTLIST_H
#define QKV_UNSTABLE_SHORTLIST_H

#ifndef QKV_UNSTABLE
#error "qkv/unstable/ may change in every release: define QKV_UNSTABLE before including it"
#endif

#include <qkv/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- shortlist: the candidate target tokens of a sentence ----
 * It lists the likeliest target tokens of every source token, learned from aligned text. The candidates of a sentence are those
 * of all its tokens and those that are always allowed. The output layer is computed for the candidates only. */
typedef struct qkv_shortlist qkv_shortlist;

QKV_API void qkv_shortlist_free(qkv_shortlist *s);

/* Saves to or loads from a safetensors file with three I32 vectors: "always" (target ids that are always allowed), "counts"
 * (number of targets per source token) and "ids" (the targets of source 0, of source 1, ..). Each list is ascending. Metadata:
 * "format", which is "qkv-shortlist-1"; "target_vocabulary"; and, if the model has tokenizers, "tokenizers", a hash of all
 * spellings that detects the list of another model. IO, MEMORY; loading also FORMAT for a malformed file, LIMIT. */
QKV_API qkv_status qkv_shortlist_save(const qkv_shortlist *s, const char *path);
QKV_API qkv_shortlist *qkv_shortlist_load(const char *path);

#ifdef __cplusplus
}
#endif
#endif
