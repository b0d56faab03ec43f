/* chat_jansson.c: conversations as jansson values, for src/serve. */
#include "chat.h"

#include "../../src/base/status.h"

#include <stdlib.h>
#include <string.h>

static qkv_status no_memory(void) { return qkv__fail(QKV_MEMORY, "out of memory"); }

/* Converts a message for templates; *out is a new value. */
static qkv_status settle(const json_t *message, size_t number, json_t **out)
{
    char *text = json_dumps(message, JSON_ENCODE_ANY);
    qkv__json_writer w = { 0 };
    qkv__json_doc doc = { 0 };
    qkv_status status = text ? QKV_OK : no_memory();
    const qkv__json_source source = {
        .name = "message", .text = text, .length = text ? strlen(text) : 0, .flags = QKV__JSON_NUL
    };
    if (!status) status = qkv__json_parse(&source, &doc);
    if (!status) status = qkv__chat_message_put(doc.top, number, &w);
    if (!status && !(*out = json_loadb(w.text, w.length, JSON_ALLOW_NUL, NULL))) status = no_memory();
    qkv__json_writer_free(&w);
    qkv__json_free(&doc);
    free(text);
    return status;
}

qkv_status qkv__chat_messages_settle(json_t *messages)
{
    if (!json_is_array(messages) || !json_array_size(messages))
        return qkv__fail(QKV_USAGE, "a conversation is an array of messages, and not empty");
    for (size_t i = 0; i < json_array_size(messages); i++) {
        json_t *settled = NULL;
        qkv_status status = settle(json_array_get(messages, i), i + 1, &settled);
        if (!status && json_array_set_new(messages, i, settled)) status = no_memory();
        if (status) return status;
    }
    return QKV_OK;
}

qkv_status qkv__chat_format_render(const qkv__chat_format *f, const json_t *messages, const json_t *tools, bool answers,
                                   int64_t now, qkv_buffer *out)
{
    bool has_tools = json_array_size(tools) > 0;
    char *talk = json_dumps(messages, JSON_ENCODE_ANY), *known = has_tools ? json_dumps(tools, 0) : NULL;
    qkv_status status = talk && !known == !has_tools ? qkv__chat_render(f, talk, known, answers, now, out) : no_memory();
    free(talk);
    free(known);
    return status;
}
