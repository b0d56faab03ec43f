/* mask.c: the operands, options and masks that both kinds of attention share. */
#include "mask.h"

#include "../base/options.h"

#include <math.h>

/* ---- operands ---- */

/* One of q, k, v as (batch, heads, length, width), however it came. */
typedef struct operand {
    int64_t batch, heads, length, width;
    qkv__strides rows;
} operand;

static bool read_operand(qkv_tape *t, const char *name, const char *which, const qkv_tensor *x, int64_t heads, operand *out)
{
    if (heads == 0 && x->ndim == 4) {
        const int64_t *s = x->shape;
        *out = (operand){ s[0], s[1], s[2], s[3], { s[1] * s[2] * s[3], s[2] * s[3], s[3] } };
        return true;
    }
    if (x->ndim != 2 && x->ndim != 3) {
        qkv__error(t, QKV_USAGE, "%s: %s has shape %s, expected 2 or 3 dimensions%s", name, which, QKV_TEXT(x),
                   heads ? " when heads are given" : ", or 4: (batch, heads, length, width)");
        return false;
    }
    int64_t columns = x->shape[x->ndim - 1], length = x->shape[x->ndim - 2], in = heads ? heads : 1;
    if (columns % in) {
        qkv__error(t, QKV_USAGE, "%s: %s has %lld columns, which %lld heads do not divide", name, which, (long long)columns,
                   (long long)in);
        return false;
    }
    *out = (operand){ x->ndim == 3 ? x->shape[0] : 1, in, length, columns / in, { length * columns, columns / in, columns } };
    return true;
}

static bool operands_fit(qkv_tape *t, const char *name, qkv_tensor *const qkv[3], const operand *q, const operand *k,
                         const operand *v)
{
    const char *problem = NULL;
    if (qkv[0]->ndim != qkv[1]->ndim || qkv[0]->ndim != qkv[2]->ndim) problem = "must have as many dimensions as each other";
    else if (q->batch != k->batch || k->batch != v->batch) problem = "must have the same batch";
    else if (k->length != v->length) problem = "k and v must have the same length";
    else if (k->heads != v->heads) problem = "k and v must have the same heads";
    else if (q->width != k->width) problem = "q and k must have the same width";
    else if (q->width < 1) problem = "q and k must not be of width 0";
    if (problem) {
        qkv__error(t, QKV_USAGE, "%s: q %s, k %s, v %s: %s", name, QKV_TEXT(qkv[0]), QKV_TEXT(qkv[1]), QKV_TEXT(qkv[2]),
                   problem);
        return false;
    }
    if (k->heads < 1 || q->heads % k->heads) {
        qkv__error(t, QKV_USAGE, "%s: q has %lld heads, k has %lld: the first must be a multiple of the second", name,
                   (long long)q->heads, (long long)k->heads);
        return false;
    }
    return true;
}

/* ---- masks ---- */

/* The steps of a map of this shape over (batch, heads, tq, tk), and how many elements it has. False when it does not stretch to
 * it. */
static bool map_steps(const int64_t shape[4], const qkv__attention *x, int64_t step[4], int64_t *count)
{
    const int64_t full[4] = { x->batch, x->heads, x->tq, x->tk };
    *count = 1;
    for (int i = 3; i >= 0; i--) {
        if (shape[i] != full[i] && shape[i] != 1) return false;
        step[i] = shape[i] == 1 ? 0 : *count;
        *count *= shape[i];
    }
    return true;
}

static bool does_not_stretch(qkv_tape *t, const char *name, const char *which, const int64_t shape[4], const qkv__attention *x)
{
    qkv__error(t, QKV_USAGE, "%s: %s %s does not stretch to (batch, heads, queries, keys) %s", name, which,
               qkv__shape_text((char[QKV_SHAPE_TEXT]){ 0 }, 4, shape),
               qkv__shape_text((char[QKV_SHAPE_TEXT]){ 0 }, 4, (int64_t[]){ x->batch, x->heads, x->tq, x->tk }));
    return false;
}

static bool read_lengths(qkv_tape *t, const char *name, const int32_t *lengths, const qkv__attention *x)
{
    for (int64_t b = 0; lengths && b < x->batch; b++)
        if (lengths[b] < 0 || lengths[b] > x->tk) {
            qkv__error(t, QKV_USAGE, "%s: key length %lld is %d, expected 0 to %lld", name, (long long)b, lengths[b],
                       (long long)x->tk);
            return false;
        }
    return true;
}

static bool read_keep(qkv_tape *t, const char *name, const qkv_mask *mask, qkv__attention *x, int64_t *count)
{
    *count = 0;
    if (!mask->keep) return true;
    if (!map_steps(mask->keep_shape, x, x->seen.keep_step, count))
        return does_not_stretch(t, name, "keep", mask->keep_shape, x);
    for (int64_t i = 0; i < *count; i++)
        if (mask->keep[i] > 1) {
            qkv__error(t, QKV_USAGE, "%s: keep[%lld] is %d, expected 0 or 1", name, (long long)i, mask->keep[i]);
            return false;
        }
    return true;
}

static bool read_bias(qkv_tape *t, const char *name, const qkv_mask *mask, qkv__attention *x, int64_t *count)
{
    *count = 0;
    if (!mask->bias) return true;
    if (!map_steps(mask->bias_shape, x, x->seen.bias_step, count))
        return does_not_stretch(t, name, "bias", mask->bias_shape, x);
    for (int64_t i = 0; i < *count; i++)
        if (!(mask->bias[i] < INFINITY)) {
            qkv__error(t, QKV_NUMERIC, "%s: bias[%lld] is %s, expected a finite number or -inf", name, (long long)i,
                       isnan(mask->bias[i]) ? "NaN" : "+inf");
            return false;
        }
    return true;
}

