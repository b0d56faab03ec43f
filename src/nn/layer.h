/* layer.h: the layers of a Transformer, as layer.c makes them and transformer.c stacks them. */
#ifndef QKV_SRC_LAYER_H
#define QKV_SRC_LAYER_H

#include "cache.h"

#include <qkv/unstable/inspect.h>
#include "params.h"
#include "transformer.h"

#include <stdatomic.h>

/* Forwards of one read that run at the same time: how many layers the one before this has written, with all before it (NULL: it
 * is the first), and how many this one has. */
typedef struct qkv__turn {
    const atomic_int *before;
    atomic_int *own;
} qkv__turn;

/* A forward of tokens that join caches: those of the first row, of the second, ..., flat: (tokens, 1, dim). A part of `self`
 * and of `cross` belongs to each row; its pages are those of the row's sequence. */
typedef struct qkv__cached_forward {
    const qkv__cache *self_cache, *cross_cache;
    qkv__sequence *const *sequences; /* of each row; room is reserved */
    qkv__paged_part *self, *cross;
    int64_t rows;
    int layer;
    const uint8_t *heads_off; /* (layers, 2, heads): 1 where a head gives zeros, self then cross; NULL: none */
    const qkv__turn *turn;    /* NULL: no other forward runs */
} qkv__cached_forward;

/* What is changed in a model while it runs; they are checked. */
typedef struct qkv__touches {
    const qkv_edit *list;
    int64_t n;
} qkv__touches;

/* The rows of one token in one layer, on the way through its sub-layers. */
enum { QKV__SUB_SELF, QKV__SUB_CROSS, QKV__SUB_FFN, QKV__SUBS };
enum { QKV__AT_IN, QKV__AT_X, QKV__AT_OUT, QKV__AT_SUM, QKV__AT_NORM, QKV__STEPS };
typedef struct qkv__trail {
    int layer;
    int64_t token;
    float *rows[QKV__SUBS][QKV__STEPS]; /* (dim) each, which are written */
} qkv__trail;

/* What the sub-layers of one forward have in common. */
typedef struct qkv__pass {
    const qkv_config *o;
    qkv__cached_forward *cached; /* NULL: a whole sequence at once */
    const int32_t *types;        /* of the tokens; NULL: 0 */
    qkv_mask self;               /* of self-attention */
    /* how queries and keys turn, in layers without a window and with one; NULL: positions are in the embedding */
    const qkv_rope_opts *rotary, *local_rotary;
    qkv_rope_opts turns[2]; /* which these are */
    const int32_t *places;  /* (batch, length): the tokens' positions, from first_position on; NULL: 0, 1, .. in every row */
    int64_t longest;        /* sequence, for which there is */
    qkv_tensor *relative;   /* (heads, 2n-1), by the distance of key and query, -(n-1) first; NULL: no bias */
    qkv_tensor *memory;     /* what the encoder gave; NULL without cross-attention */
    qkv_mask cross;
    qkv_tape *layer_tape; /* of one layer after the other; NULL: all are on the tape of x */
    const struct qkv__ragged *ragged;
    qkv__touches touches;
    int stack, layer;        /* which one computes */
    const qkv__trail *trail; /* NULL: nobody follows */
} qkv__pass;

/* Rows of different lengths, whose tokens stand one after the other: (tokens, 1, dim). */
typedef struct qkv__ragged {
    int64_t n, tokens, longest;
    int64_t *lengths;   /* of the rows */
    int32_t *positions; /* of the tokens, each in its row */
} qkv__ragged;

/* Each sub-layer is norm(x + dropout(f(x))), or x + dropout(f(norm(x))) with pre_norm, f(...) with a norm of its own where there
 * is a post norm; a norm without a gain is left out. */
typedef struct qkv__layer {
    qkv_mha self, cross; /* cross only in a decoder that reads an encoder */
    qkv_ffn ffn;
    qkv_norm self_norm, cross_norm, ffn_norm;
    qkv_norm self_post_norm, cross_post_norm, ffn_post_norm;
    qkv_norm q_norm, k_norm; /* of every head in self-attention */
    int64_t window;          /* of self-attention; 0: none */
    qkv_tensor *relative;    /* (buckets, heads), of self-attention, which layers may share; NULL: none */
} qkv__layer;

