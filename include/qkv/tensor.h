/* qkv/tensor.h: tensors, the tape they live on, and gradients.
 *
 * A tensor is float32, row-major, dim 0 outermost, at most QKV_MAX_DIMS dimensions; any dimension may be 0.
 * It belongs to a tape (results of operations) or to params (weights): nothing to free one by one.
 *
 * Operations never fail at the call. A failed one gives NULL and leaves its error on the tape; every operation takes
 * NULL operands and gives NULL. So a whole computation is written without checks and the status is read once, from
 * qkv_backward() or qkv_tape_status().
 *
 * Threads: a tape, with all its tensors, is for one thread at a time; any number of tapes may compute at once, also on the same
 * weights as long as none of them trains: qkv_backward() adds to the gradients of the weights. */
#ifndef QKV_TENSOR_H
#define QKV_TENSOR_H

#include <qkv/base.h>

#ifdef __cplusplus
#include <initializer_list>
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
QKV_API float *qkv_tensor_data(const qkv_tensor *x); /* qkv_tensor_count(x) floats; NULL for a weight that is kept in 16 bits */
QKV_API float qkv_tensor_item(const qkv_tensor *x);  /* the one value of a tensor of count 1; NaN otherwise */

/* The gradient of the last qkv_backward(), qkv_tensor_count(x) floats: for weights, for inputs made with qkv_variable(), and for
 * every tensor when the tape has keep_grads. NULL where there is none. */
QKV_API float *qkv_tensor_grad(const qkv_tensor *x);

/* ---- the tape ---- */
typedef struct qkv_tape_opts {
    size_t size;
    int train;          /* 1: dropout is on */
    int no_grad;        /* 1: record nothing for backward; for running a model */
    int keep_grads;     /* 1: keep the gradients of intermediate results too */
    int reuse_values;   /* 1: backward may overwrite the values of results (not of weights, variables, the loss): less memory */
    int keep_attention; /* 1: every attention also keeps its weights, see qkv_tape_attention() */
    int keep_hidden;    /* 1: a Transformer keeps its hidden states, see qkv_tape_hidden() */
    uint64_t seed;      /* of dropout; the same seed and step give the same bits */
    int keep_projections; /* 1: every multi-head attention keeps what it computes on the way, see qkv_tape_projections() */
} qkv_tape_opts;

/* A new tape; NULL opts means all zero. NULL when memory is out. You own it. */
QKV_API qkv_tape *qkv_tape_new(const qkv_tape_opts *opts);
QKV_API void qkv_tape_free(qkv_tape *t);

/* Forgets every tensor of this tape and its error, keeps the memory, and counts one step (for dropout's random numbers). */
QKV_API void qkv_tape_reset(qkv_tape *t);

/* Sets the step number that random numbers are keyed by: a resumed run continues where it stopped. */
QKV_API void qkv_tape_set_step(qkv_tape *t, uint64_t step);
QKV_API uint64_t qkv_tape_step(const qkv_tape *t);

/* The first error since the tape was new or reset; its sentence is put back into qkv_error().
 * For NULL, the error that made it NULL. */
QKV_API qkv_status qkv_tape_status(const qkv_tape *t);

/* The most bytes this tape ever held at once. */
QKV_API size_t qkv_tape_peak_bytes(const qkv_tape *t);

/* The weights kept by the i-th attention since the last reset, (B,H,Tq,Tk); NULL after the last. */
QKV_API qkv_tensor *qkv_tape_attention(const qkv_tape *t, int i);

/* The i-th hidden states kept since the last reset, (B,T,dim); NULL after the last. A stack of n layers keeps n + 1: what goes
 * into the first layer, and what comes out of each; the last one after the norm at the end, where there is one. */
QKV_API qkv_tensor *qkv_tape_hidden(const qkv_tape *t, int i);

/* What one multi-head attention reads and computes before W_O. */
typedef struct qkv_projections {
    qkv_tensor *x, *y; /* what it reads: queries are made of x (B,Tq,dim), keys and values of y (B,Tk,kv_dim) */
    qkv_tensor *q, *k,
        *v;            /* x W_Q, y W_K, y W_V with their biases, the heads side by side; turned where positions are rotary */
    qkv_tensor *heads; /* what the heads give, side by side: (B,Tq,heads*Dv) */
    void *reserved[4];
} qkv_projections;

/* Those of the i-th multi-head attention since the last reset, in the order of qkv_tape_attention(): of an encoder one a layer;
 * of a decoder behind it two, to itself and to the source. USAGE for NULL, a tape that keeps none, and after the last. */
QKV_API qkv_status qkv_tape_projections(const qkv_tape *t, int i, qkv_projections *out);

/* ---- tensors made by hand; the values are copied; data NULL means zeros ----
 * A constant gets no gradient, a variable gets one. USAGE on the tape for a negative dimension or more than
 * QKV_MAX_DIMS, LIMIT when the product overflows. */
QKV_API qkv_tensor *qkv_constant(qkv_tape *t, int ndim, const int64_t *shape, const float *data);
QKV_API qkv_tensor *qkv_variable(qkv_tape *t, int ndim, const int64_t *shape, const float *data);

/* A shape reads well as QKV_SHAPE(2, 3): it gives the count and the array, which in C++ lives to the end of the call. */
#ifdef __cplusplus
#define QKV_SHAPE(...) \
    (int)std::initializer_list<int64_t>{ __VA_ARGS__ }.size(), std::initializer_list<int64_t>{ __VA_ARGS__ }.begin()
#else
#define QKV_SHAPE(...) \
    (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[]) { __VA_ARGS__ }
#endif

/* Adds d loss / d x to the gradient of every tensor that loss was computed from. Gradients of weights add up over calls:
 * qkv_params_zero_grad() or an optimizer's step clears them. loss must have count 1.
 * Gives the tape's first error if there is one, and changes no gradient then; for NULL, the error that made it NULL.
 * MEMORY when it runs out half-way: the gradients are incomplete then, zero them. */
QKV_API qkv_status qkv_backward(qkv_tensor *loss);

#ifdef __cplusplus
}
#endif
#endif
