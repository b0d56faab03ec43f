/* quantized.c: weights in 8 and 4 bits: made, widened, and multiplied on all threads. */
#include "quantized.h"

#include <math.h>

enum { GROUP = QKV__GROUP, BYTES = QKV__GROUP_BYTES };

/* ---- making: 8 bits ---- */

static bool quantize_int8(const float *x, int64_t rows, int64_t in, int8_t *values, float *scales)
{
    kern->quantize_rows(values, in, scales, x, rows, in, in);
    for (int64_t r = 0; r < rows; r++)
        if (!isfinite(scales[r])) return false;
    return true;
}

/* ---- making: 4 bits ---- */

/* The nearest IEEE half, ties to even; infinity for what is too large. */
static uint16_t half_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
    if (size < 0x38800000) return (uint16_t)(sign | (uint32_t)lrintf(fabsf(x) * 0x1p24f)); /* too small to be normal */
    return (uint16_t)(sign | (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13);
}

/* The whole numbers -8 .. 7 next to x * inverse; and their products with x and with themselves, summed. */
static void round_group(const float x[GROUP], float inverse, float q[GROUP], float *xq, float *qq)
{
    const float round_magic = 12582912.0f;
    enum { LANES = 8 };
    float with_x[LANES] = { 0 }, with_q[LANES] = { 0 };
    for (int i = 0; i < GROUP; i++) {
        float scaled = x[i] * inverse;
        scaled = scaled > 7 ? 7 : scaled < -8 ? -8 : scaled;
        q[i] = (scaled + round_magic) - round_magic;
    }
    for (int i = 0; i < GROUP; i += LANES)
        for (int l = 0; l < LANES; l++) with_x[l] += x[i + l] * q[i + l], with_q[l] += q[i + l] * q[i + l];
    *xq = *qq = 0;
    for (int l = 0; l < LANES; l++) *xq += with_x[l], *qq += with_q[l];
}

/* The number of the largest size becomes about -8, so that one more step is of use; the scale then has its sign turned. For the
 * whole numbers q the best scale s is (sum of xq) / (sum of qq), and what is lost, (x - s q)^2 summed, is least where
 * 2 s xq - s^2 qq is largest. */
static uint16_t fit_group(const float x[GROUP], float largest, float best[GROUP])
{
    enum { TRIES = 9 };
    float best_gain = -INFINITY;
    uint16_t best_scale = 0x7c00; /* infinity, where no scale is large enough */
    for (int t = 0; t < TRIES; t++) {
        float q[GROUP], xq, qq, scale;
        round_group(x, -(7.2f + 0.2f * (float)t) / largest, q, &xq, &qq);
        uint16_t half = half_of(qq > 0 ? xq / qq : 0);
        kern->widen_half(&scale, &half, 1);
        float gain = 2 * scale * xq - scale * scale * qq;
        if (!(gain > best_gain)) continue;
        best_gain = gain, best_scale = half;
        memcpy(best, q, sizeof q);
    }
    return best_scale;
}

static bool quantize_group(const float *from, int64_t n, uint8_t bytes[BYTES], uint16_t *scale)
{
    float x[GROUP] = { 0 }, q[GROUP] = { 0 }, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(from[i])) return false;
        x[i] = from[i];
        if (fabsf(x[i]) > fabsf(largest)) largest = x[i];
    }
    *scale = fabsf(largest) < QKV__SMALLEST ? 0 : fit_group(x, largest, q);
    for (int i = 0; i < BYTES; i++) bytes[i] = (uint8_t)(((int)q[i] + 8) | ((int)q[BYTES + i] + 8) << 4);
    return (*scale & 0x7c00) != 0x7c00;
}

static bool quantize_int4(const float *x, int64_t rows, int64_t in, uint8_t *bytes, uint16_t *scales)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < in; i += GROUP, bytes += BYTES, scales++)
            if (!quantize_group(x + r * in + i, qkv__min(GROUP, in - i), bytes, scales)) return false;
    return true;
}

/* ---- making: 16 bits, the upper half of a float ---- */

/* The nearest, ties to even: what is above the largest becomes infinity, and a NaN stays one. */
static bool round_to_bf16(const float *x, int64_t n, uint16_t *to)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bits = isnan(x[i]) ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1);
        to[i] = (uint16_t)(bits >> 16);
    }
    return true;
}

bool qkv__quantize_weight(const qkv__type *type, const float *x, int64_t rows, int64_t in, void *values, void *scales)
{
    if (type->bits == 16) return round_to_bf16(x, rows * in, values);
    return type->bits == 8 ? quantize_int8(x, rows, in, values, scales) : quantize_int4(x, rows, in, values, scales);
}

/* ---- widening ---- */

void qkv__widen_int8(float *to, const qkv_tensor *w, int64_t first, int64_t n)
{
    const int8_t *values = w->values;
    const float *scales = w->scales;
    int64_t in = w->shape[1];
    for (int64_t end = first + n; first < end;) {
        int64_t row = first / in, row_end = qkv__min(end, (row + 1) * in);
        for (; first < row_end; first++) *to++ = (float)values[first] * scales[row];
    }
}

void qkv__widen_int4(float *to, const qkv_tensor *w, int64_t first, int64_t n)
{
    int64_t in = w->shape[1], groups = qkv__groups(in);
    for (int64_t i = first; i < first + n;) {
        int64_t row = i / in, column = i % in, group = row * groups + column / GROUP, at = column % GROUP;
        const uint8_t *bytes = (const uint8_t *)w->values + group * BYTES;
        int64_t end = qkv__min(qkv__min(GROUP, at + first + n - i), at + in - column);
        float scale;
        kern->widen_half(&scale, (const uint16_t *)w->scales + group, 1);
        for (; at < end; at++, i++) *to++ = (float)((bytes[at % BYTES] >> at / BYTES * 4 & 15) - 8) * scale;
    }
}

