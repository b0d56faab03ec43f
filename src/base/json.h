/* json.h: reads JSON as a tree or value by value, and writes it.
 *
 * The grammar is RFC 8259: one value of any type, in UTF-8 without a byte order mark. The reader also rejects numbers outside
 * the range of a double, integers outside 64 bits, lone surrogates, and nesting deeper than QKV__JSON_DEPTH. Reading takes
 * O(n log n) at most. */
#ifndef QKV_SRC_BASE_JSON_H
#define QKV_SRC_BASE_JSON_H

#include "memory.h"

#include <stdbool.h>

enum { QKV__JSON_DEPTH = 1024 }; /* nesting of arrays and objects */

typedef enum qkv__json_type {
    QKV__JSON_NONE, /* no value */
    QKV__JSON_NULL,
    QKV__JSON_FALSE,
    QKV__JSON_TRUE,
    QKV__JSON_INT, /* no fraction, no exponent */
    QKV__JSON_REAL,
    QKV__JSON_STRING,
    QKV__JSON_ARRAY,
    QKV__JSON_OBJECT
} qkv__json_type;

/* The input. name, text and length are required. */
typedef struct qkv__json_source {
    const char *name; /* prefix of error messages */
    const char *text;
    size_t length;
    unsigned flags;
    size_t first_line, first_byte; /* lines and bytes before the text, for error messages */
    const char *const *tables;     /* keys, NULL-terminated: the tree keeps their arrays and objects as text (see below) */
} qkv__json_source;
enum {
    QKV__JSON_NUL = 1,     /* flags: accept U+0000 in strings and keys (default: an error) */
    QKV__JSON_REPEATED = 2 /* accept duplicate keys; lookups find the last one (default: an error) */
};

/* ---- a tree ---- */

/* A node of the tree, 16 bytes. Strings are NUL-terminated. */
typedef struct qkv__json_value {
    uint8_t type; /* qkv__json_type */
    bool is_table;
    uint32_t n; /* string bytes, elements or members */
    union {
        int64_t whole;
        double real;
        const char *text;
        ptrdiff_t children; /* offset in nodes from this one: elements, or alternating keys and values; objects with many
                               members have their sorted key order after these */
    } of;
} qkv__json_value;

/* A parsed document: two allocations. Zero-initialized means empty. */
typedef struct qkv__json_doc {
    const qkv__json_value *top; /* NULL if empty */
    bool has_nul;               /* a string or key of the tree contains U+0000 */
    char *text;
    qkv__json_value *nodes;
    size_t text_bytes, nodes_bytes;
} qkv__json_doc;

/* Copies the text. Errors: FORMAT with line and byte offset, LIMIT from 4 GiB on, MEMORY; *out is then empty. */
qkv_status qkv__json_parse(const qkv__json_source *source, qkv__json_doc *out);

/* The same for a file of at most `limit` bytes; also the errors of qkv__file_read(). */
qkv_status qkv__json_load(const char *path, size_t limit, qkv__json_doc *out);
void qkv__json_free(qkv__json_doc *doc);

/* Accessors accept NULL and values of other types: the result is then NULL, 0 or false. */
const qkv__json_value *qkv__json_get(const qkv__json_value *object, const char *key);
const qkv__json_value *qkv__json_at(const qkv__json_value *v, size_t i); /* i-th element, or value of the i-th member */
const char *qkv__json_key(const qkv__json_value *object, size_t i);      /* of the i-th member */
size_t qkv__json_find(const qkv__json_value *object, const char *key, size_t length); /* index of the member, or SIZE_MAX */
double qkv__json_number(const qkv__json_value *v);                                    /* integer or real */

