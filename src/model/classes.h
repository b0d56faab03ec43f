/* classes.h: the logits of a classifier, of hidden states or of a batch of training. */
#ifndef QKV_SRC_CLASSES_H
#define QKV_SRC_CLASSES_H

#include <qkv/data.h>
#include <qkv/model.h>

#include "../nn/layer.h"

/* (rows, classes) of x from its encoder's hidden states, without those of ngrams. A published decoder, BART's, reads the text once
 * more, a place later, behind what starts its texts, and the classifier what that gives at the last token. */
qkv_tensor *qkv__class_logits(const qkv_model *m, qkv_tensor *hidden, const qkv_tokens *x);

/* The same of a batch, whose texts go to *s. */
qkv_tensor *qkv__batch_logits(const qkv_model *m, qkv_tape *t, const qkv_batch *b, qkv_tokens *s);

/* The logits (rows, classes) of a batch, with those of ngrams. */
qkv_tensor *qkv__classify_batch(const qkv_model *m, qkv_tape *t, const qkv_batch *b);

#endif
