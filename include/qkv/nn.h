/* qkv/nn.h: weights and the layers made of them.
 *
 * A layer is a small struct of pointers to weights that params own: copy it, pass it, never free it. When making one
 * fails (memory, a name used twice, a bad size) its weights are NULL, qkv_params_status() tells, and forward gives NULL.
 *
 * Threads: params, with the layers and models made in them, are read by any number of threads, each computing on a tape of its
 * own; what adds, changes or copies weights, and a backward, which adds to their gradients, is for one thread, alone. */
#ifndef QKV_NN_H
#define QKV_NN_H

#include <qkv/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- params: every weight with its gradient, by name ----
 * The weights of a model that was loaded lie in its files, mapped, and have no gradients. qkv_params_add(), qkv_params_load(), a
 * clip of gradients and an optimizer copy them into memory as float32, with gradients; QKV_DTYPE_F32 does it at load. */
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
 * The tensor stays where it is; its values and gradients move when weights are added: ask qkv_tensor_data() again after that. */
QKV_API qkv_tensor *qkv_params_add(qkv_params *p, const char *name, int ndim, const int64_t *shape, qkv_init init, float scale);

/* The first error of a qkv_params_add() or of a layer made in p; its sentence is put back into qkv_error(). For NULL, the
 * error that made it NULL. */
QKV_API qkv_status qkv_params_status(const qkv_params *p);

QKV_API int64_t qkv_params_count(const qkv_params *p); /* numbers in all weights */

QKV_API int qkv_params_size(const qkv_params *p);                           /* how many weights */
QKV_API qkv_tensor *qkv_params_at(const qkv_params *p, int i);              /* the i-th weight; NULL out of range */
QKV_API const char *qkv_params_name(const qkv_params *p, int i);            /* of the i-th weight; p's */
QKV_API qkv_tensor *qkv_params_find(const qkv_params *p, const char *name); /* NULL when there is none */
QKV_API void qkv_params_zero_grad(qkv_params *p); /* all gradients become 0; an optimizer's step does it too */

/* Scales all gradients by max_norm / norm if their Euclidean norm is larger than max_norm; the norm before that goes to
 * *norm (may be NULL). NUMERIC, and nothing is scaled, when the norm is not finite; USAGE unless max_norm > 0; MEMORY. */
QKV_API qkv_status qkv_params_clip_grad(qkv_params *p, float max_norm, float *norm);

/* Writes every weight as float32 to a safetensors file, under its name: whole or not at all. IO, MEMORY. */
QKV_API qkv_status qkv_params_save(const qkv_params *p, const char *path);

/* Reads every weight of p from a safetensors file (F64, F32, F16 or BF16, turned into float32). All or nothing: on any error no
 * weight changes. FORMAT when the file breaks a rule of the format, or lacks a weight, has one that p lacks, or one of another
 * shape (the sentence names them all); UNSUPPORTED for other types; IO; MEMORY. */
QKV_API qkv_status qkv_params_load(qkv_params *p, const char *path);

/* ---- linear: y = x W^T + b, W (out, in) Xavier-uniform, b zero ---- */
typedef struct qkv_linear {
    qkv_tensor *weight, *bias; /* bias NULL: none */
} qkv_linear;
/* Weights "name.weight" and, with has_bias, "name.bias". */
QKV_API qkv_linear qkv_linear_new(qkv_params *p, const char *name, int64_t in, int64_t out, int has_bias);
/* x (..., in)   ->   (..., out) */
QKV_API qkv_tensor *qkv_linear_forward(const qkv_linear *l, qkv_tensor *x);

/* ---- embedding: a table (vocabulary, dim), normal with standard deviation dim^-0.5 ---- */
typedef struct qkv_embedding {
    qkv_tensor *weight;
} qkv_embedding;
QKV_API qkv_embedding qkv_embedding_new(qkv_params *p, const char *name, int64_t vocabulary, int64_t dim);
/* ids: batch*length numbers   ->   (batch, length, dim) */
QKV_API qkv_tensor *qkv_embedding_forward(const qkv_embedding *e, qkv_tape *t, const int32_t *ids, int64_t batch,
                                          int64_t length);

/* ---- norm: gain one, bias zero, eps 1e-5 unless changed; a layer norm has a bias, the others have none ---- */
typedef enum qkv_norm_kind { QKV_NORM_LAYER, QKV_NORM_RMS, QKV_NORM_LAYER_NO_BIAS } qkv_norm_kind;
typedef struct qkv_norm {
    qkv_norm_kind kind;
    qkv_tensor *gain, *bias; /* bias: of QKV_NORM_LAYER, else NULL */
    float eps;
} qkv_norm;
QKV_API qkv_norm qkv_norm_new(qkv_params *p, const char *name, int64_t dim, qkv_norm_kind kind);
/* qkv_layer_norm() or qkv_rms_norm() of x (..., dim) */
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
/* Weights "name.q.weight" to "name.out.bias". Sizes that do not fit together are USAGE in p. */
QKV_API qkv_mha qkv_mha_new(qkv_params *p, const char *name, const qkv_mha_opts *opts);

/* Queries from x (B,Tq,dim), keys and values from y (B,Tk,kv_dim)   ->   (B,Tq,dim). Self-attention: y is x. The mask is that of
 * qkv_attention(). */
QKV_API qkv_tensor *qkv_mha_forward(const qkv_mha *m, qkv_tensor *x, qkv_tensor *y, const qkv_mask *mask);

/* ---- feed-forward: f(x W1^T + b1) W2^T + b2, or, gated, (f(x Wg^T + bg) (x W1^T + b1)) W2^T + b2 ---- */
typedef enum qkv_activation {
    QKV_ACTIVATION_RELU,
    QKV_ACTIVATION_GELU,
    QKV_ACTIVATION_GELU_TANH,
    QKV_ACTIVATION_SILU,
    QKV_ACTIVATION_SWIGLU,
    QKV_ACTIVATION_GEGLU,
    QKV_ACTIVATION_GEGLU_TANH
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
/* Weights "name.in.weight", "name.gate.weight" where it is gated, to "name.out.bias". */
QKV_API qkv_ffn qkv_ffn_new(qkv_params *p, const char *name, const qkv_ffn_opts *opts);
/* x (..., dim)   ->   (..., dim) */
QKV_API qkv_tensor *qkv_ffn_forward(const qkv_ffn *f, qkv_tensor *x);

/* ---- positions ---- */
typedef enum qkv_position_kind {
    QKV_POSITION_SINUSOID,        /* sine and cosine in turn, as in the paper */
    QKV_POSITION_SINUSOID_HALVES, /* all sines, then all cosines */
    QKV_POSITION_LEARNED,         /* a table of `max_positions` rows, for the encoder and for the decoder */
    QKV_POSITION_ROTARY,          /* in every self-attention instead of added to the embedding; the half-split layout */
    QKV_POSITION_NONE,
    QKV_POSITION_SINUSOID_FAIRSEQ /* in halves, with 10000^(-i/(dim/2-1)) in place of 10000^(-i/(dim/2)) */
} qkv_position_kind;

/* PE(pos, 2i) = sin(pos / 10000^(2i/dim)), PE(pos, 2i+1) = cos(the same), for pos = first .. first+length-1, a constant
 * (length, dim), or all sines before all cosines, by one of the three kinds of sinusoids; USAGE for another. */
QKV_API qkv_tensor *qkv_sinusoid(qkv_tape *t, int64_t first, int64_t length, int64_t dim, qkv_position_kind kind);

#ifdef __cplusplus
}
#endif
#endif
