/* render.c: a chat template from its text to what it writes. */
#include "template.h"

#include <qkv/unstable/util.h>

#include "../base/options.h"
#include "../base/status.h"
#include "run.h"

#include <string.h>
#include <time.h>

enum { MOST_SOURCE = 1 << 20, MOST_STEPS = 20000000 };
#define MOST_TREE ((size_t)256 << 20)
#define MOST_VALUES ((size_t)256 << 20)

struct qkv__chat_template {
    jinja_memory memory; /* of its text and its tree */
    const jinja_node *body;
};

static qkv_status read_template(qkv__chat_template *t, const char *text, size_t length)
{
    jinja_value source;
    jinja_node *body;
    if (length > MOST_SOURCE) return qkv__fail(QKV_LIMIT, "chat template: it has more than %d bytes", MOST_SOURCE);
    if (qkv_utf8_valid(text, length) < length)
        return qkv__fail(QKV_FORMAT, "chat template: byte %zu is not UTF-8", qkv_utf8_valid(text, length) + 1);
    qkv_status status = qkv__jinja_string(&t->memory, text, length, &source);
    if (!status) status = qkv__jinja_parse(&t->memory, source.text, &body);
    if (!status) t->body = body;
    return status;
}

qkv__chat_template *qkv__chat_template_new(const char *text, size_t length)
{
    if (!text) return qkv__fail(QKV_USAGE, "chat template: a text is needed"), NULL;
    qkv__chat_template *t = qkv__alloc_zero(sizeof *t);
    if (!t) return NULL;
    t->memory.most = MOST_TREE;
    if (!read_template(t, text, length)) return t;
    qkv__chat_template_free(t);
    return NULL;
}

void qkv__chat_template_free(qkv__chat_template *t)
{
    if (!t) return;
    qkv__arena_free(&t->memory.arena);
    qkv__release(t, sizeof *t);
}

qkv_status qkv__chat_template_render(const qkv__chat_template *t, const qkv__json_value *variables,
                                     const qkv__chat_render_opts *opts, qkv_buffer *out)
{
    qkv__chat_render_opts o;
    jinja_value given;
    jinja_scope *scope = NULL;
    qkv__buffer_clear(out);
    qkv_status status = QKV__READ_OPTIONS(&o, most_steps, opts, "chat template");
    if (status) return status;
    jinja_run r = { .memory = { .most = MOST_VALUES, .steps = o.most_steps > 0 ? o.most_steps : MOST_STEPS },
                    .now = o.now ? o.now : (int64_t)time(NULL),
                    .out = out };
    status = qkv__jinja_of_json(&r.memory, variables, 0, &given);
    if (!status && !(scope = qkv__jinja_take(&r.memory, sizeof *scope))) status = qkv_error_status();
    if (!status) {
        r.variables = given.dict;
        status = qkv__jinja_print(&r, t->body, scope);
    }
    qkv__arena_free(&r.memory.arena);
    if (!status) status = qkv__buffer_put(out, "", 0); /* a text of nothing is a text too, and all end with a NUL */
    if (status) qkv__buffer_clear(out);
    return status;
}

qkv_status qkv__chat_template_render_json(const qkv__chat_template *t, const char *variables, size_t length,
                                          const qkv__chat_render_opts *opts, qkv_buffer *out)
{
    if (!t || !variables || !out)
        return qkv__fail(QKV_USAGE, "chat template: a template, its variables and a place are needed");
    qkv__buffer_clear(out);
    qkv__chat_render_opts o;
    qkv_status status = QKV__READ_OPTIONS(&o, most_steps, opts, "chat template");
    if (status) return status;
    o.size = sizeof o;
    const qkv__json_source source = { .name = "chat template: the variables", .text = variables, .length = length };
    qkv__json_doc given;
    status = qkv__json_parse(&source, &given);
    if (!status)
        status = qkv__json_is_object(given.top) ? qkv__chat_template_render(t, given.top, &o, out)
                                                : qkv__fail(QKV_FORMAT, "chat template: the variables must be a JSON object");
    qkv__json_free(&given);
    return status;
}
