/* tape.c: the autograd engine. Operations append their results to the tape; backward walks them in reverse. */
#include "inputs.h"

#include <qkv/unstable/util.h>
#include "tape.h"

#include "../base/arena.h"
#include "../base/options.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct kept {
    qkv_tensor *tensor;
    struct kept *next;
} kept;

/* Tensors in the order they were kept. */
typedef struct keeping {
    kept *first, **end;
} keeping;

/* A gradient that is no longer needed, waiting to serve another tensor. */
typedef struct spare {
    struct spare *next;
    size_t bytes;
} spare;

struct qkv_tape {
    qkv_tape_opts opts;
    qkv__arena arena;
    qkv_tensor *newest;
    keeping attention, hidden, projections;
    spare *spares;
    uint64_t step, stream;
    qkv__final *tell_final; /* NULL: nobody is told */
    void *told;
    qkv__await *await; /* NULL: all weights are there */
    void *awaited;
    qkv_status status;
    char sentence[QKV_SENTENCE_MAX];
};

/* ---- looking at a tensor ---- */

int qkv_tensor_ndim(const qkv_tensor *x) { return x ? x->ndim : 0; }

int64_t qkv_tensor_dim(const qkv_tensor *x, int i)
{
    if (!x) return 0;
    if (i < 0) i += x->ndim;
    return i >= 0 && i < x->ndim ? x->shape[i] : 0;
}

const int64_t *qkv_tensor_shape(const qkv_tensor *x) { return x ? x->shape : NULL; }

int64_t qkv_tensor_count(const qkv_tensor *x) { return x ? x->count : 0; }

/* Aliases ask the tensor they share with: a weight's memory may have moved since. */
static const qkv_tensor *owner(const qkv_tensor *x)
{
    while (x->alias_of) x = x->alias_of;
    return x;
}

float *qkv__tensor_data(const qkv_tensor *x) { return x ? owner(x)->data : NULL; }

const float *qkv_tensor_data(const qkv_tensor *x) { return qkv__tensor_data(x); }

float *qkv_tensor_data_mut(qkv_tensor *x) { return x && !owner(x)->packing ? owner(x)->data : NULL; }

const float *qkv_tensor_grad(const qkv_tensor *x) { return x ? owner(x)->grad : NULL; }

float qkv_tensor_item(const qkv_tensor *x) { return x && x->count == 1 ? qkv_tensor_data(x)[0] : NAN; }

/* ---- the tape ---- */

static void forget_kept(qkv_tape *t)
{
    t->attention = (keeping){ .end = &t->attention.first };
    t->hidden = (keeping){ .end = &t->hidden.first };
    t->projections = (keeping){ .end = &t->projections.first };
}

qkv_tape *qkv_tape_new(const qkv_tape_opts *opts)
{
    if (!qkv_isa()) return NULL; /* QKV_ISA names an instruction set we cannot use: its sentence is set */
    qkv_tape_opts o;
    if (QKV__READ_OPTIONS(&o, step, opts, "tape")) return NULL;
    qkv_tape *t = qkv__alloc_zero(sizeof *t);
    if (!t) return NULL;
    t->opts = o;
    t->step = o.step;
    forget_kept(t);
    return t;
}

void qkv_tape_free(qkv_tape *t)
{
    if (!t) return;
    qkv__arena_free(&t->arena);
    qkv__release(t, sizeof *t);
}

void qkv_tape_reset(qkv_tape *t)
{
    if (!t) return;
    qkv__arena_reset(&t->arena);
    t->newest = NULL;
    forget_kept(t);
    t->spares = NULL;
    t->step++;
    t->stream = 0;
    t->tell_final = NULL;
    t->status = QKV_OK;
}

void qkv__tape_trim(qkv_tape *t)
{
    qkv_tape_reset(t);
    qkv__arena_free(&t->arena);
}

void qkv__tape_set_step(qkv_tape *t, uint64_t step)
{
    if (t) t->step = step;
}

uint64_t qkv_tape_step(const qkv_tape *t) { return t ? t->step : 0; }

qkv_status qkv_tape_status(const qkv_tape *t)
{
    if (!t) return qkv_error_status() ? qkv_error_status() : qkv__fail(QKV_USAGE, "there is no tape");
    return t->status ? qkv__fail_again(t->status, t->sentence) : QKV_OK;
}

size_t qkv_tape_peak_bytes(const qkv_tape *t) { return t ? t->arena.peak : 0; }

