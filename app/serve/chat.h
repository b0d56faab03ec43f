/* chat.h: what POST /v1/chat/completions has of its own. */
#ifndef QKV_SRC_SERVE_CHAT_H
#define QKV_SRC_SERVE_CHAT_H

#include "prompts.h"
#include "server.h"

/* The members "messages" and "tools" as the one prompt that the model's chat template writes. USAGE for a conversation or an
 * option that is not known here, and for a model without a template; the errors of the template; MEMORY. */
qkv_status qkv__get_chat_prompt(const qkv__served *s, json_t *body, qkv__prompts *p);

/* "logprobs": true and "top_logprobs", as a number; -1: none. */
qkv_status qkv__get_chat_logprobs(const json_t *body, int64_t *n);

/* The beginning of a choice: {"message":{..} or, of a stream, {"delta":{..}, the first with the role. */
void qkv__put_chat_message(qkv__json *j, const qkv_buffer *text, bool streams, bool is_begun);

/* As src/task/chat_format.h, for jansson values; the first one converts all messages in place. */
qkv_status qkv__chat_messages_settle(json_t *messages);
qkv_status qkv__chat_format_render(const qkv__chat_format *f, const json_t *messages, const json_t *tools, bool answers,
                                   int64_t now, qkv_buffer *out);

#endif
