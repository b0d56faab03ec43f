/* json.h: JSON in, as a tree or value by value; JSON out.
 *
 * Texts are those of RFC 8259: one value of any type, UTF-8 without a byte order mark. Also refused are numbers beyond a double,
 * whole numbers beyond 64 bits, halves of surrogate pairs, and more than QKV__JSON_DEPTH levels. No text makes the reader
 * slow. */
#ifndef QKV_SRC_BASE_JSON_H
#define QKV_SRC_BASE_JSON_H

#include "memory.h"

#include <stdbool.h>

enum { QKV__JSON_DEPTH = 1024 }; /* arrays and objects within each other */

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

/* A text to read. Only the first three are needed. */
typedef struct qkv__json_source {
    const char *name; /* starts the sentences of errors */
    const char *text;
    size_t length;
    unsigned flags;
    size_t first_line, first_byte; /* lines and bytes before the text, for sentences */
    const char *const *tables; /* keys, NULL after the last: arrays and objects of these names are left as text, see below */
} qkv__json_source;
enum {
    QKV__JSON_NUL = 1,     /* flags: strings and keys may have U+0000, else it is refused */
    QKV__JSON_REPEATED = 2 /* an object may have a key twice, the last of which counts; else it is refused */
};

/* ---- a tree ---- */

/* A value of a tree: 16 bytes. Its strings end with a NUL. */
typedef struct qkv__json_value {
    uint8_t type; /* qkv__json_type */
    bool is_table;
    uint32_t n; /* bytes of a string; elements; members */
    union {
        int64_t whole;
        double real;
        const char *text;
        ptrdiff_t children; /* from this value on: elements; or keys and values in turn, and behind more than a few of these the
                               order of the keys */
    } of;
} qkv__json_value;

/* Zero: none. All of it lies in two blocks. */
typedef struct qkv__json_doc {
    const qkv__json_value *top; /* NULL: there is none */
    bool has_nul;               /* in a string of the tree; with QKV__JSON_NUL */
    char *text;
    qkv__json_value *nodes;
    size_t text_bytes, nodes_bytes;
} qkv__json_doc;

/* The text is copied. FORMAT with line and byte; LIMIT for 4 GiB; MEMORY. *out is empty on error. */
qkv_status qkv__json_parse(const qkv__json_source *source, qkv__json_doc *out);

/* The same of a whole file of at most `limit` bytes. The errors of qkv__file_read() too. */
qkv_status qkv__json_load(const char *path, size_t limit, qkv__json_doc *out);
void qkv__json_free(qkv__json_doc *doc);

/* All of these take NULL, and a value of another type: there is nothing then (NULL, 0, false). */
const qkv__json_value *qkv__json_get(const qkv__json_value *object, const char *key);
const qkv__json_value *qkv__json_at(const qkv__json_value *v, size_t i); /* an element, or the value of a member */
const char *qkv__json_key(const qkv__json_value *object, size_t i);      /* of a member; its bytes in *length of the next */
size_t qkv__json_find(const qkv__json_value *object, const char *key, size_t length); /* SIZE_MAX: it is not there */
double qkv__json_number(const qkv__json_value *v);                                    /* of a whole number too */

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

/* Whether both are alike, wherever their members are; tables, byte by byte. */
bool qkv__json_equal(const qkv__json_value *a, const qkv__json_value *b);

/* ---- value by value ----
 *
 *     qkv__json_pull p;
 *     qkv__json_pull_begin(&p, &source);
 *     if (qkv__json_next(&p) == QKV__JSON_OBJECT) {
 *         qkv__json_enter(&p);
 *         while (qkv__json_next(&p)) ... p.key, p.key_length and the value ...
 *     }
 *     qkv__json_next(&p);               there must be no more
 *     status = qkv__json_pull_end(&p);
 *
 * An array or object that is not entered is passed over. A key that comes twice is not noticed. */
typedef struct qkv__json_pull {
    /* What qkv__json_next() has read. Texts do not end with a NUL, and stay until the next call. */
    qkv__json_type type;
    const char *key, *text; /* text: of a string, and of a number as it stands there */
    size_t key_length, length;
    int64_t whole;   /* of an INT */
    uint64_t digits; /* of a number: the first 19 at most without zeros before them; its size is digits * 10^exponent */
    int64_t exponent;
    bool is_negative, is_cut; /* is_cut: there are more digits */
    qkv_status status;        /* the first error, after which there is nothing more to read */

    /* its own */
    const qkv__json_source *source;
    const char *at, *end;
    size_t line;                               /* line ends before `at` */
    bool in_place, is_open, is_first, is_done; /* is_open: at an array or object that was not entered */
    int depth;
    uint64_t objects[QKV__JSON_DEPTH / 64]; /* which levels are objects */
    struct {
        char *text;
        size_t bytes;
    } unescaped[2]; /* a key, a value */
} qkv__json_pull;