static qkv_tensor *kept_at(const kept *k, int i)
{
    while (k && i-- > 0) k = k->next;
    return k ? k->tensor : NULL;
}

qkv_tensor *qkv_tape_attention(const qkv_tape *t, int i) { return t ? kept_at(t->attention.first, i) : NULL; }

qkv_tensor *qkv_tape_hidden(const qkv_tape *t, int i) { return t ? kept_at(t->hidden.first, i) : NULL; }

bool qkv__is_training(const qkv_tape *t) { return t->opts.train != 0; }

bool qkv__keeps_attention(const qkv_tape *t) { return t->opts.keep_attention != 0; }

bool qkv__set_keeps_attention(qkv_tape *t, bool keeps)
{
    bool was = qkv__keeps_attention(t);
    t->opts.keep_attention = keeps;
    return was;
}

static void keep_listed(qkv_tape *t, keeping *list, qkv_tensor *x)
{
    kept *k = qkv__save(t, sizeof *k);
    if (!k) return;
    *k = (kept){ .tensor = x };
    *list->end = k;
    list->end = &k->next;
}

void qkv__keep_attention(qkv_tape *t, qkv_tensor *weights) { keep_listed(t, &t->attention, weights); }

void qkv__keep_hidden(qkv_tape *t, qkv_tensor *hidden)
{
    if (hidden && t->opts.keep_hidden) keep_listed(t, &t->hidden, hidden);
}

enum { PROJECTIONS = 6 }; /* tensors of qkv_projections, in its order */

void qkv__keep_projections(const qkv_projections *p)
{
    qkv_tensor *const tensors[PROJECTIONS] = { p->x, p->y, p->q, p->k, p->v, p->heads };
    qkv_tape *t = p->heads ? p->heads->tape : NULL;
    for (int i = 0; t && t->opts.keep_projections && i < PROJECTIONS; i++) keep_listed(t, &t->projections, tensors[i]);
}

qkv_status qkv_tape_projections(const qkv_tape *t, int i, qkv_projections *out)
{
    qkv_tensor *found[PROJECTIONS];
    if (!t || !out) return qkv__fail(QKV_USAGE, "tape: a tape and a place for the projections are needed");
    for (int k = 0; k < PROJECTIONS; k++)
        if (i < 0 || i > INT_MAX / PROJECTIONS - 1 || !(found[k] = kept_at(t->projections.first, PROJECTIONS * i + k)))
            return qkv__fail(QKV_USAGE, "tape: there are no projections of attention %d: keep_projections keeps them", i);
    *out = (qkv_projections){ found[0], found[1], found[2], found[3], found[4], found[5] };
    return QKV_OK;
}

qkv__key qkv__next_key(qkv_tape *t) { return qkv__key_for(t->opts.seed, t->step, t->stream++); }

/* ---- errors ---- */

qkv_tensor *qkv__error_below(qkv_tape *t)
{
    if (!t->status) {
        t->status = qkv_error_status();
        snprintf(t->sentence, sizeof t->sentence, "%s", qkv_error());
    }
    return NULL;
}

qkv_tensor *qkv__error(qkv_tape *t, qkv_status status, const char *format, ...)
{
    if (t->status) return NULL; /* the first error is the one that tells what went wrong */
    va_list args;
    va_start(args, format);
    qkv__fail_with(status, format, args);
    va_end(args);
    return qkv__error_below(t);
}

void *qkv__save(qkv_tape *t, size_t bytes)
{
    void *memory = qkv__arena_take(&t->arena, bytes);
    if (!memory) qkv__error_below(t);
    return memory;
}

/* ---- making tensors ---- */

qkv_tape *qkv__operands(const char *operation, int n, qkv_tensor *const *in)
{
    qkv_tape *t = qkv__operands_of_any_type(operation, n, in);
    for (int i = 0; t && i < n; i++) {
        if (!in[i]->type) continue;
        qkv__error(t, QKV_USAGE, "%s: a weight is not kept as float32: load the model with QKV_DTYPE_F32", operation);
        return NULL;
    }
    return t;
}

qkv_tape *qkv__operands_of_any_type(const char *operation, int n, qkv_tensor *const *in)
{
    qkv_tape *t = NULL;
    for (int i = 0; i < n; i++) {
        if (!in[i]) return NULL;
        if (!in[i]->tape || in[i]->tape == t) continue;
        if (t) {
            qkv__error(t, QKV_USAGE, "%s: its operands live on two tapes", operation);
            return NULL;
        }
        t = in[i]->tape;
    }
    if (!t) {
        qkv__fail(QKV_USAGE, "%s: all operands are weights: put one on a tape with qkv_on()", operation);
        return NULL;
    }
    return t->status ? NULL : t;
}

