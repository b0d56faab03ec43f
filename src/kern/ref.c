/* ref.c: what every kernel means, in plain C with double sums: the oracle that the fast ones are compared with. */
#include "isa.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double normal_below(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
static double normal_density(double x) { return 0.39894228040143267794 * exp(-0.5 * x * x); }

/* gelu_tanh(x) = x sigmoid(2u), for tanh(u) = 2 sigmoid(2u) - 1 */
static double gelu_tanh_2u(double x) { return 1.59576912160573071176 * (x + 0.044715 * x * x * x); }

/* ---- element by element ---- */

#define MAP(name, value)                                  \
    void NAME(name)(float *y, const float *x_, int64_t n) \
    {                                                     \
        for (int64_t i = 0; i < n; i++) {                 \
            double x = x_[i];                             \
            y[i] = (float)(value);                        \
        }                                                 \
    }
MAP(exp, exp(x))
MAP(relu, x < 0 ? 0 : x)
MAP(gelu, x *normal_below(x))
MAP(gelu_tanh, x *sigmoid(gelu_tanh_2u(x)))
MAP(silu, x *sigmoid(x))
MAP(tanh, tanh(x))
MAP(sigmoid, sigmoid(x))

static double gelu_tanh_slope(double x)
{
    double s = sigmoid(gelu_tanh_2u(x));
    return s + x * s * (1 - s) * 1.59576912160573071176 * (1 + 3 * 0.044715 * x * x);
}

#define MAP_ADD(name, slope)                                                \
    void NAME(name)(float *dx, const float *x_, const float *dy, int64_t n) \
    {                                                                       \
        for (int64_t i = 0; i < n; i++) {                                   \
            double x = x_[i];                                               \
            dx[i] = (float)(dx[i] + dy[i] * (slope));                       \
        }                                                                   \
    }
MAP_ADD(relu_grad, x > 0)
MAP_ADD(gelu_grad, normal_below(x) + x * normal_density(x))
MAP_ADD(gelu_tanh_grad, gelu_tanh_slope(x))
MAP_ADD(silu_grad, sigmoid(x) * (1 + x * (1 - sigmoid(x))))
MAP_ADD(tanh_grad, 1 - x * x)
MAP_ADD(sigmoid_grad, x *(1 - x))
MAP_ADD(mul_add, x)

void NAME(add)(float *y, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

void NAME(sub)(float *y, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = a[i] - b[i];
}

void NAME(mul)(float *y, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = a[i] * b[i];
}

void NAME(silu_gated)(float *y, const float *gate, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = (float)(gate[i] * sigmoid(gate[i]) * x[i]);
}

void NAME(silu_gated_grad)(float *dgate, float *dx, const float *gate, const float *x, const float *dy, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double s = sigmoid(gate[i]);
        if (dgate) dgate[i] = (float)(dgate[i] + s * (1 + gate[i] * (1 - s)) * x[i] * dy[i]);
        if (dx) dx[i] = (float)(dx[i] + s * gate[i] * dy[i]);
    }
}

void NAME(gelu_gated)(float *y, const float *gate, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = (float)(gate[i] * normal_below(gate[i]) * x[i]);
}

void NAME(gelu_gated_grad)(float *dgate, float *dx, const float *gate, const float *x, const float *dy, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double below = normal_below(gate[i]);
        if (dgate) dgate[i] = (float)(dgate[i] + (below + gate[i] * normal_density(gate[i])) * x[i] * dy[i]);
        if (dx) dx[i] = (float)(dx[i] + gate[i] * below * dy[i]);
    }
}

void NAME(scale)(float *y, const float *x, float by, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = by * x[i];
}

void NAME(axpy)(float *y, const float *x, float by, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = (float)(y[i] + (double)by * x[i]);
}

void NAME(add_difference)(float *y, const float *a, const float *b, float by, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = (float)(y[i] + by * ((double)a[i] - b[i]));
}

/* ---- dropout ---- */

static bool keeps(int64_t element, qkv__key key, uint32_t below)
{
    uint64_t e = (uint64_t)element, counter = e / 32 * 16 + e % 16;
    uint32_t words[2];
    qkv__threefry(key, (uint32_t)counter, (uint32_t)(counter >> 32), words);
    return words[e % 32 / 16] < below;
}

void NAME(dropout)(float *y, const float *x, int64_t n, int64_t first, qkv__key key, uint32_t below, float by)
{
    for (int64_t i = 0; i < n; i++) y[i] = keeps(first + i, key, below) ? by * x[i] : 0;
}

void NAME(dropout_grad)(float *dx, const float *dy, int64_t n, int64_t first, qkv__key key, uint32_t below, float by)
{
    for (int64_t i = 0; i < n; i++) dx[i] += keeps(first + i, key, below) ? by * dy[i] : 0;
}

