/* logprobs.h: the tokens of a completion with their log-probabilities, as OpenAI's completions have them. */
#ifndef QKV_SRC_SERVE_LOGPROBS_H
#define QKV_SRC_SERVE_LOGPROBS_H

#include "../engine/json.h"

#include <qkv/task.h>

enum { QKV__TOP = 20 }; /* most likely tokens in a place */

/* Where the telling of one text has got to. Starts as zero; used again for the next text after qkv__logprobs_begin(). */
typedef struct qkv__logprobs {
    int64_t characters; /* of the tokens that were told */
    int64_t of_token;   /* that begin in the token that was spelled last */
    const char *piece;  /* its bytes, of `longer` */
    size_t length;
    qkv_text *shorter, *longer;
    qkv_buffer keys[QKV__TOP + 1];
} qkv__logprobs;
void qkv__logprobs_begin(qkv__logprobs *l);
void qkv__logprobs_free(qkv__logprobs *l);

/* {"tokens":[..],"token_logprobs":[..],"top_logprobs":[..],"text_offset":[..]} of the tokens from .. to - 1, the prompt's
 * counted: token i is prompt_ids[i], those from n_prompt on are new. n_top is that of the options, at most QKV__TOP. A token is
 * the text it adds to what is before it; where that is no whole character "bytes:\xe6\x88". */
void qkv__put_logprobs(qkv__json *j, qkv__logprobs *l, const qkv_tokenizer *t, const qkv_generated *g, int n_top, int64_t from,
                       int64_t to);

/* The same as chat completions have it: {"content":[{"token":..,"logprob":..,"bytes":[..],"top_logprobs":[..]}],..}, each of the
 * likeliest with the same members. */
void qkv__put_chat_logprobs(qkv__json *j, qkv__logprobs *l, const qkv_tokenizer *t, const qkv_generated *g, int n_top,
                            int64_t from, int64_t to);

/* The bytes that id adds to the text after the token `before` (-1: none). They belong to l until its next call. MEMORY. */
qkv_status qkv__find_token_piece(qkv__logprobs *l, const qkv_tokenizer *t, int32_t before, int32_t id, const char **piece,
                                 size_t *length);

#endif
