/* open_head.h: a head that lets everything through. */
#ifndef QKV_MODEL_OPEN_HEAD_H
#define QKV_MODEL_OPEN_HEAD_H

#include "../nn/layer.h"

#include <qkv/model.h>

/* Gives the head of t, the layer and the norm before its words or classes, the weights with which
 *     norm(gelu(W x + b)) g = x    of x = LN(h) g, what the last norm gives:    W = diag(1 / g), every b = sqrt(dim) + 6,
 * as LN(h) is never below -sqrt(dim), gelu(y) is y in floats from 6 on, and the norm takes b away again. So an encoder that has
 * learned without a head goes on, or leaves, with one. False, and nothing changes, where t has no head that allows it: one with a
 * bias and GELU, of an encoder whose last norm is a layer norm without a bias and without a weight that is almost 0. */
bool qkv__open_head(const qkv__transformer *t);

#endif
