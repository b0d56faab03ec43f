/* embed.h: limits of embeddings, and their normalization. */
#ifndef QKV_SRC_TASK_EMBED_H
#define QKV_SRC_TASK_EMBED_H

#include <qkv/task.h>

/* The limits of qkv_embed() as published. */
typedef struct qkv__embed_limits {
    int64_t room;   /* token ids of a text that are read, without special tokens */
    int64_t around; /* special tokens that max_length counts: of a model of ours all but the last */
    int64_t width;  /* of a vector */
} qkv__embed_limits;

/* Makes the length of a vector 1, unless it is 0. */
void qkv__normalize(float *x, int64_t n);

/* Errors of qkv_embed(). */
qkv_status qkv__embed_limits_of(const qkv_model *m, qkv__embed_limits *out);

#endif
