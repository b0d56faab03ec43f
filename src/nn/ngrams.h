/* ngrams.h: naive Bayes on words and word pairs, beside attention.
 *
 * For every token, and for every pair of neighbours by a hash, the model holds how many training texts of each class contain it.
 * A text of n tokens with the distinct tokens (o = 0) and pairs (o = 1) g adds to the logit of class k
 *     sum_o w_o b_o / sqrt(n) sum_g log((count_gk + 1) / (N_ok + M_o)),   minus the mean over the classes
 * N_ok: the sum of the counts of class k; M_o: the number of distinct g; b: 1.4 and 0.7; w: two learned weights, initially those
 * that fit the training texts best. Tokens and pairs without a count are skipped. The difference of two classes is the log-count ratio of NB-SVM (Wang and
 * Manning 2012).
 *
 * In training each text is judged without its own counts. With them its words would always give its class away, and attention
 * would have nothing to learn. A text that is part of another has its words counted there too. With a share a of such texts, the
 * training loss is (1 - a) times the loss of the sum and a times the loss of attention alone. */
#ifndef QKV_SRC_NGRAMS_H
#define QKV_SRC_NGRAMS_H

#include "layer.h"

/* The counts, the totals and the weights, for options with ngrams. */
void qkv__ngrams_make(qkv_params *p, qkv__transformer *m);

/* Why a model with these options has no such counts; NULL: it can have them, or needs none. */
const char *qkv__ngrams_check(const qkv_config *o);

/* logits (rows, classes) with that added; logits itself without ngrams. classes: the class of each row, to leave it out of the counts
 * on a tape that trains; NULL: the texts were not counted. */
qkv_tensor *qkv__ngrams_add(const qkv__transformer *m, qkv_tensor *logits, const qkv_tokens *x, const int32_t *classes);

/* Clears the counts, counts a text of a class, and computes the totals after the last text. overlap: the share of texts that are
 * parts of others, kept in the totals. MEMORY. */
void qkv__ngrams_clear(const qkv__transformer *m);
qkv_status qkv__ngrams_count(const qkv__transformer *m, const int32_t *ids, int64_t n, int32_t class_id);
void qkv__ngrams_finish(const qkv__transformer *m, double overlap);

/* Writes the two sums of one text for each class, without their weights, to `to` (classes, 2). own: the class of a counted text, to
 * leave it out of the counts; -1: it is not in them. MEMORY. */
qkv_status qkv__ngrams_judge(const qkv__transformer *m, const int32_t *ids, int64_t n, int32_t own, float *to);

/* Sets the weights to those that fit n texts best. said: their sums, (n, classes, 2). */
void qkv__ngrams_fit(const qkv__transformer *m, const float *said, const int32_t *classes, int64_t n);

/* The share of texts that are parts of others; 0 without ngrams. */
float qkv__ngrams_overlap(const qkv__transformer *m);

#endif
