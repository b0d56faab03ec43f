/* qkv/nn.h: weights and the layers made of them.
 *
 * A layer is a small struct of pointers to weights that params own: copy it, pass it, never free it. When making one
 * fails (memory, a name used twice, a bad size) its weights are NULL, qkv_params_status() tells, and forward gives NULL.
 *
 * Threads: params, with the layers and models made in them, are read by any number of threads, each computing on a tape of its
 * own; what adds, changes or copies weights, and a backward, which adds to their gradients, is for one thread, alone. */
#ifndef QKV_NN_H
#define QKV_NN_H

#include <qkv/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- params: every weight, in one flat block, and every gradient, in another ---- */
typedef struct qkv_params qkv_params;

/* Empty params; seed decides the initial weights. NULL when memory is out or QKV_ISA cannot be followed. You own it. */
QKV_API qkv_params *qkv_params_new(uint64_t seed);
QKV_API void qkv_params_free(qkv_params *p);

typedef enum qkv_init {
    QKV_INIT_ZERO,
    QKV_INIT_ONE,
    QKV_INIT_XAVIER, /* uniform in +-scale * sqrt(6 / (fan_in + fan_out)); a weight is (fan_out, fan_in) */
    QKV_INIT_NORMAL  /* mean 0, standard deviation scale */
} qkv_init;

/* Adds a weight. Its initial values depend on the params' seed and on its name only, not on what was added before.
 * scale 0 means 1. NULL on error, which also stays in the params: USAGE for a bad shape or a name used already, MEMORY.
 * The tensor stays where it is; its values and gradients move when the blocks grow: ask qkv_tensor_data() again after adding. */
QKV_API qkv_tensor *qkv_params_add(qkv_params *p, const char *name, int ndim, const int64_t *shape, qkv_init init, float scale);

/* The first error of a qkv_params_add() or of a layer made in p; its sentence is put back into qkv_error(). For NULL, the
 * error that made it NULL. */
QKV_API qkv_status qkv_params_status(const qkv_params *p);

QKV_API int64_t qkv_params_count(const qkv_params *p); /* numbers in all weights */

/* The two blocks: all weights in the order added, each starting at a multiple of 16 floats, with zeros between them; and
 * their gradients at the same places. One loop over a block meets every weight. Adding a weight may move both. NULL without
 * weights, and when qkv_params_materialize() fails. */
QKV_API float *qkv_params_data(qkv_params *p);
QKV_API float *qkv_params_grad(qkv_params *p);
QKV_API int64_t qkv_params_block(const qkv_params *p); /* floats in a block, the zeros included */

/* The weights of a model that was loaded lie in its files, mapped, and have no gradients: qkv_tensor_data() of each points there,
 * and what is written there stays with this process; matrices of F16 and BF16 stay as they are, and qkv_tensor_data() gives NULL.
 * This copies them into blocks of their own, with gradients. qkv_params_data(), qkv_params_grad(), qkv_params_add() and an
 * optimizer do it too; params that own their weights stay as they are. MEMORY; UNSUPPORTED for weights in 8 or 4
 * bits. Not while another thread uses them. */
QKV_API qkv_status qkv_params_materialize(qkv_params *p);

QKV_API int qkv_params_size(const qkv_params *p);              /* how many weights */
QKV_API qkv_tensor *qkv_params_at(const qkv_params *p, int i); /* the i-th weight; NULL out of range */
QKV_API const char *qkv_params_name(const qkv_params *p, int i);
QKV_API qkv_tensor *qkv_params_find(const qkv_params *p, const char *name); /* NULL when there is none */
QKV_API void qkv_params_zero_grad(qkv_params *p);

/* Scales all gradients by max_norm / norm if their Euclidean norm is larger than max_norm; the norm before that goes to
 * *norm (may be NULL). NUMERIC, and nothing is scaled, when the norm is not finite; USAGE unless max_norm > 0; MEMORY. */
QKV_API qkv_status qkv_params_clip_grad(qkv_params *p, float max_norm, float *norm);

