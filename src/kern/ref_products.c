/* ref_products.c: what the matrix product and attention mean, in plain C with double sums. */
#include "flushed.h"
#include "isa.h"

#include <string.h>

void NAME(multiply)(const qkv__product *x, float *scratch)
{
    (void)scratch;
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t j = 0; j < x->n; j++) {
            double sum = x->add ? (double)x->c[i * x->c_row + j] : 0;
            for (int64_t p = 0; p < x->k; p++)
                sum += (double)x->a[i * x->a_row + p * x->a_col] * (double)x->b[p * x->b_row + j * x->b_col];
            x->c[i * x->c_row + j] = (float)sum + (x->bias ? x->bias[j] : 0);
        }
}

static void multiply_narrow(const qkv__product *x, const uint16_t *b, void (*widen)(float *y, const uint16_t *x, int64_t n))
{
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t j = 0; j < x->n; j++) {
            double sum = x->add ? (double)x->c[i * x->c_row + j] : 0;
            for (int64_t p = 0; p < x->k; p++) {
                float wide;
                widen(&wide, b + j * x->b_col + p, 1);
                sum += (double)x->a[i * x->a_row + p] * (double)wide;
            }
            x->c[i * x->c_row + j] = (float)sum + (x->bias ? x->bias[j] : 0);
        }
}

void NAME(dots_bfloat)(const qkv__product *x, const uint16_t *b) { multiply_narrow(x, b, NAME(widen_bfloat)); }
void NAME(dots_half)(const qkv__product *x, const uint16_t *b) { multiply_narrow(x, b, NAME(widen_half)); }

/* ---- bfloats on both sides ---- */

static float nearest_bfloat(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x)) bits |= 0x400000;
    else bits += 0x7fff + (bits >> 16 & 1);
    bits &= 0xffff0000;
    memcpy(&x, &bits, sizeof x);
    return qkv__flushed(x);
}

static float sum_of_blocks(const float *a, const uint16_t *b, int64_t k)
{
    float total = 0;
    for (int64_t block = 0; block < k; block += QKV__BFLOAT_BLOCK) {
        float chain[2] = { 0 };
        for (int64_t p = block; p < block + QKV__BFLOAT_BLOCK; p++) {
            float w = 0;
            if (p < k) NAME(widen_bfloat)(&w, b + p, 1);
            chain[p % 2] = qkv__add_flushed(chain[p % 2], p < k ? nearest_bfloat(a[p]) : 0, qkv__flushed(w));
        }
        float sum = qkv__flushed(chain[0] + chain[1]);
        total = qkv__flushed(total + sum);
    }
    return total;
}

static float sum_of_pairs(const float *a, const uint16_t *b, int64_t k)
{
    enum { CHAINS = QKV__PAIR_CHAINS };
    float chain[CHAINS] = { 0 }, total;
    for (int64_t pair = 0; pair < (k + 2 * CHAINS - 1) / (2 * CHAINS) * CHAINS; pair++)
        for (int64_t p = 2 * pair + 1; p >= 2 * pair; p--) {
            float w = 0, *sum = &chain[pair % CHAINS];
            if (p < k) NAME(widen_bfloat)(&w, b + p, 1);
            *sum = qkv__add_flushed(*sum, p < k ? nearest_bfloat(qkv__flushed(a[p])) : 0, qkv__flushed(w));
        }
    total = chain[0];
    for (int i = 1; i < CHAINS; i++) total += chain[i];
    return total;
}

static void multiply_bfloats(const qkv__product *x, const uint16_t *b,
                             float (*sum_of)(const float *, const uint16_t *, int64_t))
{
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t j = 0; j < x->n; j++) {
            float *c = x->c + i * x->c_row + j, sum = sum_of(x->a + i * x->a_row, b + j * x->b_col, x->k);
            if (x->add) sum = *c + sum;
            *c = x->bias ? sum + x->bias[j] : sum;
        }
}

void NAME(multiply_bfloat)(const qkv__product *x, const uint16_t *b, void *scratch)
{
    (void)scratch;
    multiply_bfloats(x, b, sum_of_blocks);
}

void NAME(multiply_pairs)(const qkv__product *x, const uint16_t *b, void *scratch)
{
    (void)scratch;
    multiply_bfloats(x, b, sum_of_pairs);
}

int64_t NAME(packed_floats)(int64_t n, int64_t k)
{
    (void)n, (void)k;
    return 0;
}

void NAME(pack_weight)(float *out, const float *w, int64_t n, int64_t k, int64_t from, int64_t to)
{
    (void)out, (void)w, (void)n, (void)k, (void)from, (void)to;
}

/* ---- attention ---- */

static const float *row_of(const float *data, qkv__strides at, int64_t b, int64_t h, int64_t t)
{
    return data + b * at.batch + h * at.head + t * at.row;
}

