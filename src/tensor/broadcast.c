/* broadcast.c: a + b, a - b, a b; shapes aligned at the last dimension, a dimension of 1 stretches, as in numpy.
 *
 * Neighbouring dimensions in which neither operand changes its step are merged first: equal shapes become one long run, a bias
 * added to (B,T,D) becomes B*T rows of D. Left are rows of the last merged dimension, in which an operand either steps by 1
 * or stands still. */
#include "parallel_for.h"

enum { A, B, OPERANDS };

typedef struct layout {
    int ndim; /* at least 1 */
    int64_t size[QKV_MAX_DIMS];
    int64_t step[OPERANDS][QKV_MAX_DIMS]; /* in elements; 0 where the operand is stretched */
} layout;

typedef void zip_kernel(float *y, const float *a, const float *b, int64_t n);

typedef enum kind { ADD, SUB, MUL } kind;
static const char *const kind_names[] = { "add", "sub", "mul" };

/* ---- layout ---- */

/* x's dimension i of y's, counted from the last, and 1 where x has no such dimension */
static int64_t dim_from_last(const qkv_tensor *x, int i) { return i < x->ndim ? x->shape[x->ndim - 1 - i] : 1; }

static bool result_shape(const qkv_tensor *a, const qkv_tensor *b, int *ndim, int64_t shape[QKV_MAX_DIMS])
{
    *ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    for (int i = 0; i < *ndim; i++) {
        int64_t m = dim_from_last(a, i), n = dim_from_last(b, i);
        if (m != n && m != 1 && n != 1) return false;
        shape[*ndim - 1 - i] = m == 1 ? n : m;
    }
    return true;
}

/* Adds an outer dimension in front; its steps continue those of the dimension inside it when it can be merged. */
static void push_outer(layout *l, int64_t size, const int64_t step[OPERANDS])
{
    int d = l->ndim - 1;
    if (d >= 0 && step[A] == l->step[A][d] * l->size[d] && step[B] == l->step[B][d] * l->size[d]) {
        l->size[d] *= size;
        return;
    }
    l->size[l->ndim] = size;
    for (int x = 0; x < OPERANDS; x++) l->step[x][l->ndim] = step[x];
    l->ndim++;
}

static void reverse(int n, int64_t *x)
{
    for (int i = 0; i < n / 2; i++) {
        int64_t other = x[n - 1 - i];
        x[n - 1 - i] = x[i];
        x[i] = other;
    }
}

static layout layout_of(const qkv_tensor *a, const qkv_tensor *b)
{
    layout l = { 0 };
    const qkv_tensor *in[] = { a, b };
    int64_t run[OPERANDS] = { 1, 1 };
    for (int i = 0; i < QKV_MAX_DIMS; i++) {
        int64_t size = qkv__max(dim_from_last(a, i), dim_from_last(b, i)), step[OPERANDS];
        if (size == 1) continue;
        for (int x = 0; x < OPERANDS; x++) {
            int64_t n = dim_from_last(in[x], i);
            step[x] = n == 1 ? 0 : run[x];
            run[x] *= n;
        }
        push_outer(&l, size, step);
    }
    if (!l.ndim) push_outer(&l, 1, run);
    reverse(l.ndim, l.size);
    for (int x = 0; x < OPERANDS; x++) reverse(l.ndim, l.step[x]);
    return l;
}

/* ---- forward ---- */

typedef struct forward_work {
    zip_kernel *f;
    layout l;
    int64_t length, pieces; /* a row is cut in pieces of this length */
    float *y;
    const float *in[OPERANDS];
} forward_work;

/* The operand's next n values at x: themselves, or a still-standing one repeated. */
static const float *values(const float *x, int64_t step, int64_t n, float *repeated)
{
    if (step) return x;
    for (int64_t i = 0; i < n; i++) repeated[i] = x[0];
    return repeated;
}

static void zip(zip_kernel *f, float *y, const float *a, int64_t a_step, const float *b, int64_t b_step, int64_t n)
{
    enum { CHUNK = 512 };
    float repeated[CHUNK];
    if (a_step && b_step) {
        f(y, a, b, n);
        return;
    }
    for (int64_t i = 0; i < n; i += CHUNK) { /* at most one operand stands still */
        int64_t m = qkv__min(CHUNK, n - i);
        f(y + i, values(a + i * a_step, a_step, m, repeated), values(b + i * b_step, b_step, m, repeated), m);
    }
}

