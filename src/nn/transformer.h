/* transformer.h: the Transformer of a model's options, over parameters that it adds and that own it. */
#ifndef QKV_SRC_TRANSFORMER_H
#define QKV_SRC_TRANSFORMER_H

#include <qkv/model.h>

typedef struct qkv__transformer qkv__transformer;

/* Adds the weights to p, named "embed.weight", "encoder.0.self.q.weight", "decoder.3.cross_norm.bias", and so on. NULL on error,
 * which stays in p: USAGE for sizes that do not fit, MEMORY. */
qkv__transformer *qkv__transformer_new(qkv_params *p, const qkv_config *opts);

const qkv_config *qkv__transformer_config(const qkv__transformer *m); /* NULL for NULL */

/* How many tokens a sequence may have: `max_positions` where positions are learned; 0: any number. */
int64_t qkv__max_positions(const qkv_config *o);

/* The forward pass as <qkv/model.h> has it; classes of texts, and of tokens and spans, each by a function. The size of the tokens
 * is not read. */
qkv_tensor *qkv__transformer_encode(const qkv__transformer *m, qkv_tape *t, const qkv_tokens *x);
qkv_tensor *qkv__transformer_decode(const qkv__transformer *m, qkv_tape *t, const qkv_tokens *x, qkv_tensor *memory,
                                    const int32_t *memory_lengths);
qkv_tensor *qkv__transformer_logits(const qkv__transformer *m, qkv_tensor *hidden);
qkv_tensor *qkv__transformer_pool(const qkv__transformer *m, qkv_tensor *hidden, const int32_t *lengths, qkv_pooling how);
qkv_tensor *qkv__transformer_classify(const qkv__transformer *m, qkv_tensor *hidden, const int32_t *lengths);
qkv_tensor *qkv__transformer_tag(const qkv__transformer *m, qkv_tensor *hidden);

#endif
