/* qkv/chat.h: a talk with a language model that keeps what it has read: the next turn reads only what is new.
 *
 * A conversation is a list of messages as OpenAI's API has them, each an object with "role" ("system", "user", "assistant",
 * "tool") and "content"; other members are for the model's chat template, which writes it as the text that the model was
 * trained to read.
 *
 * Threads: a chat is for one thread at a time, but qkv_chat_render() and qkv_chat_end(); any number of them may share one model. */
#ifndef QKV_CHAT_H
#define QKV_CHAT_H

#include <qkv/task.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_chat qkv_chat;

/* Zero means the default shown. */
typedef struct qkv_chat_opts {
    size_t size;
    const char *chat_template; /* its text, which ends with a NUL; that of the model's folder: chat_template.jinja, else
                                  "chat_template" in tokenizer_config.json */
    const char *template_file; /* or the file it is in */
    const char *tools;         /* JSON: an array of tools, for the template; none */
    int64_t max_context;       /* tokens of the talk that are kept, the answer counted; as many as the model has positions for,
                                  at most 8192 */
    int64_t now;               /* seconds since 1970, for templates that write a date; the clock's */
} qkv_chat_opts;

/* A chat with a decoder alone, without messages; the model must outlive it. NULL on error: USAGE for another model, tools that
 * are no array, NULL; LIMIT for a context that the model cannot read; UNSUPPORTED where there is no chat template; the errors
 * of a chat template; IO, MEMORY. You own it. NULL opts means all zero. */
QKV_API qkv_chat *qkv_chat_new(const qkv_model *m, const qkv_chat_opts *opts);
QKV_API void qkv_chat_free(qkv_chat *c);

/* Adds a message. USAGE for NULL, FORMAT for text that is not UTF-8, MEMORY: then nothing was added. */
QKV_API qkv_status qkv_chat_add(qkv_chat *c, const char *role, qkv_str content);

/* Removes the last message; nothing where there is none. */
QKV_API void qkv_chat_remove_last(qkv_chat *c);

/* The system's message, before all others: another one, or of an empty text none. The errors of qkv_chat_add(). */
QKV_API qkv_status qkv_chat_set_system(qkv_chat *c, qkv_str content);

/* Another conversation instead of this one: JSON, an array of messages, or an object with "messages" and maybe "tools"; any
 * other text is a message of the user. FORMAT for JSON that is damaged, USAGE for messages that are none, MEMORY: then the
 * conversation is as it was. */
QKV_API qkv_status qkv_chat_from_json(qkv_chat *c, qkv_str json);

/* The conversation, as qkv_chat_from_json() takes it: an array of messages, one a line. USAGE for NULL, MEMORY. */
QKV_API qkv_status qkv_chat_to_json(const qkv_chat *c, qkv_text **out);

/* Forgets all messages but the system's. */
QKV_API void qkv_chat_clear(qkv_chat *c);

/* What the model would read now, as its template writes it. The errors of a chat template. */
QKV_API qkv_status qkv_chat_prompt(const qkv_chat *c, qkv_text **out);

/* The same for another conversation: a JSON array of messages, and one of tools, or an empty text for those of the chat. Several
 * threads may call it on one chat that no other call changes. USAGE for NULL and messages that are none, FORMAT for JSON that is
 * damaged; the errors of a chat template; MEMORY. */
QKV_API qkv_status qkv_chat_render(const qkv_chat *c, qkv_str messages_json, qkv_str tools_json, qkv_text **out);

/* The id that ends an answer beside those that end a text for the model: its eos_token. -1: it has none; and for NULL. */
QKV_API int32_t qkv_chat_end(const qkv_chat *c);

/* What an answer took. */
typedef struct qkv_chat_usage {
    size_t size;
    int64_t prompt_tokens;    /* of the talk up to the answer */
    int64_t evaluated_tokens; /* of these, how many had to be read: the others had been */
    int64_t dropped_messages; /* that were forgotten, as the talk no longer fitted: the oldest, but never the system's */
    int64_t max_context;      /* tokens that fit */
} qkv_chat_usage;

/* The model answers: the answer becomes a message, also when hooks of opts cancel it. *usage may be NULL.
 * opts as for qkv_generate(), NULL: all zero; prompt_ids, start, end, ends, no_special, parse_special, score_prompt and
 * no_new_tokens of it are not looked at, and max_tokens of 0 means what fits. An answer ends at any token that ends a text for the
 * model, and at its eos_token. Where the talk and a quarter of the context (less, if fewer tokens may come) do not fit, the oldest
 * messages are dropped, up to the next one of the user. LIMIT when the last message alone does not fit; else the errors of
 * qkv_generate() and of the template: then messages are as they were, but for those dropped. */
QKV_API qkv_status qkv_chat_reply(qkv_chat *c, const qkv_generate_opts *opts, qkv_generated **out, qkv_chat_usage *usage);

#ifdef __cplusplus
}
#endif
#endif
