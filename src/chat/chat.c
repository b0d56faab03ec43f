/* chat.c: a talk with a language model that keeps what it has read. */
#include <qkv/chat.h>
#include <qkv/unstable/util.h>

#include "../base/options.h"
#include "../base/result.h"
#include "../base/size.h"
#include "../model/model.h"
#include "../model/special_tokens.h"
#include "../task/generate.h"
#include "../token/encode.h"
#include "chat_format.h"

#include <string.h>

enum { DEFAULT_CONTEXT = 8192, PAGE = 16 };

struct message {
    qkv_buffer json; /* an object on one line */
    bool is_system, is_user;
};

struct qkv_chat {
    const qkv_model *model;
    qkv__chat_format format;
    qkv_chat_opts o;
    struct message *messages; /* n_messages of them */
    size_t n_messages, messages_bytes;
    qkv_buffer tools;      /* an array in JSON; empty: there are none */
    qkv__batcher *batcher; /* NULL before the first answer; keeps what was read: a talk that goes on begins like what it was */
    /* What was read last, as text and as ids: an answer need not have the ids that its text has. */
    qkv_buffer known;
    qkv__ids known_ids;
    qkv_text *prompt;
    qkv__ids ids, rest;
};

/* ---- making ---- */

/* With room for the talk as it is and as it was, in the caches of all layers: dropping messages leaves another one. */
static qkv__batcher *new_batcher(const qkv_chat *c)
{
    const qkv_config *t = qkv__model_config(c->model);
    int64_t d_k = t->d_k ? t->d_k : t->dim / t->heads, kv = t->kv_heads ? t->kv_heads : t->heads;
    const size_t token_bytes = sizeof(float) * (size_t)(2 * t->decoder_layers * d_k * kv);
    return qkv__batcher_new(c->model, 1, 2 * token_bytes * (size_t)(c->o.max_context + PAGE));
}

/* An array of them; an empty one is as none. */
static qkv_status set_tools(qkv_chat *c, const qkv__json_value *tools)
{
    qkv__json_writer w = { .style = QKV__JSON_SPACED };
    if (qkv__json_size(tools)) qkv__json_put_value(&w, NULL, tools);
    qkv_buffer_free(&c->tools);
    c->tools = (qkv_buffer){ w.text, w.length, w.capacity };
    return w.status;
}

static qkv_status read_tools(qkv_chat *c)
{
    const char *text = c->o.tools;
    qkv__json_doc tools = { 0 };
    if (!text) return QKV_OK;
    c->o.tools = NULL; /* the caller's */
    qkv_status status = qkv__json_parse(&(qkv__json_source){ .name = "chat", .text = text, .length = strlen(text) }, &tools);
    if (status != QKV_MEMORY)
        status = qkv__json_is_array(tools.top) ? set_tools(c, tools.top)
                                               : qkv__fail(QKV_USAGE, "chat: the tools must be an array, in JSON");
    qkv__json_free(&tools);
    return status;
}

static qkv_status begin_chat(qkv_chat *c, const qkv_model *m)
{
    const qkv_config *t = qkv__model_config(m);
    if (!t || t->encoder_layers || !t->decoder_layers)
        return qkv__fail(QKV_USAGE, "chat: the model must be a language model: a decoder alone");
    if (!qkv_model_tokenizer(m, QKV_SIDE_TARGET)) return qkv__refuse_without_tokenizer(m, "chat");
    if (c->o.max_context < 0) return qkv__fail(QKV_USAGE, "chat: a context of %lld tokens", (long long)c->o.max_context);
    const int64_t positions = qkv__max_positions(t), said = qkv__model_get_info(m)->context;
    const int64_t most = positions && (!said || positions < said) ? positions : said;
    if (most && c->o.max_context > most)
        return qkv__fail(QKV_LIMIT, "chat: a context of %lld tokens: the model reads %lld", (long long)c->o.max_context,
                         (long long)most);
    if (!c->o.max_context) c->o.max_context = most ? qkv__min(most, DEFAULT_CONTEXT) : DEFAULT_CONTEXT;
    c->model = m;
    qkv_status status = read_tools(c);
    if (!status) status = qkv__chat_format_read(m, c->o.chat_template, c->o.template_file, &c->format);
    c->o.chat_template = c->o.template_file = NULL;
    return status;
}