/* The same bytes on the tape; NULL for NULL. */
static const void *copy_to(qkv_tape *t, const void *from, size_t bytes)
{
    void *copy = from ? qkv__save(t, bytes) : NULL;
    return copy ? memcpy(copy, from, bytes) : NULL;
}

static bool read_mask(qkv_tape *t, const char *name, const qkv_mask *given, int64_t window, bool keeps, qkv__attention *x)
{
    int64_t keeps_count, bias_count;
    qkv_mask own, *mask = &own;
    if (QKV__READ_OPTIONS(mask, bias_shape, given, name)) return qkv__error_below(t);
    x->seen = (qkv__seen){
        .causal = mask->causal != 0, .lengths = mask->key_lengths, .keep = mask->keep, .bias = mask->bias, .window = window
    };
    if (mask->bias && x->cap > 0) {
        qkv__error(t, QKV_USAGE, "%s: scores have a cap or a bias, not both", name);
        return false;
    }
    if (!read_lengths(t, name, mask->key_lengths, x) || !read_keep(t, name, mask, x, &keeps_count) ||
        !read_bias(t, name, mask, x, &bias_count))
        return false;
    if (keeps) {
        x->seen.lengths = copy_to(t, mask->key_lengths, sizeof(int32_t) * (size_t)x->batch);
        x->seen.keep = copy_to(t, mask->keep, (size_t)keeps_count);
        x->seen.bias = copy_to(t, mask->bias, sizeof(float) * (size_t)bias_count);
    }
    return !qkv_tape_status(t);
}

/* ---- all of it ---- */

float qkv__default_scale(int64_t width) { return (float)(1 / sqrt((double)width)); }

qkv_status qkv__attention_options(qkv_attention_opts *to, const qkv_attention_opts *from, const char *name)
{
    qkv_status status = QKV__READ_OPTIONS(to, scaled, from, name);
    if (to->weights) *to->weights = NULL;
    if (to->scaled) *to->scaled = NULL;
    if (to->scores) *to->scores = NULL;
    return status;
}

static bool read_options(qkv_tape *t, const char *name, const qkv_attention_opts *opts, qkv__attention *x)
{
    float p = opts->dropout;
    if (!(p >= 0 && p < 1)) {
        qkv__error(t, QKV_USAGE, "%s: dropout is %g, expected 0 <= p < 1", name, (double)p);
        return false;
    }
    if (!isfinite(opts->scale)) {
        qkv__error(t, QKV_NUMERIC, "%s: the scale is %g, expected a finite number", name, (double)opts->scale);
        return false;
    }
    if (opts->window < 0 || !(opts->softcap >= 0 && opts->softcap < INFINITY)) {
        qkv__error(t, QKV_USAGE, "%s: the window is %lld and the cap %g, neither may be negative", name,
                   (long long)opts->window, (double)opts->softcap);
        return false;
    }
    x->scale = opts->scale;
    x->cap = opts->softcap;
    if (p == 0 || !qkv__is_training(t)) return true;
    x->drops = true;
    x->drop_scale = 1 / (1 - p);
    x->keep_below = qkv__keep_below(p);
    x->key = qkv__next_key(t);
    return true;
}

bool qkv__attention_setup(qkv_tape *t, const char *name, qkv_tensor *const qkv[3], const qkv_mask *mask,
                          const qkv_attention_opts *opts, bool keeps, qkv__attention *x, int *ndim, int64_t shape[4])
{
    operand q, k, v;
    int64_t heads = opts->heads, kv_heads = opts->kv_heads ? opts->kv_heads : heads;
    if (heads < 0 || kv_heads < 0) {
        qkv__error(t, QKV_USAGE, "%s: a negative number of heads: %lld and %lld", name, (long long)heads, (long long)kv_heads);
        return false;
    }
    if (!read_operand(t, name, "q", qkv[0], heads, &q) || !read_operand(t, name, "k", qkv[1], kv_heads, &k) ||
        !read_operand(t, name, "v", qkv[2], kv_heads, &v) || !operands_fit(t, name, qkv, &q, &k, &v))
        return false;
    *x = (qkv__attention){ .batch = q.batch,
                           .heads = q.heads,
                           .kv_heads = k.heads,
                           .tq = q.length,
                           .tk = k.length,
                           .dk = q.width,
                           .dv = v.width,
                           .q_rows = q.rows,
                           .k_rows = k.rows,
                           .v_rows = v.rows };
    *ndim = qkv[0]->ndim;
    memcpy(shape, qkv[0]->shape, sizeof(int64_t) * (size_t)*ndim);
    shape[*ndim - 1] = heads ? q.heads * v.width : v.width;
    bool by_head = *ndim == 4;
    x->y_rows = by_head ? (qkv__strides){ q.heads * q.length * v.width, q.length * v.width, v.width }
                        : (qkv__strides){ q.length * shape[*ndim - 1], v.width, shape[*ndim - 1] };
    return read_options(t, name, opts, x) && read_mask(t, name, mask, opts->window, keeps, x);
}

qkv_tensor *qkv__attention_map(qkv_tape *t, const qkv__attention *x)
{
    return qkv__result(t, 4, (int64_t[]){ x->batch, x->heads, x->tq, x->tk }, NULL, 0, NULL);
}
