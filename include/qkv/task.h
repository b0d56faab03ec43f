/* qkv/task.h: how good are these translations? BLEU and chrF, the same numbers as sacreBLEU's (version 2).
 *
 * A text is UTF-8 that ends with a NUL. hypotheses[i] is the i-th translation; references[r][i] is what the r-th translator
 * made of the same sentence. Texts are read during the call only. Time is linear in the text, memory in the longest sentence.
 *
 * Errors of both calls: USAGE for no sentences, no references, NULL or an unknown option; FORMAT for a text that is not UTF-8
 * (the sentence says which and where); LIMIT for a text of more than QKV_SCORE_CHARACTERS characters or more than
 * QKV_SCORE_REFERENCES references; MEMORY. *out is untouched on error. */
#ifndef QKV_TASK_H
#define QKV_TASK_H

#include <qkv/model.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QKV_SCORE_CHARACTERS 16777216
#define QKV_SCORE_REFERENCES 16

/* What the result was computed with, in sacreBLEU's words, such as
 * "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:qkv-0.1.0". Where sacreBLEU has its version there is ours; the rest
 * means the same, and scores whose rest is equal may be compared. */
#define QKV_SIGNATURE_MAX 128

/* ---- BLEU --------------------------------------------------------------------------------------
 * Papineni et al. 2002, over the whole corpus, n-grams of 1 to 4 words:
 *   BLEU = BP * (p1 p2 p3 p4)^(1/4)      BP = min(1, exp(1 - ref_length / hyp_length))      pn = 100 matches / totals
 * An n-gram matches at most as often as the reference that has most of it has it. The k-th order without a match counts as
 * 100 / (2^k totals) (smoothing "exp"). With several references each sentence adds the reference length nearest to its own,
 * the shorter of two equally near. No match of any order, or an order without n-grams: 0. */

/* How text becomes words. */
typedef enum qkv_score_tokenizer {
    QKV_TOKENIZE_13A,  /* as mteval-v13a: ASCII punctuation apart from words, not inside numbers. For languages with spaces */
    QKV_TOKENIZE_ZH,   /* each Chinese character, and all of general punctuation, is a word; the rest as 13a */
    QKV_TOKENIZE_CHAR, /* each character is a word */
    QKV_TOKENIZE_INTL, /* as mteval-v14: punctuation and symbols of all scripts apart */
    QKV_TOKENIZE_NONE  /* words are what white space separates */
} qkv_score_tokenizer;

/* Zero means the default: 13a, case matters. */
typedef struct qkv_bleu_opts {
    qkv_score_tokenizer tokenizer;
    int lowercase; /* compare in lower case */
} qkv_bleu_opts;

#define QKV_BLEU_ORDER 4
typedef struct qkv_bleu_score {
    double score;                                            /* 0 to 100 */
    double precisions[QKV_BLEU_ORDER];                       /* percent, smoothed */
    int64_t matches[QKV_BLEU_ORDER], totals[QKV_BLEU_ORDER]; /* n-grams of the hypotheses: found in a reference, all */
    double brevity_penalty;                                  /* BP */
    int64_t hyp_length, ref_length;                          /* words */
    char signature[QKV_SIGNATURE_MAX];
} qkv_bleu_score;

/* n sentences; NULL opts means all zero. */
QKV_API qkv_status qkv_bleu(const char *const *hypotheses, const char *const *const *references, int n_references, int64_t n,
                            const qkv_bleu_opts *opts, qkv_bleu_score *out);

/* ---- chrF --------------------------------------------------------------------------------------
 * Popović 2015, over the whole corpus, n-grams of 1 to 6 characters without the white space, and of 1 to word_order words:
 *   chrF = 100 * (1 + 2^2) P R / (2^2 P + R)
 * P, R: matches / n-grams of the hypotheses, of the references, averaged over the orders that both have n-grams of. A sentence
 * whose reference has none of an order adds none to the hypotheses' either. With several references each sentence takes the one
 * that gives it the highest chrF, the first of equals. A word loses one sign of ASCII punctuation at its end, or else at its
 * start; the sign is then a word too. */

/* Zero means the default: chrF, case matters. */
typedef struct qkv_chrf_opts {
    int word_order; /* 0: chrF; 2: chrF++; at most 2 */
    int lowercase;
} qkv_chrf_opts;