static int64_t kv_head_of(const qkv__attention *x, int64_t h) { return h / (x->heads / x->kv_heads); }

static double raw_score(const qkv__attention *x, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const float *q = row_of(x->q, x->q_rows, b, h, i), *k = row_of(x->k, x->k_rows, b, kv_head_of(x, h), j);
    double sum = 0;
    for (int64_t d = 0; d < x->dk; d++) sum += (double)q[d] * (double)k[d];
    return sum;
}

static double capped(double score, float cap) { return cap > 0 ? (double)cap * tanh(score / (double)cap) : score; }

/* -inf where key j is hidden from query i */
static double scaled_score(const qkv__attention *x, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const int64_t *ks = x->seen.keep_step, *bs = x->seen.bias_step;
    if (j < qkv__seen_from(x, i) || j >= qkv__seen_to(x, b, i)) return -INFINITY;
    if (x->seen.keep && !x->seen.keep[b * ks[0] + h * ks[1] + i * ks[2] + j * ks[3]]) return -INFINITY;
    double bias = x->seen.bias ? (double)x->seen.bias[b * bs[0] + h * bs[1] + i * bs[2] + j * bs[3]] : 0;
    return capped(raw_score(x, b, h, i, j) * (double)x->scale, x->cap) + bias;
}

static double gate_of(const qkv__attention *x, int64_t b, int64_t h, int64_t i, int64_t j)
{
    uint32_t word[2];
    if (!x->drops) return 1;
    qkv__threefry(x->key, (uint32_t)((b * x->heads + h) * x->tq + i), (uint32_t)(j / 2), word);
    return word[j % 2] < x->keep_below ? (double)x->drop_scale : 0;
}

/* 0 where hidden: the largest score is kept as a float, so that all kernels see the same number */
static double weight_of(const qkv__attention *x, int64_t b, int64_t h, int64_t i, int64_t j)
{
    int64_t row = (b * x->heads + h) * x->tq + i;
    return exp(scaled_score(x, b, h, i, j) - (double)x->largest[row]) * (double)x->inverse[row];
}

static void attend_row(const qkv__attention *x, int64_t b, int64_t h, int64_t i, double *out)
{
    int64_t row = (b * x->heads + h) * x->tq + i;
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < x->tk; j++) {
        double score = scaled_score(x, b, h, i, j);
        if (score > largest) largest = score;
    }
    x->largest[row] = largest > -INFINITY ? (float)largest : 0;
    for (int64_t j = 0; j < x->tk; j++) sum += exp(scaled_score(x, b, h, i, j) - (double)x->largest[row]);
    x->inverse[row] = sum == 0 ? 0 : (float)(1 / sum);
    float *y = x->y + b * x->y_rows.batch + h * x->y_rows.head + i * x->y_rows.row;
    for (int64_t d = 0; d < x->dv; d++) out[d] = 0;
    for (int64_t j = 0; j < qkv__seen_to(x, b, i); j++) {
        const float *v = row_of(x->v, x->v_rows, b, kv_head_of(x, h), j);
        double weight = weight_of(x, b, h, i, j) * gate_of(x, b, h, i, j);
        for (int64_t d = 0; weight != 0 && d < x->dv; d++) out[d] += weight * (double)v[d];
    }
    for (int64_t d = 0; d < x->dv; d++) y[d] = (float)out[d];
}

void NAME(attend)(const qkv__attention *x, int64_t b, int64_t h, int64_t from, int64_t to, float *scratch)
{
    for (int64_t i = from; i < to; i++) attend_row(x, b, h, i, (double *)(void *)scratch);
}

void NAME(attend_show)(const qkv__attention *x, int64_t b, int64_t h, int64_t from, int64_t to, float *scratch)
{
    (void)scratch;
    for (int64_t i = from; i < to; i++)
        for (int64_t j = 0; j < x->tk; j++) {
            int64_t at = ((b * x->heads + h) * x->tq + i) * x->tk + j;
            if (x->scores) x->scores[at] = (float)raw_score(x, b, h, i, j);
            if (x->scaled) x->scaled[at] = (float)scaled_score(x, b, h, i, j);
            if (x->weights) x->weights[at] = (float)weight_of(x, b, h, i, j);
        }
}

