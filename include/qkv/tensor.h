/* qkv/tensor.h: tensors, the tape, and operations with gradients.
 *
 * A result lives on the tape of its operands; weights (which live in params) take the tape of the other operand, and an
 * operation whose operands are all weights needs qkv_on(tape, weight) around one of them. Operands of two tapes: USAGE.
 * Shape errors stay on the tape: see qkv_tape_status(). Integer operands and masks are read during the call only
 * (what backward needs is copied). "(..., n)" is any number of leading dimensions.
 *
 * Threads: a tape and its tensors are for one thread at a time; any number of tapes may be used at once. */
#ifndef QKV_TENSOR_H
#define QKV_TENSOR_H

#include <qkv/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QKV_MAX_DIMS 6

typedef struct qkv_tensor qkv_tensor;
typedef struct qkv_tape qkv_tape;

/* ---- looking at a tensor (all take NULL and then give 0 or NULL) ---- */
QKV_API int qkv_tensor_ndim(const qkv_tensor *x);
QKV_API int64_t qkv_tensor_dim(const qkv_tensor *x, int i);   /* i from 0, or from -1 backwards; 0 when out of range */
QKV_API const int64_t *qkv_tensor_shape(const qkv_tensor *x); /* qkv_tensor_ndim(x) numbers */
QKV_API int64_t qkv_tensor_count(const qkv_tensor *x);        /* product of the dimensions */
QKV_API const float *qkv_tensor_data(const qkv_tensor *x); /* qkv_tensor_count(x) floats; NULL for a weight of another type */
QKV_API float qkv_tensor_item(const qkv_tensor *x);        /* the one value of a tensor of count 1; NaN otherwise */

/* How the numbers of a tensor are kept: all are F32 but for matrices of a model that was loaded so. */
typedef enum qkv_dtype {
    QKV_DTYPE_STORED, /* as a model's files have it: an option of loading, of no tensor */
    QKV_DTYPE_INT8,
    QKV_DTYPE_INT4,
    QKV_DTYPE_BF16,
    QKV_DTYPE_F32,
    QKV_DTYPE_F16
} qkv_dtype;
QKV_API qkv_dtype qkv_tensor_dtype(const qkv_tensor *x); /* QKV_DTYPE_STORED for NULL */

/* Its numbers in that type, row by row: qkv_tensor_count(x) of them, in INT8 and INT4 without their scales, in the layout that
 * docs/published.md has for files. They stay where they are until the tape is reset, or weights are added or copied. */
QKV_API const void *qkv_tensor_bytes(const qkv_tensor *x);

/* The values of qkv_tensor_data(), to be written. NULL for the weights of a model that was loaded: they lie in its files, and the
 * library may keep copies of them in another order. A model that was loaded with QKV_DTYPE_F32, or trained since, has them in
 * memory. */
QKV_API float *qkv_tensor_data_mut(qkv_tensor *x);

/* The gradient of the last qkv_backward(), qkv_tensor_count(x) floats: for weights, for inputs made with qkv_variable(), and for
 * every tensor when the tape has keep_grads. NULL where there is none. */
QKV_API const float *qkv_tensor_grad(const qkv_tensor *x);

/* ---- the tape ---- */
typedef struct qkv_tape_opts {
    size_t size;
    int train;            /* 1: dropout is on */
    int inference;        /* 1: record nothing for backward; for running a model */
    int keep_grads;       /* 1: keep the gradients of intermediate results too */
    int overwrite_values; /* 1: backward may overwrite the values of results (not of weights, variables, the loss): less memory */
    int keep_attention;   /* 1: every attention also keeps its weights, see qkv_tape_attention() */
    int keep_hidden;      /* 1: a Transformer keeps its hidden states, see qkv_tape_hidden() */
    int keep_projections; /* 1: every multi-head attention keeps what it computes on the way, see qkv_tape_projections() */
    uint64_t seed, step;  /* of dropout; the same seed and step give the same bits; a run that is resumed begins at its step */
} qkv_tape_opts;

/* A new tape; NULL opts means all zero. NULL when memory is out. You own it. */
QKV_API qkv_tape *qkv_tape_new(const qkv_tape_opts *opts);
QKV_API void qkv_tape_free(qkv_tape *t);

/* Forgets every tensor of this tape and its error, keeps the memory, and counts one step (for dropout's random numbers). */
QKV_API void qkv_tape_reset(qkv_tape *t);