#define QKV_CHRF_ORDERS 8 /* 6 of characters, then up to 2 of words */
typedef struct qkv_chrf_score {
    double score;                                                                               /* 0 to 100 */
    double precision, recall;                                                                   /* P and R in percent */
    int64_t matches[QKV_CHRF_ORDERS], hyp_totals[QKV_CHRF_ORDERS], ref_totals[QKV_CHRF_ORDERS]; /* 0 past 6 + word_order */
    char signature[QKV_SIGNATURE_MAX];
} qkv_chrf_score;

QKV_API qkv_status qkv_chrf(const char *const *hypotheses, const char *const *const *references, int n_references, int64_t n,
                            const qkv_chrf_opts *opts, qkv_chrf_score *out);

/* ---- from a source to its best targets ---- */

/* Zero means the default shown; a length penalty of truly 0 is given as a negative number. */
typedef struct qkv_search_opts {
    int32_t start, end, pad; /* ids; start and pad are never found */
    int beam;                /* rows kept for each sentence; 1, which is greedy */
    int n_best;              /* results for each sentence, at most beam; 1 */
    float length_penalty;    /* alpha of the paper: a score is log p / ((5 + length) / 6)^alpha, the end counted; 0.6 */
    int64_t max_length;      /* tokens, the end not counted; twice the source, 20 more and the prefix */
    int no_repeat;           /* a run of so many tokens does not come twice; any may */
    const int32_t *prefix;   /* every result starts with these ids, which count for its length and score; none. USAGE for one
                                that is no id, the start, the end or the padding, and for more of them than max_length */
    int64_t n_prefix;
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

/* ---- translation: text in, text out ---- */
typedef struct qkv_translate_opts {
    int beam;             /* 0 means 4; 1 is greedy */
    int n_best;           /* 0 means 1; at most beam */
    float length_penalty; /* as in qkv_search_opts, and so are the next two */
    int64_t max_length;
    int no_repeat;
    const char *prefix; /* every translation starts with this text; NULL: none */
    int64_t max_source; /* tokens of a source, the end not counted; 0 means 1024; at most what learned positions allow */
    int attention;      /* 1: the cross-attention of every translation is kept */
} qkv_translate_opts;

/* One translation of one text. */
typedef struct qkv_translation {
    const char *text; /* UTF-8, length bytes and a NUL; bytes of the model that make no character have become U+FFFD */
    size_t length;
    double log_p, score;
    int is_cut;         /* it reached max_length before its end */
    const int32_t *ids; /* n_ids of them, without start and end */
    int64_t n_ids;      /* -1: the search found fewer than n_best, and there is none here */
    const float *cross; /* with attention: (layers, heads, n_ids + 1, n_source): row i is what the decoder attends to
                           while it chooses id i, the last row while it chooses the end; NULL for an empty text */
} qkv_translation;

/* Results of one call; starts as zero, used again and again. */
typedef struct qkv_translations {
    int64_t n; /* texts */
    int n_best;
    qkv_status *status;    /* (n): QKV_OK, or LIMIT for a source of more than max_source tokens, which has no translation */
    int32_t **source_ids;  /* (n): n_source[i] ids, the end included; NULL where there is nothing to translate */
    int64_t *n_source;     /* (n); 0 for an empty text; for a source over the limit, how many it would have */
    qkv_translation *best; /* (n, n_best), best first */
    int layers, heads;     /* of cross */
    struct qkv__translating *work; /* working memory */
} qkv_translations;
QKV_API void qkv_translations_free(qkv_translations *t);

/* Translates n texts (lengths: their bytes; NULL: they end with a NUL), which may hold any bytes; what is not UTF-8 is read as
 * U+FFFD. A text's result does not depend on the texts beside it, nor on threads. An empty text, or one of white space alone,
 * gives an empty translation with score 0. The ids of start, end and pad are those of the tokens <s>, </s> and <pad> of the
 * target's tokenizer. USAGE for options that do not fit, or a model without encoder, decoder, tokenizer or those tokens;
 * NUMERIC, LIMIT, MEMORY: then *out holds nothing. */
QKV_API qkv_status qkv_translate(const qkv_model *m, const char *const *texts, const size_t *lengths, int64_t n,
                                 const qkv_translate_opts *opts, qkv_translations *out);

#ifdef __cplusplus
}
#endif
#endif
