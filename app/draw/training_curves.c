/* training_curves.c: the losses of several trainings over one pair of axes, as a picture and as text. */
#include "../../src/base/arena.h"
#include "../../src/base/options.h"
#include "../../src/base/file.h"
#include "../../src/base/json.h"
#include "../report/out.h"

#include "view.h"
#include "../term/translator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char call[] = "curves";
enum { NAME_BYTES = 256, PATH_BYTES = 4096, RECORD_BYTES = 16 << 20 };

typedef struct compared {
    qkv_training_curves *trainings; /* (n) */
    qkv_curve *curves;              /* those that have points, with names of their own */
    int64_t n, n_curves;
    qkv_curve_opts o;
    qkv__arena arena;
} compared;

/* The folder of a training, which may be given by the log in it. */
static void folder_of(const char *path, char folder[PATH_BYTES])
{
    static const char log[] = "/log.jsonl";
    snprintf(folder, PATH_BYTES, "%s", path);
    size_t n = strlen(folder), m = strlen(log);
    if (n > m && !strcmp(folder + n - m, log)) folder[n -= m] = '\0';
    while (n > 1 && folder[n - 1] == '/') folder[--n] = '\0';
}

/* What makes the training loss another one than that of validation, which has neither; "" where nothing is known of it. */
static qkv_status find_conditions(const char *path, const char **conditions)
{
    char folder[PATH_BYTES], record_path[PATH_BYTES + 16];
    qkv__json_doc record = { 0 };
    *conditions = "";
    folder_of(path, folder);
    snprintf(record_path, sizeof record_path, "%s/training.json", folder);
    qkv_status status = qkv__file_exists(record_path) ? qkv__json_load(record_path, RECORD_BYTES, &record) : QKV_OK;
    const qkv__json_value *options = qkv__json_get(record.top, "options");
    const char *dropout = qkv__json_get_text(options, "dropout");
    const char *smoothing = qkv__json_get_text(options, "label-smoothing");
    bool drops = dropout && atof(dropout) > 0, smooths = smoothing && atof(smoothing) > 0;
    qkv__json_free(&record);
    if (drops && smooths) *conditions = qkv__translated(" (with dropout and label smoothing)");
    else if (drops) *conditions = qkv__translated(" (with dropout)");
    else if (smooths) *conditions = qkv__translated(" (with label smoothing)");
    return status == QKV_MEMORY ? status : QKV_OK;
}

/* The last part of a folder's path. */
static const char *last_part(const char *folder)
{
    const char *slash = strrchr(folder, '/');
    return slash && slash[1] ? slash + 1 : folder;
}

/* "NAME: training loss (with dropout)"; of one training without its name. */
static qkv_status add_curve(compared *c, const char *name_of_one, const qkv_curve *curve, const char *conditions)
{
    char *name = qkv__arena_take(&c->arena, NAME_BYTES);
    if (!name) return QKV_MEMORY;
    bool is_one = c->n == 1;
    snprintf(name, NAME_BYTES, "%.120s%s%s%s", is_one ? "" : name_of_one, is_one ? "" : ": ", qkv__translated(curve->name),
             conditions);
    if (!curve->n) return QKV_OK;
    c->curves[c->n_curves] = *curve;
    c->curves[c->n_curves++].name = name;
    return QKV_OK;
}

/* "Training of en-zh": the last part of its path. */
static qkv_status name_after(compared *c, const char *path)
{
    char folder[PATH_BYTES], *title = qkv__arena_take(&c->arena, NAME_BYTES);
    if (!title) return QKV_MEMORY;
    folder_of(path, folder);
    snprintf(title, NAME_BYTES, qkv__translated("Training of %.200s"), last_part(folder));
    c->o.title = title;
    return QKV_OK;
}

static qkv_status read_trainings(compared *c, const char *const *folders, int64_t n, const qkv_curve_opts *opts)
{
    qkv_status status = QKV__READ_OPTIONS(&c->o, log_y, opts, call);
    if (!status && (!folders || n < 1)) status = qkv__fail(QKV_USAGE, "%s: the folders of trainings are needed", call);
    for (int64_t i = 0; i < n && !status; i++)
        if (!folders[i]) status = qkv__fail(QKV_USAGE, "%s: folder %lld is NULL", call, (long long)i);
    if (status) return status;
    c->trainings = qkv__arena_take(&c->arena, sizeof *c->trainings * (size_t)n);
    c->curves = qkv__arena_take(&c->arena, 2 * sizeof *c->curves * (size_t)n);
    if (!c->trainings || !c->curves) return QKV_MEMORY;
    memset(c->trainings, 0, sizeof *c->trainings * (size_t)n);
    c->n = n;
    for (int64_t i = 0; i < n && !status; i++) {
        const char *conditions, *name = last_part(folders[i]);
        bool is_unique = strcmp(name, "log.jsonl") != 0;
        for (int64_t k = 0; k < n; k++) is_unique = is_unique && (k == i || strcmp(last_part(folders[k]), name) != 0);
        if (!is_unique) name = folders[i];
        status = qkv_training_curves_read(folders[i], &c->trainings[i]);
        if (!status) status = find_conditions(folders[i], &conditions);
        if (!status) status = add_curve(c, name, &c->trainings[i].trained, conditions);
        if (!status) status = add_curve(c, name, &c->trainings[i].valid, "");
    }
    if (!status && !c->o.title && n == 1) status = name_after(c, folders[0]);
    if (!c->o.x_axis) c->o.x_axis = qkv__translated("step");
    if (!c->o.y_axis) c->o.y_axis = qkv__translated("loss");
    return status;
}

static qkv_status free_trainings(compared *c, qkv_status status)
{
    for (int64_t i = 0; i < c->n; i++) qkv_training_curves_free(&c->trainings[i]);
    qkv__arena_free(&c->arena);
    return status;
}

qkv_status qkv_picture_trainings(const char *path, const char *const *folders, int64_t n, const qkv_curve_opts *opts)
{
    compared c = { 0 };
    qkv_status status = read_trainings(&c, folders, n, opts);
    if (!status) status = qkv_picture_curves(path, c.curves, c.n_curves, &c.o);
    return free_trainings(&c, status);
}

qkv_status qkv_trainings_curves_text(const char *const *folders, int64_t n, const qkv_curve_opts *opts, qkv_buffer *out)
{
    compared c = { 0 };
    qkv_buffer curve = { 0 };
    if (!out) return qkv__fail(QKV_USAGE, "%s: a place for the text is needed", call);
    qkv_status status = read_trainings(&c, folders, n, opts);
    qkv__out all = qkv__out_begin(out);
    for (int64_t i = 0; i < c.n_curves && !status; i++) {
        status = qkv_curve_text(&c.curves[i], &c.o, &curve);
        if (!status) qkv__out_bytes(&all, curve.data, curve.length);
    }
    qkv_buffer_free(&curve);
    if (!all.status) all.status = status;
    return free_trainings(&c, qkv__out_end(&all));
}
