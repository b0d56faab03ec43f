/* chat_format.c: how conversations are written for a model. */
#include "chat_format.h"

#include "../base/file.h"
#include "../base/status.h"
#include "../io/json.h"
#include "../jinja/render.h"
#include "../model/model_info.h"
#include "../model/special_tokens.h"
#include "../text/buffer.h"

#include <stdio.h>
#include <string.h>

enum { MOST_PATH = 4096, MOST_CONFIG = 64 << 20, MOST_TEMPLATE = 1 << 20 };

/* ---- the folder ---- */

static qkv_status path_in(const char *folder, const char *name, char path[MOST_PATH])
{
    int n = snprintf(path, MOST_PATH, "%s/%s", folder, name);
    return n < MOST_PATH ? QKV_OK : qkv__fail(QKV_LIMIT, "chat: the path of the model is too long");
}

/* An object in a file; *out is NULL where there is no such file. */
static qkv_status read_object(const char *folder, const char *name, json_t **out)
{
    char path[MOST_PATH];
    *out = NULL;
    qkv_status status = path_in(folder, name, path);
    if (status || !qkv__file_exists(path)) return status;
    status = qkv__json_read(path, MOST_CONFIG, out);
    if (!status && !json_is_object(*out)) status = qkv__fail(QKV_FORMAT, "%s: it must be a JSON object", path);
    return status;
}

/* ---- the template ---- */

/* The sentence says which file the template is in. */
static qkv_status parse_template(const char *name, const char *text, size_t length, qkv_chat_template **out)
{
    char said[QKV_SENTENCE_MAX];
    *out = qkv_chat_template_new(text, length);
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

static qkv_status parse_named(const json_t *one, qkv__chat_format *f)
{
    const json_t *name = json_object_get(one, "name"), *text = json_object_get(one, "template");
    if (!json_is_string(name) || !json_is_string(text))
        return qkv__fail(QKV_FORMAT, "tokenizer_config.json: \"chat_template\" has one without name or text");
    const bool is_default = !strcmp(json_string_value(name), "default");
    if (!is_default && strcmp(json_string_value(name), "tool_use")) return QKV_OK;
    qkv_chat_template **to = is_default ? &f->template : &f->with_tools;
    if (*to)
        return qkv__fail(QKV_FORMAT, "tokenizer_config.json: two chat templates have the name \"%s\"", json_string_value(name));
    return parse_template("tokenizer_config.json", json_string_value(text), json_string_length(text), to);
}

static qkv_status read_template_key(const json_t *config, qkv__chat_format *f)
{
    const json_t *given = json_object_get(config, "chat_template");
    qkv_status status = QKV_OK;
    if (!given || json_is_null(given)) return QKV_OK;
    if (json_is_string(given))
        return parse_template("tokenizer_config.json", json_string_value(given), json_string_length(given), &f->template);
    if (!json_is_array(given))
        return qkv__fail(QKV_FORMAT, "tokenizer_config.json: \"chat_template\" must be a string or a list of named ones");
    for (size_t i = 0; i < json_array_size(given) && !status; i++) status = parse_named(json_array_get(given, i), f);
    return status;
}

/* ---- special tokens as text ---- */

/* A token is a string, or an object with its content. */
static void take_token(const json_t *from, const char *name, json_t *to)
{
    json_t *token = json_object_get(from, name);
    if (json_is_object(token)) token = json_object_get(token, "content");
    if (json_is_string(token) && !json_object_get(to, name)) json_object_set(to, name, token);
}

static void take_id(const qkv_tokenizer *t, int32_t id, const char *name, json_t *to)
{
    const char *spelled = id >= 0 ? qkv_tokenizer_token(t, id) : NULL;
    if (spelled && !json_object_get(to, name)) json_object_set_new(to, name, json_string(spelled));
}

static qkv_status find_tokens(const qkv_model *m, const json_t *config, const json_t *map, qkv__chat_format *f)
{
    static const char *const names[] = { "bos_token", "eos_token", "pad_token", "unk_token" };
    const qkv_tokenizer *t = qkv_model_target_tokenizer(m);
    qkv__special_tokens s;
    qkv_status status = qkv__special_tokens_of(m, &s);
    if (status) return status;
    if (!(f->tokens = json_object())) return qkv__fail(QKV_MEMORY, "out of memory");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        take_token(config, names[i], f->tokens);
        take_token(map, names[i], f->tokens);
    }
    take_id(t, s.ids.start, "bos_token", f->tokens);
    take_id(t, s.ids.end, "eos_token", f->tokens);
    const char *end = json_string_value(json_object_get(f->tokens, "eos_token"));
    f->end = end ? qkv_tokenizer_find(t, end) : -1;
    return QKV_OK;
}

/* ---- all ---- */

