/* labelled_texts.h: labelled texts of a file through a classifier. */
#ifndef QKV_SRC_LABELLED_TEXTS_H
#define QKV_SRC_LABELLED_TEXTS_H

#include "texts.h"

/* What is made of them. */
typedef struct qkv__labelled_use {
    int64_t width;                                                                      /* numbers of a target */
    qkv_status (*read)(void *data, const qkv_labelled *x, double *target);              /* what a text is; zeros at first */
    qkv_status (*count)(void *data, const float *row, int64_t n, const double *target); /* and what was said of it, n numbers */
    void *data;
} qkv__labelled_use;

/* Reads the texts of a file, and classifies them; how many there were, and how many were cut. Errors as in
 * qkv_classify_labelled(). */
qkv_status qkv__classify_each(const qkv_model *m, const char *path, const qkv_classify_labelled_opts *opts,
                              const qkv__labelled_use *use, int64_t *texts, int64_t *cut);

#endif
