/* record.c: a line of columns, of TSV or CSV, cut into its fields. */
#include "record.h"

#include <string.h>

void qkv__record_free(qkv__record *r)
{
    qkv_buffer_free(&r->text);
    qkv__release(r->begins, r->begins_bytes);
    *r = (qkv__record){ 0 };
}

static char separator_of(const qkv__record *r) { return r->separator ? r->separator : ','; }

static qkv_status set_begin(qkv__record *r)
{
    if (qkv__grow((void **)&r->begins, &r->begins_bytes, (r->n + 1) * sizeof *r->begins)) return QKV_MEMORY;
    r->begins[r->n] = r->text.length;
    return QKV_OK;
}

static qkv_status clear(qkv__record *r)
{
    qkv__buffer_clear(&r->text);
    r->n = 0;
    return set_begin(r);
}

static qkv_status end_field(qkv__record *r)
{
    if (qkv__buffer_put(&r->text, "", 1)) return QKV_MEMORY;
    r->n++;
    return set_begin(r);
}

/* ---- TSV ---- */

qkv_status qkv__record_tsv(qkv__record *r, qkv__lines *l, int strict, bool *more)
{
    qkv_status status = qkv__lines_next_text(l, strict, more);
    if (status || !*more) return status;
    status = clear(r);
    r->line = l->number;
    const char *at = l->line.data, *end = at + l->line.length;
    for (const char *tab; !status; at = tab + 1) {
        tab = memchr(at, '\t', (size_t)(end - at));
        status = qkv__buffer_put(&r->text, at, (size_t)((tab ? tab : end) - at));
        if (!status) status = end_field(r);
        if (!tab) break;
    }
    return status;
}

/* ---- CSV ---- */

/* A carriage return at the end of a line belongs to the newline, unless the line ends inside quotes. */
static bool is_line_end(const qkv_buffer *line, size_t at)
{
    return at == line->length || (at + 1 == line->length && line->data[at] == '\r');
}

static qkv_status malformed_record(const qkv__lines *l, const char *what)
{
    return qkv__fail(QKV_FORMAT, "%s: line %lld: %s", l->path, (long long)l->number, what);
}

static qkv_status plain_field(qkv__record *r, const qkv__lines *l, size_t *at)
{
    size_t begin = *at;
    for (; !is_line_end(&l->line, *at) && l->line.data[*at] != separator_of(r); ++*at)
        if (l->line.data[*at] == '"')
            return malformed_record(l,
                                    "a quote inside a field without quotes around it (write \"\" and put the field in quotes)");
    return qkv__buffer_put(&r->text, l->line.data + begin, *at - begin);
}

/* The rest of the line, and its newline, belong to a quoted field: on to the next line. */
static qkv_status over_newline(qkv__record *r, qkv__lines *l, int strict, size_t at, int64_t opened)
{
    bool more;
    qkv_status status = qkv__buffer_put(&r->text, l->line.data + at, l->line.length - at);
    if (!status) status = qkv__buffer_put(&r->text, "\n", 1);
    if (!status && r->text.length - r->begins[r->n] > QKV__FIELD_MAX)
        status = qkv__fail(QKV_LIMIT, "%s: line %lld opens a quote that is not closed within %zu bytes", l->path,
                           (long long)opened, QKV__FIELD_MAX);
    if (!status) status = qkv__lines_next_utf8(l, strict, &more);
    if (status || more) return status;
    return qkv__fail(QKV_FORMAT, "%s: line %lld opens a quote that is never closed", l->path, (long long)opened);
}

static qkv_status quoted_field(qkv__record *r, qkv__lines *l, int strict, size_t *at)
{
    int64_t opened = l->number;
    qkv_status status = QKV_OK;
    for (++*at; !status;) {
        const qkv_buffer *line = &l->line;
        const char *quote = memchr(line->data + *at, '"', line->length - *at);
        if (!quote) {
            status = over_newline(r, l, strict, *at, opened);
            *at = 0;
            continue;
        }
        size_t end = (size_t)(quote - line->data);
        bool is_doubled = end + 1 < line->length && quote[1] == '"';
        status = qkv__buffer_put(&r->text, line->data + *at, end - *at + is_doubled);
        *at = end + 1 + is_doubled;
        if (status || is_doubled) continue;
        if (is_line_end(line, *at) || line->data[*at] == separator_of(r)) return QKV_OK;
        return malformed_record(l, "a closing quote, and no separator after it");
    }
    return status;
}

qkv_status qkv__record_csv(qkv__record *r, qkv__lines *l, int strict, bool *more)
{
    qkv_status status = qkv__lines_next_utf8(l, strict, more);
    if (status || !*more) return status;
    status = clear(r);
    r->line = l->number;
    for (size_t at = 0; !status; at++) { /* over the separator */
        bool is_quoted = at < l->line.length && l->line.data[at] == '"';
        status = is_quoted ? quoted_field(r, l, strict, &at) : plain_field(r, l, &at);
        if (!status) status = end_field(r);
        if (is_line_end(&l->line, at)) break;
    }
    return status;
}