/* Makes layer number i, "encoder.3", say. False with the error in p. */
bool qkv__layer_make(qkv_params *p, qkv__layer *l, const char *layer, int i, const qkv_config *o, bool crosses);

/* The norm "layer.part" of a model with these options; of another width than its dim, or another kind. */
qkv_norm qkv__norm_part(qkv_params *p, const char *layer, const char *part, const qkv_config *o);
qkv_norm qkv__norm_of_width(qkv_params *p, const char *layer, const char *part, const qkv_config *o, int64_t width,
                            qkv_norm_kind kind);

/* How wide its tables are: embed_dim, or dim. */
int64_t qkv__embed_width(const qkv_config *o);

/* The parts of a model. */
typedef struct qkv__stack {
    qkv_embedding embed; /* the decoder's may be the encoder's */
    qkv_embedding types; /* of token types */
    qkv_embedding positions;
    qkv_linear widen; /* with embed_dim */
    qkv_norm embed_norm;
    qkv__layer *layers;
    int n;
    qkv_norm final_norm; /* with pre_norm */
} qkv__stack;

enum { QKV__ENCODER, QKV__DECODER, QKV__STACKS };
struct qkv__transformer {
    qkv_config o;
    qkv__stack stacks[QKV__STACKS];
    const float *frequencies; /* of scaled rotary positions, in layers without a local base; NULL: those of the base */
    const float *divisors;    /* of LongRoPE (2, pairs): of frequencies in short texts and in long ones; NULL: none */
    qkv_linear head;
    qkv_norm head_norm;
    qkv_linear output; /* the weight is an embedding's when tied */
    qkv_linear pooler, classifier;
    qkv_tensor *pool_query; /* (1, dim), of attention pooling */
    qkv_tensor *ngram_counts, *ngram_totals,
        *ngram_weights; /* see ngrams.h: (slots, classes), (2 classes + 3), (2), all flat */
    qkv__touches touches;
};

/* What is between the two layers of a feed-forward: after the activation, of a gated one the product. */
qkv_tensor *qkv__ffn_hidden(const qkv_ffn *f, qkv_tensor *x);

/* The head of a model that has one. */
qkv_tensor *qkv__head_forward(const qkv__transformer *m, qkv_tensor *x);

/* With a layer_tape the result takes x's place: nobody else may read x. */
qkv_tensor *qkv__layer_forward(const qkv__layer *l, qkv_tensor *x, const qkv__pass *pass);

/* As qkv__transformer_encode(), padding not computed, each layer on `layer_tape`; neither tape records gradients, keeps
 * attention or hidden states. Gives the tokens of all rows one after the other, (tokens, 1, dim). */
qkv_tensor *qkv__encode_rows(const qkv__transformer *m, qkv_tape *t, qkv_tape *layer_tape, const qkv_tokens *x);

/* The embeddings of n tokens, scaled as the model has them, without positions: (1, n, width). And a stack over such ones, as
 * qkv__transformer_encode() and qkv__transformer_decode() are over ids, its memory NULL without cross-attention. */
qkv_tensor *qkv__token_embeddings(const qkv__transformer *m, int stack, qkv_tape *t, const int32_t *ids, int64_t n);
qkv_tensor *qkv__run_embedded(const qkv__transformer *m, int stack, qkv_tensor *embedded, qkv_tensor *memory);

/* One layer of a stack over x (1, n, dim), with changes of its own in place of the model's, and a trail or NULL. */
qkv_tensor *qkv__run_layer(const qkv__transformer *m, int stack, int layer, qkv_tensor *x, qkv_tensor *memory,
                           qkv__touches touches, const qkv__trail *trail);

/* What comes out of the last layer, after the norm at the end where there is one. */
qkv_tensor *qkv__final_norm(const qkv__transformer *m, int stack, qkv_tensor *x);

