/* chat_format.c: how conversations are written for a model. */
#include "chat_format.h"

#include "../base/file.h"
#include "../base/status.h"
#include "../jinja/template.h"
#include "../model/model_info.h"
#include "../model/special_tokens.h"
#include "../base/buffer.h"

#include <stdio.h>
#include <string.h>

enum { MOST_PATH = 4096, MOST_CONFIG = 64 << 20, MOST_TEMPLATE = 1 << 20 };

/* ---- the folder ---- */

static qkv_status path_in(const char *folder, const char *name, char path[MOST_PATH])
{
    int n = snprintf(path, MOST_PATH, "%s/%s", folder, name);
    return n < MOST_PATH ? QKV_OK : qkv__fail(QKV_LIMIT, "chat: the path of the model is too long");
}

/* Reads an object from a file; *out is empty without the file. */
static qkv_status read_object(const char *folder, const char *name, qkv__json_doc *out)
{
    char path[MOST_PATH];
    *out = (qkv__json_doc){ 0 };
    qkv_status status = path_in(folder, name, path);
    if (status || !qkv__file_exists(path)) return status;
    status = qkv__json_load(path, MOST_CONFIG, out);
    if (!status && !qkv__json_is_object(out->top)) status = qkv__fail(QKV_FORMAT, "%s: it must be a JSON object", path);
    return status;
}

/* ---- the template ---- */

/* The sentence says which file the template is in. */
static qkv_status parse_template(const char *name, const char *text, size_t length, qkv__chat_template **out)
{
    char said[QKV_SENTENCE_MAX];
    *out = qkv__chat_template_new(text, length);
    if (*out) return QKV_OK;
    snprintf(said, sizeof said, "%s", qkv_error());
    return qkv__fail(qkv_error_status(), "%s: %s", name, said);
}

static qkv_status read_template_file(const char *path, qkv__chat_format *f)
{
    qkv__bytes file = { 0 };
    qkv_status status = qkv__stream_read(path, MOST_TEMPLATE, &file);
    if (!status) status = parse_template(path, file.data ? (const char *)file.data : "", file.size, &f->template);
    qkv__bytes_free(&file);
    return status;
}

static qkv_status parse_named(const qkv__json_value *one, qkv__chat_format *f)
{
    const qkv__json_value *name = qkv__json_get(one, "name"), *text = qkv__json_get(one, "template");
    if (!qkv__json_is_string(name) || !qkv__json_is_string(text))
        return qkv__fail(QKV_FORMAT, "tokenizer_config.json: \"chat_template\" has one without name or text");
    const bool is_default = !strcmp(qkv__json_text(name), "default");
    if (!is_default && strcmp(qkv__json_text(name), "tool_use")) return QKV_OK;
    qkv__chat_template **to = is_default ? &f->template : &f->with_tools;
    if (*to)
        return qkv__fail(QKV_FORMAT, "tokenizer_config.json: two chat templates have the name \"%s\"", qkv__json_text(name));
    return parse_template("tokenizer_config.json", qkv__json_text(text), qkv__json_length(text), to);
}

static qkv_status read_template_key(const qkv__json_value *config, qkv__chat_format *f)
{
    const qkv__json_value *given = qkv__json_get(config, "chat_template");
    qkv_status status = QKV_OK;
    if (!given || qkv__json_is_null(given)) return QKV_OK;
    if (qkv__json_is_string(given))
        return parse_template("tokenizer_config.json", qkv__json_text(given), qkv__json_length(given), &f->template);
    if (!qkv__json_is_array(given))
        return qkv__fail(QKV_FORMAT, "tokenizer_config.json: \"chat_template\" must be a string or a list of named ones");
    for (size_t i = 0; i < qkv__json_size(given) && !status; i++) status = parse_named(qkv__json_at(given, i), f);
    return status;
}

/* ---- special tokens as text ---- */

enum { TOKENS = 4 };
static const char *const token_names[TOKENS] = { "bos_token", "eos_token", "pad_token", "unk_token" };

/* Keeps the first spelling. */
static qkv_status take_token(const char *spelling, char **to)
{
    if (*to || !spelling) return QKV_OK;
    return (*to = qkv__copy_text(spelling)) ? QKV_OK : QKV_MEMORY;
}