/* ---- linear: y = x W^T + b, W (out, in) Xavier-uniform, b zero ---- */
typedef struct qkv_linear {
    qkv_tensor *weight, *bias; /* bias NULL: none */
} qkv_linear;
QKV_API qkv_linear qkv_linear_new(qkv_params *p, const char *name, int64_t in, int64_t out);
QKV_API qkv_linear qkv_linear_new_no_bias(qkv_params *p, const char *name, int64_t in, int64_t out);
QKV_API qkv_tensor *qkv_linear_forward(const qkv_linear *l, qkv_tensor *x);

/* ---- embedding: a table (vocabulary, dim), normal with standard deviation dim^-0.5 ---- */
typedef struct qkv_embedding {
    qkv_tensor *weight;
} qkv_embedding;
QKV_API qkv_embedding qkv_embedding_new(qkv_params *p, const char *name, int64_t vocabulary, int64_t dim);
/* ids: batch*length numbers   ->   (batch, length, dim) */
QKV_API qkv_tensor *qkv_embedding_forward(const qkv_embedding *e, qkv_tape *t, const int32_t *ids, int64_t batch,
                                          int64_t length);

/* ---- norm: gain one, bias zero, eps 1e-5 unless changed ---- */
typedef enum qkv_norm_kind { QKV_NORM_LAYER, QKV_NORM_RMS } qkv_norm_kind;
typedef struct qkv_norm {
    qkv_norm_kind kind;
    qkv_tensor *gain, *bias; /* bias NULL: none; an RMS norm has none */
    float eps;
} qkv_norm;
QKV_API qkv_norm qkv_norm_new(qkv_params *p, const char *name, int64_t dim); /* a layer norm */
QKV_API qkv_norm qkv_rms_norm_new(qkv_params *p, const char *name, int64_t dim);
QKV_API qkv_tensor *qkv_norm_forward(const qkv_norm *n, qkv_tensor *x);

/* ---- multi-head attention: Concat(head_1..head_h) W^O, head_i = Attention(x W_i^Q, y W_i^K, y W_i^V) ---- */
typedef struct qkv_mha_opts {
    size_t size;
    int64_t dim; /* of the queries and of the result */
    int64_t heads;
    int64_t kv_heads; /* 0 means heads; must divide heads */
    int64_t kv_dim;   /* of the keys' and values' source; 0 means dim */
    int64_t d_k, d_v; /* a head's width; 0 means dim/heads, which must then be whole; d_v 0 means d_k */
    int no_bias;
    int qkv_bias;  /* with no_bias: the projections of queries, keys and values have one all the same */
    float dropout; /* on the weights */
} qkv_mha_opts;
typedef struct qkv_mha {
    qkv_linear q, k, v, out;
    int64_t heads, kv_heads;
    float dropout;
} qkv_mha;
QKV_API qkv_mha qkv_mha_new(qkv_params *p, const char *name, int64_t dim, int64_t heads);
QKV_API qkv_mha qkv_mha_new_with(qkv_params *p, const char *name, const qkv_mha_opts *opts);

/* Queries from x (B,Tq,dim), keys and values from y (B,Tk,kv_dim)   ->   (B,Tq,dim). Self-attention: y is x. */
QKV_API qkv_tensor *qkv_mha_forward(const qkv_mha *m, qkv_tensor *x, qkv_tensor *y, qkv_mask mask);

