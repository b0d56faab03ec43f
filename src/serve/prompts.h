/* prompts.h: what completions go on from: texts, or ids of the tokenizer. */
#ifndef QKV_SRC_SERVE_PROMPTS_H
#define QKV_SRC_SERVE_PROMPTS_H

#include "../engine/json.h"

/* Text, or where ids is not NULL those. */
typedef struct qkv__prompt {
    const char *text;
    size_t length;
    const int32_t *ids;
    int64_t n_ids;
} qkv__prompt;

typedef struct qkv__prompts {
    qkv__prompt all[QKV__TEXTS];
    int64_t n;
    int32_t *ids; /* of all of them */
    size_t n_ids, bytes;
} qkv__prompts;

/* The member "prompt": a string, an array of strings, an array of ids, or an array of arrays of ids; at most QKV__TEXTS
 * prompts. Texts are the body's. USAGE, MEMORY. Free it in any case. */
qkv_status qkv__get_prompts(const json_t *body, qkv__prompts *p);
void qkv__prompts_free(qkv__prompts *p);

#endif