static inline qkv__json_type qkv__json_type_of(const qkv__json_value *v)
{
    return v ? (qkv__json_type)v->type : QKV__JSON_NONE;
}
static inline bool qkv__json_is_null(const qkv__json_value *v) { return qkv__json_type_of(v) == QKV__JSON_NULL; }
static inline bool qkv__json_is_true(const qkv__json_value *v) { return qkv__json_type_of(v) == QKV__JSON_TRUE; }
static inline bool qkv__json_is_bool(const qkv__json_value *v)
{
    return qkv__json_type_of(v) == QKV__JSON_TRUE || qkv__json_type_of(v) == QKV__JSON_FALSE;
}
static inline bool qkv__json_is_int(const qkv__json_value *v) { return qkv__json_type_of(v) == QKV__JSON_INT; }
static inline bool qkv__json_is_number(const qkv__json_value *v)
{
    return qkv__json_type_of(v) == QKV__JSON_INT || qkv__json_type_of(v) == QKV__JSON_REAL;
}
static inline bool qkv__json_is_string(const qkv__json_value *v) { return qkv__json_type_of(v) == QKV__JSON_STRING; }
static inline bool qkv__json_is_array(const qkv__json_value *v) { return qkv__json_type_of(v) == QKV__JSON_ARRAY; }
static inline bool qkv__json_is_object(const qkv__json_value *v) { return qkv__json_type_of(v) == QKV__JSON_OBJECT; }
static inline size_t qkv__json_size(const qkv__json_value *v) { return qkv__json_type_of(v) >= QKV__JSON_ARRAY ? v->n : 0; }
static inline int64_t qkv__json_int(const qkv__json_value *v) { return qkv__json_is_int(v) ? v->of.whole : 0; }
static inline const char *qkv__json_text(const qkv__json_value *v) { return qkv__json_is_string(v) ? v->of.text : NULL; }
static inline size_t qkv__json_length(const qkv__json_value *v) { return qkv__json_is_string(v) ? v->n : 0; }
static inline const char *qkv__json_get_text(const qkv__json_value *object, const char *key)
{
    return qkv__json_text(qkv__json_get(object, key));
}

/* Deep comparison; the order of members does not matter. Tables are compared as text. */
bool qkv__json_equal(const qkv__json_value *a, const qkv__json_value *b);

/* ---- value by value ----
 *
 *     qkv__json_pull p;
 *     qkv__json_pull_begin(&p, &source);
 *     if (qkv__json_next(&p) == QKV__JSON_OBJECT) {
 *         qkv__json_enter(&p);
 *         while (qkv__json_next(&p)) ... p.key, p.key_length and the value ...
 *     }
 *     qkv__json_next(&p);               fails if more text follows
 *     status = qkv__json_pull_end(&p);
 *
 * Arrays and objects that are not entered are skipped. Duplicate keys are not detected. */
typedef struct qkv__json_pull {
    /* The value that qkv__json_next() read. Strings are not NUL-terminated and valid until the next call. */
    qkv__json_type type;
    const char *key, *text; /* text: of a string; the literal of a number */
    size_t key_length, length;
    int64_t whole;   /* of an INT */
    uint64_t digits; /* of a number: up to 19 significant digits; the magnitude is digits * 10^exponent */
    int64_t exponent;
    bool is_negative, is_cut; /* is_cut: more digits follow */
    qkv_status status;        /* the first error; ends the reading */

    /* internal state */
    const qkv__json_source *source;
    const char *at, *end;
    size_t line;                               /* line ends before `at` */
    bool is_valid;                             /* a table, whose strings were validated before */
    bool in_place, is_open, is_first, is_done; /* is_open: an array or object was read but not entered */
    int depth;
    uint64_t objects[QKV__JSON_DEPTH / 64]; /* bit set: this level is an object */
    struct {
        char *text;
        size_t bytes;
    } unescaped[2]; /* key and value */
} qkv__json_pull;

/* The source must outlive p. */
void qkv__json_pull_begin(qkv__json_pull *p, const qkv__json_source *source);

/* Reads a table of a tree, already entered; may be repeated. Empty if it is no table. Uses name and flags of source. */
void qkv__json_pull_table(qkv__json_pull *p, const qkv__json_source *source, const qkv__json_value *table);