/* ---- feed-forward: f(x W1^T + b1) W2^T + b2, or, gated, (f(x Wg^T + bg) (x W1^T + b1)) W2^T + b2 ---- */
typedef enum qkv_activation {
    QKV_ACTIVATION_RELU,
    QKV_ACTIVATION_GELU,
    QKV_ACTIVATION_GELU_TANH,
    QKV_ACTIVATION_SILU,
    QKV_ACTIVATION_SILU_GATED,
    QKV_ACTIVATION_GELU_GATED,
    QKV_ACTIVATION_GELU_TANH_GATED
} qkv_activation;
typedef struct qkv_ffn {
    qkv_linear in, gate, out; /* gate only when gated */
    qkv_activation activation;
    float dropout; /* between the two layers */
} qkv_ffn;
typedef struct qkv_ffn_opts {
    size_t size;
    int64_t dim, d_ff;
    qkv_activation activation;
    int no_bias;
    float dropout;
} qkv_ffn_opts;
QKV_API qkv_ffn qkv_ffn_new(qkv_params *p, const char *name, const qkv_ffn_opts *opts);
QKV_API qkv_tensor *qkv_ffn_forward(const qkv_ffn *f, qkv_tensor *x);

/* ---- positions ---- */

/* PE(pos, 2i) = sin(pos / 10000^(2i/dim)), PE(pos, 2i+1) = cos(the same), for pos = first .. first+length-1, a constant
 * (length, dim). halves != 0: all sines, then all cosines, as the published Marian models have it. */
QKV_API qkv_tensor *qkv_sinusoid(qkv_tape *t, int64_t first, int64_t length, int64_t dim, int halves);

/* Learned positions: a table (longest, dim), normal with standard deviation dim^-0.5. */
typedef struct qkv_positions {
    qkv_tensor *weight;
} qkv_positions;
QKV_API qkv_positions qkv_positions_new(qkv_params *p, const char *name, int64_t max_positions, int64_t dim);
/* Rows first .. first+length-1   ->   (length, dim). USAGE when that is past the table. */
QKV_API qkv_tensor *qkv_positions_forward(const qkv_positions *pos, qkv_tape *t, int64_t first, int64_t length);

/* ---- the Transformer ----
 * One model, described by its options: the paper's with an encoder and a decoder, one of the two alone, and the variants that
 * published models use. Zero is the paper's choice, but for the sizes, which must be given. <qkv/transformer.def> lists the
 * options for programs that read, write or show them. */
typedef enum qkv_position_kind {
    QKV_POSITION_SINUSOID,        /* sine and cosine in turn, as in the paper */
    QKV_POSITION_SINUSOID_HALVES, /* all sines, then all cosines */
    QKV_POSITION_LEARNED,         /* a table of `max_positions` rows, for the encoder and for the decoder */
    QKV_POSITION_ROTARY,          /* in every self-attention instead of added to the embedding; the half-split layout */
    QKV_POSITION_NONE,
    QKV_POSITION_SINUSOID_FAIRSEQ /* in halves, with 10000^(-i/(dim/2-1)) in place of 10000^(-i/(dim/2)) */
} qkv_position_kind;

/* How hidden states become one vector a row: over the row's real tokens the mean, the first, the last, or a weighted mean whose
 * weights are an attention with a learned query. */
typedef enum qkv_pooling { QKV_POOLING_MEAN, QKV_POOLING_FIRST, QKV_POOLING_LAST, QKV_POOLING_ATTENTION } qkv_pooling;

/* What lies between the pooled vector and the classifier: nothing, f(x W^T + b), W (dim, dim), or the model's head. */
typedef enum qkv_pooler { QKV_POOLER_NONE, QKV_POOLER_TANH, QKV_POOLER_RELU, QKV_POOLER_HEAD, QKV_POOLER_GELU } qkv_pooler;

/* What the classes are of: a text as a whole; each of its tokens; the two ends of a span in it, the first class its first
 * token's, the second its last one's. */
typedef enum qkv_classes_of { QKV_CLASSES_OF_TEXTS, QKV_CLASSES_OF_TOKENS, QKV_CLASSES_OF_SPANS } qkv_classes_of;

/* How frequencies are scaled, f_i = base^(-2i/D), by rotary_factor and, but for LINEAR, by how often they turn in rotary_length
 * positions, so that longer texts than those can be read. */