/* A token is a string, or an object with its content. */
static const char *token_in(const qkv__json_value *from, const char *name)
{
    const qkv__json_value *token = qkv__json_get(from, name);
    return qkv__json_text(qkv__json_is_object(token) ? qkv__json_get(token, "content") : token);
}

static const char *token_of(const qkv_tokenizer *t, int32_t id) { return id >= 0 ? qkv_tokenizer_token(t, id) : NULL; }

static qkv_status find_tokens(const qkv_model *m, const qkv__json_value *config, const qkv__json_value *map,
                              qkv__chat_format *f)
{
    const qkv_tokenizer *t = qkv_model_tokenizer(m, QKV_SIDE_TARGET);
    qkv__special_tokens s;
    qkv_status status = qkv__special_tokens_of(m, &s);
    for (int i = 0; i < TOKENS && !status; i++) {
        status = take_token(token_in(config, token_names[i]), &f->tokens[i]);
        if (!status) status = take_token(token_in(map, token_names[i]), &f->tokens[i]);
    }
    if (!status) status = take_token(token_of(t, s.ids.start), &f->tokens[0]);
    if (!status) status = take_token(token_of(t, s.ids.end), &f->tokens[1]);
    f->end = f->tokens[1] ? qkv_tokenizer_id(t, f->tokens[1]) : -1;
    return status;
}

/* ---- all ---- */

static qkv_status read_folder(const char *folder, const qkv__json_value *config, qkv__chat_format *f)
{
    char path[MOST_PATH];
    qkv_status status = folder ? path_in(folder, "chat_template.jinja", path) : QKV_OK;
    if (!status && folder && qkv__file_exists(path)) status = read_template_file(path, f);
    if (!status && !f->template) status = read_template_key(config, f);
    if (!status && !f->template)
        status = qkv__fail(QKV_UNSUPPORTED,
                           "%s has no chat template (chat_template.jinja, or \"chat_template\" in tokenizer_config.json)",
                           folder ? folder : "the model");
    return status;
}

qkv_status qkv__chat_format_read(const qkv_model *m, const char *text, const char *file, qkv__chat_format *f)
{
    const char *folder = qkv__model_folder(m);
    qkv__json_doc config = { 0 }, map = { 0 };
    *f = (qkv__chat_format){ .end = -1 };
    qkv_status status = folder ? read_object(folder, "tokenizer_config.json", &config) : QKV_OK;
    if (!status && folder) status = read_object(folder, "special_tokens_map.json", &map);
    if (!status)
        status = text   ? parse_template("chat", text, strlen(text), &f->template)
                 : file ? read_template_file(file, f)
                        : read_folder(folder, config.top, f);
    if (!status) status = find_tokens(m, config.top, map.top, f);
    qkv__json_free(&config);
    qkv__json_free(&map);
    return status;
}

void qkv__chat_format_free(qkv__chat_format *f)
{
    qkv__chat_template_free(f->template);
    qkv__chat_template_free(f->with_tools);
    for (int i = 0; i < TOKENS; i++) qkv__release_text(f->tokens[i]);
    *f = (qkv__chat_format){ .end = -1 };
}

/* ---- messages ---- */

static qkv_status put_parts(const qkv__json_value *parts, size_t number, qkv__json_writer *w)
{
    qkv_buffer all = { 0 };
    qkv_status status = qkv__buffer_put(&all, "", 0);
    for (size_t i = 0; i < qkv__json_size(parts) && !status; i++) {
        const qkv__json_value *part = qkv__json_at(parts, i);
        const qkv__json_value *text = qkv__json_is_string(part) ? part : qkv__json_get(part, "text");
        if (!qkv__json_is_string(text))
            status = qkv__fail(QKV_USAGE, "message %zu: part %zu of its content is no text", number, i + 1);
        else status = qkv__buffer_put(&all, qkv__json_text(text), qkv__json_length(text));
    }
    if (!status) qkv__json_put_string(w, "content", all.data, all.length);
    qkv_buffer_free(&all);
    return status;
}