/* The step: that of the options, and one more for each reset. A tensor is valid at the step that made it, not at another. */
QKV_API uint64_t qkv_tape_step(const qkv_tape *t);

/* The first error since the tape was new or reset; its sentence is put back into qkv_error().
 * For NULL, the error that made it NULL. */
QKV_API qkv_status qkv_tape_status(const qkv_tape *t);

/* The weights kept by the i-th attention since the last reset, (B,H,Tq,Tk); NULL after the last. */
QKV_API qkv_tensor *qkv_tape_attention(const qkv_tape *t, int i);

/* The i-th hidden states kept since the last reset, (B,T,dim); NULL after the last. A stack of n layers keeps n + 1: what goes
 * into the first layer, and what comes out of each; the last one after the norm at the end, where there is one. */
QKV_API qkv_tensor *qkv_tape_hidden(const qkv_tape *t, int i);

/* ---- tensors made by hand; the values are copied; data NULL means zeros ----
 * A constant gets no gradient, a variable gets one. USAGE on the tape for a negative dimension or more than
 * QKV_MAX_DIMS, LIMIT when the product overflows. */
QKV_API qkv_tensor *qkv_constant(qkv_tape *t, int ndim, const int64_t *shape, const float *data);
QKV_API qkv_tensor *qkv_variable(qkv_tape *t, int ndim, const int64_t *shape, const float *data);