void qkv__tell_final(qkv_tape *t, qkv__final *tell, void *data)
{
    t->tell_final = tell;
    t->told = data;
}

void qkv__await_weights(qkv_tape *t, qkv__await *await, void *data)
{
    t->await = await;
    t->awaited = data;
}

static void await_operands(const qkv_tape *t, int n, qkv_tensor *const *in)
{
    for (int i = 0; i < n; i++) {
        const qkv_tensor *w = owner(in[i]);
        if (!w->tape) t->await(t->awaited, w);
    }
}

/* The first operation that reads a weight is the last to add to its gradient. */
static void note_first_use(qkv_tensor *y)
{
    for (int i = 0; i < y->n_in; i++) {
        qkv_tensor *w = y->in[i];
        while (w->alias_of) w = w->alias_of;
        if (!w->tape && !w->first_user) w->first_user = y;
    }
}

static void tell_first_use(const qkv_tape *t, const qkv_tensor *y)
{
    for (int i = 0; i < y->n_in; i++) {
        const qkv_tensor *w = owner(y->in[i]);
        if (!w->tape && w->first_user == y) t->tell_final(t->told, w);
    }
}

/* A tensor without values, at the end of the tape. */
static qkv_tensor *append(qkv_tape *t, int ndim, const int64_t *shape, int n_in, qkv_tensor *const *in)
{
    int64_t count;
    if (ndim < 0 || ndim > QKV_MAX_DIMS)
        return qkv__error(t, QKV_USAGE, "a tensor has 0 to %d dimensions, not %d", QKV_MAX_DIMS, ndim);
    if (ndim && !shape) return qkv__error(t, QKV_USAGE, "a tensor of %d dimensions has no shape", ndim);
    for (int i = 0; i < ndim; i++)
        if (shape[i] < 0) return qkv__error(t, QKV_USAGE, "dimension %d is negative: %lld", i, (long long)shape[i]);
    if (!qkv__shape_count(ndim, shape, &count))
        return qkv__error(t, QKV_LIMIT, "a tensor of shape %s is larger than memory can be",
                          qkv__shape_text((char[QKV_SHAPE_TEXT]){ 0 }, ndim, shape));
    qkv_tensor *y = qkv__save(t, sizeof *y + sizeof *in * (size_t)n_in);
    if (!y) return NULL;
    *y = (qkv_tensor){
        .count = count, .ndim = ndim, .tape = t, .n_in = n_in, .in = (qkv_tensor **)(y + 1), .older = t->newest
    };
    for (int i = 0; i < ndim; i++) y->shape[i] = shape[i];
    for (int i = 0; i < n_in; i++) {
        y->in[i] = in[i];
        y->wants_grad |= in[i]->wants_grad && !t->opts.inference;
    }
    if (t->tell_final) note_first_use(y);
    if (t->await) await_operands(t, n_in, in);
    return t->newest = y;
}

qkv_tensor *qkv__result(qkv_tape *t, int ndim, const int64_t *shape, qkv__backward *backward, int n_in, qkv_tensor *const *in)
{
    qkv_tensor *y = append(t, ndim, shape, n_in, in);
    if (!y) return NULL;
    y->backward = backward;
    y->data = qkv__save(t, sizeof(float) * (size_t)y->count);
    return y->data ? y : NULL;
}

qkv_tensor *qkv__result_inplace(qkv_tape *t, qkv_tensor *x, qkv__backward *backward, int n_in, qkv_tensor *const *in)
{
    qkv_tensor *y = append(t, x->ndim, x->shape, n_in, in);
    if (!y) return NULL;
    y->backward = backward;
    y->data = qkv__tensor_data(x);
    return y;
}

qkv_tensor *qkv__borrow(qkv_tape *t, int ndim, const int64_t *shape, float *data)
{
    qkv_tensor *x = append(t, ndim, shape, 0, NULL);
    if (x) x->data = data;
    return x;
}

qkv_tensor *qkv__alias(qkv_tape *t, qkv_tensor *x, int ndim, const int64_t *shape)
{
    qkv_tensor *y = append(t, ndim, shape, 1, &x);
    if (!y) return NULL;
    y->alias_of = x;
    y->data = x->data;
    return y;
}

