/* labelled.c: labelled texts, one at a time, from TSV, CSV, JSONL or a folder for each label. */
#include "record.h"

#include "../base/file.h"
#include "../base/options.h"
#include "../io/json.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX ((size_t)64 << 20) /* of a file in a folder: a review has a thousandth of a MiB */

enum { LABEL, TEXT, PAIR, COLUMNS };
static const size_t NONE = SIZE_MAX;

typedef struct reader {
    const char *path;
    qkv_labelled_opts o;
    const char *names[COLUMNS]; /* of columns or members; NULL: not wanted */
    qkv_labelled_each each;
    void *data;
    qkv__lines lines;
    qkv__record record;
    size_t places[COLUMNS], n_fields; /* of the wanted columns in a record; NONE where there is none */
    qkv_text label, file;             /* the folder of a label, a file in it */
    qkv_corpus_read read;
} reader;

/* ---- to the caller ---- */

static qkv_status check_label(const reader *r, const qkv_labelled *x)
{
    const char *what = NULL;
    if (strcspn(x->label, "\t\r\n") < x->label_length) what = "the label has a TAB, a newline or a NUL in it";
    else if (!r->o.no_label && !r->o.separator && qkv__is_blank(x->label, x->label_length)) what = "the label is empty";
    return what ? qkv__fail(QKV_FORMAT, "%s: line %lld: %s", x->path, (long long)x->line, what) : QKV_OK;
}

/* number: what the text is called in *read. */
static qkv_status give(reader *r, const qkv_labelled *x, int64_t number)
{
    if (qkv__is_blank(x->text, x->text_length) || (x->pair && qkv__is_blank(x->pair, x->pair_length))) {
        if (!r->read.empty++) r->read.first_empty = number;
        return QKV_OK;
    }
    qkv_status status = check_label(r, x);
    if (!status) status = r->each(r->data, x);
    r->read.pairs += !status;
    return status;
}

/* ---- TSV and CSV ---- */

static qkv_status no_column(reader *r, const char *name)
{
    for (size_t i = 1; i < r->record.n; i++) r->record.text.data[r->record.begins[i] - 1] = ','; /* of the NUL between two */
    return qkv__fail(QKV_FORMAT, "%s: line %lld: the header has no column \"%s\", it has: %s", r->path,
                     (long long)r->record.line, name, r->record.text.data);
}

/* The place of a column that is given by its number; NONE for any other name. */
static size_t numbered(const char *name)
{
    size_t length = name ? strlen(name) : 0;
    bool is_number = length && length < 6 && *name != '0' && strspn(name, "0123456789") == length;
    return is_number ? (size_t)strtoul(name, NULL, 10) - 1 : NONE;
}

static bool has_names(const reader *r)
{
    const char *const given[COLUMNS] = { r->o.label, r->o.text, r->o.pair };
    for (int c = 0; c < COLUMNS; c++)
        if (given[c] && numbered(given[c]) == NONE) return true;
    return false;
}

static qkv_status find_column(reader *r, int column)
{
    const char *name = r->names[column];
    size_t *place = &r->places[column], length = name ? strlen(name) : 0;
    *place = NONE;
    for (size_t i = 0; name && i < r->record.n; i++) {
        if (qkv__field_length(&r->record, i) != length || memcmp(qkv__field(&r->record, i), name, length)) continue;
        if (*place != NONE)
            return qkv__fail(QKV_FORMAT, "%s: line %lld: the header has two columns \"%s\"", r->path, (long long)r->record.line,
                             name);
        *place = i;
    }
    if (*place == NONE && numbered(name) < r->record.n) *place = numbered(name);
    bool may_lack = !name || (column == LABEL && r->o.no_label);
    return *place != NONE || may_lack ? QKV_OK : no_column(r, name);
}

/* ---- columns by their places ---- */

static size_t first_column_left(const reader *r)
{
    size_t place = 0;
    for (int c = 0; c < COLUMNS; c++)
        if (r->places[c] == place) place++, c = -1;
    return place < r->record.n ? place : NONE;
}