typedef enum qkv_rotary_scaling {
    QKV_ROTARY_LLAMA3, /* at least rotary_high turns: as they are; at most rotary_low: divided; else in between, by turns */
    QKV_ROTARY_LINEAR, /* all are divided */
    QKV_ROTARY_YARN,   /* as LLAMA3, but in between by the number i of the frequency (Peng et al. 2023) */
    QKV_ROTARY_LONG    /* LongRoPE: each is divided by a number of its own, which a published model's files have and options
                          cannot hold: a model made of options alone has none; rotary_factor is 0 */
} qkv_rotary_scaling;

typedef struct qkv_config {
    size_t size;
    int64_t vocabulary;                 /* of the source, and of the target unless that has its own */
    int64_t target_vocabulary;          /* 0: source and target share one vocabulary and one table */
    int encoder_layers, decoder_layers; /* at least one of them not 0; a decoder without an encoder has no cross-attention */
    int64_t dim, heads, d_ff;           /* d_model, h, d_ff */
    int64_t kv_heads, d_k;              /* 0 means heads, and dim/heads */
    int pre_norm;                       /* x + f(norm(x)), and a norm at the end, instead of norm(x + f(x)) */
    qkv_norm_kind norm;
    float norm_eps; /* 0 means 1e-5 */
    qkv_activation activation;
    qkv_position_kind positions;
    int64_t max_positions;  /* of learned positions */
    int64_t first_position; /* of the first token */
    float rotary_base;      /* 0 means 10000 */
    int no_bias;            /* in attention and feed-forward */
    int untied;             /* the layer before the softmax has weights of its own */
    int unscaled;           /* embeddings are not multiplied by sqrt(dim) */
    float dropout;          /* of every sub-layer's result and of embedding + position */
    float attention_dropout, ffn_dropout;
    int64_t classes; /* of a classifier over the pooled hidden states; 0: none */
    qkv_pooling pooling;
    qkv_pooler pooler;
    int embed_norm;      /* a norm of embedding + position, before dropout */
    int64_t token_types; /* of an encoder's tokens, such as first and second text: each has a vector that is added; 0: none */
    int head;            /* before the output layer: norm(f(x W^T + b)), f the activation, of a gated one the gate's */
    int output_bias;     /* the output layer, tied or not, has a bias */
    int qkv_bias;        /* with no_bias: queries, keys and values have one all the same */
    /* rotary_factor not 0: rotary frequencies are scaled, see qkv_rotary_scaling. */
    float rotary_factor, rotary_low, rotary_high;
    int64_t rotary_length;
    int no_source_eos; /* of text, not of numbers: the encoder of a translator reads a source without </s> */
    int no_norm_bias;  /* layer norms have a gain alone */
    int no_first_norm; /* with pre_norm: the first layer's attention reads the embeddings as they are */
    int no_head_bias;
    /* Self-attention with a window: a token sees only those less than `window` places away; 0: all. Layers before `window_from`
     * have none, and of every `full_every` layers (0: none) number `full_at`, from 0 on, has none. */
    int64_t window;
    int window_from, full_every, full_at;
    float local_rotary_base;           /* of layers with a window, not scaled; 0: they turn as the others do */
    qkv_rotary_scaling rotary_scaling; /* with rotary_factor */
    float rotary_scale;                /* what turns is multiplied by it; 0 means 1 */
    int64_t rotary_width;              /* so many numbers of a head turn, the first ones; 0: all */
    int qk_norm;                       /* RMS norms of every head's queries and keys, before they turn */
    int post_norm;                     /* with pre_norm: each sub-layer's result has a norm before it is added */
    int parallel;                      /* with pre_norm: attention and feed-forward read the same x, both are added to it */
    float attention_scale;             /* of scores; 0 means 1/sqrt(d_k) */
    float score_cap, logit_cap;        /* c not 0: x becomes c tanh(x / c): scaled scores of self-attention; logits */
    /* Not 0: the scores of self-attention have a learned bias by the distance of key and query, (relative_buckets, heads) for the
     * encoder and for the decoder, shared by their layers: near distances have a bucket each, farther ones share them, up to
     * relative_distance (0 means 128), from which on there is one, as in T5. An encoder has half of them for keys to the left. */
    int64_t relative_buckets, relative_distance;
    int scaled_output;         /* hidden states are divided by sqrt(dim) before the output layer, or before its head */
    int64_t embed_dim;         /* of an encoder's tables and of their norm, which a linear layer brings to dim; 0 means dim */
    int shared_layers;         /* all layers of a stack have the weights of its first */
    qkv_classes_of classes_of; /* of an encoder alone; with SPANS classes is 2 */
    int layer_relative;        /* with relative_buckets: each layer has a bias of its own, as in UMT5 */
    /* Not 0: naive Bayes on tokens and on pairs of tokens adds to the logits of a classifier of texts (src/nn/ngrams.h has the
     * formula). Pairs are hashed into so many slots. For an encoder with 2 classes or more. */
    int64_t ngrams;
} qkv_config;

