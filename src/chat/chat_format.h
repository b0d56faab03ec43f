/* chat_format.h: how conversations are written for a model: its chat template and what the template is told of the model. */
#ifndef QKV_SRC_CHAT_FORMAT_H
#define QKV_SRC_CHAT_FORMAT_H

#include "../jinja/template.h"
#include <qkv/model.h>
#include <qkv/unstable/buffer.h>

#include "../base/json.h"

typedef struct qkv__chat_format {
    qkv__chat_template *template, *with_tools; /* the second where there are tools; NULL: the first */
    char *tokens[4];                           /* "bos_token", "eos_token", "pad_token", "unk_token"; NULL: none */
    int32_t end;                               /* eos_token; -1: none */
} qkv__chat_format;

/* From a template's text, else from its file, and where both are NULL from the folder that m was loaded from:
 * chat_template.jinja, else "chat_template" in tokenizer_config.json, a string or a list of named ones, of which "default" and
 * "tool_use" count. UNSUPPORTED, with what to do, where there is none; FORMAT, IO, LIMIT, MEMORY. Free it in any case. */
qkv_status qkv__chat_format_read(const qkv_model *m, const char *text, const char *file, qkv__chat_format *f);
void qkv__chat_format_free(qkv__chat_format *f);

/* Writes a message of OpenAI's API in the form that templates expect: parts of content joined into one string, arguments of tool
 * calls as objects. Errors: USAGE with the message's number, MEMORY. */
qkv_status qkv__chat_message_put(const qkv__json_value *message, size_t number, qkv__json_writer *w);

/* Renders a conversation, given as a JSON array of messages, up to the model's turn if `answers`. tools: a JSON array or NULL.
 * Errors of qkv__chat_template_render(). */
qkv_status qkv__chat_render(const qkv__chat_format *f, const char *messages, const char *tools, bool answers, int64_t now,
                            qkv_buffer *out);

#endif
