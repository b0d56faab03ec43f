/* labelled.c: labelled texts, one at a time, from TSV, CSV, JSONL or a folder for each label. */
#include "record.h"

#include <qkv/unstable/util.h>

#include "../base/file.h"
#include "../base/options.h"
#include "../base/json.h"
#include "label_list.h"
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TEXT_MAX ((size_t)64 << 20)   /* of a file in a folder: a review has a thousandth of a MiB */
#define LOOKED_AT ((size_t)256 << 10) /* bytes of a table, to find its separator */

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
    qkv__table table;                 /* how columns are written */
    qkv_str *columns;                 /* of a record, for the caller */
    size_t columns_bytes;
    qkv_buffer label, file; /* the folder of a label, a file in it */
    qkv_buffer trimmed;
    bool has_label; /* of JSONL: some object has the member */
    qkv_read_stats read;
} reader;

/* ---- to the caller ---- */

/* A label without the white space around it. */
static qkv_status trim_label(reader *r, qkv_labelled *x)
{
    const char *label = x->label.data;
    size_t length = x->label.length, bytes, at = 0;
    while (at < length && qkv__is_space(qkv_utf8_next(label + at, length - at, &bytes))) at += bytes;
    size_t end = at;
    for (size_t i = at; i < length; i += bytes)
        if (!qkv__is_space(qkv_utf8_next(label + i, length - i, &bytes))) end = i + bytes;
    x->label = (qkv_str){ label + at, end - at };
    if (end == length) return QKV_OK;
    qkv__buffer_clear(&r->trimmed);
    qkv_status status = qkv__buffer_put(&r->trimmed, label + at, end - at);
    if (!status) x->label.data = r->trimmed.data;
    return status;
}

/* number: what the text is called in *read. */
static qkv_status give(reader *r, qkv_labelled *x, int64_t number)
{
    bool is_empty = qkv__is_blank(x->text.data, x->text.length) ||
                    (x->pair.data && qkv__is_blank(x->pair.data, x->pair.length));
    if (is_empty && !r->read.empty++) r->read.first_empty = number;
    if (is_empty && !r->o.rows) return QKV_OK;
    if (is_empty) x->text = qkv_cstr("");
    qkv_status status = trim_label(r, x);
    if (status) return status;
    const char *what = strcspn(x->label.data, "\t\r\n") < x->label.length
                           ? "the label has a TAB, a newline or a NUL in it: is that the label column?"
                           : NULL;
    if (!r->o.no_label && !r->o.separator && !x->label.length) {
        if (!r->o.strict && !r->read.unlabelled++) r->read.first_unlabelled = number;
        if (!r->o.strict) return QKV_OK;
        what = "the label is empty";
    }
    if (what) status = qkv__fail(QKV_FORMAT, "%s: line %lld: %s", x->path, (long long)x->line, what);
    if (!status) status = r->each(r->data, x);
    r->read.pairs += !status;
    return status;
}

/* ---- TSV and CSV ---- */

/* *found: the column whose name differs only in case or white space; NONE. MEMORY. */
static qkv_status find_alike(const reader *r, const char *name, size_t *found)
{
    qkv_buffer wanted = { 0 }, key = { 0 };
    qkv_status status = qkv__label_key(name, &wanted);
    *found = NONE;
    for (size_t i = 0; i < r->record.n && *found == NONE && !status; i++) {
        status = qkv__label_key(qkv__field(&r->record, i), &key);
        if (!status && !strcmp(key.data, wanted.data)) *found = i;
    }
    qkv_buffer_free(&wanted);
    qkv_buffer_free(&key);
    return status;
}

static qkv_status no_column(reader *r, const char *name)
{
    size_t alike;
    qkv_status status = find_alike(r, name, &alike);
    if (status) return status;
    if (alike != NONE)
        return qkv__fail(QKV_FORMAT, "%s: line %lld: the header has no column \"%s\": did you mean \"%s\"?", r->path,
                         (long long)r->record.line, name, qkv__field(&r->record, alike));
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
    if (x->n == 1 && r->o.rows) return r->places[LABEL] = r->places[PAIR] = NONE, QKV_OK; /* the text alone */
    if (x->n == 1) return qkv__fail(QKV_FORMAT, "%s: line %lld has no TAB between label and text", r->path, (long long)x->line);
    if (x->n > COLUMNS)
        return qkv__fail(QKV_FORMAT, "%s: line %lld has %zu columns, expected label TAB text, or label TAB text TAB text",
                         r->path, (long long)x->line, x->n);
    for (size_t c = 0; c < COLUMNS; c++) r->places[c] = c < x->n ? c : NONE;
    return QKV_OK;
}