/* Arguments that are not a JSON object stay a string. */
static qkv_status put_arguments(const qkv__json_value *given, qkv__json_writer *w)
{
    const qkv__json_source source = { .name = "arguments", .text = qkv__json_text(given), .length = qkv__json_length(given) };
    qkv__json_doc doc;
    qkv_status status = qkv__json_parse(&source, &doc);
    if (status != QKV_MEMORY) qkv__json_put_value(w, "arguments", qkv__json_is_object(doc.top) ? doc.top : given);
    qkv__json_free(&doc);
    return status == QKV_MEMORY ? status : QKV_OK;
}

/* Copies "tool_calls" and opens tool_calls[].function.arguments; values of unexpected types are copied unchanged. */
static qkv_status put_opened(const char *key, const qkv__json_value *v, qkv__json_writer *w)
{
    static const char *const inner[][2] = { { "tool_calls", "" }, { "", "function" }, { "function", "arguments" } };
    qkv_status status = QKV_OK;
    int level = 0;
    while (level < 3 && strcmp(key ? key : "", inner[level][0])) level++;
    bool is_list = level == 0 && qkv__json_is_array(v);
    if (!is_list && !(level && level < 3 && qkv__json_is_object(v))) return qkv__json_put_value(w, key, v), QKV_OK;
    if (is_list) qkv__json_open_array(w, key);
    else qkv__json_open_object(w, key);
    for (size_t i = 0; i < qkv__json_size(v) && !status; i++) {
        const qkv__json_value *member = qkv__json_at(v, i);
        const char *name = qkv__json_key(v, i);
        if (!is_list && strcmp(name, inner[level][1])) qkv__json_put_value(w, name, member);
        else if (level == 2 && qkv__json_is_string(member)) status = put_arguments(member, w);
        else status = put_opened(name, member, w);
    }
    qkv__json_close(w);
    return status;
}

qkv_status qkv__chat_message_put(const qkv__json_value *m, size_t number, qkv__json_writer *w)
{
    const qkv__json_value *content = qkv__json_get(m, "content");
    qkv_status status = QKV_OK;
    if (!qkv__json_is_string(qkv__json_get(m, "role"))) return qkv__fail(QKV_USAGE, "message %zu has no \"role\"", number);
    if (content && !qkv__json_is_array(content) && !qkv__json_is_null(content) && !qkv__json_is_string(content))
        return qkv__fail(QKV_USAGE, "message %zu: \"content\" must be a string", number);
    qkv__json_open_object(w, NULL);
    for (size_t i = 0; i < qkv__json_size(m) && !status; i++) {
        const char *key = qkv__json_key(m, i);
        const qkv__json_value *v = qkv__json_at(m, i);
        if (!strcmp(key, "content") && qkv__json_is_array(v)) status = put_parts(v, number, w);
        else if (!strcmp(key, "tool_calls")) status = put_opened(key, v, w);
        else qkv__json_put_value(w, key, v);
    }
    qkv__json_close(w);
    return status ? status : w->status;
}

qkv_status qkv__chat_render(const qkv__chat_format *f, const char *messages, const char *tools, bool answers, int64_t now,
                            qkv_buffer *out)
{
    qkv__chat_render_opts o = QKV_OPTS(qkv__chat_render_opts);
    qkv__json_writer w = { 0 };
    qkv__json_doc variables = { 0 };
    o.now = now;
    qkv__json_open_object(&w, NULL);
    for (int i = 0; i < TOKENS; i++)
        if (f->tokens[i]) qkv__json_put_text(&w, token_names[i], f->tokens[i]);
    qkv__json_put_raw(&w, "messages", messages, strlen(messages));
    qkv__json_put_bool(&w, "add_generation_prompt", answers);
    if (tools) qkv__json_put_raw(&w, "tools", tools, strlen(tools));
    qkv__json_close(&w);
    const qkv__json_source source = { .name = "chat", .text = w.text, .length = w.length, .flags = QKV__JSON_NUL };
    qkv_status status = w.status ? w.status : qkv__json_parse(&source, &variables);
    const qkv__json_value *given = qkv__json_get(variables.top, "tools");
    if (!status)
        status = qkv__chat_template_render(given && f->with_tools ? f->with_tools : f->template, variables.top, &o, out);
    qkv__json_writer_free(&w);
    qkv__json_free(&variables);
    return status;
}
