/* checkpoints.h: the models that a training kept in its folder, as the engine is told of them. */
#ifndef QKV_SRC_SERVE_CHECKPOINTS_H
#define QKV_SRC_SERVE_CHECKPOINTS_H

#include "../engine/engine.h"

/* The list that qkv__engine_set_checkpoints() takes, yours; NULL where the folder is no training's, or one that kept no other
 * model than its own. The errors of reading. */
qkv_status qkv__find_checkpoints(const char *folder, json_t **list);

/* Leaves at most so many of those that lie in folders of their own, spread evenly; the model itself stays. */
void qkv__thin_checkpoints(json_t *list, size_t most);

#endif