/* Where row number `row` begins in each operand. */
static void row_begin(const layout *l, int64_t row, int64_t at[OPERANDS])
{
    at[A] = at[B] = 0;
    for (int d = l->ndim - 2; d >= 0; d--) {
        int64_t i = row % l->size[d];
        row /= l->size[d];
        at[A] += i * l->step[A][d];
        at[B] += i * l->step[B][d];
    }
}

static void broadcast_forward_range(void *data, int64_t from, int64_t to)
{
    const forward_work *w = data;
    const layout *l = &w->l;
    int64_t n = l->size[l->ndim - 1], a_step = l->step[A][l->ndim - 1], b_step = l->step[B][l->ndim - 1];
    for (int64_t unit = from; unit < to; unit++) {
        int64_t row = unit / w->pieces, i = unit % w->pieces * w->length, at[OPERANDS];
        row_begin(l, row, at);
        zip(w->f, w->y + row * n + i, w->in[A] + at[A] + i * a_step, a_step, w->in[B] + at[B] + i * b_step, b_step,
            qkv__min(w->length, n - i));
    }
}

static qkv_tensor *broadcast_forward(qkv_tape *t, qkv_tensor *y, zip_kernel *f, qkv_tensor *const *in)
{
    forward_work w = {
        .f = f, .l = layout_of(in[A], in[B]), .y = y->data, .in = { qkv_tensor_data(in[A]), qkv_tensor_data(in[B]) }
    };
    if (!y->count) return y;
    int64_t n = w.l.size[w.l.ndim - 1];
    w.length = qkv__min(n, QKV_TASK_ELEMENTS);
    w.pieces = qkv__ceil_div(n, w.length);
    return qkv__parallel_for(t, y->count / n * w.pieces, qkv__grain(w.length), broadcast_forward_range, &w) ? y : NULL;
}

/* ---- backward: an operand gets the sum over what it was stretched along ---- */

/* A walk through some of the outer dimensions: how far a step goes in y, in the operand and in the other one. */
typedef struct walk {
    int ndim;
    int64_t count, size[QKV_MAX_DIMS], y[QKV_MAX_DIMS], own[QKV_MAX_DIMS], other[QKV_MAX_DIMS];
} walk;

typedef struct place {
    int64_t y, own, other;
} place;

static place place_of_element(const walk *k, int64_t index)
{
    place p = { 0, 0, 0 };
    for (int d = k->ndim - 1; d >= 0; d--) {
        int64_t i = index % k->size[d];
        index /= k->size[d];
        p.y += i * k->y[d];
        p.own += i * k->own[d];
        p.other += i * k->other[d];
    }
    return p;
}

typedef struct backward_work {
    kind kind;
    walk kept, summed;         /* the outer dimensions that the operand has, and those it is stretched along */
    int64_t n, length, pieces; /* the last dimension; a piece of it, for an operand that has it */
    bool has_last, other_has_last;
    float *grad;
    bool add;
    float sign; /* of this operand in y, for add and sub */
    const float *dy, *other;
} backward_work;

static walk walk_along(const layout *l, int own, bool stretched)
{
    walk k = { .count = 1 };
    int64_t y = l->size[l->ndim - 1];
    int64_t y_step[QKV_MAX_DIMS] = { 0 };
    for (int d = l->ndim - 2; d >= 0; d--) {
        y_step[d] = y;
        y *= l->size[d];
    }
    for (int d = 0; d < l->ndim - 1; d++) {
        if ((l->step[own][d] == 0) != stretched) continue;
        k.size[k.ndim] = l->size[d];
        k.y[k.ndim] = y_step[d];
        k.own[k.ndim] = l->step[own][d];
        k.other[k.ndim++] = l->step[!own][d];
        k.count *= l->size[d];
    }
    return k;
}

