/* checkpoints.c: models that a training kept on its way: one at a time is loaded, when it is asked for. */
#include "inside.h"

#include <stdio.h>
#include <stdlib.h>

qkv_status qkv__engine_set_checkpoints(qkv__engine *e, const char *folder, json_t *list)
{
    if (!json_is_array(list)) return qkv__fail(QKV_FORMAT, "%s: the checkpoints are no list", folder);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_integer(json_object_get(json_array_get(list, i), "step")))
            return qkv__fail(QKV_FORMAT, "%s: checkpoint %zu has no step", folder, i);
    if (!(e->checkpoint_folder = qkv__copy_text(folder))) return qkv_error_status();
    e->checkpoints = json_incref(list);
    return QKV_OK;
}

void qkv__put_checkpoints(const qkv__engine *e, qkv__json *j)
{
    if (!e->checkpoints) return;
    char *list = json_dumps(e->checkpoints, JSON_COMPACT | JSON_REAL_PRECISION(9));
    qkv__put_key(j, "checkpoints");
    qkv__put_raw(j, list ? list : "[]");
    free(list);
}

static qkv_status load_checkpoint(qkv__engine *e, const char *name, int64_t i)
{
    char path[4096];
    if (e->checkpoint && e->checkpoint_index == i) return QKV_OK;
    if (snprintf(path, sizeof path, "%s/%s", e->checkpoint_folder, name) >= (int)sizeof path)
        return qkv__fail(QKV_USAGE, "the path of %s is too long", name);
    qkv_model_free(e->checkpoint);
    e->checkpoint_index = i;
    const qkv_load_opts opts = { .size = sizeof opts, .in_memory = 1 }; /* its files may change: a training goes on */
    if (!(e->checkpoint = qkv_model_load(path, &opts))) return qkv_error_status();
    if (qkv__job_of(e->checkpoint) == e->job) return QKV_OK;
    qkv_model_free(e->checkpoint);
    e->checkpoint = NULL;
    return qkv__fail(QKV_FORMAT, "%s is a model of another kind", path);
}

qkv_status qkv__get_checkpoint(qkv__engine *e, const json_t *body, const qkv_model **m)
{
    int64_t i = -1, n = (int64_t)json_array_size(e->checkpoints);
    *m = e->model;
    if (!n && json_is_integer(json_object_get(body, "checkpoint")))
        return qkv__fail(QKV_USAGE, "\"checkpoint\": the training of this model kept none");
    qkv_status status = qkv__get_whole(body, "checkpoint", 0, n - 1, &i);
    if (status || i < 0) return status;
    const char *name = json_string_value(json_object_get(json_array_get(e->checkpoints, (size_t)i), "folder"));
    if (!name) return QKV_OK;
    status = load_checkpoint(e, name, i);
    if (!status) *m = e->checkpoint;
    return status;
}
