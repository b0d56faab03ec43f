/* training_log.c: how trainings went, from the files in their folders: curves of their losses, and several side by side. */
#include "../../src/base/file.h"

#include <qkv/unstable/util.h>
#include "../../src/base/json.h"
#include "../../src/base/size.h"
#include "../report/out.h"

#include "view.h"
#include "../term/translator.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, CELL_BYTES = 128, COLUMNS = 80, RECORD_LIMIT = 64 << 20 };
static const size_t log_limit = (size_t)1 << 32;

/* ---- log.jsonl, line by line ---- */

typedef struct reports {
    qkv__bytes file;
    size_t at;
    long long number;  /* of the line that was read last, from 1; empty ones do not count */
    qkv_status status; /* MEMORY; lines that are not JSON are the caller's business */
} reports;

/* The report of the next whole line; empty for one that is not JSON. A last line without its end is what a
 * killed run was writing. */
static bool next_report(reports *r, qkv__json_doc *report)
{
    while (r->at < r->file.size) {
        const char *line = (const char *)r->file.data + r->at, *end = memchr(line, '\n', r->file.size - r->at);
        if (!end) return false;
        r->at += (size_t)(end - line) + 1;
        if (end == line) continue;
        r->number++;
        const qkv__json_source source = {
            .name = "log", .text = line, .length = (size_t)(end - line), .flags = QKV__JSON_REPEATED
        };
        r->status = qkv__json_parse(&source, report);
        if (r->status == QKV_MEMORY) return false;
        r->status = QKV_OK;
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

/* NULL for a line that is not JSON. */
static qkv_status take_report(const char *path, const reports *r, const qkv__json_value *report,
                              struct qkv_training_curves_work *w)
{
    const qkv__json_value *step = qkv__json_get(report, "step"), *loss = qkv__json_get(report, "loss");
    const qkv__json_value *valid = qkv__json_get(report, "valid_loss");
    if (!qkv__json_is_number(step) || !(qkv__json_is_number(loss) || qkv__json_is_number(valid)))
        return qkv__fail(QKV_FORMAT, "%s: line %lld is no report of a training: %s", path, r->number,
                         report ? "it wants \"step\" and \"loss\" or \"valid_loss\"" : "it is not JSON");
    qkv_status status = QKV_OK;
    if (qkv__json_is_number(loss)) status = add_point(&w->trained, qkv__json_number(step), qkv__json_number(loss));
    if (!status && qkv__json_is_number(valid)) status = add_point(&w->valid, qkv__json_number(step), qkv__json_number(valid));
    return status;
}

static qkv_status read_reports(const char *path, struct qkv_training_curves_work *w)
{
    reports r = { 0 };
    qkv__json_doc report;
    qkv_status status = qkv__stream_read(path, log_limit, &r.file);
    while (!status && next_report(&r, &report)) {
        status = take_report(path, &r, report.top, w);
        qkv__json_free(&report);
    }
    if (!status) status = r.status;
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
    qkv__json_doc record;
    double minutes;   /* of all its runs */
    double best_loss; /* validation loss at the best step; below 0: none */
    bool is_measured; /* or there is no log that says that it is not */
} training_run;

/* Seconds count from the start of a run, so a smaller number begins another one. A line that is torn, or a validation, has
 * none. */
static void read_log(reports *r, training_run *run)
{
    double total = 0, last = 0;
    qkv__json_doc report;
    int64_t best_step = qkv__json_int(qkv__json_get(run->record.top, "best_step"));
    run->is_measured = false;
    while (next_report(r, &report)) {
        const qkv__json_value *seconds = qkv__json_get(report.top, "seconds"), *loss = qkv__json_get(report.top, "valid_loss");
        double now = qkv__json_number(seconds);
        if (qkv__json_is_number(seconds) && now < last) total += last;
        if (qkv__json_is_number(seconds)) last = now;
        else run->is_measured = true;
        if (qkv__json_is_number(loss) && qkv__json_int(qkv__json_get(report.top, "step")) == best_step)
            run->best_loss = qkv__json_number(loss);
        qkv__json_free(&report);
    }
    run->minutes = (total + last) / 60;
}

static qkv_status read_run(training_run *r)
{
    char path[PATH_BYTES];
    reports log = { 0 };
    r->best_loss = -1;
    r->is_measured = true;
    snprintf(path, sizeof path, "%.4000s/training.json", r->folder);
    if (!qkv__file_exists(path)) return qkv__fail(QKV_IO, "%s: %s: it is no training's folder", path, strerror(ENOENT));
    qkv_status status = qkv__json_load(path, RECORD_LIMIT, &r->record);
    if (status) return status;
    if (!qkv__json_is_object(qkv__json_get(r->record.top, "options")))
        return qkv__fail(QKV_FORMAT, "%s: it does not tell the options of a training", path);
    snprintf(path, sizeof path, "%.4000s/log.jsonl", r->folder);
    if (!qkv__file_exists(path)) return QKV_OK; /* it has not begun */
    if ((status = qkv__file_read(path, log_limit, &log.file))) return status;
    read_log(&log, r);
    qkv__bytes_free(&log.file);
    return log.status;
}

/* ---- as a table ---- */

static const char *option_of(const training_run *r, const char *name)
{
    const char *value = qkv__json_get_text(qkv__json_get(r->record.top, "options"), name);
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

/* As many characters of a text as there are columns, "..." for the others: its end, or its start. */
static void put_cell(char to[CELL_BYTES], const char *text, int columns, bool keeps_end)
{
    char start[CELL_BYTES];
    size_t bytes, used = 0;
    if (strlen(text) < CELL_BYTES && qkv__width(text) <= columns) {
        memcpy(to, text, strlen(text) + 1);
        return;
    }
    if (keeps_end) {
        for (; *text && (qkv__width(text) + 3 > columns || strlen(text) + 4 > CELL_BYTES); text += bytes ? bytes : 1)
            qkv_utf8_next(text, strlen(text), &bytes);
        snprintf(to, CELL_BYTES, "...%s", text);
        return;
    }
    for (*start = '\0'; text[used]; used += bytes) {
        qkv_utf8_next(text + used, strlen(text + used), &bytes);
        if (used + bytes + 4 > CELL_BYTES) break;
        memcpy(start + used, text + used, bytes);
        start[used + bytes] = '\0';
        if (qkv__width(start) + 3 <= columns) continue;
        start[used] = '\0';
        break;
    }
    snprintf(to, CELL_BYTES, "%.120s...", start);
}

/* "loss 5.8055 at 60", by what decided; nothing where nothing was measured. */
static void put_best(char to[CELL_BYTES], const training_run *r)
{
    const qkv__json_value *best = qkv__json_get(r->record.top, "best_score");
    const char *job = qkv__json_get_text(r->record.top, "job"), *metric = option_of(r, "metric");
    bool classifies = job && strstr(job, "classify") && !*option_of(r, "numbers");
    long long step = qkv__json_int(qkv__json_get(r->record.top, "best_step"));
    double score = qkv__json_number(best);
    if (!best || !r->is_measured) return;
    if (!strcmp(metric, "bleu")) snprintf(to, CELL_BYTES, qkv__translated("BLEU %.2f at %lld"), score, step);
    else if (classifies && strcmp(metric, "loss") && *option_of(r, "label-separator"))
        snprintf(to, CELL_BYTES, qkv__translated("micro F1 %.2f%% at %lld"), 100 * score, step);
    else if (classifies && strcmp(metric, "loss"))
        snprintf(to, CELL_BYTES, qkv__translated("accuracy %.2f%% at %lld"), 100 * score, step);
    else if (strcmp(metric, "last")) snprintf(to, CELL_BYTES, qkv__translated("loss %.4f at %lld"), -score, step);
    else if (r->best_loss >= 0) snprintf(to, CELL_BYTES, qkv__translated("loss %.4f at %lld"), r->best_loss, step);
}

/* A reason up to its colon, "--patience" of "--patience: validation stopped improving". */
static void put_ended(char to[CELL_BYTES], const training_run *r)
{
    char reason[CELL_BYTES];
    const char *stopped = qkv__json_get_text(r->record.top, "stopped");
    snprintf(reason, sizeof reason, "%s", stopped ? stopped : "");
    char *colon = strchr(reason, ':');
    if (colon) *colon = '\0';
    put_cell(to, qkv__translated(*reason ? reason : QKV__N("not yet")), 18, false);
}

enum { FOLDER, JOB, UPDATES, MINUTES, BEST, ENDED, FIXED };

static void fill_run(const cells *c, int64_t row, const training_run *r)
{
    const char *job = qkv__json_get_text(r->record.top, "job");
    put_cell(cell(c, row, FOLDER), r->folder, CELL_BYTES, true);
    put_cell(cell(c, row, JOB), job ? job + (strncmp(job, "train ", 6) ? 0 : 6) : "", 10, false);
    snprintf(cell(c, row, UPDATES), CELL_BYTES, "%lld", (long long)qkv__json_int(qkv__json_get(r->record.top, "steps")));
    snprintf(cell(c, row, MINUTES), CELL_BYTES, "%.1f", r->minutes);
    put_best(cell(c, row, BEST), r);
    put_ended(cell(c, row, ENDED), r);
}

static void fill_cells(const cells *c, const training_run *runs, int64_t n, const char *const *names)
{
    static const char *const headings[FIXED] = { QKV__N("folder"),  QKV__N("job"),  QKV__N("steps"),
                                                 QKV__N("minutes"), QKV__N("best"), QKV__N("ended") };
    for (int64_t k = 0; k < c->columns; k++)
        put_cell(cell(c, 0, k), k < FIXED ? qkv__translated(headings[k]) : names[k - FIXED], COLUMNS, false);
    for (int64_t i = 0; i < n; i++) {
        fill_run(c, i + 1, &runs[i]);
        for (int64_t k = FIXED; k < c->columns; k++)
            put_cell(cell(c, i + 1, k), option_of(&runs[i], names[k - FIXED]), COLUMNS, true);
    }
}

static int column_width(const cells *c, int64_t column)
{
    int width = 0;
    for (int64_t i = 0; i < c->rows; i++)
        if (qkv__width(cell(c, i, column)) > width) width = qkv__width(cell(c, i, column));
    return width;
}

static void put_cells(qkv__out *out, const cells *c, int64_t columns)
{
    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t k = 0; k < columns; k++) {
            if (k + 1 < columns) qkv__out_name(out, cell(c, row, k), column_width(c, k) + 2, false);
            else qkv__out_printf(out, "%s\n", cell(c, row, k));
        }
}

static int table_width(const cells *c, int64_t columns)
{
    int width = -2;
    for (int64_t k = 0; k < columns; k++) width += column_width(c, k) + 2;
    return width;
}

/* Below a table that has no room for them: "folder  --dim 16 --pre-norm", as many lines as it takes. */
static void put_differing(qkv__out *out, const cells *c, const training_run *runs, int64_t n, const char *const *names,
                          int64_t n_names)
{
    char text[CELL_BYTES + 64], value[CELL_BYTES];
    int indent = column_width(c, FOLDER) + 2;
    qkv__out_printf(out, qkv__translated("\noptions that differ\n"));
    for (int64_t i = 0; i < n; i++) {
        int used = indent;
        qkv__out_name(out, cell(c, i + 1, FOLDER), indent, false);
        for (int64_t k = 0; k < n_names; k++) {
            const char *is = option_of(&runs[i], names[k]);
            bool is_flag = !strcmp(is, "yes");
            if (!*is) continue;
            put_cell(value, is, COLUMNS - indent - (int)strlen(names[k]) - 3, true);
            snprintf(text, sizeof text, "--%s%s%s", names[k], is_flag ? "" : " ", is_flag ? "" : value);
            int taken = qkv__width(text);
            if (used > indent && used + 1 + taken > COLUMNS) qkv__out_printf(out, "\n%*s", indent, ""), used = indent;
            qkv__out_printf(out, "%s%s", used > indent ? " " : "", text);
            used += taken + (used > indent);
        }
        qkv__out_printf(out, "\n");
    }
}

/* Folders are cut where they are long, so that the table fits the columns; options that differ are below where they do not fit.
 * The first n_names of names are all options; they are replaced by those that differ. */
static qkv_status put_table(qkv__out *out, const training_run *runs, int64_t n, const char **names, int64_t n_names)
{
    enum { LEAST_FOLDER = 12 };
    cells c = { .rows = n + 1, .columns = FIXED };
    for (int64_t i = 0; i < n_names; i++)
        if (differs(runs, n, names[i])) names[c.columns++ - FIXED] = names[i];
    size_t bytes = (size_t)(c.rows * c.columns) * sizeof *c.at;
    if (!(c.at = qkv__alloc_zero(bytes))) return QKV_MEMORY;
    fill_cells(&c, runs, n, names);
    int64_t columns = c.columns;
    bool fits = table_width(&c, columns) <= COLUMNS;
    int excess = table_width(&c, FIXED) - COLUMNS, folder = column_width(&c, FOLDER) - excess;
    if (excess > 0) {
        for (int64_t i = 0; i < n; i++)
            put_cell(cell(&c, i + 1, FOLDER), runs[i].folder, folder > LEAST_FOLDER ? folder : LEAST_FOLDER, true);
    }
    put_cells(out, &c, fits ? columns : FIXED);
    if (!fits && columns > FIXED) put_differing(out, &c, runs, n, names, columns - FIXED);
    qkv__release(c.at, bytes);
    return QKV_OK;
}

static const qkv__json_value *options_of(const training_run *r) { return qkv__json_get(r->record.top, "options"); }

/* Lists the options of all runs, each once, in the order of their first appearance. */
static int64_t list_options(const training_run *runs, int64_t n, const char **names)
{
    int64_t n_names = 0;
    for (int64_t k = 0; k < n; k++)
        for (size_t i = 0; i < qkv__json_size(options_of(&runs[k])); i++) {
            const char *name = qkv__json_key(options_of(&runs[k]), i);
            int64_t at = 0;
            while (at < n_names && strcmp(names[at], name)) at++;
            if (at == n_names) names[n_names++] = name;
        }
    return n_names;
}

static qkv_status put_runs(qkv__out *out, const training_run *runs, int64_t n)
{
    size_t bytes = sizeof(char *);
    for (int64_t i = 0; i < n; i++) bytes += qkv__json_size(options_of(&runs[i])) * sizeof(char *);
    const char **names = qkv__alloc_zero(bytes);
    qkv_status status = names ? put_table(out, runs, n, names, list_options(runs, n, names)) : QKV_MEMORY;
    qkv__release(names, bytes);
    return status;
}

/* ---- as JSON ---- */

static void put_object(qkv__out *out, const training_run *run)
{
    const qkv__json_value *record = run->record.top;
    qkv__json_writer w = { .style = QKV__JSON_SPACED, .digits = QKV__JSON_FLOAT };
    qkv__json_open_object(&w, NULL);
    qkv__json_put_text(&w, "folder", run->folder);
    qkv__json_put_real(&w, "minutes", round(100 * run->minutes) / 100, QKV__JSON_FLOAT);
    for (size_t i = 0; i < qkv__json_size(record); i++) {
        const char *key = qkv__json_key(record, i);
        if (strcmp(key, "folder") && strcmp(key, "minutes")) qkv__json_put_value(&w, key, qkv__json_at(record, i));
    }
    qkv__json_close(&w);
    if (w.status && !out->status) out->status = w.status;
    qkv__out_bytes(out, w.text, w.length);
    qkv__out_bytes(out, "\n", 1);
    qkv__json_writer_free(&w);
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

qkv_status qkv_trainings_text(const char *const *folders, int64_t n, int json, qkv_buffer *out)
{
    size_t bytes;
    if (!folders || !out || n < 1 || !qkv__size_mul((size_t)n, sizeof(training_run), &bytes))
        return qkv__fail(QKV_USAGE, "training: folders, at least one, and a place for the text are needed");
    training_run *runs = qkv__alloc_zero(bytes);
    if (!runs) return QKV_MEMORY;
    qkv__out text = qkv__out_begin(out);
    qkv_status status = put_trainings(folders, n, json, runs, &text);
    if (status && !text.status) text.status = status;
    for (int64_t i = 0; i < n; i++) qkv__json_free(&runs[i].record);
    qkv__release(runs, bytes);
    return qkv__out_end(&text);
}
