/* classified_table.c: classify the rows of a table or of JSON lines, and write them with their predictions. */
#include "../report/results.h"
#include "classified_table.h"

#include "json.h"
#include "lines.h"
#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

typedef enum row_form { AS_LINES, AS_TABLE, AS_OBJECTS } row_form;

/* A copy of one row: n columns, each ends with a NUL. */
typedef struct table_row {
    char **columns;
    size_t *lengths;
    int64_t n, line;
    char *text, *pair; /* "": there is nothing to classify; pair NULL: none */
    size_t text_length, pair_length;
} table_row;

typedef struct table_work {
    const table_task *task;
    row_form form;
    text_stream in; /* the input, to check that --out is another file */
    table_row header, *rows;
    int64_t n_rows, n_columns, cut;
    char in_separator, separator;   /* of the columns that are read; of those that are written */
    bool is_raw, is_open, has_mark; /* is_raw: fields are written as they are */
    bool is_reported;               /* the error */
    qkv_matrix *found;
    qkv_buffer said;
} table_work;

/* ---- paths ---- */

static bool ends_with(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    if (n > 3 && !strcmp(path + n - 3, ".gz") && strcmp(ending, ".gz")) n -= 3;
    return n >= m && !strncasecmp(path + n - m, ending, m);
}

static bool is_objects_path(const char *path) { return ends_with(path, ".jsonl") || ends_with(path, ".json"); }

bool is_table_path(const char *path) { return ends_with(path, ".csv") || ends_with(path, ".tsv") || is_objects_path(path); }

static row_form form_of_output(void)
{
    if (!streams.out) return AS_LINES;
    if (ends_with(streams.out, ".csv") || ends_with(streams.out, ".tsv")) return AS_TABLE;
    return ends_with(streams.out, ".jsonl") ? AS_OBJECTS : AS_LINES;
}

qkv_status check_table_output(bool json)
{
    row_form form = form_of_output();
    bool reads_objects = streams.input && is_objects_path(streams.input);
    if (form == AS_LINES && streams.out &&
        (ends_with(streams.out, ".xlsx") || ends_with(streams.out, ".xls") || ends_with(streams.out, ".ods")))
        return fail(QKV_USAGE, "--out %s: no workbooks are written: give a name that ends in .csv", streams.out);
    if (form != AS_LINES && json) return fail(QKV_USAGE, "--json and --out %s: choose one", streams.out);
    if (form == AS_TABLE && reads_objects)
        return fail(QKV_USAGE, "--out %s: JSON lines have no columns: give a name that ends in .jsonl", streams.out);
    if (form == AS_OBJECTS && !reads_objects)
        return fail(QKV_USAGE, "--out %s: a table does not become JSON lines: give a name that ends in .csv or .tsv",
                    streams.out);
    return QKV_OK;
}

/* ---- rows ---- */

static void free_row(table_row *r)
{
    free(r->columns);
    *r = (table_row){ 0 };
}

/* Its pointers, lengths and bytes, in one piece of memory. */
static qkv_status copy_row(table_row *r, const qkv_labelled *x)
{
    size_t n = (size_t)x->n_columns, room = n * (sizeof *r->columns + sizeof *r->lengths) + x->text.length + x->pair.length + 2;
    for (size_t i = 0; i < n; i++) room += x->columns[i].length + 1;
    free_row(r);
    if (!(r->columns = malloc(room))) return fail(QKV_MEMORY, "out of memory");
    r->lengths = (size_t *)(r->columns + n);
    char *at = (char *)(r->lengths + n);
    r->n = x->n_columns;
    r->line = x->line;
    for (size_t i = 0; i < n + 2; i++) {
        const qkv_str from = i < n ? x->columns[i] : i == n ? x->text : x->pair;
        char **to = i < n ? &r->columns[i] : i == n ? &r->text : &r->pair;
        *(i < n ? &r->lengths[i] : i == n ? &r->text_length : &r->pair_length) = from.length;
        if (!from.data) continue;
        memcpy(at, from.data, from.length);
        at[from.length] = '\0';
        *to = at;
        at += from.length + 1;
    }
    return QKV_OK;
}

