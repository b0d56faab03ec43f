/* score.h: what BLEU and chrF share: the corpus they are asked about. */
#ifndef QKV_SRC_SCORE_H
#define QKV_SRC_SCORE_H

#include "score_words.h"

typedef struct qkv__corpus {
    const qkv_str *hypotheses;
    const qkv_str *const *references;
    int n_references;
    int64_t n;
} qkv__corpus;

/* Checks everything but the texts themselves. USAGE, LIMIT. */
qkv_status qkv__corpus_check(const qkv__corpus *c, const char *call);

/* Reads one text of the corpus into w: the i-th hypothesis, or the i-th of the r-th references. */
qkv_status qkv__read_hypothesis(const qkv__corpus *c, int64_t i, bool lowercase, qkv__score_words *w);
qkv_status qkv__read_reference(const qkv__corpus *c, int r, int64_t i, bool lowercase, qkv__score_words *w);

#endif