/* The source must stay. */
void qkv__json_pull_begin(qkv__json_pull *p, const qkv__json_source *source);

/* What a tree has left as text, already entered; any number of times. Nothing for a value that is no table. source: that of the
 * tree, for its name and flags. */
void qkv__json_pull_table(qkv__json_pull *p, const qkv__json_source *source, const qkv__json_value *table);

/* NONE behind the last value of an array or object, which is then left; behind the whole text; and after an error. */
qkv__json_type qkv__json_next(qkv__json_pull *p);
void qkv__json_enter(qkv__json_pull *p);

/* The number that was read, rounded to the nearest double. */
double qkv__json_real(const qkv__json_pull *p);
qkv_status qkv__json_pull_end(qkv__json_pull *p);

/* ---- out ---- */

/* How members and elements are set: {"a":1,"b":2} or {"a": 1, "b": 2} or { "a": 1, "b": 2 } or each in a line of its own, 2
 * columns deeper. */
typedef enum qkv__json_style { QKV__JSON_COMPACT, QKV__JSON_SPACED, QKV__JSON_PADDED, QKV__JSON_LINES } qkv__json_style;

/* Puts commas and line ends by itself. The first error stays; what is put after it is lost. Zero: nothing yet, COMPACT. */
typedef struct qkv__json_writer {
    char *text; /* with a NUL behind it */
    size_t length, capacity;
    qkv_status status;
    qkv__json_style style; /* of arrays and objects that are opened from now on */
    int digits;            /* of the reals of qkv__json_put_value(); 0: QKV__JSON_DOUBLE */
    bool long_escapes;     /* \u000a, not \n, and digits in small letters */
    bool wraps_empty;      /* in LINES the end of an empty array or object is in a line of its own too */
    bool replaces;         /* the outermost object is of LINES; a key that it has already, which needs no escapes, gets the
                              new value in its place */
    size_t replacing, old, old_length; /* where a value that replaces another begins, 0: none does; the other one */
    int depth;
    uint8_t levels[QKV__JSON_DEPTH + 32];
} qkv__json_writer;

/* A member of an object, or with a key of NULL an element or the whole text. */
void qkv__json_open_object(qkv__json_writer *w, const char *key);
void qkv__json_open_array(qkv__json_writer *w, const char *key);
void qkv__json_close(qkv__json_writer *w); /* the innermost of these */
void qkv__json_put_text(qkv__json_writer *w, const char *key, const char *text);
void qkv__json_put_string(qkv__json_writer *w, const char *key, const char *text,
                          size_t length); /* U+FFFD for what is not UTF-8 */
void qkv__json_put_int(qkv__json_writer *w, const char *key, int64_t x);
void qkv__json_put_bool(qkv__json_writer *w, const char *key, bool x);
void qkv__json_put_null(qkv__json_writer *w, const char *key);

/* With so many digits at most, and a point or an exponent; null for what is not finite. */
enum { QKV__JSON_FLOAT = 9, QKV__JSON_DOUBLE = 17 }; /* digits that give the same number back */
void qkv__json_put_real(qkv__json_writer *w, const char *key, double x, int digits);
void qkv__json_put_value(qkv__json_writer *w, const char *key, const qkv__json_value *v);      /* tables as they are */
void qkv__json_put_raw(qkv__json_writer *w, const char *key, const char *json, size_t length); /* is JSON already */

/* A key and its value are put apart: then the next value has none. For keys with a NUL. */
void qkv__json_put_key(qkv__json_writer *w, const char *key, size_t length);

/* Of a writer that replaces: whether its outermost object has a key; the value of one of its keys once more, null where it has
 * none. */
bool qkv__json_has(const qkv__json_writer *w, const char *key);
void qkv__json_put_copy(qkv__json_writer *w, const char *key, const char *of);

/* Writes the whole text and a line end as a file, or nothing; then frees it. The writer's own error, or those of
 * qkv_file_write(). */
qkv_status qkv__json_save(qkv__json_writer *w, const char *path);
void qkv__json_writer_free(qkv__json_writer *w);

/* The bytes of the character of UTF-8 that a text begins with, by table 3-7 of the Unicode standard, or of what is none. */
size_t qkv__json_character(const char *text, const char *end, bool *is_right);
bool qkv__json_is_utf8(const char *text, size_t length);

#endif