/* ---- sums ---- */

#define SUM(name, term)                                \
    float NAME(name)(const float *x, int64_t n)        \
    {                                                  \
        double sum = 0;                                \
        for (int64_t i = 0; i < n; i++) sum += (term); \
        return (float)sum;                             \
    }
SUM(sum, x[i])
SUM(sum_squares, (double)x[i] * x[i])

float NAME(max)(const float *x, int64_t n)
{
    float most = -INFINITY;
    for (int64_t i = 0; i < n; i++) most = x[i] > most ? x[i] : most;
    return most;
}

#define SUM2(name, a, b, term)                                  \
    float NAME(name)(const float *a, const float *b, int64_t n) \
    {                                                           \
        double sum = 0;                                         \
        for (int64_t i = 0; i < n; i++) sum += (term);          \
        return (float)sum;                                      \
    }
SUM2(dot, a, b, (double)a[i] * b[i])
SUM2(squared_distance, a, b, ((double)a[i] - b[i]) * ((double)a[i] - b[i]))

void NAME(add_rows)(float *y, const float *x, int64_t rows, int64_t stride, int64_t n)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < n; j++) y[j] += x[r * stride + j];
}

/* ---- rows ---- */

static double log_sum_exp(const float *x, double max, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += exp(x[i] - max);
    return log(sum);
}

void NAME(softmax)(float *y, const float *x, int64_t rows, int64_t n)
{
    for (; rows > 0; rows--, x += n, y += n) {
        double max = NAME(max)(x, n), sum = log_sum_exp(x, max, n);
        for (int64_t i = 0; i < n; i++) y[i] = max > -INFINITY ? (float)exp(x[i] - max - sum) : isnan(x[i]) ? x[i] : 0;
    }
}

void NAME(log_softmax)(float *y, const float *x, int64_t rows, int64_t n)
{
    for (; rows > 0; rows--, x += n, y += n) {
        double max = NAME(max)(x, n), sum = log_sum_exp(x, max, n);
        for (int64_t i = 0; i < n; i++) y[i] = max > -INFINITY ? (float)(x[i] - max - sum) : x[i];
    }
}

void NAME(softmax_grad)(float *dx, const float *y, const float *dy, int64_t rows, int64_t n)
{
    for (; rows > 0; rows--, dx += n, y += n, dy += n) {
        double mean = 0;
        for (int64_t i = 0; i < n; i++) mean += (double)y[i] * dy[i];
        for (int64_t i = 0; i < n; i++) dx[i] = (float)(dx[i] + y[i] * (dy[i] - mean));
    }
}

void NAME(log_softmax_grad)(float *dx, const float *y, const float *dy, int64_t rows, int64_t n)
{
    for (; rows > 0; rows--, dx += n, y += n, dy += n) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += dy[i];
        for (int64_t i = 0; i < n; i++) dx[i] = (float)(dx[i] + dy[i] - exp(y[i]) * sum);
    }
}

/* The normalised x, from what the forward kept. */
static double normal(const float *x, const float *stats, int64_t i) { return ((double)x[i] - stats[0] - stats[1]) * stats[2]; }

void NAME(layernorm)(float *y, float *stats, const float *x, const float *gain, const float *bias, float eps, int64_t rows,
                     int64_t n)
{
    for (; rows > 0; rows--, y += n, x += n, stats += 3) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
        for (int64_t i = 0; i < n; i++) variance += (x[i] - mean) * (x[i] - mean) / (double)n;
        stats[0] = (float)mean;
        stats[1] = (float)(mean - stats[0]);
        stats[2] = (float)(1 / sqrt(variance + eps));
        for (int64_t i = 0; i < n; i++) y[i] = (float)(normal(x, stats, i) * gain[i] + (bias ? bias[i] : 0));
    }
}

void NAME(rmsnorm)(float *y, float *stats, const float *x, const float *gain, float eps, int64_t rows, int64_t n)
{
    for (; rows > 0; rows--, y += n, x += n, stats += 3) {
        double squares = 0;
        for (int64_t i = 0; i < n; i++) squares += (double)x[i] * x[i] / (double)n;
        stats[0] = stats[1] = 0;
        stats[2] = (float)(1 / sqrt(squares + eps));
        for (int64_t i = 0; i < n; i++) y[i] = (float)(normal(x, stats, i) * gain[i]);
    }
}

