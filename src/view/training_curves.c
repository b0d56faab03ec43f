/* training_curves.c: the losses of several trainings over one pair of axes, as a picture and as text. */
#include "../base/arena.h"
#include "../base/options.h"
#include "../text/out.h"

#include <qkv/view.h>

#include <stdio.h>
#include <string.h>

static const char call[] = "curves";
enum { NAME_BYTES = 256 };

typedef struct compared {
    qkv_training_curves *trainings; /* (n) */
    qkv_curve *curves;              /* those that have points, with names of their own */
    int64_t n, n_curves;
    qkv_curve_opts o;
    qkv__arena arena;
} compared;

/* "FOLDER: training loss"; of one training without its folder. */
static qkv_status add_curve(compared *c, const char *folder, const qkv_curve *curve)
{
    char *name = qkv__arena_take(&c->arena, NAME_BYTES);
    if (!name) return QKV_MEMORY;
    bool is_one = c->n == 1;
    snprintf(name, NAME_BYTES, "%.200s%s%s", is_one ? "" : folder, is_one ? "" : ": ", qkv__translated(curve->name));
    if (!curve->n) return QKV_OK;
    c->curves[c->n_curves] = *curve;
    c->curves[c->n_curves++].name = name;
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
        status = qkv_training_curves_read(folders[i], &c->trainings[i]);
        if (!status) status = add_curve(c, folders[i], &c->trainings[i].trained);
        if (!status) status = add_curve(c, folders[i], &c->trainings[i].valid);
    }
    if (!c->o.title && n == 1) c->o.title = folders[0];
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

qkv_status qkv_trainings_curves_text(const char *const *folders, int64_t n, const qkv_curve_opts *opts, qkv_text *out)
{
    compared c = { 0 };
    qkv_text curve = { 0 };
    if (!out) return qkv__fail(QKV_USAGE, "%s: a place for the text is needed", call);
    qkv_status status = read_trainings(&c, folders, n, opts);
    qkv__out all = qkv__out_begin(out);
    for (int64_t i = 0; i < c.n_curves && !status; i++) {
        status = qkv_curve_text(&c.curves[i], &c.o, &curve);
        if (!status) qkv__out_bytes(&all, curve.data, curve.length);
    }
    qkv_text_free(&curve);
    if (!all.status) all.status = status;
    return free_trainings(&c, qkv__out_end(&all));
}
