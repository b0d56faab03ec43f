/* training_log.c: how trainings went, from the files in their folders: curves of their losses, and several side by side. */
#include "../base/size.h"
#include "../io/json.h"
#include "../text/out.h"

#include <qkv/view.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, CELL_BYTES = 64, RECORD_LIMIT = 64 << 20 };
static const size_t log_limit = (size_t)1 << 32;

/* ---- log.jsonl, line by line ---- */

typedef struct reports {
    qkv__bytes file;
    size_t at;
    long long number; /* of the line that was read last, from 1; empty ones do not count */
    json_error_t error;
} reports;

/* The report of the next whole line; NULL, with the error, for one that is no JSON. A last line without its end is what a
 * killed run was writing. */
static bool next_report(reports *r, json_t **report)
{
    while (r->at < r->file.size) {
        const char *line = (const char *)r->file.data + r->at, *end = memchr(line, '\n', r->file.size - r->at);
        if (!end) return false;
        r->at += (size_t)(end - line) + 1;
        if (end == line) continue;
        r->number++;
        *report = json_loadb(line, (size_t)(end - line), 0, &r->error);
        return true;
    }
    return false;
}

/* ---- curves ---- */

typedef struct points {
    double *x, *y;
    int64_t n;
    size_t x_bytes, y_bytes;
} points;

struct qkv_training_curves_work {
    points trained, valid;
};

/* A run that was resumed has gone back: what it did after that step counts no more. */
static qkv_status add_point(points *p, double x, double y)
{
    while (p->n && p->x[p->n - 1] >= x) p->n--;
    size_t wanted = (size_t)(p->n + 1) * sizeof(double);
    if (qkv__grow((void **)&p->x, &p->x_bytes, wanted) || qkv__grow((void **)&p->y, &p->y_bytes, wanted)) return QKV_MEMORY;
    p->x[p->n] = x;
    p->y[p->n++] = y;
    return QKV_OK;
}

static qkv_status take_report(const char *path, const reports *r, const json_t *report, struct qkv_training_curves_work *w)
{
    const json_t *step = json_object_get(report, "step"), *loss = json_object_get(report, "loss");
    const json_t *valid = json_object_get(report, "valid_loss");
    if (!json_is_number(step) || !(json_is_number(loss) || json_is_number(valid)))
        return qkv__fail(QKV_FORMAT, "%s: line %lld is no report of a training: %s", path, r->number,
                         report ? "it wants \"step\" and \"loss\" or \"valid_loss\"" : r->error.text);
    qkv_status status = QKV_OK;
    if (json_is_number(loss)) status = add_point(&w->trained, json_number_value(step), json_number_value(loss));
    if (!status && json_is_number(valid)) status = add_point(&w->valid, json_number_value(step), json_number_value(valid));
    return status;
}

static qkv_status read_reports(const char *path, struct qkv_training_curves_work *w)
{
    reports r = { 0 };
    json_t *report;
    qkv_status status = qkv__stream_read(path, log_limit, &r.file);
    while (!status && next_report(&r, &report)) {
        status = take_report(path, &r, report, w);
        json_decref(report);
    }
    qkv__bytes_free(&r.file);
    if (!status && !w->trained.n && !w->valid.n) status = qkv__fail(QKV_FORMAT, "%s: there are no reports yet", path);
    return status;
}

static qkv_status find_log(const char *folder, char path[PATH_BYTES])
{
    bool is_folder;
    qkv_status status = qkv__is_folder(folder, &is_folder);
    if (status) return status;
    if (snprintf(path, PATH_BYTES, "%s%s", folder, is_folder ? "/log.jsonl" : "") >= PATH_BYTES)
        return qkv__fail(QKV_USAGE, "the path is too long");
    if (!is_folder || qkv__file_exists(path)) return QKV_OK;
    return qkv__fail(QKV_IO, "%s: there is no log.jsonl: is this the folder of a training?", folder);
}

static void free_points(points *p)
{
    qkv__release(p->x, p->x_bytes);
    qkv__release(p->y, p->y_bytes);
}

void qkv_training_curves_free(qkv_training_curves *c)
{
    if (!c) return;
    if (c->work) free_points(&c->work->trained), free_points(&c->work->valid);
    qkv__release(c->work, sizeof *c->work);
    *c = (qkv_training_curves){ 0 };
}