/* Returns NONE at the end of an array or object (which is then left), at the end of the text, and after an error. */
qkv__json_type qkv__json_next(qkv__json_pull *p);
void qkv__json_enter(qkv__json_pull *p);

/* The number just read, correctly rounded. */
double qkv__json_real(const qkv__json_pull *p);
qkv_status qkv__json_pull_end(qkv__json_pull *p);

/* ---- out ---- */

/* Layout: {"a":1,"b":2} or {"a": 1, "b": 2} or { "a": 1, "b": 2 } or one member per line, indented by 2. */
typedef enum qkv__json_style { QKV__JSON_COMPACT, QKV__JSON_SPACED, QKV__JSON_PADDED, QKV__JSON_LINES } qkv__json_style;

/* Inserts commas and newlines. After an error the output is ignored. Zero-initialized means empty and COMPACT. */
typedef struct qkv__json_writer {
    char *text; /* NUL-terminated */
    size_t length, capacity;
    qkv_status status;
    qkv__json_style style; /* of arrays and objects opened from now on */
    int digits;            /* significant digits in qkv__json_put_value(); 0: QKV__JSON_DOUBLE */
    bool long_escapes;     /* \u000a instead of \n, lower-case hex */
    bool wraps_empty;      /* LINES: newline inside empty arrays and objects */
    bool replaces;         /* writing a key of the outermost object (in LINES, key without escapes) again replaces its value */
    size_t replacing, old, old_length; /* start of the new value (0: none), and the one it replaces */
    int depth;
    uint8_t levels[QKV__JSON_DEPTH + 32];
} qkv__json_writer;

/* key: of a member; NULL for an element or the top-level value. */
void qkv__json_open_object(qkv__json_writer *w, const char *key);
void qkv__json_open_array(qkv__json_writer *w, const char *key);
void qkv__json_close(qkv__json_writer *w); /* closes the innermost one */
void qkv__json_put_text(qkv__json_writer *w, const char *key, const char *text);
void qkv__json_put_string(qkv__json_writer *w, const char *key, const char *text,
                          size_t length); /* U+FFFD replaces invalid UTF-8 */
void qkv__json_put_int(qkv__json_writer *w, const char *key, int64_t x);
void qkv__json_put_bool(qkv__json_writer *w, const char *key, bool x);
void qkv__json_put_null(qkv__json_writer *w, const char *key);

/* Like %.*g, always with a point or an exponent; null for infinities and NaN. */
enum { QKV__JSON_FLOAT = 9, QKV__JSON_DOUBLE = 17 }; /* digits that round-trip */
void qkv__json_put_real(qkv__json_writer *w, const char *key, double x, int digits);
void qkv__json_put_value(qkv__json_writer *w, const char *key, const qkv__json_value *v);      /* copies tables verbatim */
void qkv__json_put_raw(qkv__json_writer *w, const char *key, const char *json, size_t length); /* valid JSON */

/* For keys with a NUL: writes the key; the value follows, with a key of NULL. */
void qkv__json_put_key(qkv__json_writer *w, const char *key, size_t length);

/* With `replaces`: whether the outermost object has a key; and a copy of the value of key `of`, or null. */
bool qkv__json_has(const qkv__json_writer *w, const char *key);
void qkv__json_put_copy(qkv__json_writer *w, const char *key, const char *of);

/* Writes text and a newline to a file, atomically, and frees the writer. Errors: w->status, or those of qkv_file_write(). */
qkv_status qkv__json_save(qkv__json_writer *w, const char *path);
void qkv__json_writer_free(qkv__json_writer *w);

/* Length of the UTF-8 sequence at text (table 3-7 of Unicode), or of the invalid bytes to skip. */
size_t qkv__json_character(const char *text, const char *end, bool *is_right);
bool qkv__json_is_utf8(const char *text, size_t length);

#endif
