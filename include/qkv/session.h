/* qkv/session.h: decoding sessions (token rows with their KV cache), sampling, and beam search.
 *
 * A session holds any number of rows. A row is a sequence of tokens with the keys and values of every layer. Reading the next
 * token costs one token. Rows may have different lengths, and each read may add many tokens or one. Rows can be reordered,
 * repeated, dropped and shortened. The cache and logits of a token have the same bits however it was read: alone, in a block of
 * any size, in a batch with other rows, or in a forward pass over the whole sequence. Rows with a common prefix share its
 * memory.
 *
 * Threads: one thread at a time per session. Any number of sessions in separate threads may share one model, as long as no
 * thread modifies its weights.
 *
 * Errors: a failed call leaves rows, lengths and caches unchanged. The results of the last read or encode may be lost. */
#ifndef QKV_SESSION_H
#define QKV_SESSION_H

#include <qkv/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_session qkv_session;

typedef struct qkv_session_opts {
    size_t size;
    int keep_attention; /* 1: keep the weights of every head for qkv_session_attention(); reads are then not cut into blocks */
    int keep_hidden;    /* 1: keep the hidden states for qkv_session_hidden(); reads are then not cut into blocks */
} qkv_session_opts;

/* Creates a session without rows. You own it. The model must outlive every call except qkv_session_free(). NULL opts means all
 * zero. NULL on error: USAGE for NULL, MEMORY. */
QKV_API qkv_session *qkv_session_new(const qkv_model *m, const qkv_session_opts *opts);
QKV_API void qkv_session_free(qkv_session *s);

/* Resets the session to `rows` empty rows, for a decoder alone. USAGE for a model with an encoder, MEMORY. */
QKV_API qkv_status qkv_session_start(qkv_session *s, int64_t rows);

/* Resets the session to one row per source and runs the encoder. Keys and values for a decoder are kept. With an encoder
 * alone, no read can follow. USAGE for a decoder alone, and for lengths, ids or types out of range; LIMIT, NUMERIC, MEMORY. */
QKV_API qkv_status qkv_session_encode(qkv_session *s, const qkv_tokens *source);

/* The encoder output, (rows, length, dim); NULL: none. Positions past the length of a row are zero, except if attention or
 * hidden states are kept. Valid until the next start or encode. */
QKV_API qkv_tensor *qkv_session_encoded(const qkv_session *s);

/* The logits that a read computes. */
typedef enum qkv_logits { QKV_LOGITS_LAST, QKV_LOGITS_NONE, QKV_LOGITS_ALL } qkv_logits;

/* Reads counts[i] >= 0 more tokens for every row i; NULL counts means one each. ids holds those of row 0, then of row 1, and
 * so on. Long reads are processed in blocks, so that only the caches grow. Logits are computed for the last new token of each
 * row that has any, or for all new tokens; the latter are computed in one pass.
 * USAGE for NULL, an id out of range, a negative count; LIMIT for more tokens than the model has positions for; MEMORY. An
 * error leaves the row lengths unchanged. */
QKV_API qkv_status qkv_session_read(qkv_session *s, const int32_t *ids, const int64_t *counts, qkv_logits logits);

/* The logits of the last read, (rows or tokens, vocabulary), in row order; NULL: none. Valid until the next call that changes
 * the session. */
QKV_API qkv_tensor *qkv_session_logits(const qkv_session *s);

/* Replaces the rows by n rows: new row i is old row parents[i]. A parent may occur several times or never. Rows that do not
 * move are not copied. USAGE for a parent out of range, MEMORY. */
QKV_API qkv_status qkv_session_select(qkv_session *s, const int64_t *parents, int64_t n);

/* Shortens row `row` to its first `length` tokens. USAGE if it has fewer. */
QKV_API qkv_status qkv_session_rewind(qkv_session *s, int64_t row, int64_t length);

QKV_API int64_t qkv_session_length(const qkv_session *s, int64_t row); /* tokens; -1 if the row does not exist */

/* Selects the k likeliest of n ids by their logits, best first; ties by the smaller id. Writes the ids to ids (k) and their
 * probabilities, softmax over all n, to p (k). USAGE for NULL, for k outside 1..n and for n of 2^31 or more. */
QKV_API qkv_status qkv_top_k(const float *logits, int64_t n, int k, int32_t *ids, double *p);

/* ---- sampling ----
 * The steps apply in this order, each to the output of the previous one:
 *   1. repetition penalty   z / penalty for z > 0, z * penalty else, for ids in the history
 *      presence, frequency  z - presence - n frequency, for ids that occurred n > 0 times since the prompt
 *   2. exclusions           special tokens and tokens banned by the model's files, except end tokens; and ids that would
 *                           complete a second occurrence of an n-gram of no_repeat_ngram ids
 *   3. temperature 0        the largest z, ties by the smallest id: done
 *      temperature T        p = softmax(z / T)
 *   4. top_k                the k likeliest, ties by the smaller id
 *   5. top_p                the likeliest, in the same order, until they reach the share p of the total left by step 4
 *   6. min_p                those with at least min_p times the probability of the likeliest
 *   7. draw                 one draw in proportion to p; its random number depends only on (seed, sample, ids since
 *                           the prompt) */