static void norm_grad(float *dx, const float *x, const float *dy, const float *gain, const float *stats, int64_t n,
                      bool centred)
{
    double mean = 0, along = 0;
    for (int64_t i = 0; i < n; i++) {
        if (centred) mean += (double)dy[i] * gain[i] / (double)n;
        along += (double)dy[i] * gain[i] * normal(x, stats, i) / (double)n;
    }
    for (int64_t i = 0; i < n; i++)
        dx[i] = (float)(dx[i] + stats[2] * ((double)dy[i] * gain[i] - mean - normal(x, stats, i) * along));
}

void NAME(layernorm_grad)(float *dx, const float *x, const float *dy, const float *gain, const float *stats, int64_t rows,
                          int64_t n)
{
    for (int64_t r = 0; r < rows; r++) norm_grad(dx + r * n, x + r * n, dy + r * n, gain, stats + 3 * r, n, true);
}

void NAME(rmsnorm_grad)(float *dx, const float *x, const float *dy, const float *gain, const float *stats, int64_t rows,
                        int64_t n)
{
    for (int64_t r = 0; r < rows; r++) norm_grad(dx + r * n, x + r * n, dy + r * n, gain, stats + 3 * r, n, false);
}

void NAME(norm_grad_gain)(float *dgain, float *dbias, const float *x, const float *dy, const float *stats, int64_t rows,
                          int64_t stride, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        double gain = 0, bias = 0;
        for (int64_t r = 0; r < rows; r++) {
            gain += dy[r * stride + j] * normal(x + r * stride, stats + 3 * r, j);
            bias += dy[r * stride + j];
        }
        if (dgain) dgain[j] = (float)(dgain[j] + gain);
        if (dbias) dbias[j] = (float)(dbias[j] + bias);
    }
}

void NAME(log_sum)(float out[3], const float *x, int64_t n)
{
    double below = 0;
    out[0] = NAME(max)(x, n);
    for (int64_t i = 0; i < n; i++) below += (double)x[i] - out[0];
    out[1] = (float)log_sum_exp(x, out[0], n);
    out[2] = (float)below;
}

void NAME(cross_entropy_grad)(float *dx, const float *x, float max, float log_sum, float uniform, float by, bool add_to,
                              int64_t n)
{
    for (int64_t i = 0; i < n; i++) dx[i] = (float)((add_to ? dx[i] : 0) + by * (exp((double)x[i] - max - log_sum) - uniform));
}

/* ---- 16 bits ---- */

void NAME(widen_bfloat)(float *y, const uint16_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)x[i] << 16;
        memcpy(&y[i], &bits, sizeof bits);
    }
}

void NAME(widen_half)(float *y, const uint16_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t sign = (x[i] & 0x8000u) << 16, exponent = x[i] >> 10 & 31u, fraction = x[i] & 0x3FFu, bits;
        float small = (float)fraction * 0x1p-24f; /* of numbers too small to be normal */
        if (exponent) bits = (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
        else memcpy(&bits, &small, sizeof bits);
        bits |= sign;
        memcpy(&y[i], &bits, sizeof bits);
    }
}

/* ---- rotary positions ---- */

void NAME(angles)(float *cosine, float *sine, const double *frequency, double position, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        cosine[i] = (float)cos(frequency[i] * position);
        sine[i] = (float)sin(frequency[i] * position);
    }
}

void NAME(rotary)(float *y, const float *x, const float *cosine, const float *sine, int64_t half, bool interleaved)
{
    for (int64_t i = 0; i < half; i++) {
        int64_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + half;
        double c = cosine[i], s = sine[i];
        y[a] = (float)(x[a] * c - x[b] * s);
        y[b] = (float)(x[b] * c + x[a] * s);
    }
}

void NAME(rotary_grad)(float *dx, const float *dy, const float *cosine, const float *sine, int64_t half, bool interleaved)
{
    for (int64_t i = 0; i < half; i++) {
        int64_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + half;
        double c = cosine[i], s = sine[i];
        dx[a] = (float)(dx[a] + dy[a] * c + dy[b] * s);
        dx[b] = (float)(dx[b] + dy[b] * c - dy[a] * s);
    }
}

/* ---- additive attention ---- */

float NAME(additive_score)(const float *q, const float *k, const float *w, int64_t n)
{
    double score = 0;
    for (int64_t i = 0; i < n; i++) score += w[i] * tanh((double)q[i] + k[i]);
    return (float)score;
}

void NAME(additive_grad)(float *dq, float *dk, float *dw, const float *q, const float *k, const float *w, float dscore,
                         int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double t = tanh((double)q[i] + k[i]), inner = (double)dscore * w[i] * (1 - t * t);
        if (dq) dq[i] = (float)(dq[i] + inner);
        if (dk) dk[i] = (float)(dk[i] + inner);
        if (dw) dw[i] = (float)(dw[i] + dscore * t);
    }
}
