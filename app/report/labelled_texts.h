/* labelled_texts.h: labelled texts of a file through a classifier. */
#ifndef QKV_SRC_LABELLED_TEXTS_H
#define QKV_SRC_LABELLED_TEXTS_H

#include "results.h"
#include "notes.h"
#include "../../src/task/texts.h"

/* What is made of them. */
typedef struct qkv__labelled_use {
    int64_t width; /* numbers of a target */
    /* Fills the target, which is zero, from a text. *unknown: a label that the model does not know: the text is counted and left out. */
    qkv_status (*read)(void *data, const qkv_labelled *x, double *target, const char **unknown);
    qkv_status (*count)(void *data, const float *row, int64_t n, const double *target); /* and what was said of it, n numbers */
    void *data;
} qkv__labelled_use;

/* How many texts were classified, how many of them were cut, and how many have a label that the model does not know. */
typedef struct qkv__labelled_counts {
    int64_t texts, cut, unknown;
} qkv__labelled_counts;

/* Reads the texts of a file, and classifies them. Errors as in qkv_classify_labelled(). */
qkv_status qkv__classify_each(const qkv_model *m, const char *path, const qkv_classify_labelled_opts *opts,
                              const qkv__labelled_use *use, qkv__labelled_counts *counts);

/* What qkv_classified_opts.threshold stands for. */
double qkv__label_threshold(double given);

#endif
