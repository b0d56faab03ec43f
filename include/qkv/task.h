#ifndef QKV_TASK_H
#define QKV_TASK_H
#include <qkv/model.h>
#ifdef __cplusplus
extern "C" {
#endif
/* ---- from a source to its best targets ---- */

/* Zero means the default shown; a length penalty of truly 0 is given as a negative number. */
typedef struct qkv_search_opts {
    int32_t start, end, pad; /* ids; start and pad are never found */
    int beam;                /* rows kept for each sentence; 1, which is greedy */
    int n_best;              /* results for each sentence, at most beam; 1 */
    float length_penalty;    /* alpha of the paper: a score is log p / ((5 + length) / 6)^alpha, the end counted; 0.6 */
    int64_t max_length;      /* tokens, the end not counted; twice the source and 20 more */
    int no_repeat;           /* a run of so many tokens does not come twice; any may */
} qkv_search_opts;

typedef struct qkv_hypothesis {
    const int32_t *ids; /* n of them, without start and end */
    int64_t n;
    double log_p, score;
    int is_cut; /* it reached max_length before its end */
} qkv_hypothesis;

/* What was found for every sentence, best first. Starts as zero; used again and again. */
typedef struct qkv_found {
    int64_t sentences;
    int n_best;
    qkv_hypothesis *best; /* (sentences, n_best); n of one that was not found is -1 */
    void *memory;
    size_t bytes;
} qkv_found;
QKV_API void qkv_found_free(qkv_found *f);

/* Translates `sentences` sources, ids (sentences, length) with `lengths` real ids each, the end included. A sentence's result
 * does not depend on the others. A search goes on until no row that is left can become better than what was found. USAGE for
 * options or a model that do not fit, NUMERIC for log-probabilities that are not numbers, LIMIT, MEMORY. */
QKV_API qkv_status qkv_search(const qkv_model *m, const int32_t *ids, int64_t sentences, int64_t length, const int32_t *lengths,
                              const qkv_search_opts *opts, qkv_found *out);

#ifdef __cplusplus
}
#endif
#endif
