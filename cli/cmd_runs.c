/* cmd_runs.c: qkv runs: trainings side by side: how they went, and the options that differ. */
#include "options.h"
#include "streams.h"
#include "term/print.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    value_list folders;
    bool json;
} given;

static const option options[] = {
    { "folder", .value = "DIR", .help = "folders of trainings", .required = true, .plain = true, .list = &given.folders },
    { "json", .help = "a JSON object a line, with all options", .flag = &given.json },
    RESULT_ROW(NO_GROUP),
    { 0 },
};

/* One training, as training.json and log.jsonl tell of it. */
typedef struct training_run {
    const char *folder;
    json_t *record;
    double minutes; /* of all its runs */
} training_run;

/* ---- reading ---- */

/* Seconds count from the start of a run, so a smaller number begins another one. A line that is torn, or a validation, has
 * none. */
static double sum_minutes(FILE *log)
{
    double total = 0, last = 0;
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, log) >= 0) {
        json_t *report = json_loads(line, 0, NULL);
        const json_t *seconds = json_object_get(report, "seconds");
        if (json_is_number(seconds)) {
            double now = json_number_value(seconds);
            if (now < last) total += last;
            last = now;
        }
        json_decref(report);
    }
    free(line);
    return (total + last) / 60;
}

static qkv_status read_run(training_run *r)
{
    char path[4096];
    json_error_t error;
    snprintf(path, sizeof path, "%.4000s/training.json", r->folder);
    FILE *f = fopen(path, "re");
    if (!f) return fail(QKV_IO, "%s: %s: it is no training's folder", path, strerror(errno));
    r->record = json_loadf(f, 0, &error);
    fclose(f);
    if (!r->record) return fail(QKV_FORMAT, "%s: line %d: %s", path, error.line, error.text);
    if (!json_is_object(json_object_get(r->record, "options")))
        return fail(QKV_FORMAT, "%s: it does not tell the options of a training", path);
    snprintf(path, sizeof path, "%.4000s/log.jsonl", r->folder);
    if (!(f = fopen(path, "re"))) return QKV_OK; /* it has not begun */
    r->minutes = sum_minutes(f);
    fclose(f);
    return QKV_OK;
}

/* ---- telling ---- */

static const char *option_of(const training_run *r, const char *name)
{
    const char *value = json_string_value(json_object_get(json_object_get(r->record, "options"), name));
    return value ? value : "";
}

static bool differs(const training_run *runs, int n, const char *name)
{
    for (int i = 1; i < n; i++)
        if (strcmp(option_of(&runs[i], name), option_of(&runs[0], name))) return true;
    return false;
}

/* Cells of a table, row by row, the first row its heading. */
typedef struct cells {
    char (*at)[64];
    int rows, columns;
} cells;

static char *cell(const cells *c, int row, int column) { return c->at[row * c->columns + column]; }

static void fill_run(const cells *c, int row, const training_run *r)
{
    int64_t best_step = json_integer_value(json_object_get(r->record, "best_step"));
    const json_t *score = json_object_get(r->record, "best_score");
    const char *stopped = json_string_value(json_object_get(r->record, "stopped"));
    snprintf(cell(c, row, 0), 64, "%s", r->folder);
    snprintf(cell(c, row, 1), 64, "%s", json_string_value(json_object_get(r->record, "job")));
    snprintf(cell(c, row, 2), 64, "%lld", (long long)json_integer_value(json_object_get(r->record, "steps")));
    snprintf(cell(c, row, 3), 64, "%.1f", r->minutes);
    if (score) snprintf(cell(c, row, 4), 64, "%.4f at %lld", json_number_value(score), (long long)best_step);
    snprintf(cell(c, row, 5), 64, "%s", stopped && *stopped ? stopped : "not yet");
}

enum { FIXED = 6 };

static void fill_cells(const cells *c, const training_run *runs, int n, const char *const *names)
{
    static const char *const headings[FIXED] = { "folder", "job", "steps", "minutes", "best", "ended" };
    for (int k = 0; k < c->columns; k++) snprintf(cell(c, 0, k), 64, "%s", k < FIXED ? headings[k] : names[k - FIXED]);
    for (int i = 0; i < n; i++) {
        fill_run(c, i + 1, &runs[i]);
        for (int k = FIXED; k < c->columns; k++) snprintf(cell(c, i + 1, k), 64, "%s", option_of(&runs[i], names[k - FIXED]));
    }
}

static void print_cells(const cells *c)
{
    for (int row = 0; row < c->rows; row++) {
        for (int k = 0; k < c->columns; k++) {
            int width = 0;
            for (int i = 0; i < c->rows; i++)
                if (display_width(cell(c, i, k)) > width) width = display_width(cell(c, i, k));
            if (k + 1 < c->columns) print_name(cell(c, row, k), width + 2, false);
            else fputs(cell(c, row, k), stdout);
        }
        putchar('\n');
    }
}

static qkv_status print_runs(const training_run *runs, int n)
{
    json_t *all = json_object(), *value;
    const char *name;
    int columns = 0;
    for (int i = 0; i < n; i++) json_object_update(all, json_object_get(runs[i].record, "options"));
    const char **names = calloc(json_object_size(all) + 1, sizeof *names);
    json_object_foreach (all, name, value)
        if (names && differs(runs, n, name)) names[columns++] = name;
    cells c = { .rows = n + 1, .columns = FIXED + columns };
    c.at = calloc((size_t)(c.rows * c.columns), sizeof *c.at);
    qkv_status status = names && c.at ? QKV_OK : fail(QKV_MEMORY, "out of memory");
    if (!status) fill_cells(&c, runs, n, names), print_cells(&c);
    free(c.at);
    free(names);
    json_decref(all);
    return status;
}

static qkv_status print_objects(const training_run *runs, int n)
{
    for (int i = 0; i < n; i++) {
        json_t *one = json_pack("{s:s, s:f}", "folder", runs[i].folder, "minutes", round(100 * runs[i].minutes) / 100);
        if (one) json_object_update(one, runs[i].record);
        char *text = one ? json_dumps(one, JSON_REAL_PRECISION(9)) : NULL;
        json_decref(one);
        if (!text) return fail(QKV_MEMORY, "out of memory");
        puts(text);
        free(text);
    }
    return QKV_OK;
}

static qkv_status run_runs(void)
{
    int n = given.folders.n;
    training_run *runs = calloc((size_t)n + 1, sizeof *runs);
    qkv_status status = runs ? QKV_OK : fail(QKV_MEMORY, "out of memory");
    for (int i = 0; i < n && !status; i++) {
        runs[i].folder = given.folders.at[i];
        status = read_run(&runs[i]);
    }
    if (!status) status = open_results(NULL);
    if (!status) status = given.json ? print_objects(runs, n) : print_runs(runs, n);
    for (int i = 0; runs && i < n; i++) json_decref(runs[i].record);
    free(runs);
    return status;
}

const command runs_command = {
    .name = "runs",
    .summary = "list trainings: how they went, and what differs",
    .about = "A line for each training: its folder, job, updates, minutes, best score and when, why\n"
             "it ended, and each option that is not the same in all of them. A score is higher\n"
             "where the model is better: BLEU, accuracy, or the loss below 0.",
    .example = "  qkv runs models/*",
    .options = options,
    .run = run_runs,
};