/* ---- results ---- */

/* Fields are in quotes where RFC 4180 wants it; those of TSV without quotes stay as they are. */
static void put_field(const table_work *w, const char *text, size_t length, bool is_first)
{
    bool quotes = false;
    for (size_t i = 0; i < length && !w->is_raw; i++) quotes = quotes || strchr("\"\r\n", text[i]) || text[i] == w->separator;
    if (!is_first) putchar(w->separator);
    if (quotes) putchar('"');
    for (size_t i = 0; i < length; i++) {
        if (quotes && text[i] == '"') putchar('"');
        putchar(text[i]);
    }
    if (quotes) putchar('"');
}

static void put_columns(const table_work *w, const table_row *r)
{
    for (int64_t i = 0; i < w->n_columns; i++) put_field(w, i < r->n ? r->columns[i] : "", i < r->n ? r->lengths[i] : 0, !i);
}

/* A name that no column has: with _2, _3 and so on where it must be. */
static void put_name(const table_work *w, const char *base)
{
    char name[320];
    snprintf(name, sizeof name, "%.280s", base);
    for (int64_t i = 0, k = 2; i < w->header.n; i++) {
        if (strcmp(w->header.columns[i], name)) continue;
        snprintf(name, sizeof name, "%.280s_%lld", base, (long long)k++);
        i = -1;
    }
    put_field(w, name, strlen(name), false);
}

static bool has_classes(const table_work *w)
{
    return w->task->said->all && qkv_model_label(w->task->model, 1) &&
           qkv_model_get_info(w->task->model)->problem != QKV_PROBLEM_REGRESSION;
}

static void put_header(const table_work *w)
{
    const qkv_model *m = w->task->model;
    bool is_number = qkv_model_get_info(m)->problem == QKV_PROBLEM_REGRESSION;
    put_columns(w, &w->header);
    put_name(w, "prediction");
    if (!is_number) put_name(w, "probability");
    if (!is_number && !qkv_model_label(m, 1)) put_name(w, "logit");
    for (int64_t i = 0; has_classes(w) && qkv_model_label(m, i); i++) put_name(w, qkv_model_label(m, i));
    putchar('\n');
}

/* Splits a printed result at its TABs: labels and probabilities in turn, or one number. */
enum { MOST_PARTS = 2048 };
static int split_said(char *text, char *parts[MOST_PARTS])
{
    int n = 0;
    for (char *tab = *text ? text : NULL; tab && n < MOST_PARTS; text = tab + 1) {
        parts[n++] = text;
        if ((tab = strchr(text, '\t'))) *tab = '\0';
        else break;
    }
    return n;
}

static bool is_scored(const table_work *w) /* one label, and a logit */
{
    return !qkv_model_label(w->task->model, 1) && qkv_model_get_info(w->task->model)->problem == QKV_PROBLEM_CLASSIFICATION;
}

/* row NULL: the text is empty. */
static void put_cells(table_work *w, const float *row)
{
    char *parts[MOST_PARTS], text[4096] = "";
    const qkv_model *m = w->task->model;
    const qkv_model_info *info = qkv_model_get_info(m);
    int n = row ? split_said(w->said.data, parts) : 0, step = info->problem == QKV_PROBLEM_REGRESSION ? 1
                                                              : is_scored(w)                          ? 3
                                                                                                      : 2;
    for (int k = 0; k < step; k++) { /* of several labels, all in one cell */
        size_t used = 0;
        for (int i = k; i < n && used < sizeof text; i += step)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                     i == k                   ? ""
                                     : *info->label_separator ? info->label_separator
                                                              : ",",
                                     parts[i]);
        put_field(w, text, n ? strlen(text) : 0, false);
    }
    for (int64_t i = 0; has_classes(w) && qkv_model_label(m, i); i++) {
        snprintf(text, sizeof text, "%.6f", row ? (double)row[i] : 0);
        put_field(w, text, row ? strlen(text) : 0, false);
    }
    putchar('\n');
}