/* A column by its name in the header; NONE. */
static size_t named(const reader *r, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < r->record.n; i++)
        if (qkv__field_length(&r->record, i) == length && !memcmp(qkv__field(&r->record, i), name, length)) return i;
    return NONE;
}

/* As if none were given. */
static void forget_columns(reader *r)
{
    r->o.label = r->o.text = r->o.pair = r->names[PAIR] = NULL;
    r->names[LABEL] = "label";
    r->names[TEXT] = "text";
}

/* Columns that are preferred and not there are as if they were not given. */
static void drop_preferred(reader *r)
{
    const char *const given[COLUMNS] = { r->o.no_label ? NULL : r->o.label, r->o.text, r->o.pair };
    bool has_all = true;
    for (int c = 0; c < COLUMNS; c++)
        has_all = has_all && (!given[c] || named(r, given[c]) != NONE || numbered(given[c]) < r->record.n);
    if (!has_all) forget_columns(r);
}

/* The text column of a table without labels, unless it was chosen: "text", the only column, or the only one with a usual name. */
static void find_text_column(reader *r)
{
    size_t found = NONE, n = 0;
    for (size_t i = 0; i < r->record.n; i++)
        if (qkv__names_texts(qkv__field(&r->record, i))) found = i, n++;
    if (r->o.text || named(r, "text") != NONE) return;
    if (r->record.n == 1) found = 0, n = 1;
    if (n == 1) r->names[TEXT] = qkv__field(&r->record, found);
}

/* Whether the first row of a table, of which nothing else is known, is its header. */
static bool is_header(const reader *r)
{
    bool has_texts = false, has_labels = false;
    for (size_t i = 0; i < r->record.n; i++) {
        has_texts = has_texts || qkv__names_texts(qkv__field(&r->record, i));
        has_labels = has_labels || qkv__names_labels(qkv__field(&r->record, i));
    }
    bool is_in_place = qkv__names_texts(qkv__field(&r->record, r->record.n > 1));
    return is_in_place || (has_texts && has_labels) || named(r, "text") != NONE;
}

static qkv_status find_columns(reader *r)
{
    qkv_status status = QKV_OK;
    if (r->o.rows) find_text_column(r);
    for (int c = 0; c < COLUMNS && !status; c++) status = find_column(r, c);
    return status;
}

static qkv_status wrong_count(const reader *r)
{
    const qkv__record *x = &r->record;
    return qkv__fail(QKV_FORMAT, "%s: line %lld has %zu column%s, but line 1 has %zu", r->path, (long long)x->line, x->n,
                     x->n == 1 ? "" : "s", r->n_fields);
}

static void take_field(const reader *r, int column, qkv_str *text)
{
    size_t place = r->places[column];
    if (place != NONE) *text = (qkv_str){ qkv__field(&r->record, place), qkv__field_length(&r->record, place) };
}

/* For a caller that wants all of them. */
static qkv_status set_columns(reader *r, qkv_labelled *x)
{
    size_t n = r->record.n;
    if (qkv__grow((void **)&r->columns, &r->columns_bytes, n * sizeof *r->columns)) return QKV_MEMORY;
    for (size_t i = 0; i < n; i++) r->columns[i] = (qkv_str){ qkv__field(&r->record, i), qkv__field_length(&r->record, i) };
    x->columns = r->columns;
    x->n_columns = (int64_t)n;
    return QKV_OK;
}

static qkv_status give_record(reader *r, bool is_header)
{
    qkv_labelled x = { .label = qkv_cstr(""),
                       .text = qkv_cstr(""),
                       .path = r->path,
                       .line = r->record.line,
                       .separator = r->table.separator,
                       .is_quoted = r->table.is_quoted,
                       .is_header = is_header };
    bool is_blank = r->record.n == 1 && r->n_fields > 1 &&
                    qkv__is_blank(qkv__field(&r->record, 0), qkv__field_length(&r->record, 0));
    qkv_status status = r->o.rows ? set_columns(r, &x) : QKV_OK;
    if (status) return status;
    if (is_header) return r->each(r->data, &x);
    if (r->record.n != r->n_fields && (!is_blank || r->o.strict)) return wrong_count(r);
    if (is_blank) return give(r, &x, x.line); /* an empty line is an empty text */
    if (!r->o.rows) take_field(r, LABEL, &x.label);
    take_field(r, TEXT, &x.text);
    take_field(r, PAIR, &x.pair);
    return give(r, &x, x.line);
}

