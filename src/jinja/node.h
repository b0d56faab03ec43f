/* node.h: a template as tokens, and as the tree that is run. */
#ifndef QKV_SRC_JINJA_NODE_H
#define QKV_SRC_JINJA_NODE_H

#include "value.h"

/* Where something is in the template, from 1; columns count bytes. */
typedef struct jinja_place {
    int line, column;
} jinja_place;

/* ---- tokens ---- */

typedef enum jinja_token_kind {
    JINJA_TOKEN_TEXT,            /* between the tags */
    JINJA_TOKEN_OPEN_STATEMENT,  /* {% */
    JINJA_TOKEN_CLOSE_STATEMENT, /* %} */
    JINJA_TOKEN_OPEN_OUTPUT,     /* {{ */
    JINJA_TOKEN_CLOSE_OUTPUT,    /* }} */
    JINJA_TOKEN_NAME,
    JINJA_TOKEN_LITERAL, /* a string or a number */
    JINJA_TOKEN_SIGN,    /* an operator or a bracket: its text says which */
    JINJA_TOKEN_END
} jinja_token_kind;

typedef struct jinja_token {
    jinja_token_kind kind;
    jinja_place place;
    jinja_string text;
    jinja_value value; /* of a literal */
} jinja_token;

typedef struct jinja_tokens {
    jinja_token *at; /* n of them, the last is END; in the memory they were made with */
    int64_t n, room;
} jinja_tokens;

/* A newline behind a statement or a comment, and blanks before one on its line, belong to it, as transformers sets that; a
 * minus takes all white space, a plus none. FORMAT with line and column; MEMORY, LIMIT. */
qkv_status qkv__jinja_lex(jinja_memory *m, jinja_string source, jinja_tokens *out);

/* ---- the tree ---- */

typedef enum jinja_node_kind {
    /* statements */
    JINJA_NODE_TEXT,
    JINJA_NODE_OUTPUT,       /* {{ a }} */
    JINJA_NODE_IF,           /* if a: b, else c */
    JINJA_NODE_FOR,          /* for a in b if d: body c, else e */
    JINJA_NODE_SET,          /* a = b */
    JINJA_NODE_SET_BLOCK,    /* a = what body c prints, through the filters b */
    JINJA_NODE_MACRO,        /* text, parameters a, body c */
    JINJA_NODE_CALL_BLOCK,   /* call b with a caller of parameters a and body c */
    JINJA_NODE_FILTER_BLOCK, /* what body c prints, through the filters b */
    JINJA_NODE_BREAK,
    JINJA_NODE_CONTINUE,
    JINJA_NODE_NOTHING,
    /* expressions */
    JINJA_NODE_LITERAL,
    JINJA_NODE_NAME,
    JINJA_NODE_LIST,        /* elements a; tuples too */
    JINJA_NODE_DICT,        /* keys a, the value of each its a */
    JINJA_NODE_ATTRIBUTE,   /* a.text */
    JINJA_NODE_ITEM,        /* a[b] */
    JINJA_NODE_SLICE,       /* a[b:c:d] */
    JINJA_NODE_CALL,        /* a(arguments b) */
    JINJA_NODE_FILTER,      /* a | text(arguments b); a NULL: what a block prints */
    JINJA_NODE_TEST,        /* a is text(arguments b) */
    JINJA_NODE_UNARY,       /* text a */
    JINJA_NODE_BINARY,      /* a text b */
    JINJA_NODE_CHOICE,      /* b if a else c */
    JINJA_NODE_KEYWORD,     /* among arguments and parameters: text = a */
    JINJA_NODE_SPREAD,      /* *a */
    JINJA_NODE_SPREAD_NAMED /* **a */
} jinja_node_kind;

typedef struct jinja_node {
    jinja_node_kind kind;
    jinja_place place;
    jinja_string text;
    jinja_value value;
    bool is_tuple;
    struct jinja_node *a, *b, *c, *d, *e;
    struct jinja_node *next; /* in a body, or among elements, arguments and parameters */
} jinja_node;

/* The statements of a template. FORMAT for what is no template, UNSUPPORTED for a statement that is not known here or asks for
 * a file, LIMIT for one nested too deep, each with line and column; MEMORY. */
qkv_status qkv__jinja_parse(jinja_memory *m, jinja_string source, jinja_node **out);

/* "chat template: line 3, column 7: ..." */
qkv_status qkv__jinja_fail(qkv_status status, jinja_place at, const char *format, ...) QKV_PRINTF(3, 4);

#endif