typedef struct qkv_transformer qkv_transformer;

/* Adds the weights to p and gives the model, which p owns too. NULL on error, which stays in p: USAGE for sizes that do not
 * fit, MEMORY. Weights are named "embed.weight", "encoder.0.self.q.weight", "decoder.3.cross_norm.bias", and so on. */
QKV_API qkv_transformer *qkv_transformer_new(qkv_params *p, const qkv_config *opts);
/* As the library has them: of a copy, set its size to that of the copy. */
QKV_API const qkv_config *qkv_transformer_options(const qkv_transformer *m);

/* How many tokens a sequence may have: `max_positions` where positions are learned; 0: they do not end. */
QKV_API int64_t qkv_transformer_max_positions(const qkv_config *o);

/* Options of the paper's table 3, "base" and "big", and of smaller models that train on a laptop, "tiny" and "small", for the
 * vocabulary given; *opts has its size, or 0. UNSUPPORTED for another name, USAGE for NULL. */
QKV_API qkv_status qkv_config_preset(const char *name, int64_t vocabulary, qkv_config *opts);

/* ids (batch, length), with `lengths` real tokens in each row (NULL: all are)   ->   (batch, length, dim)
 * USAGE without an encoder. */
QKV_API qkv_tensor *qkv_transformer_encode(const qkv_transformer *m, qkv_tape *t, const int32_t *ids, int64_t batch,
                                           int64_t length, const int32_t *lengths);

/* The same with the type of each token, (batch, length); NULL: all are of type 0. USAGE for types in a model that has none. */
QKV_API qkv_tensor *qkv_transformer_encode_typed(const qkv_transformer *m, qkv_tape *t, const int32_t *ids,
                                                 const int32_t *types, int64_t batch, int64_t length, const int32_t *lengths);

/* The decoder over ids (batch, length), each of which sees itself and those before it. memory (batch, Tk, dim) with
 * memory_lengths is what the encoder gave; NULL for a decoder alone   ->   (batch, length, dim). USAGE without a decoder. */
QKV_API qkv_tensor *qkv_transformer_decode(const qkv_transformer *m, qkv_tape *t, const int32_t *ids, int64_t batch,
                                           int64_t length, const int32_t *lengths, qkv_tensor *memory,
                                           const int32_t *memory_lengths);

/* hidden (..., dim)   ->   (..., vocabulary of the target): the head, if there is one, and the layer before the softmax */
QKV_API qkv_tensor *qkv_transformer_logits(const qkv_transformer *m, qkv_tensor *hidden);

/* hidden (batch, length, dim) with `lengths` real tokens in each row (NULL: all are)   ->   (batch, dim). USAGE for a row
 * without tokens, and for attention pooling where the model has no weights for it. */
QKV_API qkv_tensor *qkv_transformer_pool(const qkv_transformer *m, qkv_tensor *hidden, const int32_t *lengths, qkv_pooling how);

/* The classifier: pooled as the options say, the pooler, dropout, a linear layer   ->   (batch, classes). USAGE without one. With
 * ngrams this is attention's part alone: qkv_classify_batch() of <qkv/task.h> has the ids that the counts need. */