/* Such tokens as (rows, length, dim), zeros where there is padding. */
qkv_tensor *qkv__pad_rows(qkv_tensor *tokens, const qkv_tokens *x);

/* As qkv__transformer_logits(), with another output layer, such as some rows of the model's own. */
qkv_tensor *qkv__output_logits(const qkv__transformer *m, qkv_tensor *hidden, const qkv_linear *output);

/* The bias of a table (buckets, heads) for sequences of up to n tokens, as qkv__pass has it; a causal one has the same number for
 * all keys to the right. NULL with the error on the tape. */
qkv_tensor *qkv__relative_bias(qkv_tape *t, qkv_tensor *table, int64_t n, int64_t farthest, bool causal);
/* That of pass->layer, about to compute. */
void qkv__set_relative(const qkv__transformer *m, qkv_tape *t, qkv__pass *pass);
qkv__relative qkv__relative_of(const qkv_tensor *bias); /* NULL: none */

/* Pairs of a head that turn. */
int64_t qkv__rotary_pairs(const qkv_config *o);

/* Gives a model LongRoPE's divisors (2, pairs), which are copied; those of short texts count. False with the error in p. */
bool qkv__set_divisors(qkv_params *p, qkv__transformer *m, const float *divisors);

/* How queries and keys at these positions turn: *pass points to its own turns from now on. */
void qkv__set_rotary(const qkv__transformer *m, const int32_t *positions, qkv__pass *pass);

/* Self-attention of whole sequences; of rows of different lengths; of x, (tokens, 1, dim), whose keys and values join the
 * cache. */
qkv_tensor *qkv__self_forward(const qkv__layer *l, qkv_tensor *x, const qkv__pass *pass);
qkv_tensor *qkv__self_ragged(const qkv__layer *l, qkv_tensor *x, const qkv__pass *pass);
qkv_tensor *qkv__self_cached(const qkv__layer *l, qkv_tensor *x, const qkv__pass *pass);

/* ---- changes, see qkv_edit ---- */
static inline qkv_attention_kind qkv__self_of(const qkv__pass *pass)
{
    return pass->stack == QKV__DECODER ? QKV_ATTENTION_DECODER : QKV_ATTENTION_ENCODER;
}
bool qkv__layer_is_off(const qkv__touches *x, int stack, int layer);
bool qkv__head_is_off(const qkv__touches *x, qkv_attention_kind kind, int layer, int head);

/* Positions of `batch` rows of tokens at places first .. first+length-1, from first_position 0; NULL where none was moved. And
 * that of one token. */
const int32_t *qkv__moved_positions(qkv_tape *t, const qkv__touches *x, int stack, int64_t batch, int64_t length);
int64_t qkv__moved_position(const qkv__touches *x, int stack, int64_t place);

/* Which of n keys are hidden: (n), `hidden` where one is and its opposite elsewhere; NULL where none is. */
uint8_t *qkv__hidden_keys(qkv_tape *t, const qkv__touches *x, qkv_attention_kind kind, int64_t n, uint8_t hidden);

/* Whether there are changes of weights or of values in an attention, for which the weights are needed. */
bool qkv__touches_weights(const qkv__touches *x, qkv_attention_kind kind, int layer);

/* qkv_attention() and what is changed in it. */
qkv_tensor *qkv__attend_touched(qkv_tensor *const qkv[3], const qkv_mask *mask, const qkv_attention_opts *opts,
                                const qkv__pass *pass, qkv_attention_kind kind);

/* The same for y, what attention to pages gave, whose weights were kept. */
void qkv__touch_cached(const qkv__pass *pass, const qkv_mha *m, qkv_tensor *y, qkv_attention_kind kind);

/* Cross-attention, and the same with what the cache holds of the encoder's result. */
qkv_tensor *qkv__cross_forward(const qkv_mha *m, qkv_tensor *x, const qkv__pass *pass);
qkv_tensor *qkv__cross_cached(const qkv_mha *m, qkv_tensor *x, const qkv__pass *pass);

#endif
