/* qkv/session.h: what a model has read, kept so that the next token costs one token; sampling; beam search.
 *
 * A session holds any number of rows, each a sequence of tokens with the keys and values of every layer. Rows read many tokens
 * in one forward or one at a time, of different lengths; they are reordered, repeated, dropped and shortened. A token's caches
 * and logits have the same bits however it was read: alone, in a block of any size, beside other rows, or in a forward over
 * the whole sequence. Rows with a common beginning share its memory.
 *
 * Threads: one session is for one thread at a time. Any number of sessions, each in a thread of its own, may share one model,
 * as long as nobody changes the model's weights. A call that fails leaves rows, lengths
 * and caches as they were; what the last read or encode gave may be gone. */
#ifndef QKV_SESSION_H
#define QKV_SESSION_H

#include <qkv/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_session qkv_session;

typedef struct qkv_session_opts {
    size_t size;
    int keep_attention; /* 1: qkv_session_attention() gives the weights of every head; a read is not cut into blocks then */
    int keep_hidden;    /* 1: qkv_session_hidden() gives the states between the layers; the same */
} qkv_session_opts;

/* A session without rows; the model must outlive all calls but the last, qkv_session_free(). NULL on error: USAGE for NULL,
 * MEMORY. You own it. NULL opts means all zero. */
QKV_API qkv_session *qkv_session_new(const qkv_model *m, const qkv_session_opts *opts);
QKV_API void qkv_session_free(qkv_session *s);

/* Starts over with `rows` rows that have read nothing: for a decoder alone. USAGE for a model with an encoder, MEMORY. */
QKV_API qkv_status qkv_session_start(qkv_session *s, int64_t rows);

/* Starts over with one row for each source. The encoder reads them; keys and values for a decoder are kept. A model with an encoder
 * alone reads no more after that. USAGE for a decoder alone, lengths, ids or types out of range, LIMIT, NUMERIC, MEMORY. */
QKV_API qkv_status qkv_session_encode(qkv_session *s, const qkv_tokens *source);

/* What the encoder gave, (rows, length, dim), zeros behind a row's own length unless attention or hidden states are kept; NULL:
 * none. It lives until the next start or encode. */
QKV_API qkv_tensor *qkv_session_encoded(const qkv_session *s);

/* Which logits a read computes. */
typedef enum qkv_logits { QKV_LOGITS_LAST, QKV_LOGITS_NONE, QKV_LOGITS_ALL } qkv_logits;

/* Reads counts[i] more tokens of every row i, at least 0; NULL: one each. ids: those of row 0, of row 1, ... Long reads go
 * block by block: memory grows with the caches alone. Logits: of the last new token of each row that has any, or of all new
 * tokens, which are then computed in one go. USAGE for NULL, an id out of range, a negative count; LIMIT for more tokens than
 * the model has positions for; MEMORY. After an error the rows have the lengths they had. */
QKV_API qkv_status qkv_session_read(qkv_session *s, const int32_t *ids, const int64_t *counts, qkv_logits logits);

/* What the last read gave, (rows or tokens, vocabulary), in the order of the rows; NULL: none. It lives until the next call
 * that changes the session. */
QKV_API qkv_tensor *qkv_session_logits(const qkv_session *s);

/* Goes on with n rows: row i becomes what row parents[i] is; a parent may occur again and again, or not at all. What does not
 * move is not copied. USAGE for a parent that is not there, MEMORY. */
QKV_API qkv_status qkv_session_select(qkv_session *s, const int64_t *parents, int64_t n);

/* Row `row` forgets all but its first `length` tokens. USAGE unless it has as many. */
QKV_API qkv_status qkv_session_rewind(qkv_session *s, int64_t row, int64_t length);

QKV_API int64_t qkv_session_length(const qkv_session *s, int64_t row); /* tokens; -1 when there is no such row */

/* The k likeliest of n ids by their logits, best first, of equal ones the smaller: ids to (k) places, and to p (k) their
 * probabilities, softmax over all n. USAGE for NULL, for k outside 1..n and for n of 2^31 or more. */
QKV_API qkv_status qkv_top_k(const float *logits, int64_t n, int k, int32_t *ids, double *p);

/* ---- the next id ----
 * In this order, each on the result of the one before:
 *   1. repetition penalty   z / penalty for z > 0, z * penalty else, of ids that the history has
 *      presence, frequency  z - presence - n frequency, of ids that have come n > 0 times since the prompt
 *   2. special tokens and those that the model's files ban never come, but for what ends a text; nor does an id that completes a
 *      run of no_repeat_ngram ids a second time
 *   3. temperature 0        the largest z, of equal ones the smallest id: done
 *      temperature T        p = softmax(z / T)
 *   4. top_k                the k likeliest, of equally likely ones the smaller ids
 *   5. top_p                the likeliest, in the same order, until they have the share p of what 4 has left
 *   6. min_p                those with at least min_p times the probability of the likeliest
 *   7. one draw in proportion to p, by a number that depends on (seed, sample, ids since the prompt) alone */