/* A name that stands nowhere in the object. */
static void put_member(const char *object, const char *base)
{
    char name[64];
    snprintf(name, sizeof name, "\"%s\"", base);
    for (int k = 2; strstr(object, name); k += k < 100 ? 1 : k) snprintf(name, sizeof name, "\"%s_%d\"", base, k);
    printf("%s: ", name);
}

/* Parts k, k + step and so on, as an array where there may be several. */
static void put_values(char *const *parts, int n, int k, int step, bool is_array)
{
    if (is_array) putchar('[');
    for (int i = k; i < n; i += step) {
        if (i > k) printf(", ");
        if (!k && step > 1) put_json_text(parts[i], strlen(parts[i]));
        else printf("%s", parts[i]);
    }
    if (is_array) putchar(']');
    else if (k >= n) printf("null");
}

/* The object as it was read, and members behind its own. */
static void put_object(table_work *w, const table_row *r, const float *row)
{
    static const char *const names[] = { "prediction", "probability", "logit" };
    char *parts[MOST_PARTS], *object = r->columns[0];
    qkv_problem problem = qkv_model_get_info(w->task->model)->problem;
    int n = row ? split_said(w->said.data, parts) : 0, step = problem == QKV_PROBLEM_REGRESSION ? 1 : is_scored(w) ? 3 : 2;
    char *end = strrchr(object, '}');
    *end = '\0';
    while (end > object && strchr(" \t\r\n", end[-1])) *--end = '\0';
    printf("%s", object);
    for (int k = 0; k < step; k++) {
        if (k || end[-1] != '{') printf(", ");
        put_member(object, names[k]);
        put_values(parts, n, k, step, row && problem == QKV_PROBLEM_MULTILABEL);
    }
    for (int64_t i = 0; row && has_classes(w) && qkv_model_label(w->task->model, i); i++) {
        const char *label = qkv_model_label(w->task->model, i);
        printf(", ");
        if (!i) put_member(object, "probabilities"), putchar('{');
        put_json_text(label, strlen(label));
        printf(": %.6f", (double)row[i]);
    }
    puts(row && has_classes(w) ? "}}" : "}");
}

static qkv_status put_row(table_work *w, const table_row *r, const float *row)
{
    qkv_classified_opts said = *w->task->said;
    if (w->form != AS_LINES) said.all = 0;
    if (row && qkv_classified_text_with(w->task->model, row, &said, &w->said)) return library_failed();
    if (w->form == AS_OBJECTS) put_object(w, r, row);
    else if (w->form == AS_TABLE) put_columns(w, r), put_cells(w, row);
    else if (!said.json) puts(row ? w->said.data : "");
    else if (row) printf("{\"line\": %lld, %s\n", (long long)r->line, w->said.data + 1);
    else printf("{\"line\": %lld, \"label\": null}\n", (long long)r->line);
    return QKV_OK;
}

/* Once the first rows were classified. A byte order mark stays, by which spreadsheets know UTF-8. */
static qkv_status begin_results(table_work *w)
{
    qkv_status status = open_results(&w->in);
    if (status) return status;
    w->is_open = true;
    bool is_tsv = w->form == AS_TABLE && ends_with(streams.out, ".tsv");
    w->separator = is_tsv ? '\t' : w->in_separator == '\t' || !w->in_separator ? ',' : w->in_separator;
    w->is_raw = w->is_raw && is_tsv;
    if (w->form == AS_TABLE && w->has_mark) printf("\xEF\xBB\xBF");
    if (w->form == AS_TABLE && w->header.columns) put_header(w);
    return QKV_OK;
}

/* ---- reading ---- */

