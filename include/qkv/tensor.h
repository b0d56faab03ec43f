/* qkv/tensor.h: tensors, the tape, and differentiable operations.
 *
 * A result belongs to the tape of its operands. Weights belong to params and adopt the tape of the other operand. If all
 * operands are weights, wrap one in qkv_on(tape, weight). Operands of two different tapes: USAGE.
 * Shape errors are recorded on the tape: see qkv_tape_status(). Integer operands and masks are read only during the call; the
 * tape copies the parts that backward needs. "(..., n)" means any number of leading dimensions.
 *
 * Threads: one thread at a time per tape and its tensors. Any number of tapes may be used concurrently. */
#ifndef QKV_TENSOR_H
#define QKV_TENSOR_H

#include <qkv/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QKV_MAX_DIMS 6

typedef struct qkv_tensor qkv_tensor;
typedef struct qkv_tape qkv_tape;

/* ---- tensor properties (NULL is allowed and gives 0 or NULL) ---- */
QKV_API int qkv_tensor_ndim(const qkv_tensor *x);
QKV_API int64_t qkv_tensor_dim(const qkv_tensor *x, int i);   /* i from 0, or from -1 backwards; 0 if out of range */
QKV_API const int64_t *qkv_tensor_shape(const qkv_tensor *x); /* qkv_tensor_ndim(x) elements */
QKV_API int64_t qkv_tensor_count(const qkv_tensor *x);        /* product of the dimensions */
QKV_API const float *qkv_tensor_data(const qkv_tensor *x); /* qkv_tensor_count(x) floats; NULL for weights of another dtype */
QKV_API float qkv_tensor_item(const qkv_tensor *x);        /* the value of a tensor of count 1; NaN otherwise */

/* Element type. All tensors are F32, except matrices of a model loaded in another type. */
typedef enum qkv_dtype {
    QKV_DTYPE_STORED, /* the type in the model's files: an option of loading, never a tensor's type */
    QKV_DTYPE_INT8,
    QKV_DTYPE_INT4,
    QKV_DTYPE_BF16,
    QKV_DTYPE_F32,
    QKV_DTYPE_F16
} qkv_dtype;
QKV_API qkv_dtype qkv_tensor_dtype(const qkv_tensor *x); /* QKV_DTYPE_STORED for NULL */

/* The elements in qkv_tensor_dtype(x), row-major, qkv_tensor_count(x) of them. INT8 and INT4 come without their scales, in the
 * file layout of docs/published.md. Valid until the tape is reset, or until weights are added or copied. */
QKV_API const void *qkv_tensor_bytes(const qkv_tensor *x);

/* The writable form of qkv_tensor_data(). NULL for the weights of a loaded model: they are mapped from its files, and the
 * library may keep repacked copies of them. A model that was loaded with QKV_DTYPE_F32, or trained since, has its weights in
 * memory. */
QKV_API float *qkv_tensor_data_mut(qkv_tensor *x);

/* The gradient of the last qkv_backward(), qkv_tensor_count(x) floats. Weights and inputs of qkv_variable() have one; with
 * keep_grads, every tensor of the tape has one. NULL if there is no gradient. */
QKV_API const float *qkv_tensor_grad(const qkv_tensor *x);

/* ---- the tape ---- */
typedef struct qkv_tape_opts {
    size_t size;
    int train;            /* 1: enables dropout */
    int inference;        /* 1: records nothing for backward */
    int keep_grads;       /* 1: also keeps the gradients of intermediate results */
    int overwrite_values; /* 1: backward may overwrite result values (not weights, variables or the loss) to save memory */
    int keep_attention;   /* 1: every attention keeps its weights, see qkv_tape_attention() */
    int keep_hidden;      /* 1: a Transformer keeps its hidden states, see qkv_tape_hidden() */
    int keep_projections; /* 1: every multi-head attention keeps its intermediate results, see qkv_tape_projections() */
    uint64_t seed, step;  /* of dropout; equal seed and step give equal bits; a resumed run starts at its step */
} qkv_tape_opts;

