/* checkpoints.h: the models that a training kept in its folder, as the engine is told of them. */
#ifndef QKV_SRC_SERVE_CHECKPOINTS_H
#define QKV_SRC_SERVE_CHECKPOINTS_H

#include "../engine/engine.h"

/* A model that a training kept. */
typedef struct qkv__kept {
    int64_t step;
    char *folder;       /* in that of the training; NULL: the training's own model */
    double loss, valid; /* NaN: unknown */
} qkv__kept;

typedef struct qkv__kept_list {
    qkv__kept *all; /* n, the first step first */
    size_t n, bytes;
} qkv__kept_list;

/* Empty if the folder is not that of a training, or of one that kept only its own model. The errors of reading. */
qkv_status qkv__find_checkpoints(const char *folder, qkv__kept_list *list);
void qkv__kept_free(qkv__kept_list *list);

/* Leaves at most so many of those that lie in folders of their own, spread evenly; the model itself stays. */
void qkv__thin_checkpoints(qkv__kept_list *list, size_t most);

/* The list that qkv__engine_set_checkpoints() reads. */
void qkv__put_kept(const qkv__kept_list *list, qkv__json_writer *w);

#endif