qkv_status qkv_training_curves_read(const char *path, qkv_training_curves *out)
{
    char log[PATH_BYTES];
    if (!path || !out) return qkv__fail(QKV_USAGE, "training: a folder and a place for its curves are needed");
    qkv_training_curves_free(out);
    qkv_status status = find_log(path, log);
    if (status) return status;
    struct qkv_training_curves_work *w = out->work = qkv__alloc_zero(sizeof *w);
    if (!w) return QKV_MEMORY;
    if ((status = read_reports(log, w))) return qkv_training_curves_free(out), status;
    out->trained = (qkv_curve){ QKV__N("training loss"), w->trained.x, w->trained.y, w->trained.n };
    out->valid = (qkv_curve){ QKV__N("validation loss"), w->valid.x, w->valid.y, w->valid.n };
    return QKV_OK;
}

/* ---- trainings side by side: reading ---- */

/* One training, as training.json and log.jsonl tell of it. */
typedef struct training_run {
    const char *folder;
    json_t *record;
    double minutes; /* of all its runs */
} training_run;

/* Seconds count from the start of a run, so a smaller number begins another one. A line that is torn, or a validation, has
 * none. */
static double sum_minutes(reports *r)
{
    double total = 0, last = 0;
    json_t *report;
    while (next_report(r, &report)) {
        const json_t *seconds = json_object_get(report, "seconds");
        double now = json_number_value(seconds);
        if (json_is_number(seconds) && now < last) total += last;
        if (json_is_number(seconds)) last = now;
        json_decref(report);
    }
    return (total + last) / 60;
}

static qkv_status read_run(training_run *r)
{
    char path[PATH_BYTES];
    reports log = { 0 };
    snprintf(path, sizeof path, "%.4000s/training.json", r->folder);
    if (!qkv__file_exists(path)) return qkv__fail(QKV_IO, "%s: %s: it is no training's folder", path, strerror(ENOENT));
    qkv_status status = qkv__json_read(path, RECORD_LIMIT, &r->record);
    if (status) return status;
    if (!json_is_object(json_object_get(r->record, "options")))
        return qkv__fail(QKV_FORMAT, "%s: it does not tell the options of a training", path);
    snprintf(path, sizeof path, "%.4000s/log.jsonl", r->folder);
    if (!qkv__file_exists(path)) return QKV_OK; /* it has not begun */
    if ((status = qkv__file_read(path, log_limit, &log.file))) return status;
    r->minutes = sum_minutes(&log);
    qkv__bytes_free(&log.file);
    return QKV_OK;
}

/* ---- as a table ---- */

static const char *option_of(const training_run *r, const char *name)
{
    const char *value = json_string_value(json_object_get(json_object_get(r->record, "options"), name));
    return value ? value : "";
}

static bool differs(const training_run *runs, int64_t n, const char *name)
{
    for (int64_t i = 1; i < n; i++)
        if (strcmp(option_of(&runs[i], name), option_of(&runs[0], name))) return true;
    return false;
}

/* Cells of a table, row by row, the first row its heading. */
typedef struct cells {
    char (*at)[CELL_BYTES];
    int64_t rows, columns;
} cells;

static char *cell(const cells *c, int64_t row, int64_t column) { return c->at[row * c->columns + column]; }

static void fill_run(const cells *c, int64_t row, const training_run *r)
{
    int64_t best_step = json_integer_value(json_object_get(r->record, "best_step"));
    const json_t *score = json_object_get(r->record, "best_score");
    const char *stopped = json_string_value(json_object_get(r->record, "stopped"));
    const char *job = json_string_value(json_object_get(r->record, "job"));
    snprintf(cell(c, row, 0), CELL_BYTES, "%s", r->folder);
    snprintf(cell(c, row, 1), CELL_BYTES, "%s", job ? job : "");
    snprintf(cell(c, row, 2), CELL_BYTES, "%lld", (long long)json_integer_value(json_object_get(r->record, "steps")));
    snprintf(cell(c, row, 3), CELL_BYTES, "%.1f", r->minutes);
    if (score)
        snprintf(cell(c, row, 4), CELL_BYTES, qkv__translated("%.4f at %lld"), json_number_value(score), (long long)best_step);
    snprintf(cell(c, row, 5), CELL_BYTES, "%s", qkv__translated(stopped && *stopped ? stopped : QKV__N("not yet")));
}

enum { FIXED = 6 };