/* ---- multiplying ---- */

typedef struct quantized_cut {
    qkv__quantized whole;
    int64_t rows, columns;         /* of a task's part of c */
    int64_t row_cuts, column_cuts; /* tasks a product */
} quantized_cut;

/* Products of the same rows: they are quantized once. */
typedef struct quantized_work {
    const qkv__type *type;
    const float *x;
    int64_t m, k;
    int8_t *q;
    float *scales;
    quantized_cut at[QKV__TOGETHER];
} quantized_work;

static int64_t groups_of(const quantized_work *w) { return qkv__type_row_scales(w->type, w->k); }
static int64_t rows_at_once(const quantized_work *w) { return qkv__max(1, QKV_TASK_ELEMENTS / w->k); }

static void quantize_part(void *work, int64_t task, void *scratch)
{
    (void)scratch;
    const quantized_work *w = work;
    int64_t k = w->k, whole = qkv__whole_groups(k), grain = rows_at_once(w), i = task * grain;
    kern->quantize_rows(w->q + i * whole, whole, w->scales + i * groups_of(w), w->x + i * k, qkv__min(grain, w->m - i), k,
                        w->type->bits == 4 ? GROUP : k);
}

static void multiply_quantized_part(void *work, int64_t task, void *scratch)
{
    const quantized_work *w = work;
    const quantized_cut *cut = w->at;
    for (; task >= cut->row_cuts * cut->column_cuts; cut++) task -= cut->row_cuts * cut->column_cuts;
    int64_t i = task / cut->column_cuts * cut->rows, j = task % cut->column_cuts * cut->columns, scales = groups_of(w);
    qkv__quantized x = cut->whole;
    x.m = qkv__min(cut->rows, x.m - i);
    x.n = qkv__min(cut->columns, x.n - j);
    x.a = w->q + i * qkv__whole_groups(x.k);
    x.a_scales = w->scales + i * scales;
    x.w = (const char *)x.w + j * qkv__type_row_bytes(w->type, x.k);
    x.w_scales = (const char *)x.w_scales + j * scales * qkv__type_scale_bytes(w->type);
    x.c += i * x.c_row + j;
    if (x.bias) x.bias += j;
    if (w->type->bits == 8) kern->multiply_int8(&x, scratch);
    else kern->multiply_int4(&x, scratch);
}

/* Rows are cut first: every task packs those that it has, or the weights for them. Columns follow until there are a few parts to
 * share, or they would be too small. A thread that is alone packs all of them once. Gives the tasks. */
static int64_t cut_quantized(quantized_cut *w)
{
    enum { ROWS = 3 * QKV__QUANTIZED_ROWS, COLUMNS = 1024, TILE = 96, WANTED = 4, LEAST_WORK = 1 << 16 };
    bool alone = qkv__is_alone();
    int64_t m = w->whole.m, n = w->whole.n, row_cuts = alone ? 1 : qkv__ceil_div(m, ROWS);
    w->rows = qkv__round_up(qkv__ceil_div(m, row_cuts), 16);
    w->row_cuts = row_cuts = qkv__ceil_div(m, w->rows);
    int64_t cuts = alone ? 1 : qkv__max(qkv__ceil_div(n, COLUMNS), qkv__ceil_div(WANTED, row_cuts));
    int64_t least = qkv__ceil_div(LEAST_WORK, qkv__max(1, qkv__min(m, w->rows) * w->whole.k));
    w->columns = qkv__round_up(qkv__max(qkv__ceil_div(n, cuts), qkv__min(least, n)), TILE);
    w->column_cuts = qkv__ceil_div(n, w->columns);
    return row_cuts * w->column_cuts;
}

static qkv_status run_quantized(quantized_work *w, int64_t tasks)
{
    qkv_status status = qkv__parallel(qkv__ceil_div(w->m, rows_at_once(w)), 0, quantize_part, w);
    return status ? status : qkv__parallel(tasks, qkv__quantized_scratch(w->k), multiply_quantized_part, w);
}

qkv_status qkv__multiply_quantized(const qkv__product *p, const qkv_tensor *const *w, int n)
{
    enum { SMALL = 1 << 14 }; /* bytes: a few rows are multiplied without an allocation */
    _Alignas(64) char small[SMALL];
    quantized_work x = { .type = w[0]->type, .x = p->a, .m = p->m, .k = p->k };
    int64_t tasks = 0;
    if (p->m <= 0) return QKV_OK;
    for (int i = 0; i < n; i++) {
        x.at[i].whole = (qkv__quantized){ .w = w[i]->values,
                                          .w_scales = w[i]->scales,
                                          .bias = p[i].bias,
                                          .c = p[i].c,
                                          .m = p->m,
                                          .n = p[i].n,
                                          .k = p->k,
                                          .c_row = p[i].c_row };
        tasks += cut_quantized(&x.at[i]);
    }
    size_t scales = sizeof *x.scales * (size_t)(p->m * groups_of(&x)),
           bytes = scales + (size_t)(p->m * qkv__whole_groups(p->k));
    void *memory = bytes <= SMALL ? small : qkv__alloc(bytes);
    if (!memory) return QKV_MEMORY;
    x.scales = memory;
    x.q = (int8_t *)memory + scales;
    qkv_status status = run_quantized(&x, tasks);
    if (memory != small) qkv__release(memory, bytes);
    return status;
}
