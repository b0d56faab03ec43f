/* chat.c: what POST /v1/chat/completions has of its own. */
#include "chat.h"

#include "logprobs.h"

#include <string.h>

/* ---- the request ---- */

/* What would change the answer and is not known here is refused. */
static qkv_status check_choice(const qkv__json_value *body, bool *no_tools)
{
    const qkv__json_value *choice = qkv__json_get(body, "tool_choice"), *format = qkv__json_get(body, "response_format");
    const char *wanted = qkv__json_text(choice), *type = qkv__json_text(qkv__json_get(format, "type"));
    *no_tools = wanted && !strcmp(wanted, "none");
    if (choice && !qkv__json_is_null(choice) && !*no_tools && (!wanted || strcmp(wanted, "auto")))
        return qkv__fail(QKV_USAGE, "\"tool_choice\" must be \"auto\" or \"none\": the model chooses");
    if (format && !qkv__json_is_null(format) && (!type || strcmp(type, "text")))
        return qkv__fail(QKV_USAGE, "\"response_format\" must be {\"type\": \"text\"}: other formats are not supported");
    return QKV_OK;
}

static qkv_status encode_prompt_text(const qkv__served *s, const qkv_text *text, qkv__prompts *p)
{
    qkv_encoding *ids = NULL;
    qkv_encode_opts o = QKV_OPTS(qkv_encode_opts);
    o.parse_special = 1;
    qkv_status status = qkv_tokenizer_encode(qkv_model_tokenizer(s->model, QKV_SIDE_TARGET),
                                             (qkv_str){ text->data, text->length }, &o, &ids);
    if (!status && !ids->n) status = qkv__fail(QKV_USAGE, "the chat template writes nothing for these messages");
    if (!status) status = qkv__grow((void **)&p->ids, &p->bytes, (size_t)ids->n * sizeof *p->ids);
    if (!status) {
        memcpy(p->ids, ids->ids, (size_t)ids->n * sizeof *p->ids);
        p->n_ids = (size_t)ids->n;
        status = qkv__prompts_add(p, (qkv__prompt){ .ids = p->ids, .n_ids = ids->n });
    }
    qkv_free(ids);
    return status;
}

static qkv_status render_messages(const qkv_chat *c, const qkv__json_value *messages, const qkv__json_value *tools,
                                  qkv_text **out)
{
    qkv__json_writer talk = { 0 }, known = { 0 };
    qkv__json_put_value(&talk, NULL, messages);
    if (qkv__json_size(tools)) qkv__json_put_value(&known, NULL, tools);
    qkv_status status = talk.status ? talk.status : known.status;
    if (!status) status = qkv_chat_render(c, (qkv_str){ talk.text, talk.length }, (qkv_str){ known.text, known.length }, out);
    qkv__json_writer_free(&talk);
    qkv__json_writer_free(&known);
    return status;
}

qkv_status qkv__get_chat_prompt(const qkv__served *s, const qkv__json_value *body, qkv__prompts *p)
{
    const qkv__json_value *messages = qkv__json_get(body, "messages"), *tools = qkv__json_get(body, "tools");
    qkv_text *text = NULL;
    bool no_tools = false;
    if (!s->chat) return qkv__fail(QKV_USAGE, "%s", s->no_chat ? s->no_chat : "the model has no chat template");
    if (!qkv__json_is_array(messages)) return qkv__fail(QKV_USAGE, "a conversation is an array of messages, and not empty");
    if (tools && !qkv__json_is_null(tools) && !qkv__json_is_array(tools))
        return qkv__fail(QKV_USAGE, "\"tools\" must be an array");
    qkv_status status = check_choice(body, &no_tools);
    if (!status) status = render_messages(s->chat, messages, no_tools ? NULL : tools, &text);
    if (!status) status = encode_prompt_text(s, text, p);
    qkv_free(text);
    return status;
}

qkv_status qkv__get_chat_logprobs(const qkv__json_value *body, int64_t *n)
{
    bool wanted = false;
    int64_t top = 0;
    qkv_status status = qkv__get_flag(body, "logprobs", &wanted);
    if (!status) status = qkv__get_whole(body, "top_logprobs", 0, QKV__TOP, &top);
    if (!status && top && !wanted) status = qkv__fail(QKV_USAGE, "\"top_logprobs\" needs \"logprobs\": true");
    *n = wanted ? top : -1;
    return status;
}

/* ---- the answer ---- */

void qkv__put_chat_message(qkv__json *j, const qkv_buffer *text, bool streams, bool is_begun)
{
    const bool is_last = streams && is_begun && !text->length;
    qkv__put_raw(j, streams ? "{\"delta\":{" : "{\"message\":{");
    if (!streams || !is_begun) qkv__put_raw(j, "\"role\":\"assistant\",");
    if (!is_last) {
        qkv__put_raw(j, "\"content\":");
        qkv__put_string(j, text->data, text->length);
    }
    qkv__put_raw(j, streams ? "}" : ",\"refusal\":null}");
}
