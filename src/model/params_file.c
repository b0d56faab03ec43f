/* params_file.c: params as a safetensors file. */
#include "params_file.h"

#include "../base/size.h"
#include "../base/error_list.h"
#include "../nn/params.h"
#include "../tensor/types.h"
#include "../tensor/tape.h"

#include <string.h>

/* ---- save ---- */

static qkv_status get_numbers(const void *from, int64_t first, int64_t n, float *to)
{
    qkv__widen(from, first, n, to);
    return QKV_OK;
}

qkv__to_store qkv__weight_to_store(const char *name, const qkv_tensor *w)
{
    qkv__to_store t = { .name = name, .ndim = w->ndim, .shape = w->shape, .count = w->count };
    if (w->type) t.get = get_numbers, t.from = w;
    else t.data = qkv_tensor_data(w);
    return t;
}

qkv_status qkv_params_save(const qkv_params *p, const char *path)
{
    qkv_status status = qkv_params_status(p);
    if (status) return status; /* half-made weights are no model */
    if (!path) return qkv__fail(QKV_USAGE, "save: a path is needed");
    int n = qkv_params_size(p);
    size_t bytes = sizeof(qkv__to_store) * (size_t)n;
    qkv__to_store *all = qkv__alloc(bytes);
    if (!all) return QKV_MEMORY;
    for (int i = 0; i < n; i++) {
        const qkv_tensor *w = qkv_params_at(p, i);
        all[i] = qkv__weight_to_store(qkv_params_name(p, i), w);
    }
    status = qkv__safetensors_write(path, n, all, 0, NULL);
    qkv__release(all, bytes);
    return status;
}

/* ---- load ---- */

/* The weight i of p, held against the file. Gives whether its values can be taken. */
static bool compare_weight(qkv__error_list *c, const qkv_params *p, int i, const qkv__safetensors *file)
{
    const char *name = qkv_params_name(p, i);
    const qkv_tensor *w = qkv_params_at(p, i);
    const qkv__stored *t = qkv__safetensors_find(file, name);
    if (!t) {
        qkv__error_list_add(c, "tensor \"%.200s\" is missing", name);
        return false;
    }
    bool same = t->ndim == w->ndim;
    for (int d = 0; same && d < w->ndim; d++) same = t->shape[d] == w->shape[d];
    if (!same) qkv__error_list_add(c, "tensor \"%.200s\" is %s, expected %s", name, QKV_TEXT(t), QKV_TEXT(w));
    return same;
}

/* A number that the optimizer has for a weight: "optimizer.0.NAME". */
static bool is_state(const qkv_params *p, const char *name)
{
    static const char prefix[] = "optimizer.";
    const char *digit = name + sizeof prefix - 1;
    return !strncmp(name, prefix, sizeof prefix - 1) && *digit >= '0' && *digit <= '9' && digit[1] == '.' &&
           qkv_params_find(p, digit + 2);
}

static qkv_status check_fit(const qkv_params *p, bool checkpoint, const qkv__safetensors *file)
{
    qkv__error_list wrong = { 0 }, types = { 0 };
    for (int i = 0; i < qkv_params_size(p); i++) {
        if (!compare_weight(&wrong, p, i, file)) continue;
        const qkv__stored *t = qkv__safetensors_find(file, qkv_params_name(p, i));
        if (!qkv__safetensors_decodes(t))
            qkv__error_list_add(&types, "tensor \"%.200s\" is %s, not a float type", t->name, t->dtype);
    }
    for (int i = 0; i < file->n; i++) {
        const char *name = file->tensors[i].name;
        if (!qkv_params_find(p, name) && !(checkpoint && is_state(p, name)))
            qkv__error_list_add(&wrong, "tensor \"%.200s\" has no place", name);
    }
    qkv_status status = qkv__error_list_end(&wrong, file->path, QKV_FORMAT);
    return status ? status : qkv__error_list_end(&types, file->path, QKV_UNSUPPORTED);
}

qkv_status qkv__params_read(const qkv_params *p, const char *path, bool checkpoint, qkv__safetensors *out)
{
    qkv_status status = qkv_params_status(p);
    if (status) return status;
    if (!path) return qkv__fail(QKV_USAGE, "load: a path is needed");
    status = qkv__safetensors_read(path, out);
    if (status) return status;
    status = check_fit(p, checkpoint, out);
    if (status) qkv__safetensors_free(out);
    return status;
}

qkv_status qkv_params_load(qkv_params *p, const char *path)
{
    qkv__safetensors file;
    qkv_status status = p ? qkv__params_materialize(p) : QKV_OK;
    if (!status) status = qkv__params_read(p, path, false, &file);
    if (status) return status;
    for (int i = 0; i < qkv_params_size(p); i++) /* nothing here can fail: all weights change, or none */
        qkv__safetensors_decode(qkv__safetensors_find(&file, qkv_params_name(p, i)), qkv_params_at(p, i)->data);
    qkv__safetensors_free(&file);
    return QKV_OK;
}
