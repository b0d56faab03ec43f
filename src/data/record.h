/* record.h: a line of columns, of TSV or CSV, cut into its fields. */
#ifndef QKV_SRC_RECORD_H
#define QKV_SRC_RECORD_H

#include "lines.h"

/* A zero struct is an empty one, used again and again. */
typedef struct qkv__record {
    qkv_buffer text; /* the fields one after the other, a NUL after each */
    size_t *begins;  /* of each in text, and the end of the last */
    size_t begins_bytes;
    size_t n;
    int64_t line;   /* that it starts in */
    char separator; /* of CSV; 0 is a comma */
} qkv__record;
void qkv__record_free(qkv__record *r);

/* The next record of the lines; *more is false after the last. Errors are those of qkv__lines_next_utf8(). */
typedef qkv_status (*qkv__record_next)(qkv__record *r, qkv__lines *l, int strict, bool *more);

/* Fields between TABs, as they are. */
qkv_status qkv__record_tsv(qkv__record *r, qkv__lines *l, int strict, bool *more);

/* RFC 4180, with any separator. FORMAT, with the line, for a quote inside a field that has none around it, for anything but a separator
 * after a closing quote, and for a quote that is never closed: the line it opens in; LIMIT for a quoted field of more than QKV__FIELD_MAX,
 * which is what a forgotten quote makes of a large file. */
#define QKV__FIELD_MAX ((size_t)64 << 20)
qkv_status qkv__record_csv(qkv__record *r, qkv__lines *l, int strict, bool *more);

static inline const char *qkv__field(const qkv__record *r, size_t i) { return r->text.data + r->begins[i]; }
static inline size_t qkv__field_length(const qkv__record *r, size_t i) { return r->begins[i + 1] - r->begins[i] - 1; }

#endif
