/* checkpoints.c: the models that a training kept in its folder, as the engine is told of them. */
#include "checkpoints.h"

#include "../../src/base/file.h"

#include "../draw/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096, RECORD_BYTES = 16 << 20 };

/* Inserts a checkpoint before those of later steps. */
static qkv_status add_kept(qkv__kept_list *list, int64_t step, const char *folder)
{
    qkv__kept one = { .step = step, .loss = NAN, .valid = NAN };
    size_t i = list->n;
    if (qkv__grow((void **)&list->all, &list->bytes, (list->n + 1) * sizeof one)) return QKV_MEMORY;
    if (folder && !(one.folder = qkv__copy_text(folder))) return QKV_MEMORY;
    for (; i && list->all[i - 1].step >= step; i--) list->all[i] = list->all[i - 1];
    list->all[i] = one;
    list->n++;
    return QKV_OK;
}

/* "step-N" in the folder of a training is a model if it has a config. */
static qkv_status add_folder(const char *folder, const char *name, qkv__kept_list *list)
{
    char path[PATH_BYTES];
    int end = 0;
    long long step;
    if (sscanf(name, "step-%18lld%n", &step, &end) != 1 || name[end] || step < 1) return QKV_OK;
    if (snprintf(path, sizeof path, "%s/%s/config.json", folder, name) >= PATH_BYTES || !qkv__file_exists(path)) return QKV_OK;
    return add_kept(list, step, name);
}

/* The folder's own model is that of the best validation, or of the last step where there was none. */
static qkv_status add_own(const qkv__json_value *record, qkv__kept_list *list)
{
    int64_t best = qkv__json_int(qkv__json_get(record, "best_step"));
    int64_t step = best ? best : qkv__json_int(qkv__json_get(record, "steps"));
    for (size_t i = 0; i < list->n; i++) {
        if (list->all[i].step != step) continue;
        qkv__release_text(list->all[i].folder);
        list->all[i].folder = NULL;
        return QKV_OK;
    }
    return add_kept(list, step, NULL);
}

/* The last value at or before the step; of a validation only the one at it. */
static double loss_at(const qkv_curve *c, bool is_exact, int64_t step)
{
    int64_t i = c->n;
    while (i && c->x[i - 1] > (double)step) i--;
    return i && (!is_exact || c->x[i - 1] >= (double)step) ? c->y[i - 1] : NAN;
}

/* A training whose log is lost still has its models. */
static qkv_status add_losses(const char *folder, qkv__kept_list *list)
{
    qkv_training_curves curves = { 0 };
    qkv_status status = qkv_training_curves_read(folder, &curves);
    if (status) return status == QKV_MEMORY ? status : QKV_OK;
    for (size_t i = 0; i < list->n; i++) {
        list->all[i].loss = loss_at(&curves.trained, false, list->all[i].step);
        list->all[i].valid = loss_at(&curves.valid, true, list->all[i].step);
    }
    qkv_training_curves_free(&curves);
    return QKV_OK;
}

static qkv_status list_checkpoints(const char *folder, const qkv__json_value *record, qkv__kept_list *list)
{
    qkv__names names;
    qkv_status status = qkv__folder_list(folder, &names);
    if (status) return status;
    for (size_t i = 0; i < names.n && !status; i++) status = add_folder(folder, names.at[i], list);
    qkv__names_free(&names);
    if (!status && list->n) status = add_own(record, list);
    return status ? status : add_losses(folder, list);
}

qkv_status qkv__find_checkpoints(const char *folder, qkv__kept_list *list)
{
    char path[PATH_BYTES];
    qkv__json_doc record;
    *list = (qkv__kept_list){ 0 };
    if (snprintf(path, sizeof path, "%s/training.json", folder) >= PATH_BYTES || !qkv__file_exists(path)) return QKV_OK;
    qkv_status status = qkv__json_load(path, RECORD_BYTES, &record);
    if (!status) status = list_checkpoints(folder, record.top, list);
    qkv__json_free(&record);
    if (status || list->n < 2) qkv__kept_free(list);
    return status;
}

void qkv__kept_free(qkv__kept_list *list)
{
    for (size_t i = 0; i < list->n; i++) qkv__release_text(list->all[i].folder);
    qkv__release(list->all, list->bytes);
    *list = (qkv__kept_list){ 0 };
}

void qkv__thin_checkpoints(qkv__kept_list *list, size_t most)
{
    size_t kept = 0, seen = 0, n = 0;
    for (size_t i = 0; i < list->n; i++) kept += list->all[i].folder != NULL;
    for (size_t i = 0; i < list->n; i++) {
        /* of `kept` in a row these are `most`, spread evenly, with the first one */
        bool stays = kept <= most || !list->all[i].folder || (seen++ * most) % kept < most;
        if (stays) list->all[n++] = list->all[i];
        else qkv__release_text(list->all[i].folder);
    }
    list->n = n;
}

void qkv__put_kept(const qkv__kept_list *list, qkv__json_writer *w)
{
    qkv__json_open_array(w, NULL);
    for (size_t i = 0; i < list->n; i++) {
        const qkv__kept *one = &list->all[i];
        qkv__json_open_object(w, NULL);
        qkv__json_put_int(w, "step", one->step);
        if (one->folder) qkv__json_put_text(w, "folder", one->folder);
        if (isfinite(one->loss)) qkv__json_put_real(w, "loss", one->loss, QKV__JSON_FLOAT);
        if (isfinite(one->valid)) qkv__json_put_real(w, "valid", one->valid, QKV__JSON_FLOAT);
        qkv__json_close(w);
    }
    qkv__json_close(w);
}
