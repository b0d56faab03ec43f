/* rotary.c: rotary positions (Su et al. 2021): in every head, pair i of the vector at position p turns by p * frequency_i. */
#include "parallel_for.h"

#include "../base/options.h"

#include <math.h>

typedef struct turns {
    int64_t heads, width; /* of a head */
    int64_t half;         /* pairs that turn */
    int64_t table_rows;   /* T when every sequence has positions 0..T-1, else B*T */
    bool interleaved;
    float *cosine, *sine; /* (table_rows, half) */
} turns;

typedef struct work {
    const turns *r;
    float *to;
    bool add;
    const float *from;
} work;

static void rotary_forward_rows(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    const turns *r = w->r;
    for (int64_t i = from * r->heads; i < to * r->heads; i++) {
        int64_t at = i * r->width, angle = i / r->heads % r->table_rows * r->half, turned = 2 * r->half;
        kern->rotary(w->to + at, w->from + at, r->cosine + angle, r->sine + angle, r->half, r->interleaved);
        if (turned < r->width) memcpy(w->to + at + turned, w->from + at + turned, sizeof(float) * (size_t)(r->width - turned));
    }
}

/* y = R x with R a rotation, maybe scaled:   dx += R^T dy, the turn back; what does not turn:   dx += dy */
static void rotary_backward_rows(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    const turns *r = w->r;
    for (int64_t i = from * r->heads; i < to * r->heads; i++) {
        int64_t at = i * r->width, angle = i / r->heads % r->table_rows * r->half, turned = 2 * r->half;
        float *dx = qkv__piece(w->to + at, w->add, r->width);
        kern->rotary_grad(dx, w->from + at, r->cosine + angle, r->sine + angle, r->half, r->interleaved);
        for (int64_t d = turned; d < r->width; d++) dx[d] += w->from[at + d];
    }
}

static void rotary_backward(qkv_tensor *y)
{
    work w = { .r = y->saved, .from = y->grad };
    if ((w.to = qkv__grad_to(y->in[0], &w.add)))
        qkv__parallel_for(y->tape, qkv__rows(y), qkv__grain(qkv__last(y)), rotary_backward_rows, &w);
}

/* ---- the angles ---- */

typedef struct table_work {
    turns *r;
    const double *frequency;
    const int32_t *positions;
    float scale;
} table_work;

static void table_range(void *data, int64_t from, int64_t to)
{
    const table_work *w = data;
    for (int64_t i = from; i < to; i++) {
        double position = w->positions ? (double)w->positions[i] : (double)i;
        float *cosine = w->r->cosine + i * w->r->half, *sine = w->r->sine + i * w->r->half;
        kern->angles(cosine, sine, w->frequency, position, w->r->half);
        if (w->scale == 0) continue;
        kern->scale(cosine, cosine, w->scale, w->r->half);
        kern->scale(sine, sine, w->scale, w->r->half);
    }
}

static turns *turns_for(qkv_tape *t, const qkv_tensor *x, const qkv_rope_opts *opts, int64_t heads)
{
    turns *r = qkv__save(t, sizeof *r);
    if (!r) return NULL;
    *r = (turns){ .heads = heads, .width = x->shape[2] / heads, .interleaved = opts->interleaved != 0 };
    r->half = (opts->width ? opts->width : r->width) / 2;
    r->table_rows = opts->positions ? x->shape[0] * x->shape[1] : x->shape[1];
    size_t bytes = sizeof(float) * (size_t)(r->table_rows * r->half);
    double *frequency = qkv__save(t, sizeof *frequency * (size_t)r->half);
    r->cosine = qkv__save(t, bytes);
    r->sine = qkv__save(t, bytes);
    if (!frequency || !r->cosine || !r->sine) return NULL;
    double base = opts->base == 0 ? 10000.0 : (double)opts->base;
    for (int64_t i = 0; i < r->half; i++)
        frequency[i] = opts->frequencies ? (double)opts->frequencies[i] : pow(base, -(double)i / (double)r->half);
    table_work w = { r, frequency, opts->positions, opts->scale };
    return qkv__parallel_for(t, r->table_rows, qkv__grain(r->half * 4), table_range, &w) ? r : NULL;
}

qkv_tensor *qkv_rope(qkv_tensor *x, const qkv_rope_opts *given)
{
    qkv_rope_opts own, *opts = &own;
    qkv_tape *t = qkv__operands("rotary", 1, &x);
    if (!t) return NULL;
    if (QKV__READ_OPTIONS(opts, frequencies, given, "rotary")) return qkv__error_below(t);
    int64_t heads = opts->heads ? opts->heads : 1;
    if (x->ndim != 3) return qkv__error(t, QKV_USAGE, "rotary: x is %s, it must be (B, T, heads*D)", QKV_TEXT(x));
    if (heads < 1 || x->shape[2] % heads || x->shape[2] / heads % 2)
        return qkv__error(t, QKV_USAGE, "rotary: x is %s: its last dimension must be %lld heads of an even width", QKV_TEXT(x),
                          (long long)heads);
    if (!(opts->base >= 0 && opts->base < INFINITY))
        return qkv__error(t, QKV_USAGE, "rotary: the base is %g, it must be positive", (double)opts->base);
    if (opts->width < 0 || opts->width > x->shape[2] / heads || opts->width % 2 || !isfinite(opts->scale))
        return qkv__error(t, QKV_USAGE, "rotary: of %lld numbers %lld turn, scaled by %g: expected an even part of a head",
                          (long long)(x->shape[2] / heads), (long long)opts->width, (double)opts->scale);
    qkv_tensor *y = qkv__result(t, x->ndim, x->shape, rotary_backward, 1, &x);
    turns *r = turns_for(t, x, opts, heads);
    if (!y || !r) return NULL;
    y->saved = r;
    work w = { .r = r, .to = y->data, .from = qkv_tensor_data(x) };
    return qkv__parallel_for(t, qkv__rows(y), qkv__grain(qkv__last(y)), rotary_forward_rows, &w) ? y : NULL;
}