typedef struct qkv_sampling_opts { /* zero: greedy */
    size_t size;
    float temperature;        /* 0: greedy */
    int top_k;                /* 0: any */
    float top_p;              /* in (0, 1]; 0 means 1 */
    float min_p;              /* in [0, 1] */
    float repetition_penalty; /* > 0; 0 means 1, none */
    float presence_penalty, frequency_penalty;
    int no_repeat_ngram; /* 0: any run may come again */
    uint64_t seed;
    int64_t sample; /* number of the text: others for other numbers */
} qkv_sampling_opts;

typedef struct qkv_sampler qkv_sampler;

/* For one text of a model with a decoder. NULL on error: USAGE for NULL and options out of range, LIMIT, MEMORY. You own it; the
 * model is not needed any more. NULL opts means all zero. */
QKV_API qkv_sampler *qkv_sampler_new(const qkv_model *m, const qkv_sampling_opts *opts);
QKV_API void qkv_sampler_free(qkv_sampler *s);

/* The id after a history of n ids, of which n_prompt are the prompt, by logits (vocabulary), such as a row of
 * qkv_session_logits(); -1 when none may come. From call to call the history only grows. USAGE for NULL, a history that is shorter
 * than before, and ids out of range; NUMERIC for a logit that is NaN or +inf, and when all are -inf. */
QKV_API qkv_status qkv_sampler_next(qkv_sampler *s, const float *logits, const int32_t *history, int64_t n, int64_t n_prompt,
                                    int32_t *id);

/* ---- work that can be ended ---- */

/* Called before every step of a decoder and before every batch of an encoder, on the thread of the caller: where threads have
 * batches of their own, before the steps that the caller's thread does. Not OK ends the work, which gives that status back; it
 * should have set the error, as a function of this library does. */
typedef qkv_status (*qkv_each_step)(void *data);

typedef struct qkv_shortlist qkv_shortlist; /* <qkv/unstable/shortlist.h> */

/* ---- from a source to its best targets ---- */

/* A candidate of one step of a search, for who looks on. */
typedef struct qkv_search_candidate {
    int64_t sentence, step; /* step: tokens of its hypothesis, this one counted */
    int from, to;           /* row of the step before; row that it becomes, -1: it is not followed */
    int32_t id;
    int is_end;   /* 1: its hypothesis ends here, and has a score */
    double log_p; /* of all tokens up to this one */
    double score;
} qkv_search_candidate;
typedef void (*qkv_each_candidate)(void *data, const qkv_search_candidate *c);

/* Zero means the default shown. */
typedef struct qkv_search_opts {
    size_t size;
    int32_t start, end, pad; /* ids; start and pad are never found */
    int beam_size;           /* rows kept for each sentence; 1, which is greedy */
    int n_best;              /* results for each sentence, at most beam_size; 1 */
    float length_penalty;    /* alpha of the paper: a score is log p / ((5 + length) / 6)^alpha, the end counted; 0.6 */
    int no_length_penalty;   /* 1: alpha is 0 */
    int length_norm;         /* 1: a score is log p / length^alpha instead, as published models have it */
    int64_t max_length;      /* tokens, the end not counted; twice the source, 20 more and the prefix, and of a
                                published model at most what its files say */
    int64_t min_length;      /* tokens that come before an end, at least; 0 */
    int no_repeat_ngram;     /* no n-gram of this size comes twice; 0: any may */
    const int32_t *prefix;   /* every result starts with these ids, which count for its length and score; none. USAGE for one
                                that is no id, the start, the end or the padding, and for more of them than max_length */
    int64_t n_prefix;
    int64_t n_forced;             /* the first n_forced ids of the prefix are certain: log p 0; none */
    const int32_t *ends, *banned; /* ids that end a result as `end` does; ids that are never found, not in a prefix either */
    int n_ends, n_banned;
    const qkv_hooks *hooks;         /* cancel is called before every step; NULL: none */
    const qkv_shortlist *shortlist; /* a sentence has no other tokens than these, its ends and its prefix, and the probabilities
                                       of these add up to 1; NULL: any. USAGE for that of a model with other vocabularies */
    qkv_each_candidate each_candidate; /* of every step and sentence, the likelier first; NULL: nobody looks on */
    void *each_candidate_data;
} qkv_search_opts;

typedef struct qkv_hypothesis {
    const int32_t *ids; /* n of them, without start and end */
    int64_t n;
    double log_p, score;
    int truncated; /* it reached max_length before its end */
} qkv_hypothesis;

/* The hypotheses of every source, best first. A result. */
typedef struct qkv_search_result {
    int64_t rows;
    int n_best;
    const qkv_hypothesis *best; /* (rows, n_best); n of one that was not found is -1 */
} qkv_search_result;

/* Translates sources, the end of each included. A source's result does not depend on the others. A search ends when no
 * remaining row can become better than the results found. Threads share many sources, unless each_candidate is set. USAGE for options or a model that do not fit, NUMERIC for log-probabilities that are not numbers,
 * LIMIT, MEMORY, CANCELLED. */
QKV_API qkv_status qkv_beam_search(const qkv_model *m, const qkv_tokens *source, const qkv_search_opts *opts,
                                   qkv_search_result **out);

#ifdef __cplusplus
}
#endif
#endif