/* Finds the separator. A first line such as "sep=;", a hint for spreadsheets, decides and is skipped. */
static qkv_status begin_table(reader *r)
{
    const char *start, *names[COLUMNS];
    size_t length;
    bool is_whole, is_csv = r->o.format == QKV_LABELLED_CSV;
    int n = 0;
    char given = r->o.column_separator ? qkv__separator_of(r->o.column_separator) : '\0';
    if (r->o.column_separator && !given)
        return qkv__fail(QKV_USAGE, "labelled: \"%.20s\" separates no columns: expected tab, or one of , ; |",
                         r->o.column_separator);
    qkv_status status = qkv__lines_peek(&r->lines, LOOKED_AT, &start, &length, &is_whole);
    if (status) return status;
    for (int c = r->o.no_label ? TEXT : LABEL; c < COLUMNS; c++)
        if (r->names[c] && numbered(r->names[c]) == NONE && (is_csv || has_names(r))) names[n++] = r->names[c];
    size_t line = length > 5 && !memcmp(start, "sep=", 4) ? strcspn(start, "\r\n") : 0;
    char said[] = { line == 5 ? start[4] : '\0', '\0' };
    if (*said && qkv__separator_of(said)) status = qkv__lines_next(&r->lines, &is_whole);
    else *said = '\0';
    r->table = qkv__detect_table(start, length, is_whole, is_csv, given ? given : *said, names, n);
    r->record.separator = r->table.separator;
    return status;
}

static qkv_status read_columns(reader *r)
{
    bool more = false;
    qkv_status status = begin_table(r);
    qkv__record_next next = r->table.is_quoted ? qkv__record_csv : qkv__record_tsv;
    if (!status) status = next(&r->record, &r->lines, r->o.strict, &more);
    if (status) return status;
    if (more && r->o.preferred) drop_preferred(r);
    bool is_named = r->o.format == QKV_LABELLED_CSV || has_names(r), has_header = is_named || r->o.header;
    if (more && !has_header && r->o.rows && !(r->o.label || r->o.text || r->o.pair)) is_named = has_header = is_header(r);
    if (!more) return has_header ? qkv__fail(QKV_FORMAT, "%s: it is empty, a header line is expected", r->path) : QKV_OK;
    r->n_fields = r->record.n;
    status = is_named ? find_columns(r) : take_columns(r);
    for (bool is_header = has_header; !status && more; is_header = false) {
        if (!is_header || r->o.rows) status = give_record(r, is_header);
        if (!status) status = next(&r->record, &r->lines, r->o.strict, &more);
    }
    return status;
}

static qkv_status read_text_alone(reader *r)
{
    const qkv_buffer *line = &r->lines.line;
    bool more = true;
    qkv_status status = r->o.header ? qkv__lines_next_text(&r->lines, r->o.strict, &more) : QKV_OK;
    while (!status && !(status = qkv__lines_next_text(&r->lines, r->o.strict, &more)) && more) {
        qkv_labelled x = {
            .label = qkv_cstr(""), .text = { line->data, line->length }, .path = r->path, .line = r->lines.number
        };
        status = give(r, &x, x.line);
    }
    return status;
}

/* ---- JSONL ---- */

static qkv_status wrong_line(const reader *r, const char *what, const char *name)
{
    return qkv__fail(QKV_FORMAT, "%s: line %lld: %s%s%s%s", r->path, (long long)r->lines.number, what, name ? " \"" : "",
                     name ? name : "", name ? "\"" : "");
}