static qkv_status take_numbered(reader *r)
{
    const char *const given[COLUMNS] = { r->o.label, r->o.text, r->o.pair };
    const qkv__record *x = &r->record;
    for (int c = 0; c < COLUMNS; c++) {
        r->places[c] = numbered(given[c]);
        if (given[c] && r->places[c] >= x->n)
            return qkv__fail(QKV_FORMAT, "%s: line %lld has %zu column%s: there is no column %s", r->path, (long long)x->line,
                             x->n, x->n == 1 ? "" : "s", given[c]);
    }
    if (!given[LABEL] && !r->o.no_label) r->places[LABEL] = first_column_left(r);
    if (!given[TEXT]) r->places[TEXT] = first_column_left(r);
    bool is_whole = r->places[TEXT] != NONE && (r->places[LABEL] != NONE || r->o.no_label);
    if (is_whole && r->places[TEXT] != r->places[LABEL] && r->places[TEXT] != r->places[PAIR]) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: line %lld: label and text need a column each", r->path, (long long)x->line);
}

/* Without names the first line says whether there are pairs. */
static qkv_status take_columns(reader *r)
{
    const qkv__record *x = &r->record;
    r->n_fields = x->n;
    if (r->o.label || r->o.text || r->o.pair) return take_numbered(r);
    if (x->n == 1) return qkv__fail(QKV_FORMAT, "%s: line %lld has no TAB between label and text", r->path, (long long)x->line);
    if (x->n > COLUMNS)
        return qkv__fail(QKV_FORMAT, "%s: line %lld has %zu columns, expected label TAB text, or label TAB text TAB text",
                         r->path, (long long)x->line, x->n);
    for (size_t c = 0; c < COLUMNS; c++) r->places[c] = c < x->n ? c : NONE;
    return QKV_OK;
}

static qkv_status read_header(reader *r, qkv__record_next next)
{
    bool more;
    qkv_status status = next(&r->record, &r->lines, r->o.strict, &more);
    if (!status && !more) status = qkv__fail(QKV_FORMAT, "%s: it is empty, a header line is expected", r->path);
    r->n_fields = r->record.n;
    if (!status && r->o.format != QKV_LABELLED_CSV && !has_names(r)) return take_columns(r);
    for (int c = 0; c < COLUMNS && !status; c++) status = find_column(r, c);
    return status;
}

static qkv_status wrong_count(const reader *r)
{
    const qkv__record *x = &r->record;
    return qkv__fail(QKV_FORMAT, "%s: line %lld has %zu column%s, but line 1 has %zu", r->path, (long long)x->line, x->n,
                     x->n == 1 ? "" : "s", r->n_fields);
}

static void take_field(const reader *r, int column, const char **text, size_t *length)
{
    size_t place = r->places[column];
    if (place == NONE) return;
    *text = qkv__field(&r->record, place);
    *length = qkv__field_length(&r->record, place);
}

static qkv_status give_record(reader *r)
{
    qkv_labelled x = { .label = "", .path = r->path, .line = r->record.line };
    take_field(r, LABEL, &x.label, &x.label_length);
    take_field(r, TEXT, &x.text, &x.text_length);
    take_field(r, PAIR, &x.pair, &x.pair_length);
    return give(r, &x, x.line);
}

static qkv_status read_columns(reader *r, qkv__record_next next, bool has_header)
{
    bool more = true;
    qkv_status status = has_header ? read_header(r, next) : QKV_OK;
    while (!status && !(status = next(&r->record, &r->lines, r->o.strict, &more)) && more) {
        if (!r->n_fields) status = take_columns(r);
        if (!status && r->record.n != r->n_fields) status = wrong_count(r);
        if (!status) status = give_record(r);
    }
    return status;
}

static qkv_status read_text_alone(reader *r)
{
    const qkv_text *line = &r->lines.line;
    bool more = true;
    qkv_status status = r->o.header ? qkv__lines_next_text(&r->lines, r->o.strict, &more) : QKV_OK;
    while (!status && !(status = qkv__lines_next_text(&r->lines, r->o.strict, &more)) && more) {
        const qkv_labelled x = {
            .label = "", .text = line->data, .text_length = line->length, .path = r->path, .line = r->lines.number
        };
        status = give(r, &x, x.line);
    }
    return status;
}

static qkv_status read_tsv(reader *r)
{
    bool has_columns = r->o.label || r->o.text || r->o.pair;
    if (r->o.no_label && !has_columns) return read_text_alone(r);
    return read_columns(r, qkv__record_tsv, r->o.header || has_names(r));
}

static qkv_status read_csv(reader *r) { return read_columns(r, qkv__record_csv, true); }

/* ---- JSONL ---- */

static qkv_status wrong_line(const reader *r, const char *what, const char *name)
{
    return qkv__fail(QKV_FORMAT, "%s: line %lld: %s%s%s%s", r->path, (long long)r->lines.number, what, name ? " \"" : "",
                     name ? name : "", name ? "\"" : "");
}

