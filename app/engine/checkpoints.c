/* checkpoints.c: models that a training kept on its way: one at a time is loaded, when it is asked for. */
#include "inside.h"

#include <stdio.h>
#include <stdlib.h>

qkv_status qkv__engine_set_checkpoints(qkv__engine *e, const char *folder, const char *list, size_t length)
{
    qkv__json_doc doc;
    qkv_status status = qkv__json_parse(&(qkv__json_source){ .name = folder, .text = list, .length = length }, &doc);
    if (!status && !qkv__json_is_array(doc.top)) status = qkv__fail(QKV_FORMAT, "%s: the checkpoints are no list", folder);
    for (size_t i = 0; i < qkv__json_size(doc.top) && !status; i++)
        if (!qkv__json_is_int(qkv__json_get(qkv__json_at(doc.top, i), "step")))
            status = qkv__fail(QKV_FORMAT, "%s: checkpoint %zu has no step", folder, i);
    if (!status && !(e->checkpoint_folder = qkv__copy_text(folder))) status = QKV_MEMORY;
    if (status) qkv__json_free(&doc);
    else e->checkpoints = doc;
    return status;
}

void qkv__put_checkpoints(const qkv__engine *e, qkv__json *j)
{
    qkv__json_writer list = { .digits = QKV__JSON_FLOAT };
    if (!e->checkpoints.top) return;
    qkv__json_put_value(&list, NULL, e->checkpoints.top);
    qkv__put_key(j, "checkpoints");
    qkv__put_bytes(j, list.text, list.length);
    if (!j->status) j->status = list.status;
    qkv__json_writer_free(&list);
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

qkv_status qkv__get_checkpoint(qkv__engine *e, const qkv__json_value *body, const qkv_model **m)
{
    int64_t i = -1, n = (int64_t)qkv__json_size(e->checkpoints.top);
    *m = e->model;
    if (!n && qkv__json_is_int(qkv__json_get(body, "checkpoint")))
        return qkv__fail(QKV_USAGE, "\"checkpoint\": the training of this model kept none");
    qkv_status status = qkv__get_whole(body, "checkpoint", 0, n - 1, &i);
    if (status || i < 0) return status;
    const char *name = qkv__json_text(qkv__json_get(qkv__json_at(e->checkpoints.top, (size_t)i), "folder"));
    if (!name) return QKV_OK;
    status = load_checkpoint(e, name, i);
    if (!status) *m = e->checkpoint;
    return status;
}
