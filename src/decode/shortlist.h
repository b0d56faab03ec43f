/* shortlist.h: which target tokens a sentence may have, as a search uses it. */
#ifndef QKV_SRC_SHORTLIST_H
#define QKV_SRC_SHORTLIST_H

#include <qkv/session.h>
#include <qkv/unstable/shortlist.h>

struct qkv_shortlist {
    int64_t sources, targets; /* ids of each vocabulary */
    int32_t *always;          /* targets that every sentence may have, ascending */
    int64_t n_always;
    int64_t *begins; /* (sources + 1): the targets of source i are ids[begins[i]] .. ids[begins[i + 1] - 1], ascending */
    int32_t *ids;
    size_t always_bytes, begins_bytes, ids_bytes;
    uint64_t tokenizers; /* fingerprint of those it was learned with; 0: not known */
};

/* Of all spellings of a model's tokenizers, in the order of their ids; 0 where it has none. */
uint64_t qkv__tokenizers_fingerprint(const qkv_model *m);

/* One without lists, whose arrays have room for so many; begins[0] is 0. NULL: MEMORY. */
qkv_shortlist *qkv__shortlist_new(int64_t sources, int64_t targets, int64_t n_always, int64_t n_ids);

/* The target ids of a batch of sentences, and of each of them alone. */
typedef struct qkv__batch_targets {
    int32_t *all; /* n_all ids, ascending */
    int64_t n_all;
    int64_t *begins; /* (sentences + 1), into places */
    int32_t *places; /* of each sentence's ids in all, ascending */
    uint64_t *bits;  /* of one sentence after the other, and of all */
    size_t all_bytes, begins_bytes, places_bytes, bits_bytes;
} qkv__batch_targets;

/* Sources as in qkv_beam_search(); `more` are n_more ids that every sentence may have too. MEMORY. Freed in any case. */
qkv_status qkv__batch_targets_find(const qkv_shortlist *s, const int32_t *sources, int64_t sentences, int64_t length,
                                   const int32_t *lengths, const int32_t *more, int64_t n_more, qkv__batch_targets *out);
void qkv__batch_targets_free(qkv__batch_targets *t);

/* How many target tokens the n ids of a source may have; they go to ids, ascending, unless that is NULL. -1 on error: USAGE for
 * NULL, MEMORY. */
int64_t qkv__shortlist_ids(const qkv_shortlist *s, const int32_t *source, int64_t n, int32_t *ids);

#endif
