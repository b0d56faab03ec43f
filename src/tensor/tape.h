/* tape.h: what an operation needs to know about tensors and tapes. */
#ifndef QKV_SRC_TAPE_H
#define QKV_SRC_TAPE_H

#include <qkv/tensor.h>
#include <qkv/unstable/inspect.h>

#include "../base/random.h"
#include "../base/size.h"
#include "../base/status.h"

#include <stdbool.h>

typedef struct qkv__type qkv__type;

/* Adds y's gradient, y->grad, to the gradients of y->in: through qkv__grad(), which says where, or that nobody wants it. */
typedef void qkv__backward(qkv_tensor *y);

struct qkv_tensor {
    float *data;
    float *grad; /* NULL until something is added; of an alias: see qkv__grad() */
    int64_t count;
    int64_t shape[QKV_MAX_DIMS];
    int ndim;
    bool wants_grad;
    bool keeps_grad;              /* a weight, a variable: its gradient outlives backward */
    const qkv__type *type;        /* how the values of a weight are kept, see op/types.h; NULL: float32, in data */
    const void *values;           /* with a type: data is NULL then */
    const void *scales;           /* with a type that has them */
    struct qkv__packing *packing; /* of a weight whose values do not change, see op/packed.h; NULL: it is never packed */
    qkv_tensor *alias_of;         /* shares data and gradient with this one */
    qkv_tape *tape;               /* NULL for weights */
    qkv__backward *backward;      /* NULL for leaves */
    int n_in;
    qkv_tensor **in;
    void *saved;                  /* what the operation's backward needs besides in: from qkv__save() */
    qkv_tensor *older;            /* made before this one on the same tape */
    const qkv_tensor *first_user; /* of a weight, where somebody is told of its gradient: see qkv__tell_final() */
};

/* ---- making a result: operands -> checks -> result ---- */

/* The tape the operation will live on. NULL when there is nothing to do: an operand is NULL, a tape has failed already, no
 * operand has a tape, or two have different ones (the last two leave an error). */
qkv_tape *qkv__operands(const char *operation, int n, qkv_tensor *const *in);

/* The same for an operation that reads weights of any type: others want float32. */
qkv_tape *qkv__operands_of_any_type(const char *operation, int n, qkv_tensor *const *in);

/* Leaves an error on the tape (the first one stays) and gives NULL: a failing operation reads return qkv__error(...). */
qkv_tensor *qkv__error(qkv_tape *t, qkv_status status, const char *format, ...) QKV_PRINTF(3, 4);

/* Puts the error that a lower layer left in qkv_error() on the tape. */
qkv_tensor *qkv__error_below(qkv_tape *t);

/* A tensor for the result, values not set. Recorded for backward when an operand wants a gradient. NULL on error. */
qkv_tensor *qkv__result(qkv_tape *t, int ndim, const int64_t *shape, qkv__backward *backward, int n_in, qkv_tensor *const *in);

/* A result that overwrites x's values and shares their memory: for operations whose operand nobody reads again, neither another
 * operation nor the backward of the one that made it. */
qkv_tensor *qkv__result_inplace(qkv_tape *t, qkv_tensor *x, qkv__backward *backward, int n_in, qkv_tensor *const *in);

/* A constant whose values stay where they are: `data` must outlive the tape's next reset. */
qkv_tensor *qkv__borrow(qkv_tape *t, int ndim, const int64_t *shape, float *data);

/* The same values and gradient as x under another shape of the same count, or on another tape. */
qkv_tensor *qkv__alias(qkv_tape *t, qkv_tensor *x, int ndim, const int64_t *shape);

/* Memory that lives as long as the tape's tensors, not cleared; NULL with the error on the tape. */
void *qkv__save(qkv_tape *t, size_t bytes);

/* Resets the tape and gives its memory back. */
void qkv__tape_trim(qkv_tape *t);

/* The values of x, to be written: of a weight that lies elsewhere too. */
float *qkv__tensor_data(const qkv_tensor *x);

/* Sets the step that random numbers are keyed by. */
void qkv__tape_set_step(qkv_tape *t, uint64_t step);

/* ---- in backward ---- */

/* Where to add x's gradient, zero at first; NULL when x wants none (or memory is out: backward then stops). */
float *qkv__grad(qkv_tensor *x);

/* The same for an operation that writes every element: *add is false when nothing was added yet, and then the memory is
 * not cleared and must be set instead of added to. */
float *qkv__grad_to(qkv_tensor *x, bool *add);

/* For an operation that turns y's gradient into x's element by element: y's own memory becomes x's gradient where nothing was
 * added to that yet (*add is false then). */
float *qkv__grad_from(qkv_tensor *x, qkv_tensor *y, bool *add);

/* For an operation that is the last to read x's values: their memory becomes the gradient, where the tape allows it. Elsewhere
 * as qkv__grad_to(). */
float *qkv__grad_inplace(qkv_tensor *x, bool *add);

/* Is told of every weight that was used, once its gradient will not change any more in a backward pass: weights that came
 * late in the forward first. */
typedef void qkv__final(void *data, const qkv_tensor *weight);

/* From the next operation on until the tape's next reset; each weight's first_user must be NULL. */
void qkv__tell_final(qkv_tape *t, qkv__final *tell, void *data);

/* Waits until the values of a weight are there. */
typedef void qkv__await(void *data, const qkv_tensor *weight);

/* Before an operation reads weights, each of them is waited for, until this is called with NULL. */
void qkv__await_weights(qkv_tape *t, qkv__await *await, void *data);

/* ---- modes ---- */
bool qkv__is_training(const qkv_tape *t);
bool qkv__keeps_attention(const qkv_tape *t);
bool qkv__set_keeps_attention(qkv_tape *t, bool keeps); /* gives what it was */
void qkv__keep_attention(qkv_tape *t, qkv_tensor *weights);
void qkv__keep_hidden(qkv_tape *t, qkv_tensor *hidden); /* does nothing unless the tape keeps them; NULL is allowed */

/* Keeps what a multi-head attention has computed; does nothing unless its tape keeps it, or when it failed. */
void qkv__keep_projections(const qkv_projections *p);

/* The key of the next use of random numbers in this step. */
qkv__key qkv__next_key(qkv_tape *t);

/* ---- shapes ---- */
static inline bool qkv__same_shape(const qkv_tensor *a, const qkv_tensor *b)
{
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i]) return false;
    return true;
}

/* x's shape as text for a sentence: QKV_TEXT(x) lives until the end of the enclosing block. */
#define QKV_TEXT(x) qkv__shape_text((char[QKV_SHAPE_TEXT]){ 0 }, (x)->ndim, (x)->shape)

/* Rows and length of the last dimension; a tensor without dimensions is one row of one. */
static inline int64_t qkv__last(const qkv_tensor *x) { return x->ndim ? x->shape[x->ndim - 1] : 1; }
static inline int64_t qkv__rows(const qkv_tensor *x)
{
    int64_t rows = 1;
    for (int i = 0; i + 1 < x->ndim; i++) rows *= x->shape[i];
    return rows;
}

#endif