/* Creates a tape. NULL opts means all zero. NULL if out of memory. The caller owns it. */
QKV_API qkv_tape *qkv_tape_new(const qkv_tape_opts *opts);
QKV_API void qkv_tape_free(qkv_tape *t);

/* Drops every tensor and the error of this tape, keeps its memory, and advances the step by one (for dropout). */
QKV_API void qkv_tape_reset(qkv_tape *t);

/* The step: the initial step of the options plus the number of resets. A tensor is valid only at the step that created it. */
QKV_API uint64_t qkv_tape_step(const qkv_tape *t);

/* The first error since the tape was created or reset. Restores its message to qkv_error().
 * For a NULL tape: the error of its creation. */
QKV_API qkv_status qkv_tape_status(const qkv_tape *t);

/* The weights of the i-th attention since the last reset, (B,H,Tq,Tk). NULL after the last. Needs keep_attention. */
QKV_API qkv_tensor *qkv_tape_attention(const qkv_tape *t, int i);

/* The i-th hidden states since the last reset, (B,T,dim). NULL after the last. Needs keep_hidden. A stack of n layers keeps
 * n+1: the input of the first layer and the output of each layer. The last one follows the final norm, if the model has one. */
QKV_API qkv_tensor *qkv_tape_hidden(const qkv_tape *t, int i);

/* ---- constants and variables ----
 * Values are copied; NULL data means zeros. A variable gets a gradient, a constant does not. Errors are recorded on the tape:
 * USAGE for a negative dimension or more than QKV_MAX_DIMS, LIMIT if the product overflows. */
QKV_API qkv_tensor *qkv_constant(qkv_tape *t, int ndim, const int64_t *shape, const float *data);
QKV_API qkv_tensor *qkv_variable(qkv_tape *t, int ndim, const int64_t *shape, const float *data);

/* QKV_SHAPE(2, 3) expands to the two arguments ndim and shape. In C++ the array lives to the end of the call. */
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

/* Adds d loss / d x to the gradient of every tensor that loss was computed from. Gradients of weights accumulate over calls;
 * qkv_params_zero_grad() or an optimizer step clears them. loss must have count 1.
 * Returns the tape's first error, if any, and then changes no gradient. For a NULL loss: the error of its creation.
 * MEMORY during the pass leaves gradients incomplete: zero them. */
QKV_API qkv_status qkv_backward(qkv_tensor *loss);

/* ---- operations, each with an exact backward pass ---- */

/* x itself on tape t: same values, same gradient. */
QKV_API qkv_tensor *qkv_on(qkv_tape *t, qkv_tensor *x);

/* ---- products ---- */

/* y = x w^T + b.   x (..., in)   w (out, in)   b (out) or NULL   ->   y (..., out)
 * The bits of a row of y do not depend on the other rows or on their number. */
QKV_API qkv_tensor *qkv_affine(qkv_tensor *x, qkv_tensor *w, qkv_tensor *b);

/* y = op(a) op(b), op(m) = m or its transpose in the last two dimensions.
 *   a (..., M, K)   b (..., K, N)   ->   y (..., M, N);   leading dimensions equal, or b has none (b is then shared) */
enum { QKV_TRANSPOSE_A = 1, QKV_TRANSPOSE_B = 2 };
QKV_API qkv_tensor *qkv_matmul(qkv_tensor *a, qkv_tensor *b, unsigned flags);

/* y[i, :] = table[ids[i], :].   table (V, D)   ids (shape)   ->   y (shape..., D)
 * An id outside 0..V-1: USAGE, naming its position. */
QKV_API qkv_tensor *qkv_gather(qkv_tape *t, qkv_tensor *table, const int32_t *ids, int ndim, const int64_t *shape);

/* ---- elementwise; a and b broadcast as in NumPy: aligned at the last dimension, size 1 stretches ---- */
QKV_API qkv_tensor *qkv_add(qkv_tensor *a, qkv_tensor *b);
QKV_API qkv_tensor *qkv_sub(qkv_tensor *a, qkv_tensor *b);
QKV_API qkv_tensor *qkv_mul(qkv_tensor *a, qkv_tensor *b);
QKV_API qkv_tensor *qkv_scale(qkv_tensor *x, float factor); /* factor * x */