static qkv_status get_text(const reader *r, const json_t *object, int column, const char **text, size_t *length)
{
    const char *name = r->names[column];
    const json_t *value = name ? json_object_get(object, name) : NULL;
    if (!name) return QKV_OK;
    if (!value) return wrong_line(r, "there is no member", name);
    if (!json_is_string(value)) return wrong_line(r, "text is expected in the member", name);
    *text = json_string_value(value);
    *length = json_string_length(value);
    return QKV_OK;
}

/* An array of texts, joined. */
static qkv_status join_labels(reader *r, const json_t *list, qkv_labelled *x)
{
    size_t i;
    const json_t *one;
    qkv__text_clear(&r->label);
    qkv_status status = qkv__text_put(&r->label, "", 0);
    json_array_foreach(list, i, one)
    {
        if (!json_is_string(one)) return wrong_line(r, "only texts are expected in the array", r->names[LABEL]);
        if (i && !status) status = qkv__text_put(&r->label, r->o.separator, strlen(r->o.separator));
        if (!status) status = qkv__text_put(&r->label, json_string_value(one), json_string_length(one));
    }
    x->label = r->label.data;
    x->label_length = r->label.length;
    return status;
}

/* Whole numbers and booleans are labels as they are written in JSON. */
static qkv_status get_label(reader *r, const json_t *object, char number[32], qkv_labelled *x)
{
    const json_t *value = json_object_get(object, r->names[LABEL]);
    x->label = number;
    *number = '\0';
    if (!value && r->o.no_label) return QKV_OK;
    if (json_is_array(value) && r->o.separator) return join_labels(r, value, x);
    if (json_is_real(value) && r->o.numbers) snprintf(number, 32, "%.17g", json_real_value(value));
    else if (json_is_integer(value)) snprintf(number, 32, "%lld", (long long)json_integer_value(value));
    else if (json_is_boolean(value)) snprintf(number, 32, "%s", json_is_true(value) ? "true" : "false");
    else if (value && !json_is_string(value))
        return wrong_line(r, "text, a whole number, true or false is expected in the member", r->names[LABEL]);
    else return get_text(r, object, LABEL, &x->label, &x->label_length);
    x->label_length = strlen(number);
    return QKV_OK;
}

static qkv_status give_object(reader *r, const json_t *object)
{
    char number[32];
    qkv_labelled x = { .path = r->path, .line = r->lines.number };
    if (!json_is_object(object)) return wrong_line(r, "not a JSON object", NULL);
    qkv_status status = get_label(r, object, number, &x);
    if (!status) status = get_text(r, object, TEXT, &x.text, &x.text_length);
    if (!status) status = get_text(r, object, PAIR, &x.pair, &x.pair_length);
    return status ? status : give(r, &x, x.line);
}

static qkv_status read_object(reader *r)
{
    const qkv_text *line = &r->lines.line;
    json_error_t error;
    if (qkv__is_blank(line->data, line->length)) return QKV_OK;
    json_t *object = json_loadb(line->data, line->length, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!object && qkv__json_out_of_memory(&error, line->data, line->length))
        return qkv__fail(QKV_MEMORY, "%s: line %lld: out of memory", r->path, (long long)r->lines.number);
    if (!object)
        return qkv__fail(QKV_FORMAT, "%s: line %lld, byte %d: not JSON: %s", r->path, (long long)r->lines.number,
                         error.position, error.text);
    qkv_status status = give_object(r, object);
    json_decref(object);
    return status;
}

static qkv_status read_jsonl(reader *r)
{
    bool more = true;
    qkv_status status = QKV_OK;
    while (!status && !(status = qkv__lines_next_text(&r->lines, r->o.strict, &more)) && more) status = read_object(r);
    return status;
}

/* ---- folders ---- */

static bool name_ends_with(const char *text, size_t length, const char *ending)
{
    size_t n = strlen(ending);
    return length >= n && !memcmp(text + length - n, ending, n);
}

static qkv_status set_path(qkv_text *path, const char *folder, const char *name)
{
    qkv__text_clear(path);
    qkv_status status = qkv__text_put(path, folder, strlen(folder));
    if (!status) status = qkv__text_put(path, "/", 1);
    return status ? status : qkv__text_put(path, name, strlen(name));
}