QKV_API qkv_tensor *qkv_transformer_classify(const qkv_transformer *m, qkv_tensor *hidden, const int32_t *lengths);

/* The classifier of a model whose classes_of are tokens or spans: hidden (..., dim), the head where the pooler is that,
 * dropout, a linear layer   ->   (..., classes). USAGE without one. */
QKV_API qkv_tensor *qkv_transformer_tag(const qkv_transformer *m, qkv_tensor *hidden);

/* ---- attention in a model, and what can be changed in it while it runs ---- */

/* Who attends to what: QKV_ATTENTION_ENCODER, and so on, each with its name. */
#define QKV_ATTENTION_LIST(A)                                                                    \
    A(ENCODER, "encoder") /* source to source */                                                 \
    A(DECODER, "decoder") /* what the decoder has read to itself; nothing to what comes later */ \
    A(CROSS, "cross")     /* what the decoder chooses to the source */

#define QKV_ATTENTION_ENUM(constant, name) QKV_ATTENTION_##constant,
typedef enum qkv_attention_kind { QKV_ATTENTION_LIST(QKV_ATTENTION_ENUM) QKV_ATTENTION_KINDS } qkv_attention_kind;
#undef QKV_ATTENTION_ENUM

/* What is done to a model: QKV_EDIT_ABLATE_HEAD, and so on, each with the name of the option that does it. */
#define QKV_EDIT_LIST(T)                                                                                                     \
    T(ABLATE_HEAD, "without-head")   /* kind, layer, head: the head's output is zeros before W_O; its weights stay seen */   \
    T(ABLATE_LAYER, "without-layer") /* kind (ENCODER or DECODER: which stack), layer: states pass it as they are */         \
    T(HIDE_KEY, "hide-key")          /* kind, place: no query of any layer sees this key */                                  \
    T(SET_POSITION, "move")       /* kind (ENCODER or DECODER), place, other: the token has the position of place `other` */ \
    T(ROW, "edit-row")            /* kind, layer, head, place of the query, row, n_row: its weights are these */             \
    T(SWAP_VALUES, "swap-values") /* kind, layer (-1: every), place, other: the values of the two keys change places */      \
    T(ZERO_VALUE, "zero-value")   /* kind, layer (-1: every), place: the value of this key is zeros */

#define QKV_EDIT_ENUM(constant, name) QKV_EDIT_##constant,
typedef enum qkv_edit_kind { QKV_EDIT_LIST(QKV_EDIT_ENUM) QKV_EDIT_KINDS } qkv_edit_kind;
#undef QKV_EDIT_ENUM

/* One change; members that a change does not name are not read. Layers, heads and places count from 0; a place is that of a
 * token in its own text, the same in every row of a batch; one that a text does not have changes nothing there. */
typedef struct qkv_edit {
    qkv_edit_kind what;
    qkv_attention_kind kind;
    int layer, head;
    int64_t place, other;
    const float *row; /* n_row weights, of the first keys; the others have 0. Finite and not negative; they need not sum to 1:
                         what they are multiplied with is added up as they are. Of DECODER at most place + 1 of them: a query
                         sees nothing to its right */
    int64_t n_row;
    void *reserved[2];
} qkv_edit;

/* ---- masks made of ids ---- */

/* The additive form of the causal mask: (n, n), 0 on and below the diagonal, -inf above. */
QKV_API qkv_tensor *qkv_causal_mask(qkv_tape *t, int64_t n);

/* keep[b*length + j] = 1 where ids is not pad; for qkv_mask.keep with keep_shape {batch, 1, 1, length}. */
QKV_API void qkv_padding_keep(const int32_t *ids, int64_t batch, int64_t length, int32_t pad, uint8_t *keep);

/* lengths[b] = one more than the last place in row b that is not pad; for qkv_mask.key_lengths. */
QKV_API void qkv_padding_lengths(const int32_t *ids, int64_t batch, int64_t length, int32_t pad, int32_t *lengths);

#ifdef __cplusplus
}
#endif
#endif