/* With the members that there are, as many as fit. */
static qkv_status no_member(const reader *r, const qkv__json_value *object, const char *name)
{
    char names[256] = "";
    for (size_t i = 0, used = 0; i < object->n; i++) {
        int more = snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", qkv__json_key(object, i));
        if (more < 0 || (size_t)more >= sizeof names - used) {
            names[used] = '\0';
            break;
        }
        used += (size_t)more;
    }
    return qkv__fail(QKV_FORMAT, "%s: line %lld: there is no member \"%s\", it has: %s", r->path, (long long)r->lines.number,
                     name, names);
}

static qkv_status get_text(const reader *r, const qkv__json_value *object, int column, qkv_str *text)
{
    const char *name = r->names[column];
    const qkv__json_value *value = name ? qkv__json_get(object, name) : NULL;
    if (!name) return QKV_OK;
    if (!value) return no_member(r, object, name);
    if (qkv__json_is_null(value)) return *text = qkv_cstr(""), QKV_OK;
    if (!qkv__json_is_string(value)) return wrong_line(r, "text is expected in the member", name);
    *text = (qkv_str){ qkv__json_text(value), qkv__json_length(value) };
    return QKV_OK;
}

/* An array of texts, joined. */
static qkv_status join_labels(reader *r, const qkv__json_value *list, qkv_labelled *x)
{
    qkv__buffer_clear(&r->label);
    qkv_status status = qkv__buffer_put(&r->label, "", 0);
    for (size_t i = 0; i < qkv__json_size(list); i++) {
        const qkv__json_value *one = qkv__json_at(list, i);
        if (!qkv__json_is_string(one)) return wrong_line(r, "only texts are expected in the array", r->names[LABEL]);
        if (i && !status) status = qkv__buffer_put(&r->label, r->o.separator, strlen(r->o.separator));
        if (!status) status = qkv__buffer_put(&r->label, qkv__json_text(one), qkv__json_length(one));
    }
    x->label = (qkv_str){ r->label.data, r->label.length };
    return status;
}

/* Whole numbers and booleans are labels as they are written in JSON. */
static qkv_status get_label(reader *r, const qkv__json_value *object, char number[32], qkv_labelled *x)
{
    const qkv__json_value *value = qkv__json_get(object, r->names[LABEL]);
    *number = '\0';
    x->label = qkv_cstr(number);
    r->has_label = r->has_label || value;
    bool may_lack = r->o.no_label || (!r->o.strict && !r->o.separator);
    if (may_lack && (!value || qkv__json_is_null(value))) return QKV_OK;
    if (qkv__json_is_array(value) && r->o.separator) return join_labels(r, value, x);
    if (qkv__json_type_of(value) == QKV__JSON_REAL && r->o.numbers) snprintf(number, 32, "%.17g", qkv__json_number(value));
    else if (qkv__json_is_int(value)) snprintf(number, 32, "%lld", (long long)qkv__json_int(value));
    else if (qkv__json_is_bool(value)) snprintf(number, 32, "%s", qkv__json_is_true(value) ? "true" : "false");
    else if (value && !qkv__json_is_string(value))
        return wrong_line(r, "text, a whole number, true or false is expected in the member", r->names[LABEL]);
    else return get_text(r, object, LABEL, &x->label);
    x->label = qkv_cstr(number);
    return QKV_OK;
}

static qkv_status give_object(reader *r, const qkv__json_value *object)
{
    char number[32];
    const qkv_str line = { r->lines.line.data, r->lines.line.length };
    qkv_labelled x = { .label = qkv_cstr(""), .text = qkv_cstr(""), .path = r->path, .line = r->lines.number };
    if (r->o.rows) x.columns = &line, x.n_columns = 1;
    if (!qkv__json_is_object(object)) return wrong_line(r, "not a JSON object", NULL);
    if (r->o.preferred && !qkv__json_get(object, r->names[TEXT])) forget_columns(r);
    qkv_status status = r->o.rows ? QKV_OK : get_label(r, object, number, &x);
    if (!status) status = get_text(r, object, TEXT, &x.text);
    if (!status) status = get_text(r, object, PAIR, &x.pair);
    return status ? status : give(r, &x, x.line);
}

static qkv_status read_object(reader *r)
{
    const qkv_buffer *line = &r->lines.line;
    if (qkv__is_blank(line->data, line->length)) return QKV_OK;
    qkv__json_doc doc;
    const qkv__json_source source = { .name = r->path,
                                      .text = line->data,
                                      .length = line->length,
                                      .flags = QKV__JSON_NUL,
                                      .first_line = (size_t)r->lines.number - 1 };
    qkv_status status = qkv__json_parse(&source, &doc);
    if (!status) status = give_object(r, doc.top);
    qkv__json_free(&doc);
    return status;
}