static qkv_status give_file(reader *r, const char *label)
{
    qkv_status status = qkv__lines_reopen(&r->lines, r->file.data);
    if (!status) status = qkv__lines_whole_utf8(&r->lines, r->o.strict, TEXT_MAX);
    if (status) return status;
    r->read.lines++;
    if (r->lines.repaired && !r->read.repaired++) r->read.first_repaired = r->read.lines;
    const qkv_text *text = &r->lines.line;
    const qkv_labelled x = { .label = label,
                             .label_length = strlen(label),
                             .text = text->data,
                             .text_length = text->length,
                             .path = r->file.data,
                             .line = 1,
                             .repaired = r->lines.first_repaired };
    return give(r, &x, r->read.lines);
}

static qkv_status read_files(reader *r, const char *folder, const char *label)
{
    qkv__names names;
    qkv_status status = qkv__folder_list(folder, &names);
    for (size_t i = 0; i < names.n && !status; i++) {
        if (!name_ends_with(names.at[i], strlen(names.at[i]), ".txt")) continue;
        status = set_path(&r->file, folder, names.at[i]);
        if (!status) status = give_file(r, label);
    }
    qkv__names_free(&names);
    return status;
}

static qkv_status read_label(reader *r, const char *name, bool *is_folder)
{
    *is_folder = false;
    qkv_status status = set_path(&r->label, r->path, name);
    if (!status) status = qkv__is_folder(r->label.data, is_folder);
    if (status || !*is_folder) return status;
    if (qkv_utf8_check(name, strlen(name)) < strlen(name))
        return qkv__fail(QKV_FORMAT, "%s: the name of the folder is the label, and is not UTF-8", r->label.data);
    return read_files(r, r->label.data, name);
}

static qkv_status read_folder(reader *r)
{
    qkv__names names;
    bool has_labels = r->o.no_label, is_folder;
    qkv_status status = qkv__folder_list(r->path, &names);
    if (!status && r->o.no_label) status = read_files(r, r->path, "");
    for (size_t i = 0; i < names.n && !status; i++) {
        status = read_label(r, names.at[i], &is_folder);
        has_labels |= is_folder;
    }
    qkv__names_free(&names);
    if (status || has_labels) return status;
    return qkv__fail(QKV_FORMAT, "%s: there is no folder in it, expected a folder of .txt files for each label", r->path);
}

/* ---- any of them ---- */

static qkv_status format_of(const char *path, qkv_labelled_format *format)
{
    bool is_folder;
    size_t n = strlen(path);
    qkv_status status = qkv__is_folder(path, &is_folder);
    if (name_ends_with(path, n, ".gz")) n -= 3;
    if (is_folder) *format = QKV_LABELLED_FOLDER;
    else if (name_ends_with(path, n, ".csv")) *format = QKV_LABELLED_CSV;
    else
        *format = name_ends_with(path, n, ".jsonl") || name_ends_with(path, n, ".json") ? QKV_LABELLED_JSONL : QKV_LABELLED_TSV;
    return status;
}

static qkv_status read_file(reader *r)
{
    qkv_status status = qkv__lines_open(&r->lines, r->path);
    if (!status)
        status = r->o.format == QKV_LABELLED_CSV     ? read_csv(r)
                 : r->o.format == QKV_LABELLED_JSONL ? read_jsonl(r)
                                                     : read_tsv(r);
    r->read.lines = r->lines.number;
    r->read.repaired = r->lines.repaired;
    r->read.first_repaired = r->lines.first_repaired;
    return status;
}

static void end(reader *r, qkv_corpus_read *read)
{
    qkv__lines_close(&r->lines);
    qkv__record_free(&r->record);
    qkv_text_free(&r->label);
    qkv_text_free(&r->file);
    if (read) *read = r->read;
}

qkv_status qkv_labelled_read(const char *path, const qkv_labelled_opts *opts, qkv_labelled_each each, void *data,
                             qkv_corpus_read *read)
{
    reader r = { .path = path, .each = each, .data = data };
    if (read) *read = r.read;
    if (QKV__READ_OPTIONS(&r.o, header, opts, "labelled")) return QKV_USAGE;
    if (!path || !each) return qkv__fail(QKV_USAGE, "labelled: a path and a function are needed");
    if (r.o.format < QKV_LABELLED_BY_NAME || r.o.format > QKV_LABELLED_FOLDER)
        return qkv__fail(QKV_USAGE, "labelled: %d is no format", (int)r.o.format);
    r.names[LABEL] = r.o.label ? r.o.label : "label";
    r.names[TEXT] = r.o.text ? r.o.text : "text";
    r.names[PAIR] = r.o.pair;
    qkv_status status = r.o.format ? QKV_OK : format_of(path, &r.o.format);
    if (!status) status = r.o.format == QKV_LABELLED_FOLDER ? read_folder(&r) : read_file(&r);
    end(&r, read);
    return status;
}
