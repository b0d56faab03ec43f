/* checkpoints.c: the models that a training kept in its folder, as the engine is told of them. */
#include "checkpoints.h"

#include "../../src/base/file.h"
#include "../report/jansson_file.h"

#include "../draw/view.h"

#include <stdio.h>

enum { PATH_BYTES = 4096, RECORD_BYTES = 16 << 20 };

static int64_t step_of(const json_t *checkpoint) { return json_integer_value(json_object_get(checkpoint, "step")); }

/* Where the checkpoint of a step is or belongs: the oldest come first. */
static size_t place_of(const json_t *list, int64_t step)
{
    size_t i = 0;
    while (i < json_array_size(list) && step_of(json_array_get(list, i)) < step) i++;
    return i;
}

/* "step-N" in the folder of a training is a model if it has a config. */
static qkv_status add_kept(const char *folder, const char *name, json_t *list)
{
    char path[PATH_BYTES];
    int end = 0;
    long long step;
    if (sscanf(name, "step-%18lld%n", &step, &end) != 1 || name[end] || step < 1) return QKV_OK;
    if (snprintf(path, sizeof path, "%s/%s/config.json", folder, name) >= PATH_BYTES || !qkv__file_exists(path)) return QKV_OK;
    json_t *one = json_pack("{s:I, s:s}", "step", (json_int_t)step, "folder", name);
    return json_array_insert_new(list, place_of(list, step), one) ? qkv__fail(QKV_MEMORY, "%s: out of memory", path) : QKV_OK;
}

/* The folder's own model is that of the best validation, or of the last step where there was none. */
static qkv_status add_own(const json_t *record, json_t *list)
{
    int64_t best = json_integer_value(json_object_get(record, "best_step"));
    int64_t step = best ? best : json_integer_value(json_object_get(record, "steps"));
    size_t place = place_of(list, step);
    json_t *same = json_array_get(list, place);
    if (same && step_of(same) == step) return json_object_del(same, "folder"), QKV_OK;
    json_t *own = json_pack("{s:I}", "step", (json_int_t)step);
    return json_array_insert_new(list, place, own) ? qkv__fail(QKV_MEMORY, "page: out of memory") : QKV_OK;
}

/* The last value at or before the step; of a validation only the one at it. */
static void add_loss(const qkv_curve *c, bool is_exact, const char *name, json_t *one)
{
    const double step = (double)step_of(one);
    int64_t i = c->n;
    while (i && c->x[i - 1] > step) i--;
    if (i && (!is_exact || c->x[i - 1] >= step)) json_object_set_new(one, name, json_real(c->y[i - 1]));
}

/* A training whose log is lost still has its models. */
static qkv_status add_losses(const char *folder, json_t *list)
{
    qkv_training_curves curves = { 0 };
    qkv_status status = qkv_training_curves_read(folder, &curves);
    if (status) return status == QKV_MEMORY ? status : QKV_OK;
    for (size_t i = 0; i < json_array_size(list); i++) {
        add_loss(&curves.trained, false, "loss", json_array_get(list, i));
        add_loss(&curves.valid, true, "valid", json_array_get(list, i));
    }
    qkv_training_curves_free(&curves);
    return QKV_OK;
}

static qkv_status list_checkpoints(const char *folder, const json_t *record, json_t *list)
{
    qkv__names names;
    qkv_status status = list ? qkv__folder_list(folder, &names) : QKV_MEMORY;
    if (status) return status;
    for (size_t i = 0; i < names.n && !status; i++) status = add_kept(folder, names.at[i], list);
    qkv__names_free(&names);
    if (!status && json_array_size(list)) status = add_own(record, list);
    return status ? status : add_losses(folder, list);
}

qkv_status qkv__find_checkpoints(const char *folder, json_t **list)
{
    char path[PATH_BYTES];
    json_t *record = NULL;
    *list = NULL;
    if (snprintf(path, sizeof path, "%s/training.json", folder) >= PATH_BYTES || !qkv__file_exists(path)) return QKV_OK;
    qkv_status status = qkv__json_read(path, RECORD_BYTES, &record);
    if (!status) status = list_checkpoints(folder, record, *list = json_array());
    json_decref(record);
    if (!status && json_array_size(*list) > 1) return QKV_OK;
    json_decref(*list);
    *list = NULL;
    return status;
}

void qkv__thin_checkpoints(json_t *list, size_t most)
{
    size_t kept = 0, seen = 0;
    for (size_t i = 0; i < json_array_size(list); i++) kept += json_object_get(json_array_get(list, i), "folder") != NULL;
    for (size_t i = 0; kept > most && i < json_array_size(list);) {
        bool is_own = !json_object_get(json_array_get(list, i), "folder");
        /* of `kept` in a row these are `most`, spread evenly, with the first one */
        if (is_own || (seen++ * most) % kept < most) i++;
        else json_array_remove(list, i);
    }
}
