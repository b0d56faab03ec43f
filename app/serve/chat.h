/* chat.h: what POST /v1/chat/completions has of its own. */
#ifndef QKV_SRC_SERVE_CHAT_H
#define QKV_SRC_SERVE_CHAT_H

#include "prompts.h"
#include "server.h"

/* The members "messages" and "tools" as the one prompt that the model's chat template writes. USAGE for a conversation or an
 * option that is not known here, and for a model without a template; the errors of the template; MEMORY. */
qkv_status qkv__get_chat_prompt(const qkv__served *s, const qkv__json_value *body, qkv__prompts *p);

/* "logprobs": true and "top_logprobs", as a number; -1: none. */
qkv_status qkv__get_chat_logprobs(const qkv__json_value *body, int64_t *n);

/* The beginning of a choice: {"message":{..} or, of a stream, {"delta":{..}, the first with the role. */
void qkv__put_chat_message(qkv__json *j, const qkv_buffer *text, bool streams, bool is_begun);

#endif