qkv_chat *qkv_chat_new(const qkv_model *m, const qkv_chat_opts *opts)
{
    if (!m) return qkv__fail(QKV_USAGE, "chat: a model is needed"), NULL;
    qkv_chat *c = qkv__alloc_zero(sizeof *c);
    if (!c) return NULL;
    qkv_status status = QKV__READ_OPTIONS(&c->o, now, opts, "chat");
    if (!status) status = begin_chat(c, m);
    if (!status) return c;
    qkv_chat_free(c);
    return NULL;
}

/* The first n of them. */
static void keep_messages(qkv_chat *c, size_t n)
{
    while (c->n_messages > n) qkv_buffer_free(&c->messages[--c->n_messages].json);
}

void qkv_chat_free(qkv_chat *c)
{
    if (!c) return;
    qkv__chat_format_free(&c->format);
    qkv__batcher_free(c->batcher);
    keep_messages(c, 0);
    qkv__release(c->messages, c->messages_bytes);
    qkv_buffer_free(&c->tools);
    qkv_buffer_free(&c->known);
    qkv_free(c->prompt);
    qkv__ids_free(&c->known_ids);
    qkv__ids_free(&c->ids);
    qkv__ids_free(&c->rest);
    qkv__release(c, sizeof *c);
}

/* ---- messages ---- */

/* Takes what w has as the message at a place. */
static qkv_status insert_message(qkv_chat *c, size_t at, const char *role, qkv__json_writer *w)
{
    qkv_status status = w->status;
    size_t bytes = (c->n_messages + 1) * sizeof *c->messages;
    if (!status) status = qkv__grow((void **)&c->messages, &c->messages_bytes, bytes);
    if (status) {
        qkv__json_writer_free(w);
        return status;
    }
    memmove(c->messages + at + 1, c->messages + at, (c->n_messages++ - at) * sizeof *c->messages);
    c->messages[at] = (struct message){ .json = { w->text, w->length, w->capacity },
                                        .is_system = !strcmp(role, "system"),
                                        .is_user = !strcmp(role, "user") };
    return QKV_OK;
}

static void remove_message(qkv_chat *c, size_t at)
{
    qkv_buffer_free(&c->messages[at].json);
    memmove(c->messages + at, c->messages + at + 1, (--c->n_messages - at) * sizeof *c->messages);
}

static qkv_status add_text(qkv_chat *c, size_t at, const char *role, qkv_str text)
{
    qkv__json_writer w = { .style = QKV__JSON_SPACED };
    qkv__json_open_object(&w, NULL);
    qkv__json_put_text(&w, "role", role);
    qkv__json_put_string(&w, "content", text.length ? text.data : "", text.length);
    qkv__json_close(&w);
    return insert_message(c, at, role, &w);
}

static qkv_status check_text(qkv_str text)
{
    const size_t good = qkv_utf8_valid(text.data, text.length);
    return good == text.length ? QKV_OK : qkv__fail(QKV_FORMAT, "chat: the message is not UTF-8 at byte %zu", good + 1);
}

/* 1 where there is a system's message. */
static size_t first_message(const qkv_chat *c) { return c->n_messages && c->messages[0].is_system; }

qkv_status qkv_chat_add(qkv_chat *c, const char *role, qkv_str content)
{
    if (!c || !role || (!content.data && content.length))
        return qkv__fail(QKV_USAGE, "chat: a chat, a role and a text are needed");
    qkv_status status = check_text(content);
    return status ? status : add_text(c, c->n_messages, role, content);
}

void qkv_chat_remove_last(qkv_chat *c)
{
    if (c && c->n_messages) remove_message(c, c->n_messages - 1);
}

qkv_status qkv_chat_set_system(qkv_chat *c, qkv_str content)
{
    if (!c || (!content.data && content.length)) return qkv__fail(QKV_USAGE, "chat: a chat and a text are needed");
    bool has_one = first_message(c);
    qkv_status status = check_text(content);
    if (!status && content.length) status = add_text(c, 0, "system", content);
    if (!status && has_one) remove_message(c, content.length > 0);
    return status;
}

void qkv_chat_clear(qkv_chat *c)
{
    if (c) keep_messages(c, first_message(c));
}