QKV_API qkv_tensor *qkv_relu(qkv_tensor *x);      /* max(0, x) */
QKV_API qkv_tensor *qkv_gelu(qkv_tensor *x);      /* x Phi(x), Phi the normal CDF (erf form) */
QKV_API qkv_tensor *qkv_gelu_tanh(qkv_tensor *x); /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
QKV_API qkv_tensor *qkv_silu(qkv_tensor *x);      /* x sigmoid(x) */
QKV_API qkv_tensor *qkv_tanh(qkv_tensor *x);
QKV_API qkv_tensor *qkv_sigmoid(qkv_tensor *x); /* 1 / (1 + exp(-x)) */

/* ---- along the last dimension: x (..., n), n >= 1 ---- */
QKV_API qkv_tensor *qkv_softmax(qkv_tensor *x);     /* exp(x - max) / sum exp(x - max); a row of only -inf gives zeros */
QKV_API qkv_tensor *qkv_log_softmax(qkv_tensor *x); /* x - max - log sum exp(x - max) */

/* (x - mean) / sqrt(var + eps) * gain + bias, var the biased variance.   gain (n), bias (n) or NULL */
QKV_API qkv_tensor *qkv_layer_norm(qkv_tensor *x, qkv_tensor *gain, qkv_tensor *bias, float eps);

/* x / sqrt(mean(x^2) + eps) * gain.   gain (n) */
QKV_API qkv_tensor *qkv_rms_norm(qkv_tensor *x, qkv_tensor *gain, float eps);

/* ---- positions ---- */

/* Rotary position embedding.  x (B, T, H*D) with H heads, D even. Pair i of every head rotates by the angle pos * base^(-2i/D).
 *   interleaved  0: pair i is (i, i + D/2), the half-split layout of published Llama files; else (2i, 2i+1), as in the paper
 *   positions    B*T numbers, or NULL for 0..T-1 in every sequence
 *   frequencies  D/2 numbers that replace base^(-2i/D), or NULL
 *   width        nonzero: rotates only the first `width` elements of a head, with angles as if D were `width`
 *   scale        nonzero: also multiplies the rotated elements */
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
 * In training, zeroes each value with probability p and multiplies the others by 1/(1-p). Outside training, returns x.
 * 0 <= p < 1. The random numbers depend on the tape's seed, its step, and the index of the dropout within the step. */
QKV_API qkv_tensor *qkv_dropout(qkv_tensor *x, float p);

/* ---- shapes ---- */
QKV_API qkv_tensor *qkv_reshape(qkv_tensor *x, int ndim, const int64_t *shape); /* one dimension may be -1; shares x's memory */
QKV_API qkv_tensor *qkv_permute(qkv_tensor *x, const int *order);               /* y's dimension i is x's dimension order[i] */
QKV_API qkv_tensor *qkv_transpose(qkv_tensor *x, int i, int j);                 /* swaps dimensions i and j; -1 is the last */
QKV_API qkv_tensor *qkv_slice(qkv_tensor *x, int dim, int64_t from, int64_t to); /* from <= index < to in one dimension */
QKV_API qkv_tensor *qkv_concat(int n, qkv_tensor *const *parts, int dim);        /* n >= 1; shapes equal except in dim */

/* ---- reductions ---- */
#define QKV_ALL_DIMS (-100)
QKV_API qkv_tensor *qkv_sum(qkv_tensor *x, int dim);  /* over one dimension, which is removed; QKV_ALL_DIMS gives shape () */
QKV_API qkv_tensor *qkv_mean(qkv_tensor *x, int dim); /* the sum divided by the number of elements */

/* ---- losses; shape () ---- */

/* Cross-entropy of softmax(logits) against classes, averaged over the rows with a target.
 *   logits (..., K)   targets: one per row, 0..K-1, or QKV_IGNORE: the row has weight 0
 *   row loss = -(1-s) log p[target] - s/K sum_k log p[k],   loss = sum w_i loss_i / sum w_i,   s = label_smoothing, 0 <= s < 1
 * weights: one per row (>= 0, finite), or NULL for all 1. If all rows have weight 0, the loss and its gradients are 0.
 * A target outside 0..K-1: USAGE, naming its position. NULL opts means all zero. */
