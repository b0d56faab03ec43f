/* array_text.c: arrays as people type them, [[1, 0], [0, 1]] or "1 0; 0 1", and as files of numbers have them. */
#include "results.h"
#include "arrays.h"

#include "../../src/base/size.h"
#include "npy.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NUMBER_BYTES = 64, UNKNOWN = -1 };

typedef struct reader {
    const char *name; /* for sentences */
    const char *at, *end;
    float *numbers;
    size_t n, bytes;
    int ndim; /* 0: not known yet */
    int64_t shape[QKV_MAX_DIMS];
    int64_t row; /* how many have ended */
} reader;

/* ---- numbers ---- */

static void skip_blanks(reader *r, const char *blanks)
{
    while (r->at < r->end && *r->at && strchr(blanks, *r->at)) r->at++;
}

/* Digits, and the names of what is not finite: strtof() would take hexadecimal ones too. */
static bool is_number(const char *text, float *number)
{
    char *end;
    const char *digits = text + (*text == '-' || *text == '+');
    bool is_named = !strcasecmp(digits, "inf") || !strcasecmp(digits, "nan");
    if (!is_named && (!*digits || digits[strspn(digits, "0123456789.eE+-")])) return false;
    *number = strtof(text, &end);
    return !*end;
}

static qkv_status put_number(reader *r, float number)
{
    qkv_status status = qkv__grow((void **)&r->numbers, &r->bytes, (r->n + 1) * sizeof number);
    if (!status) r->numbers[r->n++] = number;
    return status;
}

/* The number that comes next, which is in this column of its row, from 0. */
static qkv_status read_number(reader *r, int64_t column)
{
    char text[NUMBER_BYTES];
    const char *from = r->at;
    float number;
    while (r->at < r->end && *r->at && !strchr(" \t\r\n,;[]", *r->at)) r->at++;
    snprintf(text, sizeof text, "%.*s", (int)qkv__min(r->at - from, NUMBER_BYTES - 1), from);
    if (r->at - from < NUMBER_BYTES && is_number(text, &number)) return put_number(r, number);
    return qkv__fail(QKV_FORMAT, "%s: row %lld, column %lld: %s%.40s%s", r->name, (long long)r->row + 1, (long long)column + 1,
                     *text ? "\"" : "there is no number", text, *text ? "\" is not a number" : "");
}

/* Goes past the comma that may stand between two numbers; gives whether there was one. */
static bool skip_comma(reader *r, const char *blanks)
{
    skip_blanks(r, blanks);
    bool is_there = r->at < r->end && *r->at == ',';
    r->at += is_there;
    skip_blanks(r, blanks);
    return is_there;
}

/* All rows are as long as the first one, all lists of them too. */
static qkv_status fits_shape(reader *r, int dim, int64_t n)
{
    if (r->shape[dim] == UNKNOWN) r->shape[dim] = n;
    if (r->shape[dim] == n) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: row %lld: %lld %s here, %lld in the first", r->name, (long long)qkv__max(r->row, 1),
                     (long long)n, dim == r->ndim - 1 ? "numbers" : "rows or lists of them", (long long)r->shape[dim]);
}

/* ---- rows: a line each, or up to a semicolon ---- */

static qkv_status read_row(reader *r)
{
    static const char blanks[] = " \t\r";
    int64_t n = 0;
    bool goes_on = true;
    while (goes_on) {
        qkv_status status = read_number(r, n++);
        if (status) return status;
        goes_on = skip_comma(r, blanks) || (r->at < r->end && !strchr(";\n", *r->at));
    }
    r->row++;
    return fits_shape(r, 1, n);
}

static qkv_status read_rows(reader *r)
{
    qkv_status status = QKV_OK;
    r->ndim = 2;
    for (skip_blanks(r, " \t\r\n;"); r->at < r->end && !status; skip_blanks(r, " \t\r\n;")) status = read_row(r);
    return status ? status : fits_shape(r, 0, r->row);
}

/* ---- lists in brackets, as JSON, Python and numpy write them ---- */

static qkv_status read_list(reader *r, int depth);

static qkv_status read_entry(reader *r, int depth, int64_t n)
{
    if (*r->at == '[') return read_list(r, depth);
    if (!r->ndim) r->ndim = depth;
    if (r->ndim == depth) return read_number(r, n);
    return qkv__fail(QKV_FORMAT, "%s: row %lld: a number where a list is expected", r->name, (long long)r->row + 1);
}

