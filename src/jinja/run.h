/* run.h: a template that is being run. */
#ifndef QKV_SRC_JINJA_RUN_H
#define QKV_SRC_JINJA_RUN_H

#include "node.h"

/* Variables that are set; one that is not found is looked for in the parent. */
typedef struct jinja_scope {
    struct jinja_scope *parent;
    struct jinja_variable *first; /* the one set last */
} jinja_scope;

typedef struct jinja_variable {
    jinja_string name;
    jinja_value value;
    struct jinja_variable *next;
} jinja_variable;

typedef struct jinja_macro {
    const jinja_node *node; /* a MACRO or a CALL_BLOCK */
    jinja_scope *scope;     /* where it was defined */
    bool has_caller;
    jinja_value caller;
} jinja_macro;

typedef enum jinja_jump { JINJA_GO_ON, JINJA_BREAK, JINJA_CONTINUE } jinja_jump;

typedef struct jinja_run {
    jinja_memory memory;
    const jinja_dict *variables; /* that were given */
    int64_t now;                 /* seconds since 1970 */
    qkv_buffer *out;             /* what was printed, and behind it what blocks print whose text becomes a value */
    int depth;
    jinja_jump jump;
    jinja_place place; /* of what is evaluated, for sentences */
} jinja_run;

/* Arguments of a call: by their places, and by name. */
typedef struct jinja_arguments {
    jinja_list places;
    jinja_dict names;
} jinja_arguments;

/* The i-th argument, or the one of that name (NULL: it has none); NULL: it was not given. */
const jinja_value *qkv__jinja_argument(const jinja_arguments *a, int64_t i, const char *name);

/* A function, a filter or a method: `self` is what it is applied to. */
typedef qkv_status jinja_call(jinja_run *r, jinja_value self, const jinja_arguments *a, jinja_value *out);
typedef struct jinja_function {
    const char *name;
    jinja_call *call;
} jinja_function;

/* The function of that name in a table that ends with NULL; NULL: none. */
const jinja_function *qkv__jinja_named(const jinja_function *table, jinja_string name);

extern const jinja_function qkv__jinja_filters[], qkv__jinja_functions[], qkv__jinja_string_methods[],
    qkv__jinja_dict_methods[];

/* A sentence with the place where the run is. */
#define JINJA_REFUSE(r, ...) qkv__jinja_fail(QKV_FORMAT, (r)->place, __VA_ARGS__)

/* Takes steps; LIMIT when there are none left. */
qkv_status qkv__jinja_charge(jinja_run *r, size_t steps);

/* Evaluates an expression; prints a body. */
qkv_status qkv__jinja_evaluate(jinja_run *r, const jinja_node *n, jinja_scope *s, jinja_value *out);
qkv_status qkv__jinja_print(jinja_run *r, const jinja_node *body, jinja_scope *s);

/* What a body prints, as a value. */
qkv_status qkv__jinja_capture(jinja_run *r, const jinja_node *body, jinja_scope *s, jinja_value *out);

qkv_status qkv__jinja_set(jinja_run *r, jinja_scope *s, jinja_string name, jinja_value v);

/* a sign b, for all but "and" and "or"; and -a, +a. */
qkv_status qkv__jinja_operate(jinja_run *r, jinja_string sign, jinja_value a, jinja_value b, jinja_value *out);
qkv_status qkv__jinja_negate(jinja_run *r, jinja_string sign, jinja_value a, jinja_value *out);

/* a.name, where calls prefer methods to keys; a[index]; a[from:to:by], undefined where a part is left out. */
qkv_status qkv__jinja_attribute(jinja_run *r, jinja_value a, jinja_string name, bool is_called, jinja_value *out);
qkv_status qkv__jinja_item(jinja_run *r, jinja_value a, jinja_value index, jinja_value *out);
qkv_status qkv__jinja_slice(jinja_run *r, jinja_value a, jinja_value from, jinja_value to, jinja_value by, jinja_value *out);

/* Calls a macro, a function or a method. */
qkv_status qkv__jinja_call_value(jinja_run *r, jinja_value f, const jinja_arguments *a, jinja_value *out);

/* What a loop goes through: elements, keys, characters. */
qkv_status qkv__jinja_elements(jinja_run *r, jinja_value v, jinja_list **out);

/* Whether a test holds. */
qkv_status qkv__jinja_test(jinja_run *r, jinja_string name, jinja_value v, const jinja_arguments *a, bool *holds);

/* Below 0, 0 or above it, as a sorts before b; strings by their bytes, in lower case unless is_exact. */
qkv_status qkv__jinja_compare(jinja_run *r, jinja_value a, jinja_value b, bool is_exact, int *order);

/* A value of the path "a.b.0" in v. */
qkv_status qkv__jinja_path(jinja_run *r, jinja_value v, jinja_value path, jinja_value *out);

/* The text of a string; a sentence for another value. */
qkv_status qkv__jinja_need_text(jinja_run *r, const jinja_value *v, const char *what, jinja_string *out);

#endif