#define QKV_IGNORE (-100)
typedef struct qkv_cross_entropy_opts {
    size_t size;
    float label_smoothing;
    const float *weights;
} qkv_cross_entropy_opts;
QKV_API qkv_tensor *qkv_cross_entropy(qkv_tensor *logits, const int32_t *targets, const qkv_cross_entropy_opts *opts);

/* mean of -(y log s + (1-y) log(1-s)), s = sigmoid(logits), y = target in [0, 1]; equal shapes. The target gets no gradient. */
QKV_API qkv_tensor *qkv_binary_cross_entropy(qkv_tensor *logits, qkv_tensor *target);

/* mean of (a - b)^2; equal shapes */
QKV_API qkv_tensor *qkv_mse(qkv_tensor *a, qkv_tensor *b);

/* ---- attention ---- */

/* The keys that each query may attend to. A key is visible only if every part allows it. All zero hides nothing.
 * Shapes are (B,H,Tq,Tk); any dimension may be 1 and then stretches. */
typedef struct qkv_mask {
    size_t size;
    int causal;                 /* query i attends to keys 0 .. i + Tk - Tq */
    const int32_t *key_lengths; /* B numbers in 0..Tk: keys at or past the length are hidden */
    const uint8_t *keep;        /* 1: visible, 0: hidden */
    int64_t keep_shape[4];
    const float *bias; /* added to the scaled scores; -inf hides a key; NaN and +inf are errors */
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
    int64_t heads;    /* nonzero: q is (B,Tq,heads*Dk), k (B,Tk,kv_heads*Dk), v (B,Tk,kv_heads*Dv), y (B,Tq,heads*Dv) */
    int64_t kv_heads; /* 0 means heads */
    float scale;      /* of the scores; 0 means 1/sqrt(Dk), for additive attention 1 */
    float dropout;    /* on the weights, in training; 0 <= p < 1 */
    float softcap;  /* nonzero: scaled scores s become softcap tanh(s / softcap), before the mask; excludes bias and additive */
    int64_t window; /* nonzero: query i sees only keys less than `window` positions from i + Tk - Tq; excludes additive */
    /* (H,Tq+Tk-1) or NULL. Adds relative_bias[h][j-i+Tq-1] to scores * scale of query i and key j. Excludes the mask's bias,
     * softcap and additive. */
    qkv_tensor *relative_bias;
    /* w (Dk) or NULL. Additive attention: score(i,j) = sum_d w_d tanh(q_id + k_jd), where q and k are already projected. */
    qkv_tensor *additive;
    qkv_tensor **weights; /* out or NULL: softmax weights before dropout, (B,H,Tq,Tk), a constant */
    qkv_tensor **scores;  /* out or NULL: q k^T, no mask, (B,H,Tq,Tk), a constant */
    qkv_tensor **scaled;  /* out or NULL: scores * scale + bias, capped, hidden keys -inf, (B,H,Tq,Tk), a constant */
} qkv_attention_opts;

/* y = softmax(q k^T / sqrt(Dk) + bias) v, per head.
 *   q (B,H,Tq,Dk)   k (B,Hk,Tk,Dk)   v (B,Hk,Tk,Dv)   ->   y (B,H,Tq,Dv)
 * H must be a multiple of Hk: query head h uses key head h / (H/Hk). With 2 dimensions (T,D) or 3 (B,T,D), there is one head.
 * A fully masked query yields a row of zeros and passes no gradient. Memory grows with Tq + Tk; it grows with Tq*Tk only if
 * weights, scores or scaled are requested. Requesting them changes no bit of y. NULL mask hides nothing; NULL opts means all
 * zero. */
QKV_API qkv_tensor *qkv_attention(qkv_tensor *q, qkv_tensor *k, qkv_tensor *v, const qkv_mask *mask,
                                  const qkv_attention_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