/* ---- whole conversations ---- */

/* The messages behind those that there are; then those go. On error the new ones go. */
static qkv_status take_messages(qkv_chat *c, const qkv__json_value *messages)
{
    size_t before = c->n_messages;
    qkv_status status = QKV_OK;
    if (!qkv__json_is_array(messages) || !qkv__json_size(messages))
        return qkv__fail(QKV_USAGE, "a conversation is an array of messages, and not empty");
    for (size_t i = 0; i < qkv__json_size(messages) && !status; i++) {
        const qkv__json_value *m = qkv__json_at(messages, i);
        qkv__json_writer w = { .style = QKV__JSON_SPACED };
        status = qkv__chat_message_put(m, i + 1, &w);
        if (!status) status = insert_message(c, c->n_messages, qkv__json_get_text(m, "role"), &w);
        else qkv__json_writer_free(&w);
    }
    if (status) keep_messages(c, before);
    else
        while (before > 0) remove_message(c, --before);
    return status;
}

static qkv_status take_conversation(qkv_chat *c, const qkv__json_value *given)
{
    const qkv__json_value *tools = qkv__json_get(given, "tools");
    if (tools && !qkv__json_is_null(tools) && !qkv__json_is_array(tools))
        return qkv__fail(QKV_USAGE, "\"tools\" must be an array");
    qkv_status status = take_messages(c, qkv__json_is_array(given) ? given : qkv__json_get(given, "messages"));
    return status || !qkv__json_is_array(tools) ? status : set_tools(c, tools);
}

qkv_status qkv_chat_from_json(qkv_chat *c, qkv_str json)
{
    if (!c || (!json.data && json.length)) return qkv__fail(QKV_USAGE, "chat: a chat and a conversation are needed");
    if (!json.length || (*json.data != '[' && *json.data != '{')) {
        qkv_status status = check_text(json);
        if (!status) qkv_chat_clear(c);
        return status ? status : qkv_chat_add(c, "user", json);
    }
    const qkv__json_source source = { .name = "chat: the conversation", .text = json.data, .length = json.length };
    qkv__json_doc given;
    qkv_status status = qkv__json_parse(&source, &given);
    if (!status) status = take_conversation(c, given.top);
    qkv__json_free(&given);
    return status;
}

static qkv_status put_messages(const qkv_chat *c, const char *between, qkv_buffer *out)
{
    qkv__buffer_clear(out);
    qkv_status status = qkv__buffer_put(out, "[", 1);
    for (size_t i = 0; i < c->n_messages && !status; i++) {
        status = qkv__buffer_put(out, between, i ? strlen(between) : 0);
        if (!status) status = qkv__buffer_put(out, c->messages[i].json.data, c->messages[i].json.length);
    }
    return status ? status : qkv__buffer_put(out, "]", 1);
}

qkv_status qkv_chat_to_json(const qkv_chat *c, qkv_text **out)
{
    qkv_buffer *text = qkv__text_begin(out);
    if (!text) return qkv_error_status();
    qkv_status status = c ? put_messages(c, ",\n ", text) : qkv__fail(QKV_USAGE, "chat: a chat is needed");
    if (!status) status = qkv__buffer_put(text, "\n", 1);
    return qkv__text_end(*out, status);
}

static const char *tools_of(const qkv_chat *c) { return c->tools.length ? c->tools.data : NULL; }

qkv_status qkv_chat_prompt(const qkv_chat *c, qkv_text **out)
{
    qkv_buffer messages = { 0 }, *text = qkv__text_begin(out);
    if (!text) return qkv_error_status();
    qkv_status status = c ? put_messages(c, ",", &messages) : qkv__fail(QKV_USAGE, "chat: a chat is needed");
    if (!status) status = qkv__chat_render(&c->format, messages.data, tools_of(c), true, c->o.now, text);
    qkv_buffer_free(&messages);
    return qkv__text_end(*out, status);
}

/* ---- conversations of others ---- */

