/* qkv/nn.h: parameters and layers.
 *
 * A layer is a small struct of pointers to weights that params own. Copy and pass it freely; do not free it. If creating a
 * layer fails (memory, a duplicate name, a bad size), its weights are NULL, qkv_params_status() has the error, and forward
 * gives NULL.
 *
 * Threads: any number of threads may read params, and the layers and models in them, each on a separate tape. Adding, changing
 * or copying weights needs exclusive access. So does backward, which adds to their gradients. */
#ifndef QKV_NN_H
#define QKV_NN_H

#include <qkv/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- params: named weights and their gradients ----
 * The weights of a loaded model are mapped from its files and have no gradients. qkv_params_add(), qkv_params_load(),
 * qkv_params_clip_grad() and an optimizer copy them to memory as float32, with gradients. QKV_DTYPE_F32 does so at load. */
typedef struct qkv_params qkv_params;

/* Creates empty params; seed determines the initial weights. NULL if out of memory or if QKV_ISA is unusable. The caller owns
 * them. */
QKV_API qkv_params *qkv_params_new(uint64_t seed);
QKV_API void qkv_params_free(qkv_params *p);

typedef enum qkv_init {
    QKV_INIT_ZERO,
    QKV_INIT_ONE,
    QKV_INIT_XAVIER, /* uniform in +-scale * sqrt(6 / (fan_in + fan_out)); a weight is (fan_out, fan_in) */
    QKV_INIT_NORMAL  /* mean 0, standard deviation scale */
} qkv_init;

/* Adds a weight. Its initial values depend only on the params' seed and on its name, not on the weights added before.
 * scale 0 means 1. NULL on error, which also stays in the params: USAGE for a bad shape or a duplicate name, MEMORY.
 * The tensor's address is stable. Its values and gradients move when weights are added: call qkv_tensor_data() again. */
QKV_API qkv_tensor *qkv_params_add(qkv_params *p, const char *name, int ndim, const int64_t *shape, qkv_init init, float scale);

/* The first error of qkv_params_add() or of a layer created in p. Restores its message to qkv_error(). For NULL params: the
 * error of their creation. */
QKV_API qkv_status qkv_params_status(const qkv_params *p);

QKV_API int64_t qkv_params_count(const qkv_params *p); /* elements in all weights */

QKV_API int qkv_params_size(const qkv_params *p);                           /* number of weights */
QKV_API qkv_tensor *qkv_params_at(const qkv_params *p, int i);              /* the i-th weight; NULL out of range */
QKV_API const char *qkv_params_name(const qkv_params *p, int i);            /* of the i-th weight; owned by p */
QKV_API qkv_tensor *qkv_params_find(const qkv_params *p, const char *name); /* NULL if not found */
QKV_API void qkv_params_zero_grad(qkv_params *p); /* sets all gradients to 0; an optimizer step does too */

/* Scales all gradients by max_norm / norm if their Euclidean norm exceeds max_norm. *norm (may be NULL) gets the norm before
 * scaling. NUMERIC if the norm is not finite: nothing is scaled. USAGE unless max_norm > 0; MEMORY. */
QKV_API qkv_status qkv_params_clip_grad(qkv_params *p, float max_norm, float *norm);

/* Writes every weight as float32 to a safetensors file, under its name. Atomic: all or nothing. IO, MEMORY. */
QKV_API qkv_status qkv_params_save(const qkv_params *p, const char *path);

/* Reads every weight of p from a safetensors file (F64, F32, F16 or BF16, converted to float32). On any error no weight
 * changes. FORMAT for a malformed file, and for missing weights, unknown weights and wrong shapes (the message lists them all);
 * UNSUPPORTED for other types; IO; MEMORY. */
QKV_API qkv_status qkv_params_load(qkv_params *p, const char *path);

/* ---- linear: y = x W^T + b, W (out, in) Xavier-uniform, b zero ---- */
typedef struct qkv_linear {
    qkv_tensor *weight, *bias; /* bias: NULL if none */
} qkv_linear;
/* Weights "name.weight" and, with has_bias, "name.bias". */
QKV_API qkv_linear qkv_linear_new(qkv_params *p, const char *name, int64_t in, int64_t out, int has_bias);
/* x (..., in)   ->   (..., out) */
QKV_API qkv_tensor *qkv_linear_forward(const qkv_linear *l, qkv_tensor *x);

