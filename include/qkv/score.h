/* qkv/score.h: how good are these translations? BLEU and chrF, the same numbers as sacreBLEU's (version 2). And these classes?
 * Accuracy, precision, recall and F1.
 *
 * A text is UTF-8 that ends with a NUL. hypotheses[i] is the i-th translation; references[r][i] is what the r-th translator
 * made of the same sentence. Texts are read during the call only. Time is linear in the text, memory in the longest sentence.
 *
 * Errors of BLEU and chrF: USAGE for no sentences, no references, NULL or an unknown option; FORMAT for a text that is not
 * UTF-8 (the sentence says which and where); LIMIT for a text of more than QKV_SCORE_CHARACTERS characters or more than
 * QKV_SCORE_REFERENCES references; MEMORY. *out is untouched on error.
 *
 * Threads: any number of calls at a time. */
#ifndef QKV_SCORE_H
#define QKV_SCORE_H

#include <qkv/base.h>

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
    QKV_SCORE_TOKENIZER_13A, /* as mteval-v13a: ASCII punctuation apart from words, not in numbers; for languages with spaces */
    QKV_SCORE_TOKENIZER_ZH,  /* each Chinese character, and all of general punctuation, is a word; the rest as 13a */
    QKV_SCORE_TOKENIZER_CHAR, /* each character is a word */
    QKV_SCORE_TOKENIZER_INTL, /* as mteval-v14: punctuation and symbols of all scripts apart */
    QKV_SCORE_TOKENIZER_NONE  /* words are what white space separates */
} qkv_score_tokenizer;

/* Zero means the default: 13a, case matters. */
typedef struct qkv_bleu_opts {
    size_t size;
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
    void *reserved[4];
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
    size_t size;
    int word_order; /* 0: chrF; 2: chrF++; at most 2 */
    int lowercase;
} qkv_chrf_opts;

#define QKV_CHRF_ORDERS 8 /* 6 of characters, then up to 2 of words */
typedef struct qkv_chrf_score {
    double score;                                                                               /* 0 to 100 */
    double precision, recall;                                                                   /* P and R in percent */
    int64_t matches[QKV_CHRF_ORDERS], hyp_totals[QKV_CHRF_ORDERS], ref_totals[QKV_CHRF_ORDERS]; /* 0 past 6 + word_order */
    char signature[QKV_SIGNATURE_MAX];
    void *reserved[4];
} qkv_chrf_score;

QKV_API qkv_status qkv_chrf(const char *const *hypotheses, const char *const *const *references, int n_references, int64_t n,
                            const qkv_chrf_opts *opts, qkv_chrf_score *out);

/* ---- classes -----------------------------------------------------------------------------------
 * Of class k: precision = right / said, recall = right / is, F1 = 2 right / (said + is), where `right` texts are of class k and
 * were said to be, `said` were said to be, `is` are; what is divided by 0 is 0. Macro F1 is the mean of F1 over the classes. */
typedef struct qkv_class_score {
    double precision, recall, f1; /* 0 to 1 */
    int64_t texts;                /* of the class */
    void *reserved[2];
} qkv_class_score;

typedef struct qkv_class_scores {
    double accuracy, macro_f1; /* 0 to 1 */
    int64_t right, texts;
    void *reserved[4];
} qkv_class_scores;

/* From a confusion matrix: counts[i*classes + k] texts are of class i and were said to be of class k. each: (classes) scores,
 * or NULL. USAGE for NULL, fewer than one class, a negative count; LIMIT for counts that add up to 2^63 or more. */
QKV_API qkv_status qkv_score_classes(const int64_t *counts, int64_t classes, qkv_class_score *each, qkv_class_scores *out);

/* ---- several labels a text ----
 * Precision, recall and F1 of each label as above. Micro F1 is 2 right / (said + is) with those of all labels added up. */
typedef struct qkv_labels_score {
    double micro_f1, macro_f1; /* 0 to 1 */
    void *reserved[4];
} qkv_labels_score;

/* said, is and right: (labels) counts of texts. each: (labels) scores, or NULL. USAGE for NULL, no label, a negative count;
 * LIMIT for counts that add up to 2^63 or more. */
QKV_API qkv_status qkv_score_multilabel(const int64_t *said, const int64_t *is, const int64_t *right, int64_t labels,
                                        qkv_class_score *each, qkv_labels_score *out);

/* ---- numbers ---- */
typedef struct qkv_regression_score {
    double rmse, mae;         /* root of the mean squared error; mean absolute error */
    double pearson, spearman; /* correlations, -1 to 1; of numbers, and of their ranks, equal ones having the mean of
                                 theirs. NaN where either side is all the same: there is none */
    int64_t texts;
    void *reserved[4];
} qkv_regression_score;

/* What was said of n texts and what it is. USAGE for NULL and no texts; NUMERIC for a number that is not finite; MEMORY. */
QKV_API qkv_status qkv_score_regression(const double *said, const double *is, int64_t n, qkv_regression_score *out);

/* ---- scores as text ----
 * Each gives lines for people or, with json, an object with every number, in *out, which is yours. USAGE for NULL and what the
 * calls above refuse; MEMORY. */

#ifdef __cplusplus
}
#endif
#endif
