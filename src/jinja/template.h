/* template.h: chat templates, which write a conversation as the text that a model was trained on: the part of the language
 * Jinja that published ones use.
 *
 * Threads: a template may be rendered by any number of threads at a time. */
#ifndef QKV_SRC_JINJA_TEMPLATE_H
#define QKV_SRC_JINJA_TEMPLATE_H

#include "../base/json.h"

#include <qkv/unstable/buffer.h>

/* Statements: if, for (with if, else, break, continue), set, macro, call, filter; generation is passed over. Expressions: all
 * operators, slices, calls, filters, tests, methods of strings and mappings. Functions: raise_exception, strftime_now, range,
 * namespace, dict. White space goes as in transformers: a newline behind a statement and blanks before it are its own. Values
 * print as @huggingface/jinja prints them: none as nothing, lists and mappings as JSON. What asks for a file (include, import,
 * extends) is refused. */
typedef struct qkv__chat_template qkv__chat_template;

/* Reads a template of at most 1 MiB. NULL on error, each with line and column: FORMAT for what is no template; UNSUPPORTED for
 * a statement that is not known; LIMIT for one nested more than 100 levels deep; USAGE for NULL; MEMORY. You own it. */
qkv__chat_template *qkv__chat_template_new(const char *text, size_t length);
void qkv__chat_template_free(qkv__chat_template *t);

/* Zero means the default shown. */
typedef struct qkv__chat_render_opts {
    size_t size;
    int64_t now;        /* seconds since 1970 that strftime_now() tells, as local time; the clock's */
    int64_t most_steps; /* about as many names as are evaluated; 20 million, which are some seconds */
} qkv__chat_render_opts;

/* Runs a template. variables: an object in JSON whose members are its variables, mostly "messages", "tools",
 * "add_generation_prompt", "bos_token" and "eos_token"; of `length` bytes. The text goes to *out. FORMAT for JSON that is no
 * object, and for what the template cannot do with it, with line and column; UNSUPPORTED for a filter or a test that is not
 * known; LIMIT for more steps than that, 16 MiB of text, 256 MiB of values or calls 600 levels deep; USAGE for NULL, and when
 * the template itself refuses the conversation (raise_exception); MEMORY. *out is then empty. */
qkv_status qkv__chat_template_render_json(const qkv__chat_template *t, const char *variables, size_t length,
                                          const qkv__chat_render_opts *opts, qkv_buffer *out);

/* The same with an object that was read; only opts may be NULL. */
qkv_status qkv__chat_template_render(const qkv__chat_template *t, const qkv__json_value *variables,
                                     const qkv__chat_render_opts *opts, qkv_buffer *out);

#endif