static void fill_cells(const cells *c, const training_run *runs, int64_t n, const char *const *names)
{
    static const char *const headings[FIXED] = { QKV__N("folder"),  QKV__N("job"),  QKV__N("steps"),
                                                 QKV__N("minutes"), QKV__N("best"), QKV__N("ended") };
    for (int64_t k = 0; k < c->columns; k++)
        snprintf(cell(c, 0, k), CELL_BYTES, "%s", k < FIXED ? qkv__translated(headings[k]) : names[k - FIXED]);
    for (int64_t i = 0; i < n; i++) {
        fill_run(c, i + 1, &runs[i]);
        for (int64_t k = FIXED; k < c->columns; k++)
            snprintf(cell(c, i + 1, k), CELL_BYTES, "%s", option_of(&runs[i], names[k - FIXED]));
    }
}

static int column_width(const cells *c, int64_t column)
{
    int width = 0;
    for (int64_t i = 0; i < c->rows; i++)
        if (qkv__width(cell(c, i, column)) > width) width = qkv__width(cell(c, i, column));
    return width;
}

static void put_cells(qkv__out *out, const cells *c)
{
    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t k = 0; k < c->columns; k++) {
            if (k + 1 < c->columns) qkv__out_name(out, cell(c, row, k), column_width(c, k) + 2, false);
            else qkv__out_printf(out, "%s\n", cell(c, row, k));
        }
}

/* names: room for that of every option. */
static qkv_status put_table(qkv__out *out, const training_run *runs, int64_t n, json_t *all, const char **names)
{
    const char *name;
    json_t *value;
    cells c = { .rows = n + 1, .columns = FIXED };
    json_object_foreach (all, name, value)
        if (differs(runs, n, name)) names[c.columns++ - FIXED] = name;
    size_t bytes = (size_t)(c.rows * c.columns) * sizeof *c.at;
    if (!(c.at = qkv__alloc_zero(bytes))) return QKV_MEMORY;
    fill_cells(&c, runs, n, names);
    put_cells(out, &c);
    qkv__release(c.at, bytes);
    return QKV_OK;
}

static qkv_status put_runs(qkv__out *out, const training_run *runs, int64_t n)
{
    json_t *all = json_object();
    for (int64_t i = 0; i < n; i++) json_object_update(all, json_object_get(runs[i].record, "options"));
    size_t bytes = (json_object_size(all) + 1) * sizeof(char *);
    const char **names = qkv__alloc_zero(bytes);
    qkv_status status = names ? put_table(out, runs, n, all, names) : QKV_MEMORY;
    qkv__release(names, bytes);
    json_decref(all);
    return status;
}

/* ---- as JSON ---- */

static void put_object(qkv__out *out, const training_run *run)
{
    json_t *one = json_pack("{s:s, s:f}", "folder", run->folder, "minutes", round(100 * run->minutes) / 100);
    if (one) json_object_update(one, run->record);
    qkv__out_value(out, one, JSON_REAL_PRECISION(9));
    qkv__out_printf(out, "\n");
    json_decref(one);
}

/* ---- the call ---- */

static qkv_status put_trainings(const char *const *folders, int64_t n, int json, training_run *runs, qkv__out *out)
{
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < n && !status; i++) {
        runs[i].folder = folders[i];
        status = folders[i] ? read_run(&runs[i]) : qkv__fail(QKV_USAGE, "training: folder %lld is NULL", (long long)i);
    }
    for (int64_t i = 0; json && i < n && !status; i++) put_object(out, &runs[i]);
    return status || json ? status : put_runs(out, runs, n);
}

qkv_status qkv_trainings_text(const char *const *folders, int64_t n, int json, qkv_text *out)
{
    size_t bytes;
    if (!folders || !out || n < 1 || !qkv__size_mul((size_t)n, sizeof(training_run), &bytes))
        return qkv__fail(QKV_USAGE, "training: folders, at least one, and a place for the text are needed");
    training_run *runs = qkv__alloc_zero(bytes);
    if (!runs) return QKV_MEMORY;
    qkv__out text = qkv__out_begin(out);
    qkv_status status = put_trainings(folders, n, json, runs, &text);
    if (status && !text.status) text.status = status;
    for (int64_t i = 0; i < n; i++) json_decref(runs[i].record);
    qkv__release(runs, bytes);
    return qkv__out_end(&text);
}