/* ---- embedding: a table (vocabulary, dim), normal, standard deviation dim^-0.5 ---- */
typedef struct qkv_embedding {
    qkv_tensor *weight;
} qkv_embedding;
QKV_API qkv_embedding qkv_embedding_new(qkv_params *p, const char *name, int64_t vocabulary, int64_t dim);
/* ids (batch, length)   ->   (batch, length, dim) */
QKV_API qkv_tensor *qkv_embedding_forward(const qkv_embedding *e, qkv_tape *t, const int32_t *ids, int64_t batch,
                                          int64_t length);

/* ---- norm: gain one, bias zero, eps 1e-5 (writable); only QKV_NORM_LAYER has a bias ---- */
typedef enum qkv_norm_kind { QKV_NORM_LAYER, QKV_NORM_RMS, QKV_NORM_LAYER_NO_BIAS } qkv_norm_kind;
typedef struct qkv_norm {
    qkv_norm_kind kind;
    qkv_tensor *gain, *bias; /* bias: NULL unless QKV_NORM_LAYER */
    float eps;
} qkv_norm;
QKV_API qkv_norm qkv_norm_new(qkv_params *p, const char *name, int64_t dim, qkv_norm_kind kind);
/* qkv_layer_norm() or qkv_rms_norm() of x (..., dim) */
QKV_API qkv_tensor *qkv_norm_forward(const qkv_norm *n, qkv_tensor *x);

/* ---- multi-head attention: Concat(head_1..head_h) W^O, head_i = Attention(x W_i^Q, y W_i^K, y W_i^V) ---- */
typedef struct qkv_mha_opts {
    size_t size;
    int64_t dim; /* of queries and result */
    int64_t heads;
    int64_t kv_heads; /* 0 means heads; must divide heads */
    int64_t kv_dim;   /* of the input of keys and values; 0 means dim */
    int64_t d_k, d_v; /* head width; 0 means dim/heads, which must be whole; d_v 0 means d_k */
    int no_bias;
    int qkv_bias;  /* with no_bias: the query, key and value projections still have a bias */
    float dropout; /* on the weights */
} qkv_mha_opts;
typedef struct qkv_mha {
    qkv_linear q, k, v, out;
    int64_t heads, kv_heads;
    float dropout;
} qkv_mha;
/* Weights "name.q.weight" to "name.out.bias". Incompatible sizes are USAGE in p. */
QKV_API qkv_mha qkv_mha_new(qkv_params *p, const char *name, const qkv_mha_opts *opts);

/* Queries from x (B,Tq,dim), keys and values from y (B,Tk,kv_dim)   ->   (B,Tq,dim). Self-attention: y = x. For the mask see
 * qkv_attention(). */
QKV_API qkv_tensor *qkv_mha_forward(const qkv_mha *m, qkv_tensor *x, qkv_tensor *y, const qkv_mask *mask);

/* ---- feed-forward: f(x W1^T + b1) W2^T + b2; gated: (f(x Wg^T + bg) (x W1^T + b1)) W2^T + b2 ---- */
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
    qkv_linear in, gate, out; /* gate: gated activations only */
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
/* Weights "name.in.weight", "name.gate.weight" (gated only), to "name.out.bias". */
QKV_API qkv_ffn qkv_ffn_new(qkv_params *p, const char *name, const qkv_ffn_opts *opts);
/* x (..., dim)   ->   (..., dim) */
QKV_API qkv_tensor *qkv_ffn_forward(const qkv_ffn *f, qkv_tensor *x);

/* ---- positions ---- */
typedef enum qkv_position_kind {
    QKV_POSITION_SINUSOID,        /* alternating sine and cosine, as in the paper */
    QKV_POSITION_SINUSOID_HALVES, /* all sines, then all cosines */
    QKV_POSITION_LEARNED,         /* a table of `max_positions` rows, each for the encoder and the decoder */
    QKV_POSITION_ROPE,            /* in every self-attention, not added to the embedding; the half-split layout */
    QKV_POSITION_NONE,
    QKV_POSITION_SINUSOID_FAIRSEQ /* in halves, with 10000^(-i/(dim/2-1)) instead of 10000^(-i/(dim/2)) */
} qkv_position_kind;

/* PE(pos, 2i) = sin(pos / 10000^(2i/dim)), PE(pos, 2i+1) = cos(the same), for pos = first .. first+length-1. The result is a
 * constant (length, dim). QKV_POSITION_SINUSOID_HALVES and _FAIRSEQ put all sines before all cosines. Other kinds: USAGE. */
QKV_API qkv_tensor *qkv_sinusoid(qkv_tape *t, int64_t first, int64_t length, int64_t dim, qkv_position_kind kind);

#ifdef __cplusplus
}
#endif
#endif