static qkv_tensor *leaf(qkv_tape *t, int ndim, const int64_t *shape, const float *data)
{
    if (!t || t->status) return NULL;
    qkv_tensor *x = qkv__result(t, ndim, shape, NULL, 0, NULL);
    if (!x) return NULL;
    if (data) memcpy(x->data, data, sizeof(float) * (size_t)x->count);
    else memset(x->data, 0, sizeof(float) * (size_t)x->count);
    return x;
}

qkv_tensor *qkv_constant(qkv_tape *t, int ndim, const int64_t *shape, const float *data) { return leaf(t, ndim, shape, data); }

qkv_tensor *qkv_variable(qkv_tape *t, int ndim, const int64_t *shape, const float *data)
{
    qkv_tensor *x = leaf(t, ndim, shape, data);
    if (x) x->wants_grad = x->keeps_grad = !t->opts.inference;
    return x;
}

/* ---- gradients ---- */

/* A spare of just the right size, else new memory. Layers repeat, so sizes do too. */
static float *take_grad(qkv_tape *t, size_t bytes)
{
    for (spare **at = &t->spares; *at; at = &(*at)->next) {
        if ((*at)->bytes != bytes) continue;
        spare *found = *at;
        *at = found->next;
        return (float *)found;
    }
    return qkv__save(t, bytes);
}

static void spare_grad(qkv_tape *t, float *grad, size_t bytes)
{
    if (bytes < sizeof(spare)) return;
    spare *s = (spare *)grad;
    *s = (spare){ .next = t->spares, .bytes = bytes };
    t->spares = s;
}

/* Set while a thread goes backward to what went into a model alone. */
static _Thread_local bool leaves_weights;

float *qkv__grad_to(qkv_tensor *x, bool *add)
{
    while (x->alias_of) x = x->alias_of;
    if (!x->tape && leaves_weights) return NULL;
    *add = x->grad != NULL;
    if (!x->wants_grad || x->grad) return x->grad;
    if (!x->tape->status) x->grad = take_grad(x->tape, sizeof(float) * (size_t)x->count);
    return x->grad;
}

float *qkv__grad(qkv_tensor *x)
{
    bool add;
    float *grad = qkv__grad_to(x, &add);
    if (grad && !add) memset(grad, 0, sizeof(float) * (size_t)x->count);
    return grad;
}

float *qkv__grad_from(qkv_tensor *x, qkv_tensor *y, bool *add)
{
    while (x->alias_of) x = x->alias_of;
    if (!x->wants_grad || x->grad || y->tape->opts.keep_grads) return qkv__grad_to(x, add);
    *add = false;
    x->grad = y->grad;
    y->grad = NULL;
    return x->grad;
}

float *qkv__grad_inplace(qkv_tensor *x, bool *add)
{
    while (x->alias_of) x = x->alias_of;
    if (!x->wants_grad || x->grad || !x->backward || !x->tape->opts.overwrite_values) return qkv__grad_to(x, add);
    *add = false;
    return x->grad = x->data;
}

static void go_back(qkv_tape *t, qkv_tensor *y)
{
    if (!y->grad || !y->backward || y->alias_of) return;
    y->backward(y);
    if (t->opts.keep_grads || !y->grad) return;
    spare_grad(t, y->grad, sizeof(float) * (size_t)y->count);
    y->grad = NULL;
}

qkv_status qkv_backward(qkv_tensor *loss)
{
    if (!loss) return qkv_error_status() ? qkv_error_status() : qkv__fail(QKV_USAGE, "backward: there is no loss");
    qkv_tape *t = loss->tape;
    if (!t) return qkv__fail(QKV_USAGE, "backward: the loss is a weight, not a result");
    if (t->status) return qkv_tape_status(t);
    if (loss->count != 1) return qkv__fail(QKV_USAGE, "backward: the loss has shape %s, expected one number", QKV_TEXT(loss));
    if (!loss->wants_grad) return qkv__fail(QKV_USAGE, "backward: the loss depends on no weight or variable");
    float *seed = qkv__grad(loss);
    if (seed) seed[0] = 1.0f;
    for (qkv_tensor *y = loss; y && !t->status; y = y->older) {
        go_back(t, y);
        if (t->tell_final) tell_first_use(t, y);
    }
    return qkv_tape_status(t);
}

qkv_status qkv__backward_inputs(qkv_tensor *loss)
{
    leaves_weights = true;
    qkv_status status = qkv_backward(loss);
    leaves_weights = false;
    return status;
}
