/* qkv/chat.h: a conversation with a language model. The KV cache is kept between turns, so each turn reads only new tokens.
 *
 * A conversation is a list of messages as in OpenAI's API. Each message is an object with "role" ("system", "user",
 * "assistant", "tool") and "content". Other members are passed to the model's chat template. The template writes the
 * conversation in the text format of the model's training.
 *
 * Threads: one thread at a time per chat, except for qkv_chat_render() and qkv_chat_end(). Any number of chats may share one
 * model. */
#ifndef QKV_CHAT_H
#define QKV_CHAT_H

#include <qkv/task.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_chat qkv_chat;

/* Zero means the default, shown in parentheses. */
typedef struct qkv_chat_opts {
    size_t size;
    const char *chat_template; /* NUL-terminated template text (default: from the model's folder, chat_template.jinja, else
                                  "chat_template" in tokenizer_config.json) */
    const char *template_file; /* alternatively, the file of the template */
    const char *tools;         /* JSON array of tools for the template (default: none) */
    int64_t max_context;       /* maximum tokens of the conversation, the answer included (default: the model's positions, at
                                  most 8192) */
    int64_t now;               /* seconds since 1970, for templates that write a date (default: the system clock) */
} qkv_chat_opts;

/* Creates a chat without messages, for a decoder alone. You own it. The model must outlive it. NULL opts means all zero.
 * NULL on error: USAGE for another kind of model, tools that are not an array, and NULL; LIMIT for a context above the model's;
 * UNSUPPORTED if no chat template exists; the errors of a chat template; IO, MEMORY. */
QKV_API qkv_chat *qkv_chat_new(const qkv_model *m, const qkv_chat_opts *opts);
QKV_API void qkv_chat_free(qkv_chat *c);

/* Adds a message. USAGE for NULL, FORMAT for text that is not UTF-8, MEMORY. Nothing is added after an error. */
QKV_API qkv_status qkv_chat_add(qkv_chat *c, const char *role, qkv_str content);

/* Removes the last message. Does nothing if the chat is empty. */
QKV_API void qkv_chat_remove_last(qkv_chat *c);

/* Sets or replaces the system message, which precedes all others. An empty text removes it. Errors as qkv_chat_add(). */
QKV_API qkv_status qkv_chat_set_system(qkv_chat *c, qkv_str content);

/* Replaces the conversation. The JSON is an array of messages, or an object with "messages" and optionally "tools". Any other
 * text becomes a user message. FORMAT for malformed JSON, USAGE for invalid messages, MEMORY. The conversation is unchanged
 * after an error. */
QKV_API qkv_status qkv_chat_from_json(qkv_chat *c, qkv_str json);

/* Writes the conversation in the format of qkv_chat_from_json(): an array of messages, one per line. USAGE for NULL, MEMORY. */
QKV_API qkv_status qkv_chat_to_json(const qkv_chat *c, qkv_text **out);

/* Removes all messages except the system message. */
QKV_API void qkv_chat_clear(qkv_chat *c);

/* Renders the current prompt with the chat template. The errors of a chat template. */
QKV_API qkv_status qkv_chat_prompt(const qkv_chat *c, qkv_text **out);

/* Renders the prompt of another conversation: a JSON array of messages, and a JSON array of tools. Empty tools_json means the
 * tools of the chat. Several threads may call it on one chat while no other call modifies the chat. USAGE for NULL and invalid
 * messages, FORMAT for malformed JSON; the errors of a chat template; MEMORY. */
QKV_API qkv_status qkv_chat_render(const qkv_chat *c, qkv_str messages_json, qkv_str tools_json, qkv_text **out);

/* The id of the chat's eos_token, which ends an answer in addition to the model's end ids. -1 if it has none, and for NULL. */
QKV_API int32_t qkv_chat_end(const qkv_chat *c);

/* The token counts of one answer. */
typedef struct qkv_chat_usage {
    size_t size;
    int64_t prompt_tokens;    /* tokens of the conversation before the answer */
    int64_t evaluated_tokens; /* prompt tokens that were read; the others were in the KV cache */
    int64_t dropped_messages; /* messages dropped to fit the context: the oldest first, never the system message */
    int64_t max_context;      /* context limit in tokens */
} qkv_chat_usage;

/* Generates an answer and adds it as a message, also if hooks of opts cancel it. usage may be NULL.
 * opts are as for qkv_generate(); NULL means all zero. Ignored are prompt_ids, start, end, ends, no_special, parse_special,
 * score_prompt and no_new_tokens. A max_tokens of 0 means the rest of the context. An answer ends at any of the model's end
 * ids and at its eos_token.
 * The conversation plus a quarter of the context (less if max_tokens is smaller) must fit. Otherwise the oldest messages are
 * dropped, up to the next user message. LIMIT if the last message alone does not fit; other errors as qkv_generate() and the
 * chat template. After an error the messages are unchanged, except for dropped ones. */
QKV_API qkv_status qkv_chat_reply(qkv_chat *c, const qkv_generate_opts *opts, qkv_generated **out, qkv_chat_usage *usage);

#ifdef __cplusplus
}
#endif
#endif
