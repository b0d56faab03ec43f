/* layer.h: the layers of a Transformer, as layer.c makes them and transformer.c stacks them. */
#ifndef QKV_SRC_LAYER_H
#define QKV_SRC_LAYER_H

#include "params.h"

/* What the sub-layers of one forward have in common. */
typedef struct qkv__pass {
    const qkv_transformer_opts *o;
    qkv_mask self;                 /* of self-attention */
    const qkv_rotary_opts *rotary; /* NULL: positions are in the embedding */
    qkv_tensor *memory;            /* what the encoder gave; NULL without cross-attention */
    qkv_mask cross;
} qkv__pass;

/* Each sub-layer is norm(x + dropout(f(x))), or x + dropout(f(norm(x))) with pre_norm. */
typedef struct qkv__layer {
    qkv_mha self, cross; /* cross only in a decoder that reads an encoder */
    qkv_ffn ffn;
    qkv_norm self_norm, cross_norm, ffn_norm;
} qkv__layer;

/* Makes layer number i of "encoder" or "decoder". False with the error in p. */
bool qkv__layer_make(qkv_params *p, qkv__layer *l, const char *stack, int i, const qkv_transformer_opts *o, bool crosses);

qkv_tensor *qkv__layer_forward(const qkv__layer *l, qkv_tensor *x, const qkv__pass *pass);

/* The queries and keys of self-attention turned by `rotary` (its heads are filled in); NULL: not turned. */
qkv_tensor *qkv__mha_forward(const qkv_mha *m, qkv_tensor *x, qkv_tensor *y, qkv_mask mask, const qkv_rotary_opts *rotary);

#endif
