/* scores.h: scores as text, JSON and CSV. */
#ifndef QKV_APP_REPORT_SCORES_H
#define QKV_APP_REPORT_SCORES_H

#include <qkv/qkv.h>
#include <qkv/unstable/buffer.h>

/* Accuracy; precision, recall and F1 of each class; of at most 20 classes the matrix, a row for what texts are and a column for
 * what was said. labels: (classes) texts. */
QKV_API qkv_status qkv_classes_text(const int64_t *counts, int64_t classes, const char *const *labels, int json,
                                    qkv_buffer *out);

/* The matrix as CSV: label, said, texts; a line for each pair of classes. */
QKV_API qkv_status qkv_classes_csv(const int64_t *counts, int64_t classes, const char *const *labels, qkv_buffer *out);

/* Micro and macro F1, exact of so many texts; precision, recall and F1 of each label. As in qkv_score_multilabel(); exact: texts
 * that have just the labels that were said. */
QKV_API qkv_status qkv_labels_text(const int64_t *said, const int64_t *is, const int64_t *right, int64_t labels,
                                   const char *const *names, int64_t exact, int64_t texts, int json, qkv_buffer *out);
QKV_API qkv_status qkv_numbers_text(const qkv_regression_score *s, int json, qkv_buffer *out);

/* BLEU of n lines that end with a NUL, each with one reference. Errors as of qkv_bleu(). */
qkv_status qkv__bleu_of_lines(const char *const *lines, const char *const *references, int64_t n, qkv_score_tokenizer tokenizer,
                              double *bleu);

/* As sacreBLEU prints them; the object is without a newline behind it. word_order: as in qkv_chrf_opts. */
QKV_API qkv_status qkv_bleu_text(const qkv_bleu_score *s, int json, qkv_buffer *out);
QKV_API qkv_status qkv_chrf_text(const qkv_chrf_score *s, int word_order, int json, qkv_buffer *out);

#endif