static qkv_status read_folder(const char *folder, const json_t *config, qkv__chat_format *f)
{
    char path[MOST_PATH];
    qkv_status status = folder ? path_in(folder, "chat_template.jinja", path) : QKV_OK;
    if (!status && folder && qkv__file_exists(path)) status = read_template_file(path, f);
    if (!status && !f->template) status = read_template_key(config, f);
    if (!status && !f->template)
        status = qkv__fail(
            QKV_UNSUPPORTED,
            "%s has no chat template (chat_template.jinja, or \"chat_template\" in tokenizer_config.json): give one "
            "by --template FILE",
            folder ? folder : "the model");
    return status;
}

qkv_status qkv__chat_format_read(const qkv_model *m, const char *text, const char *file, qkv__chat_format *f)
{
    const char *folder = qkv__model_folder(m);
    json_t *config = NULL, *map = NULL;
    *f = (qkv__chat_format){ .end = -1 };
    qkv_status status = folder ? read_object(folder, "tokenizer_config.json", &config) : QKV_OK;
    if (!status && folder) status = read_object(folder, "special_tokens_map.json", &map);
    if (!status)
        status = text   ? parse_template("chat", text, strlen(text), &f->template)
                 : file ? read_template_file(file, f)
                        : read_folder(folder, config, f);
    if (!status) status = find_tokens(m, config, map, f);
    json_decref(config);
    json_decref(map);
    return status;
}

void qkv__chat_format_free(qkv__chat_format *f)
{
    qkv_chat_template_free(f->template);
    qkv_chat_template_free(f->with_tools);
    json_decref(f->tokens);
    *f = (qkv__chat_format){ .end = -1 };
}

/* ---- messages ---- */

static qkv_status join_parts(json_t *message, const json_t *parts, size_t number)
{
    qkv_text all = { 0 };
    qkv_status status = qkv__text_put(&all, "", 0);
    for (size_t i = 0; i < json_array_size(parts) && !status; i++) {
        const json_t *part = json_array_get(parts, i), *text = json_object_get(part, "text");
        if (json_is_string(part)) text = part;
        if (!json_is_string(text))
            status = qkv__fail(QKV_USAGE, "message %zu: part %zu of its content is no text", number, i + 1);
        else status = qkv__text_put(&all, json_string_value(text), json_string_length(text));
    }
    if (!status && json_object_set_new(message, "content", json_stringn(all.data, all.length)))
        status = qkv__fail(QKV_MEMORY, "out of memory");
    qkv_text_free(&all);
    return status;
}

/* Where it is no JSON, the template gets the text. */
static void open_arguments(json_t *calls)
{
    for (size_t i = 0; i < json_array_size(calls); i++) {
        json_t *function = json_object_get(json_array_get(calls, i), "function"),
               *given = json_object_get(function, "arguments");
        json_t *object = json_is_string(given)
                             ? json_loadb(json_string_value(given), json_string_length(given), JSON_REJECT_DUPLICATES, NULL)
                             : NULL;
        if (json_is_object(object)) json_object_set(function, "arguments", object);
        json_decref(object);
    }
}

qkv_status qkv__chat_messages_settle(json_t *messages)
{
    qkv_status status = QKV_OK;
    if (!json_is_array(messages) || !json_array_size(messages))
        return qkv__fail(QKV_USAGE, "a conversation is an array of messages, and not empty");
    for (size_t i = 0; i < json_array_size(messages) && !status; i++) {
        json_t *m = json_array_get(messages, i), *content = json_object_get(m, "content");
        if (!json_is_string(json_object_get(m, "role"))) return qkv__fail(QKV_USAGE, "message %zu has no \"role\"", i + 1);
        if (json_is_array(content)) status = join_parts(m, content, i + 1);
        else if (content && !json_is_null(content) && !json_is_string(content))
            return qkv__fail(QKV_USAGE, "message %zu: \"content\" must be a string", i + 1);
        open_arguments(json_object_get(m, "tool_calls"));
    }
    return status;
}

qkv_status qkv__chat_format_render(const qkv__chat_format *f, const json_t *messages, const json_t *tools, bool answers,
                                   int64_t now, qkv_text *out)
{
    qkv_chat_render_opts o = QKV_OPTS(qkv_chat_render_opts);
    const bool has_tools = json_array_size(tools) > 0;
    json_t *variables = json_copy(f->tokens);
    o.now = now;
    bool is_set = variables && !json_object_set(variables, "messages", (json_t *)(uintptr_t)messages) &&
                  !json_object_set_new(variables, "add_generation_prompt", json_boolean(answers)) &&
                  (!has_tools || !json_object_set(variables, "tools", (json_t *)(uintptr_t)tools));
    qkv_status status = is_set ? qkv__chat_template_render(has_tools && f->with_tools ? f->with_tools : f->template, variables,
                                                           &o, out)
                               : qkv__fail(QKV_MEMORY, "out of memory");
    json_decref(variables);
    return status;
}
