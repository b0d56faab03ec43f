/* norm.c: clipping gradients that ranks have summed. */
#include "norm.h"

#include "../base/memory.h"
#include "../base/pool.h"
#include "../base/size.h"
#include "../nn/params.h"

#include <math.h>

typedef struct clipping {
    const qkv__slices *slices;
    float *grad;
    double *squares; /* of each unit, their sum */
    float factor;
} clipping;

/* What this rank has of a bucket: a task. */
static qkv__span own_span(const clipping *c, int64_t bucket)
{
    return qkv__slice(c->slices, bucket, c->slices->rank); /* of one rank: the whole bucket */
}

static double square_unit(const float *at, int64_t n)
{
    double lane[8] = { 0 };
    for (int64_t i = 0; i < n; i += 8) /* a block is a multiple of 16 */
        for (int j = 0; j < 8; j++) lane[j] += (double)at[i + j] * (double)at[i + j];
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

static void square_task(void *work, int64_t bucket, void *scratch)
{
    (void)scratch;
    const clipping *c = work;
    qkv__span own = own_span(c, bucket);
    for (int64_t at = own.from; at < own.to; at += QKV__UNIT)
        c->squares[at / QKV__UNIT] = square_unit(c->grad + at, qkv__min(QKV__UNIT, own.to - at));
}

static void scale_task(void *work, int64_t bucket, void *scratch)
{
    (void)scratch;
    const clipping *c = work;
    qkv__span own = own_span(c, bucket);
    for (int64_t i = own.from; i < own.to; i++) c->grad[i] *= c->factor;
}

static qkv_status clip(clipping *c, int64_t units, float max_norm, float *norm)
{
    int64_t buckets = qkv__buckets(c->slices);
    qkv_status status = qkv__parallel(buckets, 0, square_task, c);
    if (!status && c->slices->ranks > 1) status = qkv__share_units(c->slices, c->squares);
    if (status) return status;
    double sum = 0;
    for (int64_t i = 0; i < units; i++) sum += c->squares[i];
    *norm = (float)sqrt(sum);
    if (!isfinite(*norm)) return qkv__fail(QKV_NUMERIC, "clip: the norm of the gradients is %g", (double)*norm);
    if (*norm <= max_norm) return QKV_OK;
    c->factor = (float)((double)max_norm / sqrt(sum));
    return qkv__parallel(buckets, 0, scale_task, c);
}

qkv_status qkv__clip_slices(qkv_params *p, const qkv__slices *s, float max_norm, float *norm)
{
    int64_t units = qkv__ceil_div(s->count, QKV__UNIT);
    clipping c = { .slices = s, .grad = qkv__params_grad(p) };
    size_t bytes = sizeof *c.squares * (size_t)units;
    if (!(c.squares = qkv__alloc(bytes))) return QKV_MEMORY;
    qkv_status status = clip(&c, units, max_norm, norm);
    qkv__release(c.squares, bytes);
    return status;
}