typedef struct qkv_sampling_opts { /* zero: greedy */
    size_t size;
    float temperature;        /* 0: greedy */
    int top_k;                /* 0: all */
    float top_p;              /* in (0, 1]; 0 means 1 */
    float min_p;              /* in [0, 1] */
    float repetition_penalty; /* > 0; 0 means 1, none */
    float presence_penalty, frequency_penalty;
    int no_repeat_ngram; /* 0: no restriction */
    uint64_t seed;
    int64_t sample; /* sample number; each number gives a different sample */
} qkv_sampling_opts;

typedef struct qkv_sampler qkv_sampler;

/* Creates a sampler for one text of a model with a decoder. You own it. The model is not used after this call. NULL opts means
 * all zero. NULL on error: USAGE for NULL and options out of range, LIMIT, MEMORY. */
QKV_API qkv_sampler *qkv_sampler_new(const qkv_model *m, const qkv_sampling_opts *opts);
QKV_API void qkv_sampler_free(qkv_sampler *s);

/* Chooses the id that follows a history of n ids, the first n_prompt of which are the prompt. logits (vocabulary) may be a row
 * of qkv_session_logits(). The id is -1 if every id is excluded. The history must only grow between calls. USAGE for NULL, a
 * history shorter than before, and ids out of range; NUMERIC for a logit that is NaN or +inf, and if all are -inf. */
QKV_API qkv_status qkv_sampler_next(qkv_sampler *s, const float *logits, const int32_t *history, int64_t n, int64_t n_prompt,
                                    int32_t *id);

/* ---- cancellation ---- */

/* Called before every decoder step and every encoder batch, on the caller's thread. If threads process separate batches, it is
 * called before the steps of the caller's thread. A status other than OK ends the work, and the call returns that status. The
 * callback should set the error, as a function of this library does. */
typedef qkv_status (*qkv_each_step)(void *data);

typedef struct qkv_shortlist qkv_shortlist; /* <qkv/unstable/shortlist.h> */

/* ---- beam search ---- */

/* A candidate of one search step, passed to the observer. */
typedef struct qkv_search_candidate {
    int64_t sentence, step; /* step: tokens of its hypothesis, this one included */
    int from, to;           /* row in the previous step; row in the next step, -1: not kept */
    int32_t id;
    int is_end;   /* 1: the hypothesis ends here and has a score */
    double log_p; /* total over all tokens up to this one */
    double score;
} qkv_search_candidate;
typedef void (*qkv_each_candidate)(void *data, const qkv_search_candidate *c);

/* Zero means the default, shown in parentheses. */
typedef struct qkv_search_opts {
    size_t size;
    int32_t start, end, pad; /* ids; start and pad are never generated */
    int beam_size;           /* rows per sentence (default: 1, greedy) */
    int n_best;              /* results per sentence, at most beam_size (default: 1) */
    float length_penalty;    /* alpha of the paper: score = log p / ((5 + length) / 6)^alpha, the end counted (default: 0.6) */
    int no_length_penalty;   /* 1: alpha is 0 */
    int length_norm;         /* 1: score = log p / length^alpha instead, as in published models */
    int64_t max_length;      /* maximum tokens without the end (default: twice the source, plus 20, plus the prefix; for a
                                published model at most the value in its files) */
    int64_t min_length;      /* minimum tokens before an end (default: 0) */
    int no_repeat_ngram;     /* no n-gram of this size occurs twice; 0: no restriction */
    const int32_t *prefix;   /* every result starts with these ids, which count for its length and score (default: none). USAGE
                                for an invalid id, the start, the end or the padding, and for more ids than max_length */
    int64_t n_prefix;
    int64_t n_forced;             /* the first n_forced prefix ids have log p 0 (default: none) */
    const int32_t *ends, *banned; /* additional end ids; ids that are never generated and not allowed in a prefix */
    int n_ends, n_banned;
    const qkv_hooks *hooks;            /* cancel, before every step; NULL: none */
    const qkv_shortlist *shortlist;    /* restricts a sentence to these tokens, its ends and its prefix; probabilities are
                                       normalized over them. NULL: all tokens. USAGE for a shortlist with other vocabularies */
    qkv_each_candidate each_candidate; /* observer of every step and sentence, likelier candidates first; NULL: none */
    void *each_candidate_data;
} qkv_search_opts;

typedef struct qkv_hypothesis {
    const int32_t *ids; /* (n), without start and end */
    int64_t n;
    double log_p, score;
    int truncated; /* 1: it reached max_length before its end */
} qkv_hypothesis;

/* The hypotheses of every source, best first. A result. */
typedef struct qkv_search_result {
    int64_t rows;
    int n_best;
    const qkv_hypothesis *best; /* (rows, n_best); n is -1 for a hypothesis that was not found */
} qkv_search_result;

/* Translates sources, each with its end token. The result of a source is independent of the others. A search ends when no
 * remaining row can beat the results found. Multiple sources are distributed over threads, except if each_candidate is set.
 * USAGE for options or a model that do not fit, NUMERIC for log-probabilities that are not numbers, LIMIT, MEMORY,
 * CANCELLED. */
QKV_API qkv_status qkv_beam_search(const qkv_model *m, const qkv_tokens *source, const qkv_search_opts *opts,
                                   qkv_search_result **out);

#ifdef __cplusplus
}
#endif
#endif
