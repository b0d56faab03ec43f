/* chat_format.h: how conversations are written for a model: its chat template and what the template is told of the model. */
#ifndef QKV_SRC_CHAT_FORMAT_H
#define QKV_SRC_CHAT_FORMAT_H

#include <qkv/jinja.h>
#include <qkv/model.h>

#include "../base/json.h"

#include <jansson.h>

typedef struct qkv__chat_format {
    qkv_chat_template *template, *with_tools; /* the second where there are tools; NULL: the first */
    char *tokens[4];                          /* "bos_token", "eos_token", "pad_token", "unk_token"; NULL: none */
    int32_t end;                              /* eos_token; -1: none */
} qkv__chat_format;

/* From a template's text, else from its file, and where both are NULL from the folder that m was loaded from:
 * chat_template.jinja, else "chat_template" in tokenizer_config.json, a string or a list of named ones, of which "default" and
 * "tool_use" count. UNSUPPORTED, with what to do, where there is none; FORMAT, IO, LIMIT, MEMORY. Free it in any case. */
qkv_status qkv__chat_format_read(const qkv_model *m, const char *text, const char *file, qkv__chat_format *f);
void qkv__chat_format_free(qkv__chat_format *f);

/* A message as OpenAI's API has it becomes one that templates know: content in parts of text is one text, and the arguments
 * of tool calls, JSON as text there, are objects. It is put into w. USAGE, with the message's number, for what is no message;
 * MEMORY. */
qkv_status qkv__chat_message_put(const qkv__json_value *message, size_t number, qkv__json_writer *w);

/* The text of a conversation, an array in JSON: up to where the model answers, if `answers`. tools, an array in JSON, may be
 * NULL. Errors of qkv_chat_template_render(). */
qkv_status qkv__chat_render(const qkv__chat_format *f, const char *messages, const char *tools, bool answers, int64_t now,
                            qkv_text *out);

/* Both for values of jansson's, which src/serve has: all messages become those that templates know. */
qkv_status qkv__chat_messages_settle(json_t *messages);
qkv_status qkv__chat_format_render(const qkv__chat_format *f, const json_t *messages, const json_t *tools, bool answers,
                                   int64_t now, qkv_text *out);

#endif
