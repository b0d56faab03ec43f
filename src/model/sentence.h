/* sentence.h: the modules of sentence-transformers: what becomes of an encoder's hidden states. */
#ifndef QKV_SRC_SENTENCE_H
#define QKV_SRC_SENTENCE_H

#include "model.h"

#include <stdbool.h>

#include "../nn/transformer.h"

/* The ways to pool, in the order that their vectors stand side by side: the first token, the largest of each number, the
 * mean, the sum / sqrt(tokens), the mean with weights 1, 2, 3, .. by place, the last token. */
enum {
    QKV__POOL_FIRST = 1,
    QKV__POOL_MAX = 2,
    QKV__POOL_MEAN = 4,
    QKV__POOL_MEAN_SQRT = 8,
    QKV__POOL_WEIGHTED = 16,
    QKV__POOL_LAST = 32,
    QKV__POOL_KINDS = 6
};

/* y = f(x W^T + b) */
typedef struct qkv__dense {
    int64_t in, out;
    const char *activation; /* "Tanh", as PyTorch calls it */
    double (*f)(double x);
    bool has_bias;
    float *weight; /* (out, in), and behind it the bias (out) */
} qkv__dense;

enum { QKV__DENSE_MAX = 8 };
typedef struct qkv__sentence {
    int poolings;  /* added up; 0: a model without such files */
    int64_t width; /* of a vector */
    int n_dense;
    qkv__dense dense[QKV__DENSE_MAX];
} qkv__sentence;

/* Those of a folder, where modules.json is; what they say of pooling, length and normalising is put into *info too. FORMAT,
 * with the file and the key; UNSUPPORTED for another module, or an order of them that is not computed; IO; LIMIT; MEMORY.
 * Free *out in any case. */
qkv_status qkv__sentence_read(const char *folder, int64_t dim, qkv__model_info *info, qkv__sentence *out);
qkv_status qkv__sentence_copy(const qkv__sentence *from, qkv__sentence *to);
void qkv__sentence_free(qkv__sentence *s);

/* Writes them, where something is known that other encoders do not have. IO, LIMIT, MEMORY. */
qkv_status qkv__sentence_write(const char *folder, int64_t dim, const qkv__model_info *info, const qkv__sentence *s);

/* Whether there is more to compute than one vector of those that qkv__transformer_pool() knows. */
bool qkv__sentence_is_more(const qkv__sentence *s);

/* Of a model; it lives as long as that. */
const qkv__sentence *qkv__model_sentence(const qkv_model *m);

#endif