/* A JSON array, with the messages of a conversation in the form that templates expect. */
static qkv_status settle_array(const char *what, qkv_str json, bool is_talk, qkv_buffer *out)
{
    qkv__json_writer w = { .style = QKV__JSON_SPACED };
    qkv__json_doc given = { 0 };
    const qkv__json_source source = { .name = what, .text = json.data, .length = json.length, .flags = QKV__JSON_NUL };
    qkv_status status = qkv__json_parse(&source, &given);
    if (!status && is_talk && (!qkv__json_is_array(given.top) || !qkv__json_size(given.top)))
        status = qkv__fail(QKV_USAGE, "a conversation is an array of messages, and not empty");
    if (!status && !qkv__json_is_array(given.top)) status = qkv__fail(QKV_USAGE, "%s: it must be a JSON array", what);
    if (!status && is_talk) {
        qkv__json_open_array(&w, NULL);
        for (size_t i = 0; i < qkv__json_size(given.top) && !status; i++)
            status = qkv__chat_message_put(qkv__json_at(given.top, i), i + 1, &w);
        qkv__json_close(&w);
    } else if (!status && qkv__json_size(given.top)) qkv__json_put_value(&w, NULL, given.top); /* an empty one is as none */
    if (!status) status = w.status;
    qkv__json_free(&given);
    *out = (qkv_buffer){ w.text, w.length, w.capacity };
    return status;
}

qkv_status qkv_chat_render(const qkv_chat *c, qkv_str messages_json, qkv_str tools_json, qkv_text **out)
{
    qkv_buffer messages = { 0 }, tools = { 0 }, *text = qkv__text_begin(out);
    if (!text) return qkv_error_status();
    qkv_status status = c && messages_json.data && (tools_json.data || !tools_json.length)
                            ? QKV_OK
                            : qkv__fail(QKV_USAGE, "chat: a chat and messages are needed");
    if (!status) status = settle_array("chat: the messages", messages_json, true, &messages);
    if (!status && tools_json.length) status = settle_array("chat: the tools", tools_json, false, &tools);
    const char *known = tools.length ? tools.data : NULL;
    if (!status && !tools_json.length) known = tools_of(c);
    if (!status) status = qkv__chat_render(&c->format, messages.data, known, true, c->o.now, text);
    qkv_buffer_free(&messages);
    qkv_buffer_free(&tools);
    return qkv__text_end(*out, status);
}

int32_t qkv_chat_end(const qkv_chat *c) { return c ? c->format.end : -1; }

/* ---- ids ---- */

static qkv_status append_ids(qkv__ids *to, const int32_t *ids, size_t n)
{
    if (qkv__grow((void **)&to->ids, &to->ids_bytes, (to->n + n) * sizeof *ids)) return QKV_MEMORY;
    if (n) memcpy(to->ids + to->n, ids, n * sizeof *ids);
    to->n += n;
    return QKV_OK;
}

static qkv_status encode_text(const qkv_chat *c, const char *text, size_t length, qkv__ids *out)
{
    qkv_encode_opts o = QKV_OPTS(qkv_encode_opts);
    o.parse_special = 1;
    return qkv__encode(qkv_model_tokenizer(c->model, QKV_SIDE_TARGET), text, length, &o, out);
}

/* What is known keeps its ids where the text goes on behind it with a special token: no other token could reach across. */
static qkv_status encode_chat_prompt(qkv_chat *c)
{
    const size_t known = c->known.length;
    const bool goes_on = known && c->prompt->length > known && !memcmp(c->prompt->data, c->known.data, known);
    qkv_status status = goes_on ? encode_text(c, c->prompt->data + known, c->prompt->length - known, &c->rest) : QKV_OK;
    if (status) return status;
    if (!goes_on || !c->rest.n || !qkv_tokenizer_is_special(qkv_model_tokenizer(c->model, QKV_SIDE_TARGET), c->rest.ids[0]))
        return encode_text(c, c->prompt->data, c->prompt->length, &c->ids);
    c->ids.n = 0;
    status = append_ids(&c->ids, c->known_ids.ids, c->known_ids.n);
    return status ? status : append_ids(&c->ids, c->rest.ids, c->rest.n);
}

static qkv_status write_prompt(qkv_chat *c)
{
    qkv_status status = qkv_chat_prompt(c, &c->prompt);
    return status ? status : encode_chat_prompt(c);
}

/* ---- what no longer fits ---- */