static qkv_status classify_rows(table_work *w)
{
    size_t n = (size_t)w->n_rows;
    qkv_str *texts = calloc(2 * n + 1, sizeof *texts), *pairs = texts + n;
    int64_t given = 0, used = 0;
    qkv_status status = texts ? QKV_OK : fail(QKV_MEMORY, "out of memory");
    for (int64_t i = 0; i < w->n_rows && !status; i++) {
        const table_row *r = &w->rows[i];
        if (!r->text_length) continue;
        texts[given] = (qkv_str){ r->text, r->text_length };
        pairs[given++] = (qkv_str){ r->pair, r->pair_length };
    }
    qkv_encoder_opts reading = *w->task->reading;
    reading.pairs = pairs;
    if (!status && given && qkv_classify(w->task->model, texts, given, &reading, &w->found)) status = library_failed();
    w->cut += !status && given ? w->found->truncated : 0;
    if (!status && !w->is_open) status = begin_results(w);
    for (int64_t i = 0; i < w->n_rows && !status; i++)
        status = put_row(w, &w->rows[i], w->rows[i].text_length ? w->found->data + used++ * w->found->width : NULL);
    fflush(stdout);
    free(texts);
    w->n_rows = 0;
    return status;
}

static qkv_status take_row(void *data, const qkv_labelled *x)
{
    table_work *w = data;
    qkv_status status = copy_row(x->is_header ? &w->header : &w->rows[w->n_rows], x);
    if (!w->n_columns) w->n_columns = x->n_columns;
    w->in_separator = (char)x->separator;
    w->is_raw = !x->is_quoted;
    w->n_rows += !status && !x->is_header;
    if (!status && w->n_rows == w->task->batch) status = classify_rows(w);
    w->is_reported = status != QKV_OK;
    return status ? status : ferror(stdout) ? QKV_IO : QKV_OK;
}

static bool has_mark(const text_stream *in)
{
    char mark[3] = "";
    struct stat about; /* what is read of a pipe is gone */
    bool is_file = in->file != stdin && !fstat(fileno(in->file), &about) && S_ISREG(about.st_mode);
    size_t n = is_file ? fread(mark, 1, sizeof mark, in->file) : 0;
    return (n == 3 && !memcmp(mark, "\xEF\xBB\xBF", 3)) ||
           (n > 1 && (!memcmp(mark, "\xFF\xFE", 2) || !memcmp(mark, "\xFE\xFF", 2)));
}

static void tell_of_rows(const char *path, const qkv_read_stats *read)
{
    tell_repaired(path, read->repaired, read->first_repaired);
    if (read->empty)
        fprintf(stderr, _("qkv: %s: empty texts: %lld, the first is line %lld: no prediction\n"), path, (long long)read->empty,
                (long long)read->first_empty);
}

qkv_status classify_table(const table_task *task, int64_t *cut)
{
    table_work w = { .task = task, .form = form_of_output() };
    qkv_read_stats read = { 0 };
    if (!speaks_for_ranks()) return QKV_OK; /* rank 0 does all of it */
    qkv_status status = open_texts(&w.in);
    if (!status && !(w.rows = calloc((size_t)task->batch, sizeof *w.rows))) status = fail(QKV_MEMORY, "out of memory");
    if (!status) {
        const char *path = w.in.file == stdin ? "/dev/stdin" : streams.input;
        w.has_mark = has_mark(&w.in);
        status = qkv_read_labelled(path, task->how, take_row, &w, &read);
        if (status) tell_repaired(path, read.repaired, read.first_repaired); /* it may be the cause */
        if (status && !w.is_reported && !ferror(stdout)) library_failed();
        qkv_status last = !w.is_reported && (w.n_rows || (!status && !w.is_open)) ? classify_rows(&w) : QKV_OK;
        if (!status) status = last;
        if (!task->is_quiet) tell_of_rows(w.in.name, &read);
        if (ferror(stdout)) status = QKV_OK; /* main() reports it */
    }
    for (int i = 0; w.rows && i < task->batch; i++) free_row(&w.rows[i]);
    free(w.rows);
    free_row(&w.header);
    close_texts(&w.in);
    qkv_free(w.found);
    qkv_buffer_free(&w.said);
    *cut = w.cut;
    return status;
}