/* One weight's part of the gradients; attention.c has the equations. */
static void add_gradient(const qkv__attention *x, int64_t b, int64_t h, int64_t i, int64_t j, double delta)
{
    int64_t kv_head = kv_head_of(x, h), k_at = b * x->k_rows.batch + kv_head * x->k_rows.head + j * x->k_rows.row;
    int64_t q_at = b * x->q_rows.batch + h * x->q_rows.head + i * x->q_rows.row;
    const float *dy = row_of(x->dy, x->y_rows, b, h, i), *v = row_of(x->v, x->v_rows, b, kv_head, j);
    double weight = weight_of(x, b, h, i, j), gate = gate_of(x, b, h, i, j), dweight = 0;
    if (weight == 0) return;
    for (int64_t d = 0; d < x->dv; d++) {
        dweight += gate * (double)dy[d] * (double)v[d];
        if (x->grad_v) x->grad_v[v - x->v + d] += (float)(weight * gate * (double)dy[d]);
    }
    double dscore = weight * (dweight - delta) * (double)x->scale;
    if (x->cap > 0) dscore *= 1 - pow(scaled_score(x, b, h, i, j) / (double)x->cap, 2); /* tanh' = 1 - tanh^2 */
    if (x->grad_relative)
        x->grad_relative[(b * x->heads + h) * (x->tq + x->tk - 1) + j - i + x->tq - 1] += (float)(weight * (dweight - delta));
    for (int64_t d = 0; d < x->dk; d++) {
        if (x->grad_q) x->grad_q[q_at + d] += (float)(dscore * (double)x->k[k_at + d]);
        if (x->grad_k) x->grad_k[k_at + d] += (float)(dscore * (double)x->q[q_at + d]);
    }
}

void NAME(attend_grad)(const qkv__attention *x, int64_t b, int64_t kv_head, float *scratch)
{
    (void)scratch;
    int64_t group = x->heads / x->kv_heads;
    for (int64_t h = kv_head * group; h < (kv_head + 1) * group; h++)
        for (int64_t i = 0; i < x->tq; i++) {
            const float *dy = row_of(x->dy, x->y_rows, b, h, i), *y = row_of(x->y, x->y_rows, b, h, i);
            double delta = 0;
            for (int64_t d = 0; d < x->dv; d++) delta += (double)dy[d] * (double)y[d];
            for (int64_t j = 0; j < qkv__seen_to(x, b, i); j++) add_gradient(x, b, h, i, j, delta);
        }
}

/* ---- pages ---- */

static double paged_key(const qkv__paged *x, int64_t kv_head, int64_t j, int64_t d)
{
    return (double)x->pages[j / QKV__PAGE][x->at + (kv_head * x->dk + d) * QKV__PAGE + j % QKV__PAGE];
}

static double paged_value(const qkv__paged *x, int64_t kv_head, int64_t j, int64_t d)
{
    int64_t values = x->at + x->kv_heads * x->dk * QKV__PAGE;
    return (double)x->pages[j / QKV__PAGE][values + (kv_head * QKV__PAGE + j % QKV__PAGE) * x->dv + d];
}

static double paged_score(const qkv__paged *x, int64_t h, int64_t i, int64_t j)
{
    double sum = 0;
    if (x->hidden && x->hidden[j]) return -INFINITY;
    for (int64_t d = 0; d < x->dk; d++)
        sum += (double)x->q[i * x->q_row + h * x->dk + d] * paged_key(x, h / (x->heads / x->kv_heads), j, d);
    double bias = x->relative.at ? (double)x->relative.at[h * x->relative.row + j - (x->keys - x->n + i)] : 0;
    return capped(sum * (double)x->scale, x->cap) + bias;
}

static void attend_paged_row(const qkv__paged *x, int64_t h, int64_t i, double *out)
{
    int64_t kv_head = h / (x->heads / x->kv_heads), from = qkv__paged_from(x, i), to = qkv__paged_to(x, i);
    double largest = -INFINITY, sum = 0;
    for (int64_t j = from; j < to; j++) largest = fmax(largest, paged_score(x, h, i, j));
    float base = largest > -INFINITY ? (float)largest : 0;
    for (int64_t j = from; j < to; j++) sum += exp(paged_score(x, h, i, j) - (double)base);
    float inverse = sum == 0 ? 0 : (float)(1 / sum), *weights = x->weights ? x->weights + (h * x->n + i) * x->keys : NULL;
    for (int64_t d = 0; d < x->dv; d++) out[d] = 0;
    for (int64_t j = 0; j < x->keys; j++) {
        double weight = j >= from && j < to ? exp(paged_score(x, h, i, j) - (double)base) * (double)inverse : 0;
        for (int64_t d = 0; weight != 0 && d < x->dv; d++) out[d] += weight * paged_value(x, kv_head, j, d);
        if (weights) weights[j] = (float)weight;
    }
    for (int64_t d = 0; d < x->dv; d++) x->y[i * x->y_row + h * x->dv + d] = (float)out[d];
}

void NAME(attend_paged)(const qkv__paged *x, int64_t h, int64_t from, int64_t to, float *scratch)
{
    for (int64_t i = from; i < to; i++) attend_paged_row(x, h, i, (double *)(void *)scratch);
}
