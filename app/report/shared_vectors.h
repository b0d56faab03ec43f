/* shared_vectors.h: the vectors of texts that the ranks read together. */
#ifndef QKV_APP_REPORT_SHARED_VECTORS_H
#define QKV_APP_REPORT_SHARED_VECTORS_H

#include <qkv/task.h>

/* As qkv_matrix. Starts as zero; used again and again. */
typedef struct qkv__vectors {
    float *data;
    int64_t rows, width;
    size_t bytes;
} qkv__vectors;
void qkv__vectors_free(qkv__vectors *v);

/* qkv_embed() of n texts that all ranks have: each reads its share, so that all have about as much to do, and all get all
 * rows. Errors of qkv_embed(); IO too. */
qkv_status qkv__embed_shared(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_embed_opts *opts,
                             qkv__vectors *out);

#endif
