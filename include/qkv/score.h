/* qkv/score.h: how good are these translations? BLEU and chrF, the same numbers as sacreBLEU's (version 2). And these classes?
 * Accuracy, precision, recall and F1.
 *
 * A text is UTF-8. hypotheses[i] is the i-th translation; references[r][i] is what the r-th translator made of the same
 * sentence. Time is linear in the text, memory in the longest sentence. Every score is a result: see qkv_free().
 *
 * Errors of BLEU and chrF: USAGE for no sentences, no references, NULL or an unknown option; FORMAT for a text that is not
 * UTF-8 (the sentence says which and where); LIMIT for a text of more than QKV_SCORE_CHARACTERS characters or more than
 * QKV_SCORE_REFERENCES references; MEMORY.
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
} qkv_bleu_score;

/* n sentences; NULL opts means all zero. */
QKV_API qkv_status qkv_bleu(const qkv_str *hypotheses, const qkv_str *const *references, int n_references, int64_t n,
                            const qkv_bleu_opts *opts, qkv_bleu_score **out);

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
} qkv_chrf_score;

QKV_API qkv_status qkv_chrf(const qkv_str *hypotheses, const qkv_str *const *references, int n_references, int64_t n,
                            const qkv_chrf_opts *opts, qkv_chrf_score **out);

/* ---- classes -----------------------------------------------------------------------------------
 * Of class k: precision = correct / predicted, recall = correct / actual, F1 = 2 correct / (predicted + actual), where `actual`
 * texts are of class k, `predicted` were said to be, and `correct` are both; what is divided by 0 is 0. Macro F1 is the mean of F1
 * over the classes, micro F1 that of the counts of all classes added up. */
typedef struct qkv_class_score {  /* closed */
    double precision, recall, f1; /* 0 to 1 */
    int64_t support;              /* texts that are of the class */
} qkv_class_score;

typedef struct qkv_class_scores {
    double accuracy; /* correct / n; of several labels 0: texts are not counted */
    double macro_f1, micro_f1;
    int64_t n, correct;             /* texts; of several labels the labels that texts have */
    const qkv_class_score *classes; /* (n_classes) */
    int64_t n_classes;
} qkv_class_scores;

/* From a confusion matrix: confusion[i*classes + k] texts are of class i and were said to be of class k. USAGE for NULL, fewer
 * than one class, a negative count; LIMIT for counts that add up to 2^63 or more; MEMORY. */
QKV_API qkv_status qkv_score_classes(const int64_t *confusion, int64_t classes, qkv_class_scores **out);

/* From counts of texts, (labels) each, where a text may have several labels. The same errors. */
QKV_API qkv_status qkv_score_multilabel(const int64_t *predicted, const int64_t *actual, const int64_t *correct, int64_t labels,
                                        qkv_class_scores **out);

/* ---- numbers ---- */
typedef struct qkv_regression_score {
    double rmse, mae;         /* root of the mean squared error; mean absolute error */
    double pearson, spearman; /* correlations, -1 to 1; of numbers, and of their ranks, equal ones having the mean of
                                 theirs. NaN where either side is all the same: there is none */
    int64_t n;
} qkv_regression_score;

/* USAGE for NULL and fewer than one number; NUMERIC for a number that is not finite; MEMORY. */
QKV_API qkv_status qkv_score_regression(const double *predicted, const double *actual, int64_t n, qkv_regression_score **out);

#ifdef __cplusplus
}
#endif
#endif
