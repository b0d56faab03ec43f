/* qkv/score.h: metrics. BLEU and chrF of translations, equal to sacreBLEU's (version 2). Accuracy, precision, recall and F1 of
 * classes. Errors and correlations of numbers.
 *
 * Text is UTF-8. hypotheses[i] is the i-th translation; references[r][i] is its r-th reference. Time is linear in the text,
 * memory in the longest sentence. Every score is a result: see qkv_free().
 *
 * Errors of BLEU and chrF: USAGE for no sentences, no references, NULL or an unknown option. FORMAT for text that is not UTF-8
 * (the message names the text and the position). LIMIT for a text of more than QKV_SCORE_CHARACTERS characters or more than
 * QKV_SCORE_REFERENCES references. MEMORY.
 *
 * Threads: any number of concurrent calls. */
#ifndef QKV_SCORE_H
#define QKV_SCORE_H

#include <qkv/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QKV_SCORE_CHARACTERS 16777216
#define QKV_SCORE_REFERENCES 16

/* The parameters of a score in sacreBLEU's notation, such as "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:qkv-0.1.0".
 * The version is qkv's; the rest has sacreBLEU's meaning. Scores are comparable if the rest is equal. */
#define QKV_SIGNATURE_MAX 128

/* ---- BLEU --------------------------------------------------------------------------------------
 * Papineni et al. 2002, over the whole corpus, n-grams of 1 to 4 words:
 *   BLEU = BP * (p1 p2 p3 p4)^(1/4)      BP = min(1, exp(1 - ref_length / hyp_length))      pn = 100 matches / totals
 * The matches of an n-gram are clipped to its maximum count in one reference. The k-th order without a match counts as
 * 100 / (2^k totals) (smoothing "exp"). With several references, each sentence adds the reference length closest to its length;
 * ties take the shorter one. BLEU is 0 if no order has a match or if an order has no n-grams. */

/* Word tokenization. */
typedef enum qkv_score_tokenizer {
    QKV_SCORE_TOKENIZER_13A,  /* mteval-v13a: splits off ASCII punctuation, except in numbers; for languages with spaces */
    QKV_SCORE_TOKENIZER_ZH,   /* each Chinese character and each sign of general punctuation is a word; otherwise 13a */
    QKV_SCORE_TOKENIZER_CHAR, /* each character is a word */
    QKV_SCORE_TOKENIZER_INTL, /* mteval-v14: splits off punctuation and symbols of all scripts */
    QKV_SCORE_TOKENIZER_NONE  /* splits at white space only */
} qkv_score_tokenizer;

/* Default: 13a, case-sensitive. */
typedef struct qkv_bleu_opts {
    size_t size;
    qkv_score_tokenizer tokenizer;
    int lowercase; /* 1: ignores case */
} qkv_bleu_opts;

#define QKV_BLEU_ORDER 4
typedef struct qkv_bleu_score {
    double score;                                            /* 0 to 100 */
    double precisions[QKV_BLEU_ORDER];                       /* percent, smoothed */
    int64_t matches[QKV_BLEU_ORDER], totals[QKV_BLEU_ORDER]; /* n-grams of the hypotheses: matched, all */
    double brevity_penalty;                                  /* BP */
    int64_t hyp_length, ref_length;                          /* words */
    char signature[QKV_SIGNATURE_MAX];
} qkv_bleu_score;

/* n sentences; NULL opts means all zero. */
QKV_API qkv_status qkv_bleu(const qkv_str *hypotheses, const qkv_str *const *references, int n_references, int64_t n,
                            const qkv_bleu_opts *opts, qkv_bleu_score **out);

/* ---- chrF --------------------------------------------------------------------------------------
 * Popović 2015, over the whole corpus, n-grams of 1 to 6 characters without white space, and of 1 to word_order words:
 *   chrF = 100 * (1 + 2^2) P R / (2^2 P + R)
 * P, R: matches / n-grams of the hypotheses, of the references, averaged over the orders present in both. If a sentence's
 * reference has no n-grams of an order, its hypothesis adds none of that order. With several references, each sentence uses the
 * one with the highest chrF; ties take the first. One sign of ASCII punctuation is split off the end of a word, else off its
 * start, and is then a word too. */

/* Default: chrF, case-sensitive. */
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
 * For class k: precision = correct / predicted, recall = correct / actual, F1 = 2 correct / (predicted + actual). `actual`
 * counts texts of class k, `predicted` counts texts predicted as k, `correct` counts both. Division by 0 gives 0. Macro F1 is
 * the mean of F1 over the classes. Micro F1 is the F1 of the summed counts of all classes. */
typedef struct qkv_class_score {  /* closed */
    double precision, recall, f1; /* 0 to 1 */
    int64_t support;              /* texts of the class */
} qkv_class_score;

typedef struct qkv_class_scores {
    double accuracy; /* correct / n; multilabel: 0, since texts are not counted */
    double macro_f1, micro_f1;
    int64_t n, correct;             /* texts; multilabel: labels of the texts */
    const qkv_class_score *classes; /* (n_classes) */
    int64_t n_classes;
} qkv_class_scores;

/* Scores from a confusion matrix: confusion[i*classes + k] is the number of texts of class i predicted as class k. USAGE for
 * NULL, fewer than one class, a negative count. LIMIT if the counts add up to 2^63 or more. MEMORY. */
QKV_API qkv_status qkv_score_classes(const int64_t *confusion, int64_t classes, qkv_class_scores **out);

/* Scores from counts of texts, (labels) each, for texts with any number of labels. Same errors. */
QKV_API qkv_status qkv_score_multilabel(const int64_t *predicted, const int64_t *actual, const int64_t *correct, int64_t labels,
                                        qkv_class_scores **out);

/* ---- regression ---- */
typedef struct qkv_regression_score {
    double rmse, mae;         /* root of the mean squared error; mean absolute error */
    double pearson, spearman; /* correlations, -1 to 1, of values and of ranks; ties get their mean rank. NaN if either
                                 side is constant */
    int64_t n;
} qkv_regression_score;

/* USAGE for NULL or fewer than one number; NUMERIC for a number that is not finite; MEMORY. */
QKV_API qkv_status qkv_score_regression(const double *predicted, const double *actual, int64_t n, qkv_regression_score **out);

#ifdef __cplusplus
}
#endif
#endif