static qkv_status read_jsonl(reader *r)
{
    bool more = true;
    qkv_status status = QKV_OK;
    while (!status && !(status = qkv__lines_next_text(&r->lines, r->o.strict, &more)) && more) status = read_object(r);
    if (status || r->has_label || !r->read.unlabelled) return status;
    return qkv__fail(QKV_FORMAT, "%s: line %lld: there is no member \"%s\", nor in any other line", r->path,
                     (long long)r->read.first_unlabelled, r->names[LABEL]);
}

/* ---- folders ---- */

static bool name_ends_with(const char *text, size_t length, const char *ending)
{
    size_t n = strlen(ending);
    return length >= n && !strncasecmp(text + length - n, ending, n);
}

static qkv_status set_path(qkv_buffer *path, const char *folder, const char *name)
{
    qkv__buffer_clear(path);
    qkv_status status = qkv__buffer_put(path, folder, strlen(folder));
    if (!status) status = qkv__buffer_put(path, "/", 1);
    return status ? status : qkv__buffer_put(path, name, strlen(name));
}

static qkv_status give_file(reader *r, const char *label)
{
    qkv_status status = qkv__lines_reopen(&r->lines, r->file.data);
    if (!status) status = qkv__lines_whole_utf8(&r->lines, r->o.strict, TEXT_MAX);
    if (status) return status;
    r->read.lines++;
    if (r->lines.repaired && !r->read.repaired++) r->read.first_repaired = r->read.lines;
    const qkv_buffer *text = &r->lines.line;
    qkv_labelled x = { .label = qkv_cstr(label),
                       .text = { text->data, text->length },
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
    if (qkv_utf8_valid(name, strlen(name)) < strlen(name))
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

qkv_status qkv__labelled_format(const char *path, qkv_labelled_format *format)
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
    bool is_tsv = r->o.format == QKV_LABELLED_TSV, is_alone = is_tsv && r->o.no_label && !r->o.rows;
    if (r->o.label || r->o.text || r->o.pair) is_alone = false;
    qkv_status status = qkv__lines_open(&r->lines, r->path);
    if (!status) status = r->o.format == QKV_LABELLED_JSONL ? read_jsonl(r) : is_alone ? read_text_alone(r) : read_columns(r);
    r->read.lines = r->lines.number;
    r->read.repaired = r->lines.repaired;
    r->read.first_repaired = r->lines.first_repaired;
    return status;
}

static void end(reader *r, qkv_read_stats *read)
{
    qkv__lines_close(&r->lines);
    qkv__record_free(&r->record);
    qkv_buffer_free(&r->label);
    qkv_buffer_free(&r->file);
    qkv_buffer_free(&r->trimmed);
    qkv__release(r->columns, r->columns_bytes);
    qkv__read_stats_write(read, &r->read);
}

qkv_status qkv_read_labelled(const char *path, const qkv_labelled_opts *opts, qkv_labelled_each each, void *data,
                             qkv_read_stats *read)
{
    reader r = { .path = path, .each = each, .data = data };
    if (qkv__read_stats_write(read, &r.read)) return QKV_USAGE;
    if (QKV__READ_OPTIONS(&r.o, header, opts, "labelled")) return QKV_USAGE;
    if (!path || !each) return qkv__fail(QKV_USAGE, "labelled: a path and a function are needed");
    if (r.o.format < QKV_LABELLED_BY_NAME || r.o.format > QKV_LABELLED_FOLDER)
        return qkv__fail(QKV_USAGE, "labelled: %d is no format", (int)r.o.format);
    if (r.o.rows) r.o.no_label = 1, r.o.label = NULL;
    r.names[LABEL] = r.o.label ? r.o.label : "label";
    r.names[TEXT] = r.o.text ? r.o.text : "text";
    r.names[PAIR] = r.o.pair;
    qkv_status status = r.o.format ? QKV_OK : qkv__labelled_format(path, &r.o.format);
    if (!status) status = r.o.format == QKV_LABELLED_FOLDER ? read_folder(&r) : read_file(&r);
    end(&r, read);
    return status;
}
