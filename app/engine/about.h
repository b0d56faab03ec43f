/* about.h: what a model is and what its tokens are, as JSON. */
#ifndef QKV_SRC_ENGINE_ABOUT_H
#define QKV_SRC_ENGINE_ABOUT_H

#include <qkv/model.h>

#include "json.h"

/* What the model does, as bits, so that a path can name several. */
typedef enum qkv__job { QKV__TRANSLATES = 1, QKV__CLASSIFIES = 2, QKV__GENERATES = 4, QKV__ENCODES = 8 } qkv__job;
const char *qkv__job_name(qkv__job job);
qkv__job qkv__job_of(const qkv_model *m);

/* What GET /info says of a model; put_model_info leaves out the brace that ends it. */
void qkv__put_model_info(qkv__json *j, const qkv_model *m, const char *name);
void qkv__put_info(qkv__json *j, const qkv_model *m, const char *name);

/* A text that the model can read, as a JSON string: in the language of this code if its tokenizer knows it, else in the one it
 * knows best. */
qkv_status qkv__put_example(qkv__json *j, const qkv_model *m, const char *language);

/* An array of such texts, all in one language: that one is the first. */
qkv_status qkv__put_examples(qkv__json *j, const qkv_model *m, const char *language);

/* The tokenizer of the "side" that a request names, "source" unless it does. USAGE for another. */
qkv_status qkv__get_tokenizer(const qkv__json_value *body, const qkv_model *m, const qkv_tokenizer **t);

/* {"ids": .., "tokens": .., "spans": ..} */
void qkv__put_token_list(qkv__json *j, const qkv_tokenizer *t, const qkv_encoding *ids);

#endif
