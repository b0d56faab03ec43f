/* sample.h: from the logits of a model to the id that comes next.
 *
 * In this order, each on what the one before has left:
 *   1. repetition penalty   z / penalty for z > 0, z * penalty else, of ids that the text has already
 *      presence, frequency  z - presence - n frequency, of ids that have come n > 0 times since the prompt
 *   2. ids that may not come: forbidden ones, and those that would complete a run of no_repeat_ngram ids a second time
 *   3. temperature 0        the largest z, of equal ones the smallest id: done
 *      temperature T        p = softmax(z / T)
 *   4. top-k                the k likeliest, of equally likely ones the smaller ids
 *   5. top-p                the likeliest, in the same order, until they have the share p of what 4 has left
 *   6. min-p                those with at least min_p times the probability of the likeliest
 *   7. one draw in proportion to p, by a number that depends on (seed, sample, step) alone
 * Sums are in double and in a fixed order. */
#ifndef QKV_SRC_SAMPLE_H
#define QKV_SRC_SAMPLE_H

#include <qkv/task.h>

#include <stdbool.h>

typedef struct qkv__sample_candidate {
    double weight; /* its probability over that of the likeliest */
    int32_t id;
} qkv__sample_candidate;

/* The text so far; it only grows from call to call. */
typedef struct qkv__history {
    const int32_t *ids;
    int64_t n, n_new; /* ids; how many of them, the last ones, have come since the prompt */
} qkv__history;

typedef struct qkv__sampler {
    const qkv_generate_opts *o;
    int64_t vocabulary;
    bool *forbidden;                   /* (vocabulary): ids that never come; for the caller to set */
    bool *seen;                        /* (vocabulary): ids of the text */
    int64_t n_seen;                    /* of the history */
    int32_t *counts;                   /* (vocabulary): how often each id has come since the prompt */
    int64_t n_counted;                 /* of the new ones */
    double *scores;                    /* (vocabulary) */
    qkv__sample_candidate *candidates; /* (vocabulary), n of them in use */
    int64_t n;
    void *memory;
    size_t bytes;
} qkv__sampler;

/* Puts the default of what is 0 in. USAGE for what is out of range, NaN included. */
qkv_status qkv__sampling_resolve_options(qkv_generate_opts *o);

/* Options that are settled, and outlive s. LIMIT, MEMORY. Free it in any case. */
qkv_status qkv__sampler_start(qkv__sampler *s, const qkv_generate_opts *o, int64_t vocabulary);
void qkv__sampler_free(qkv__sampler *s);

/* The next id, and its log-probability by the logits as they are (NaN with no_log_p); -1 when no id may come. NUMERIC for a
 * logit that is NaN or +inf, or when all are -inf. */
qkv_status qkv__sample(qkv__sampler *s, const float *logits, qkv__history h, uint64_t step, int32_t *id, double *log_p);

/* The candidates that a draw is made from (steps 1 to 6; with a temperature of 0 the largest alone) stay in s->candidates. NUMERIC
 * as above. */
qkv_status qkv__sample_candidates(qkv__sampler *s, const float *logits, qkv__history h);

/* The log-probability of an id by the logits as they are, and the n likeliest, of equally likely ones the smaller id first;
 * fewer ids leave -1. NUMERIC as above. */
qkv_status qkv__score_logits(const float *logits, int64_t vocabulary, int32_t id, double *log_p, qkv_likely *top, int n);

#endif