/* y = a + b, a - b or a b, the operand has the last dimension:   grad[j] += sum over rows of +-dy[j], or of dy[j] other[j] */
static void add_columns(const backward_work *w, place kept, float *grad, int64_t n)
{
    for (int64_t r = 0; r < w->summed.count; r++) {
        place p = place_of_element(&w->summed, r);
        const float *dy = w->dy + kept.y + p.y, *other = w->other + kept.other + p.other;
        if (w->kind != MUL) kern->axpy(grad, dy, w->sign, n);
        else if (w->other_has_last) kern->mul_add(grad, dy, other, n);
        else kern->axpy(grad, dy, other[0], n);
    }
}

/* The operand stands still along the last dimension: it gets the sum of whole rows. The other then moves. */
static void add_sums(const backward_work *w, place kept, float *grad)
{
    double total = 0;
    for (int64_t r = 0; r < w->summed.count; r++) {
        place p = place_of_element(&w->summed, r);
        const float *dy = w->dy + kept.y + p.y, *other = w->other + kept.other + p.other;
        total += w->kind == MUL ? qkv__dot(dy, other, w->n) : w->sign * qkv__sum(dy, w->n);
    }
    *grad = (float)(*grad + total);
}

static void broadcast_backward_range(void *data, int64_t from, int64_t to)
{
    const backward_work *w = data;
    for (int64_t unit = from; unit < to; unit++) {
        place p = place_of_element(&w->kept, unit / w->pieces);
        int64_t i = unit % w->pieces * w->length, n = w->has_last ? qkv__min(w->length, w->n - i) : 1;
        float *grad = qkv__piece(w->grad + p.own + i, w->add, n);
        p.y += i;
        if (w->other_has_last) p.other += i;
        if (w->has_last) add_columns(w, p, grad, n);
        else add_sums(w, p, grad);
    }
}

static void broadcast_backward_of(qkv_tensor *y, kind what, int own)
{
    layout l = layout_of(y->in[A], y->in[B]);
    int last = l.ndim - 1;
    backward_work w = { .kind = what, .n = l.size[last], .has_last = l.step[own][last] != 0 };
    if (!y->count) {
        qkv__grad(y->in[own]);
        return;
    }
    if (!(w.grad = qkv__grad_to(y->in[own], &w.add))) return;
    w.kept = walk_along(&l, own, false);
    w.summed = walk_along(&l, own, true);
    w.other_has_last = l.step[!own][last] != 0;
    w.sign = what == SUB && own == B ? -1.0f : 1.0f;
    w.dy = y->grad;
    w.other = qkv_tensor_data(y->in[!own]);
    w.length = w.has_last ? qkv__min(w.n, w.summed.count > 1 ? qkv__columns(w.summed.count) : QKV_TASK_ELEMENTS) : w.n;
    w.pieces = w.has_last ? qkv__ceil_div(w.n, w.length) : 1;
    qkv__parallel_for(y->tape, w.kept.count * w.pieces, qkv__grain(w.summed.count * w.length), broadcast_backward_range, &w);
}

#define BROADCAST(name, what)                                                                                    \
    static void name##_backward(qkv_tensor *y)                                                                   \
    {                                                                                                            \
        broadcast_backward_of(y, what, A);                                                                       \
        broadcast_backward_of(y, what, B);                                                                       \
    }                                                                                                            \
    qkv_tensor *qkv_##name(qkv_tensor *a, qkv_tensor *b)                                                         \
    {                                                                                                            \
        qkv_tensor *y, *in[] = { a, b };                                                                         \
        qkv_tape *t = qkv__operands(kind_names[what], OPERANDS, in);                                             \
        return t && (y = result(t, what, in, name##_backward)) ? broadcast_forward(t, y, kern->name, in) : NULL; \
    }

static qkv_tensor *result(qkv_tape *t, kind what, qkv_tensor *const *in, qkv__backward *backward)
{
    int ndim;
    int64_t shape[QKV_MAX_DIMS];
    if (result_shape(in[A], in[B], &ndim, shape)) return qkv__result(t, ndim, shape, backward, OPERANDS, in);
    return qkv__error(t, QKV_USAGE, "%s: shapes %s and %s do not broadcast", kind_names[what], QKV_TEXT(in[A]),
                      QKV_TEXT(in[B]));
}

BROADCAST(add, ADD)
BROADCAST(sub, SUB)
BROADCAST(mul, MUL)
