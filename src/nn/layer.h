/* layer.h: the layers of a Transformer, as layer.c makes them and transformer.c stacks them. */
#ifndef QKV_SRC_LAYER_H
#define QKV_SRC_LAYER_H

#include "cache.h"
#include "params.h"

/* A forward of tokens that join caches: those of the first row, of the second, ..., flat: (tokens, 1, dim). A part of `self`
 * and of `cross` belongs to each row; its pages are those of the row's sequence. */
typedef struct qkv__cached_forward {
    const qkv__cache *self_cache, *cross_cache;
    qkv__sequence *const *sequences; /* of each row; room is reserved */
    qkv__paged_part *self, *cross;
    int64_t rows;
    int layer;
    const uint8_t *heads_off; /* (layers, 2, heads): 1 where a head gives zeros, self then cross; NULL: none */
} qkv__cached_forward;

/* What the sub-layers of one forward have in common. */
typedef struct qkv__pass {
    const qkv_transformer_opts *o;
    qkv__cached_forward *cached;   /* NULL: a whole sequence at once */
    const int32_t *types;          /* of the tokens; NULL: 0 */
    qkv_mask self;                 /* of self-attention */
    const qkv_rotary_opts *rotary; /* NULL: positions are in the embedding */
    qkv_tensor *memory;            /* what the encoder gave; NULL without cross-attention */
    qkv_mask cross;
    qkv_tape *layer_tape; /* of one layer after the other; NULL: all are on the tape of x */
} qkv__pass;

/* Each sub-layer is norm(x + dropout(f(x))), or x + dropout(f(norm(x))) with pre_norm; a norm without a gain is left out. */
typedef struct qkv__layer {
    qkv_mha self, cross; /* cross only in a decoder that reads an encoder */
    qkv_ffn ffn;
    qkv_norm self_norm, cross_norm, ffn_norm;
} qkv__layer;

/* Makes layer number i of "encoder" or "decoder". False with the error in p. */
bool qkv__layer_make(qkv_params *p, qkv__layer *l, const char *stack, int i, const qkv_transformer_opts *o, bool crosses);

/* The norm "layer.part" of a model with these options. */
qkv_norm qkv__norm_part(qkv_params *p, const char *layer, const char *part, const qkv_transformer_opts *o);

/* The parts of a model. */
typedef struct qkv__stack {
    qkv_embed embed; /* the decoder's may be the encoder's */
    qkv_embed types; /* of token types */
    qkv_positions positions;
    qkv_norm embed_norm;
    qkv__layer *layers;
    int n;
    qkv_norm final_norm; /* with pre_norm */
} qkv__stack;

enum { QKV__ENCODER, QKV__DECODER, QKV__STACKS };
struct qkv_transformer {
    qkv_transformer_opts o;
    qkv__stack stacks[QKV__STACKS];
    const float *frequencies; /* of scaled rotary positions; NULL: those of the base */
    qkv_linear head;
    qkv_norm head_norm;
    qkv_linear output; /* the weight is an embedding's when tied */
    qkv_linear pooler, classifier;
    qkv_tensor *pool_query; /* (1, dim), of attention pooling */
};

/* Embedding times sqrt(dim), plus the types' vectors (types NULL: those of type 0), plus the positions from first_position +
 * first on, the norm, then dropout. */
qkv_tensor *qkv__embed(const qkv_transformer *m, const qkv__stack *s, qkv_tape *t, const int32_t *ids, const int32_t *types,
                       int64_t batch, int64_t length, int64_t first);

/* The head of a model that has one. */
qkv_tensor *qkv__head_forward(const qkv_transformer *m, qkv_tensor *x);

/* With a layer_tape the result takes x's place: nobody else may read x. */
qkv_tensor *qkv__layer_forward(const qkv__layer *l, qkv_tensor *x, const qkv__pass *pass);

/* As qkv_transformer_encode(), each layer on `layer_tape`, which records no gradients; NULL: all on t. */
qkv_tensor *qkv__transformer_encode(const qkv_transformer *m, qkv_tape *t, qkv_tape *layer_tape, const int32_t *ids,
                                    int64_t batch, int64_t length, const int32_t *lengths);

/* The queries and keys of self-attention turned by `rotary` (its heads are filled in); NULL: not turned. */
qkv_tensor *qkv__mha_forward(const qkv_mha *m, qkv_tensor *x, qkv_tensor *y, qkv_mask mask, const qkv_rotary_opts *rotary);

/* Self-attention of x, (tokens, 1, dim), whose keys and values join the cache; and cross-attention with what the cache holds of
 * the encoder's result. */
qkv_tensor *qkv__mha_cached(const qkv_mha *m, qkv_tensor *x, const qkv__pass *pass);
qkv_tensor *qkv__mha_cached_cross(const qkv_mha *m, qkv_tensor *x, const qkv__pass *pass);

#endif