/* A shape reads well as QKV_SHAPE(2, 3): it gives the count and the array, which in C++ lives to the end of the call. */
#ifdef __cplusplus
} /* a constructor template has no C linkage */
struct qkv_dims {
    int ndim;
    int64_t dims[QKV_MAX_DIMS];
    template <class... N> explicit qkv_dims(N... n) : ndim((int)sizeof...(n)), dims{ (int64_t)n... } {}
    const int64_t *data() const { return dims; }
};
extern "C" {
#define QKV_SHAPE(...) (qkv_dims(__VA_ARGS__).ndim), (qkv_dims(__VA_ARGS__).data())
#else
#define QKV_SHAPE(...) \
    (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[]) { __VA_ARGS__ }
#endif

/* Adds d loss / d x to the gradient of every tensor that loss was computed from. Gradients of weights add up over calls:
 * qkv_params_zero_grad() or an optimizer's step clears them. loss must have count 1.
 * Gives the tape's first error if there is one, and changes no gradient then; for NULL, the error that made it NULL.
 * MEMORY when it runs out half-way: the gradients are incomplete then, zero them. */
QKV_API qkv_status qkv_backward(qkv_tensor *loss);

/* ---- operations, each with an exact backward ---- */

/* x itself, on tape t: the same values and the same gradient. */
QKV_API qkv_tensor *qkv_on(qkv_tape *t, qkv_tensor *x);

/* ---- products ---- */

/* y = x w^T + b.   x (..., in)   w (out, in)   b (out) or NULL   ->   y (..., out)
 * A row of y is the same bits whatever the other rows and however many there are. */
QKV_API qkv_tensor *qkv_affine(qkv_tensor *x, qkv_tensor *w, qkv_tensor *b);

/* y = op(a) op(b), op(m) = m or its transpose in the last two dimensions.
 *   a (..., M, K)   b (..., K, N)   ->   y (..., M, N);   leading dimensions equal, or b has none (then b serves all) */
enum { QKV_TRANSPOSE_A = 1, QKV_TRANSPOSE_B = 2 };
QKV_API qkv_tensor *qkv_matmul(qkv_tensor *a, qkv_tensor *b, unsigned flags);

/* y[i, :] = table[ids[i], :].   table (V, D)   ids: the product of shape[0..ndim-1] numbers   ->   y (shape..., D)
 * An id outside 0..V-1: USAGE, with its place. */
QKV_API qkv_tensor *qkv_gather(qkv_tape *t, qkv_tensor *table, const int32_t *ids, int ndim, const int64_t *shape);

/* ---- element by element; a and b broadcast as in numpy: aligned at the last dimension, 1 stretches ---- */
QKV_API qkv_tensor *qkv_add(qkv_tensor *a, qkv_tensor *b);
QKV_API qkv_tensor *qkv_sub(qkv_tensor *a, qkv_tensor *b);
QKV_API qkv_tensor *qkv_mul(qkv_tensor *a, qkv_tensor *b);
QKV_API qkv_tensor *qkv_scale(qkv_tensor *x, float factor); /* factor * x */

QKV_API qkv_tensor *qkv_relu(qkv_tensor *x);      /* max(0, x) */
QKV_API qkv_tensor *qkv_gelu(qkv_tensor *x);      /* x Phi(x), Phi the normal distribution (erf form) */
QKV_API qkv_tensor *qkv_gelu_tanh(qkv_tensor *x); /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
QKV_API qkv_tensor *qkv_silu(qkv_tensor *x);      /* x sigmoid(x) */
QKV_API qkv_tensor *qkv_tanh(qkv_tensor *x);
QKV_API qkv_tensor *qkv_sigmoid(qkv_tensor *x); /* 1 / (1 + exp(-x)) */

/* ---- along the last dimension: x (..., n), n >= 1 ---- */
QKV_API qkv_tensor *qkv_softmax(qkv_tensor *x);     /* exp(x - max) / sum exp(x - max); a row of -inf alone gives zeros */
QKV_API qkv_tensor *qkv_log_softmax(qkv_tensor *x); /* x - max - log sum exp(x - max) */

/* (x - mean) / sqrt(var + eps) * gain + bias, var the biased variance; gain (n), bias (n) or NULL */
QKV_API qkv_tensor *qkv_layer_norm(qkv_tensor *x, qkv_tensor *gain, qkv_tensor *bias, float eps);

/* x / sqrt(mean(x^2) + eps) * gain; gain (n) */
QKV_API qkv_tensor *qkv_rms_norm(qkv_tensor *x, qkv_tensor *gain, float eps);

/* ---- positions ---- */

/* Rotary positions.  x (B, T, H*D) with H heads, D even: in every head, pair i turns by the angle pos * base^(-2i/D).
 * width: not 0: only the first `width` numbers of a head turn, by angles as if D were that; the others stay.
 * scale: not 0: what turns is also multiplied by it.
 * positions: B*T numbers, or NULL for 0..T-1 in every sequence. Pair i is (i, i + D/2), the half-split layout of the
 * published Llama files; with interleaved != 0 it is (2i, 2i+1), the layout of the original paper.
 * frequencies: D/2 numbers that replace base^(-2i/D), or NULL. */
typedef struct qkv_rope_opts {
    size_t size;
    int64_t heads; /* 0 means 1 */
    float base;    /* 0 means 10000 */
    int interleaved;
    const int32_t *positions;
    const float *frequencies;
    int64_t width;
    float scale;
} qkv_rope_opts;
QKV_API qkv_tensor *qkv_rope(qkv_tensor *x, const qkv_rope_opts *opts);

/* ---- dropout ----
 * In training, zeroes each value with probability p and multiplies the others by 1/(1-p); outside training, x itself.
 * 0 <= p < 1. The random numbers depend on the tape's seed and step and on which dropout of the step this is. */
QKV_API qkv_tensor *qkv_dropout(qkv_tensor *x, float p);

/* ---- shapes ---- */
QKV_API qkv_tensor *qkv_reshape(qkv_tensor *x, int ndim, const int64_t *shape); /* one dimension may be -1; shares x's memory */
QKV_API qkv_tensor *qkv_permute(qkv_tensor *x, const int *order);               /* y's dimension i is x's dimension order[i] */
QKV_API qkv_tensor *qkv_transpose(qkv_tensor *x, int i, int j); /* dimensions i and j change places; -1 is the last */
QKV_API qkv_tensor *qkv_slice(qkv_tensor *x, int dim, int64_t from, int64_t to); /* from <= index < to in one dimension */
QKV_API qkv_tensor *qkv_concat(int n, qkv_tensor *const *parts, int dim);        /* n >= 1; equal but for dim */

/* ---- sums ---- */
#define QKV_ALL_DIMS (-100)
QKV_API qkv_tensor *qkv_sum(qkv_tensor *x, int dim);  /* over one dimension, which disappears; QKV_ALL_DIMS gives shape () */
QKV_API qkv_tensor *qkv_mean(qkv_tensor *x, int dim); /* the same, divided by how many there are */

/* ---- losses; shape () ---- */

/* Cross-entropy of softmax(logits) against classes, averaged over the rows that count.
 *   logits (..., K); targets: one a row, 0..K-1, or QKV_IGNORE: the row has weight 0
 *   row loss = -(1-s) log p[target] - s/K sum_k log p[k],   loss = sum w_i loss_i / sum w_i,   s = label_smoothing, 0 <= s < 1
 * weights: one a row (>= 0, finite), or NULL for all 1. With no row that counts, the loss is 0 and so are the gradients.
 * A target outside 0..K-1: USAGE, with its place. opts NULL means all zero. */
#define QKV_IGNORE (-100)
typedef struct qkv_cross_entropy_opts {
    size_t size;
    float label_smoothing;
    const float *weights;
} qkv_cross_entropy_opts;
QKV_API qkv_tensor *qkv_cross_entropy(qkv_tensor *logits, const int32_t *targets, const qkv_cross_entropy_opts *opts);

/* mean of -(y log s + (1-y) log(1-s)), s = sigmoid(logits), y = target, from 0 to 1; equal shapes. The target is a constant: it
 * gets no gradient. */
QKV_API qkv_tensor *qkv_binary_cross_entropy(qkv_tensor *logits, qkv_tensor *target);

/* mean of (a - b)^2; equal shapes */
QKV_API qkv_tensor *qkv_mse(qkv_tensor *a, qkv_tensor *b);

/* ---- attention ---- */

/* What a query may see. All parts combine: a key is seen only if every part lets it be seen. Zero hides nothing.
 * Shapes are (B,H,Tq,Tk) where each may be 1 instead, which stretches. */
typedef struct qkv_mask {
    size_t size;
    int causal;                 /* query i sees keys 0 .. i + Tk - Tq */
    const int32_t *key_lengths; /* B numbers in 0..Tk: keys at or past the length are hidden */
    const uint8_t *keep;        /* 1: may be seen, 0: hidden */
    int64_t keep_shape[4];
    const float *bias; /* added to the scaled scores; -inf hides; NaN and +inf are errors */
    int64_t bias_shape[4];
} qkv_mask;

/* The causal mask, in C and in C++. */
static inline const qkv_mask *qkv_mask_causal(void)
{
    static const qkv_mask causal = { sizeof(qkv_mask), 1, NULL, NULL, { 0 }, NULL, { 0 } };
    return &causal;
}
#define QKV_CAUSAL (qkv_mask_causal())

typedef struct qkv_attention_opts {
    size_t size;
    int64_t heads;    /* not 0: q is (B,Tq,heads*Dk), k (B,Tk,kv_heads*Dk), v (B,Tk,kv_heads*Dv), y (B,Tq,heads*Dv) */
    int64_t kv_heads; /* 0 means heads */
    float scale;      /* of the scores; 0 means 1/sqrt(Dk), of additive attention 1 */
    float dropout;    /* on the weights, while the tape trains; 0 <= p < 1 */
    float softcap;    /* not 0: scaled scores s become cap tanh(s / cap), before the mask; without a bias, not additive */
    int64_t
        window; /* not 0: query i, at place i + Tk - Tq of the keys, sees only keys less than `window` places away; not additive */
    /* (H,Tq+Tk-1), if not NULL: relative_bias[h][j-i+Tq-1] joins scores * scale of query i and key j, as a bias does, which there
     * is none of then, nor a cap; not of additive attention */
    qkv_tensor *relative_bias;
    /* w (Dk), if not NULL: additive attention, score(i,j) = sum_d w_d tanh(q_id + k_jd); q and k are the projected W_q q, W_k k */
    qkv_tensor *additive;
    qkv_tensor **weights; /* out, if not NULL: softmax weights before dropout, (B,H,Tq,Tk), a constant */
    qkv_tensor **scores;  /* out, if not NULL: q k^T, no mask, (B,H,Tq,Tk), a constant */
    qkv_tensor **scaled;  /* out, if not NULL: scores * scale + bias, capped, hidden keys -inf, (B,H,Tq,Tk), a constant */
} qkv_attention_opts;

/* y = softmax(q k^T / sqrt(Dk) + bias) v, per head.
 *   q (B,H,Tq,Dk)   k (B,Hk,Tk,Dk)   v (B,Hk,Tk,Dv)   ->   y (B,H,Tq,Dv);   H is a multiple of Hk: query head h reads
 *   key head h / (H/Hk). Also q (T,D), k, v of 2 dimensions, and 3 (B,T,D): one head each.
 * A query that may see no key gives a row of zeros and passes no gradient. Memory grows with Tq + Tk, not with Tq*Tk, unless
 * weights or scores are asked for; asking changes no bit of y. mask NULL hides nothing, opts NULL means all zero. */
QKV_API qkv_tensor *qkv_attention(qkv_tensor *q, qkv_tensor *k, qkv_tensor *v, const qkv_mask *mask,
                                  const qkv_attention_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