/* The oldest message goes, and with it the answers to it. */
static int64_t drop_oldest(qkv_chat *c)
{
    const size_t first = first_message(c);
    int64_t n = 0;
    do {
        remove_message(c, first);
        n++;
    } while (c->n_messages > first + 1 && !c->messages[first].is_user);
    return n;
}

static qkv_status fit_prompt(qkv_chat *c, int64_t wanted, qkv_chat_usage *usage)
{
    const int64_t room = qkv__max(1, qkv__min(wanted ? wanted : c->o.max_context, c->o.max_context / 4));
    qkv_status status = write_prompt(c);
    while (!status && (int64_t)c->ids.n + room > c->o.max_context && c->n_messages > first_message(c) + 1) {
        usage->dropped_messages += drop_oldest(c);
        status = write_prompt(c);
    }
    if (!status && (int64_t)c->ids.n >= c->o.max_context)
        status = qkv__fail(QKV_LIMIT, "chat: the message makes a prompt of %zu tokens, and the context has %lld", c->ids.n,
                           (long long)c->o.max_context);
    return status;
}

/* ---- answers ---- */

/* The caller's options, and ours over them. */
static qkv_generate_opts options_of_answer(const qkv_chat *c, const qkv_generate_opts *given)
{
    const int64_t left = c->o.max_context - (int64_t)c->ids.n;
    qkv_generate_opts o = *given;
    o.size = sizeof o; /* whichever release the caller's are of */
    o.max_tokens = o.max_tokens ? qkv__min(o.max_tokens, left) : left;
    o.start = o.end = 0;
    o.prompt_ids = c->ids.ids;
    o.n_prompt_ids = (int64_t)c->ids.n;
    o.ends = &c->format.end;
    o.n_ends = c->format.end >= 0;
    o.score_prompt = o.no_new_tokens = o.parse_special = 0;
    o.no_special = 1;
    return o;
}

/* The talk as it was read, and the answer's own ids where it came to an end. */
static qkv_status keep_read(qkv_chat *c, const qkv_generated *answer)
{
    const bool is_whole = answer->n && answer->finish != QKV_FINISH_STOP && answer->finish != QKV_FINISH_CANCELLED;
    qkv__buffer_clear(&c->known);
    c->known_ids.n = 0;
    qkv_status status = qkv__buffer_put(&c->known, c->prompt->data, c->prompt->length);
    if (!status && is_whole) status = qkv__buffer_put(&c->known, answer->text.data, answer->text.length);
    if (!status) status = append_ids(&c->known_ids, c->ids.ids, c->ids.n);
    if (!status && is_whole) status = append_ids(&c->known_ids, answer->ids, (size_t)answer->n);
    return status;
}

static qkv_status reply(qkv_chat *c, const qkv_generate_opts *given, qkv_generated **out, qkv_chat_usage *usage)
{
    qkv_generate_opts o;
    if (!c) return qkv__fail(QKV_USAGE, "chat: a chat is needed");
    if (QKV__READ_OPTIONS(&o, hooks, given, "chat")) return QKV_USAGE;
    usage->max_context = c->o.max_context;
    if (!c->n_messages) return qkv__fail(QKV_USAGE, "chat: there is no message to answer");
    qkv_status status = fit_prompt(c, o.max_tokens, usage);
    if (status) return status;
    if (!c->batcher && !(c->batcher = new_batcher(c))) return QKV_MEMORY;
    o = options_of_answer(c, &o);
    usage->prompt_tokens = (int64_t)c->ids.n;
    status = qkv__generate(c->model, (qkv_str){ NULL, 0 }, &o, c->batcher, out);
    if (status) return status;
    usage->evaluated_tokens = usage->prompt_tokens - (*out)->n_cached;
    status = keep_read(c, *out);
    return status ? status : qkv_chat_add(c, "assistant", (*out)->text);
}

qkv_status qkv_chat_reply(qkv_chat *c, const qkv_generate_opts *opts, qkv_generated **out, qkv_chat_usage *usage)
{
    qkv_chat_usage took = { 0 };
    if (!out) return qkv__fail(QKV_USAGE, "chat: a place for the answer is needed");
    qkv_status status = reply(c, opts, out, &took);
    if (status) qkv__result_clear(*out);
    if (!usage) return status;
    qkv_status told = QKV__WRITE_OPTIONS(usage, max_context, &took, "chat");
    return status ? status : told;
}