/* What begins with the bracket at hand and is inside of `depth` lists. */
static qkv_status read_list(reader *r, int depth)
{
    static const char blanks[] = " \t\r\n";
    int64_t n = 0;
    if (depth == QKV_MAX_DIMS) return qkv__fail(QKV_LIMIT, "%s: the array has more than %d dimensions", r->name, QKV_MAX_DIMS);
    if (r->ndim && depth >= r->ndim)
        return qkv__fail(QKV_FORMAT, "%s: row %lld: a list where a number is expected", r->name, (long long)r->row + 1);
    r->at++;
    for (skip_blanks(r, blanks); r->at < r->end && *r->at != ']'; skip_comma(r, blanks)) {
        qkv_status status = read_entry(r, depth + 1, n++);
        if (status) return status;
    }
    if (r->at == r->end) return qkv__fail(QKV_FORMAT, "%s: row %lld: a bracket is not closed", r->name, (long long)r->row + 1);
    r->at++;
    r->row += depth + 1 == r->ndim;
    return fits_shape(r, depth, n);
}

static qkv_status read_lists(reader *r)
{
    qkv_status status = read_list(r, 0);
    skip_blanks(r, " \t\r\n");
    if (status || r->at == r->end) return status;
    return qkv__fail(QKV_FORMAT, "%s: \"%.*s\" follows the last bracket", r->name, (int)qkv__min(r->end - r->at, 20), r->at);
}

/* ---- arrays ---- */

static qkv_status finish_array(reader *r, qkv_array *out)
{
    if (!r->n) return qkv__fail(QKV_FORMAT, "%s: there are no numbers", r->name);
    float *data = qkv__alloc(sizeof *data * r->n);
    if (!data) return QKV_MEMORY;
    memcpy(data, r->numbers, sizeof *data * r->n);
    *out = (qkv_array){ .ndim = r->ndim, .data = data };
    memcpy(out->shape, r->shape, sizeof *out->shape * (size_t)r->ndim);
    return QKV_OK;
}

qkv_status qkv_array_parse(const char *text, size_t length, const char *name, qkv_array *out)
{
    if (!text || !name || !out) return qkv__fail(QKV_USAGE, "array: a text, its name and a place for the array are needed");
    reader r = { .name = name, .at = text, .end = text + length };
    for (int i = 0; i < QKV_MAX_DIMS; i++) r.shape[i] = UNKNOWN;
    skip_blanks(&r, " \t\r\n");
    qkv_status status = r.at < r.end && *r.at == '[' ? read_lists(&r) : read_rows(&r);
    if (!status) status = finish_array(&r, out);
    qkv__release(r.numbers, r.bytes);
    return status;
}

/* A bracket, or what numbers begin with. */
static bool is_typed(const char *source)
{
    while (*source == ' ') source++;
    if (*source == '[') return true;
    source += *source == '-' || *source == '+';
    source += *source == '.';
    return isdigit((unsigned char)*source) || !strncasecmp(source, "inf", 3) || !strncasecmp(source, "nan", 3);
}

static qkv_status read_array_file(const char *path, qkv_array *out)
{
    qkv__bytes file;
    qkv_status status = qkv__stream_read(path, SIZE_MAX, &file);
    if (status) return status;
    if (qkv__is_npy(&file)) status = qkv__npy_parse(path, &file, out);
    else status = qkv_array_parse(file.size ? (const char *)file.data : "", file.size, path, out);
    qkv__bytes_free(&file);
    return status;
}

/* A copy in which the commas, semicolons and spaces of Chinese keyboards are those of ASCII. NULL: out of memory. */
static char *copy_typed(const char *source)
{
    static const struct {
        const char *wide;
        char narrow;
    } signs[] = { { "，", ',' }, { "、", ',' }, { "；", ';' }, { "\u3000", ' ' } };
    char *copy = qkv__copy_text(source), *to = copy;
    for (const char *at = copy; copy && *at; to++) {
        size_t bytes = 1;
        *to = *at;
        for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
            if (!strncmp(at, signs[i].wide, 3)) *to = signs[i].narrow, bytes = 3;
        at += bytes;
    }
    if (copy) *to = '\0';
    return copy;
}

qkv_status qkv_array_read(const char *source, qkv_array *out)
{
    if (!source || !out) return qkv__fail(QKV_USAGE, "array: numbers or a path, and a place for the array are needed");
    char name[80];
    if (!is_typed(source) || qkv__file_exists(source)) return read_array_file(source, out);
    snprintf(name, sizeof name, "\"%.40s%s\"", source, strlen(source) > 40 ? "..." : "");
    char *typed = copy_typed(source);
    if (!typed) return QKV_MEMORY;
    qkv_status status = qkv_array_parse(typed, strlen(typed), name, out);
    qkv__release(typed, strlen(source) + 1);
    return status;
}
