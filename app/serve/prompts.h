/* prompts.h: inputs of a request: texts or token ids. */
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

/* Starts as zero. */
typedef struct qkv__prompts {
    qkv__prompt *all;
    int64_t n;
    int32_t *ids; /* of all of them */
    size_t n_ids, bytes, all_bytes;
} qkv__prompts;

/* The member of this name: a string, an array of strings, an array of ids, or an array of arrays of ids; at most `most` prompts,
 * ids below `vocabulary`. Texts are the body's. USAGE, MEMORY. Free it in any case. */
qkv_status qkv__get_prompts(const qkv__json_value *body, const char *name, int64_t most, int64_t vocabulary, qkv__prompts *p);

/* The same for one array of ids, which may be empty. */
qkv_status qkv__get_ids(const qkv__json_value *body, const char *name, int64_t vocabulary, qkv__prompts *p);

qkv_status qkv__prompts_add(qkv__prompts *p, qkv__prompt x);
void qkv__prompts_free(qkv__prompts *p);

#endif
