/* value.h: what the expressions of a template have as values, and the memory they lie in: all of it is taken back at once. */
#ifndef QKV_SRC_JINJA_VALUE_H
#define QKV_SRC_JINJA_VALUE_H

#include "../base/arena.h"
#include "../base/json.h"
#include "../base/buffer.h"

#include <stdbool.h>

/* ---- memory ---- */

/* Small pieces of an arena, `most` bytes at most, and how much may still be done: a step is about as much as evaluating one
 * name. Starts as zero but for most and steps. */
typedef struct jinja_memory {
    qkv__arena arena;
    char *at; /* of the chunk that is given out from, and how much of it is left */
    size_t left, used, most;
    int64_t steps; /* below 0: too many */
} jinja_memory;

/* Cleared; NULL with the error set: MEMORY, or LIMIT for more than there may be. */
void *qkv__jinja_take(jinja_memory *m, size_t bytes);

/* ---- values ---- */

typedef enum jinja_kind {
    JINJA_UNDEFINED,
    JINJA_NONE,
    JINJA_BOOLEAN,
    JINJA_INTEGER,
    JINJA_FLOAT,
    JINJA_STRING,
    JINJA_LIST, /* and tuples */
    JINJA_DICT,
    JINJA_NAMESPACE,
    JINJA_LOOP,     /* what a loop says of itself */
    JINJA_MACRO,    /* of the template, or the body of a call block */
    JINJA_FUNCTION, /* of ours */
    JINJA_METHOD    /* of ours, with the value it belongs to */
} jinja_kind;

/* UTF-8 that ends with no NUL. */
typedef struct jinja_string {
    const char *data;
    size_t length;
} jinja_string;

typedef struct jinja_value {
    jinja_kind kind;
    union {
        bool truth;
        int64_t whole;
        double number;
        jinja_string text;
        struct jinja_list *list;
        struct jinja_dict *dict;
        struct jinja_loop *loop;
        struct jinja_macro *macro;
        const struct jinja_function *function;
        struct jinja_bound *bound;
    };
} jinja_value;

typedef struct jinja_list {
    jinja_value *items; /* n of them */
    int64_t n, room;
} jinja_list;

typedef struct jinja_entry {
    jinja_string key;
    jinja_value value;
} jinja_entry;

/* In the order they came. */
typedef struct jinja_dict {
    jinja_entry *entries;
    int64_t n, room;
} jinja_dict;

typedef struct jinja_loop {
    const jinja_list *items;
    int64_t at;
} jinja_loop;

typedef struct jinja_bound {
    const struct jinja_function *function;
    jinja_value self;
} jinja_bound;

static inline jinja_value jinja_none(void) { return (jinja_value){ .kind = JINJA_NONE }; }
static inline jinja_value jinja_undefined(void) { return (jinja_value){ .kind = JINJA_UNDEFINED }; }
static inline jinja_value jinja_boolean(bool x) { return (jinja_value){ .kind = JINJA_BOOLEAN, .truth = x }; }
static inline jinja_value jinja_integer(int64_t x) { return (jinja_value){ .kind = JINJA_INTEGER, .whole = x }; }
static inline jinja_value jinja_float(double x) { return (jinja_value){ .kind = JINJA_FLOAT, .number = x }; }
static inline jinja_value jinja_text(const char *data, size_t length)
{
    return (jinja_value){ .kind = JINJA_STRING, .text = { data, length } };
}
static inline bool jinja_is(jinja_value v, jinja_kind kind) { return v.kind == kind; }

bool qkv__jinja_same(jinja_string a, jinja_string b);
bool qkv__jinja_is_word(jinja_string a, const char *word);
const char *qkv__jinja_kind_name(jinja_value v); /* "a string", for sentences */
bool qkv__jinja_truth(jinja_value v);            /* as Python has it */

/* Deep, and of numbers by their value; it takes steps. */
bool qkv__jinja_equal(jinja_memory *m, jinja_value a, jinja_value b);

/* Adds one. MEMORY, LIMIT: a dict has at most 4096 keys, as they are looked for one by one. */
qkv_status qkv__jinja_append(jinja_memory *m, jinja_list *l, jinja_value v);
qkv_status qkv__jinja_put(jinja_memory *m, jinja_dict *d, jinja_string key, jinja_value v); /* or replaces the one it has */
jinja_value *qkv__jinja_find(const jinja_dict *d, jinja_string key);                        /* NULL: none */

/* A new one without elements; NULL with the error set. */
jinja_list *qkv__jinja_list(jinja_memory *m);
jinja_dict *qkv__jinja_dict(jinja_memory *m);

/* A copy of bytes. */
qkv_status qkv__jinja_string(jinja_memory *m, const char *data, size_t length, jinja_value *out);

/* Of JSON; the strings stay those of `from`, which must outlive it. LIMIT for one that is too deep. */
qkv_status qkv__jinja_of_json(jinja_memory *m, const qkv__json_value *from, int depth, jinja_value *out);

/* ---- as text ---- */

typedef struct jinja_json_style {
    int64_t indent; /* -1: on one line */
    bool ascii, sort_keys;
    jinja_string between, behind_key;
} jinja_json_style;

/* Adds a value as JSON to a text; undefined is null there. FORMAT for one that has none, LIMIT for too long a text. */
enum { JINJA_MOST_TEXT = 16 << 20 };
qkv_status qkv__jinja_write_json(jinja_value v, const jinja_json_style *style, int depth, qkv_buffer *out);

/* Adds what a template prints of a value: nothing for none and undefined, JSON for lists and dicts. */
qkv_status qkv__jinja_write(jinja_value v, qkv_buffer *out);

#endif
