/* simd.c: element by element and row by row, in vectors. ref.c says in plain C what each kernel means. */
#include "vec.h"

/* ---- element by element ---- */

#define MAP(name, f)                                                                   \
    void NAME(name)(float *y, const float *x, int64_t n)                               \
    {                                                                                  \
        for (int64_t i = 0; i < n; i += W) put(y + i, f(get(x + i, n - i, 0)), n - i); \
    }

/* dx += f(x, dy), f linear in dy */
#define MAP_ADD(name, f)                                                                                \
    void NAME(name)(float *dx, const float *x, const float *dy, int64_t n)                              \
    {                                                                                                   \
        for (int64_t i = 0; i < n; i += W)                                                              \
            put(dx + i, get(dx + i, n - i, 0) + f(get(x + i, n - i, 0), get(dy + i, n - i, 0)), n - i); \
    }

#define ZIP(name, f)                                                                                         \
    void NAME(name)(float *y, const float *a, const float *b, int64_t n)                                     \
    {                                                                                                        \
        for (int64_t i = 0; i < n; i += W) put(y + i, f(get(a + i, n - i, 0), get(b + i, n - i, 0)), n - i); \
    }

static inline vf add(vf a, vf b) { return a + b; }
static inline vf sub(vf a, vf b) { return a - b; }
static inline vf mul(vf a, vf b) { return a * b; }

/* NaN stays NaN, so that trouble shows. */
static inline vf relu(vf x) { return pick(x < 0, (vf){ 0 }, x); }
static inline vf relu_slope(vf x, vf dy) { return pick(x > 0, dy, (vf){ 0 }); }

/* exp(-x^2/2). The square is taken apart into s + e, exactly: a rounding error of the square would be a relative error of the
 * result as large as x^2/2 times that of a float. Clearing the last bit of s keeps the compiler from fusing it away. NaN gives
 * NaN, by e. */
static inline vf gauss(vf x)
{
    vf high = (vf)((vi)x & ~0xfff), low = x - high;
    vf s = (vf)((vi)(x * x) & ~1);
    vf e = ((high * high - s) + 2.0f * high * low) + low * low;
    vf g = vexp_below_88(-0.5f * s);
    return g - 0.5f * e * g;
}

/* Phi(x), the normal distribution, with a small relative error far below 0 too: Phi(-a) = exp(-a^2/2) t Q(t) / 2 where
 * t = 1 / (1 + 0.4 z), z = a / sqrt(2). Q is a polynomial fitted to exp(z^2) erfc(z) / t for 0 <= z <= 9.6 by least squares at
 * 2000 Chebyshev points of t, each weighted by 1/Q and again by its error until the largest relative error is least: 7e-9. */
static inline vf normal_below(vf x, vf *density)
{
    vf a = vmin(set1(20.0f), vabs(x)); /* Phi(-20) is 0 in floats; NaN passes */
    vf t = 1.0f / (1.0f + 0.282842712f * a);
    vf q = set1(-3.039153571e-2f);
    q = q * t + 2.023602360e-1f;
    q = q * t - 5.090796527e-1f;
    q = q * t + 5.611982460e-1f;
    q = q * t - 2.958784480e-1f;
    q = q * t + 2.782848851e-1f;
    q = q * t + 1.275143601e-1f;
    q = q * t + 2.153868308e-1f;
    q = q * t + 2.248952253e-1f;
    q = q * t + 2.257098601e-1f;
    vf g = gauss(a), tail = 0.5f * g * t * q;
    *density = 0.398942280f * g;
    return pick(x < 0, tail, 1.0f - tail);
}

static inline vf gelu(vf x)
{
    vf density;
    return x * normal_below(x, &density);
}

static inline vf gelu_slope(vf x, vf dy)
{
    vf density, below = normal_below(x, &density);
    return dy * (below + x * density);
}

/* x/2 (1 + tanh u) = x sigmoid(2u), 2u = x (c + c 0.044715 x^2), c = 2 sqrt(2/pi) */
static inline vf gelu_tanh(vf x) { return x * vsigmoid(x * (1.59576912f + 0.0713548163f * (x * x))); }

static inline vf gelu_tanh_slope(vf x, vf dy)
{
    vf c = vmax(set1(-30.0f), vmin(set1(30.0f), x)); /* the slope is 0 or 1 out there, and x^3 may not overflow */
    vf s = vsigmoid(c * (1.59576912f + 0.0713548163f * (c * c)));
    return dy * (s + c * s * (1.0f - s) * (1.59576912f + 0.214064449f * (c * c)));
}

static inline vf silu(vf x) { return x * vsigmoid(x); }
static inline vf silu_slope(vf x, vf dy)
{
    vf s = vsigmoid(x);
    return dy * (s * (1.0f + x * (1.0f - s)));
}
static inline vf silu_gated(vf gate, vf x) { return silu(gate) * x; }
static inline vf gelu_gated(vf gate, vf x) { return gelu(gate) * x; }
static inline vf tanh_slope(vf y, vf dy) { return dy * (1.0f - y * y); }
static inline vf sigmoid_slope(vf y, vf dy) { return dy * (y * (1.0f - y)); }

MAP(exp, vexp)
MAP(relu, relu)
MAP(gelu, gelu)
MAP(gelu_tanh, gelu_tanh)
MAP(silu, silu)
MAP(tanh, vtanh)
MAP(sigmoid, vsigmoid)
MAP_ADD(relu_grad, relu_slope)
MAP_ADD(gelu_grad, gelu_slope)
MAP_ADD(gelu_tanh_grad, gelu_tanh_slope)
MAP_ADD(silu_grad, silu_slope)
MAP_ADD(tanh_grad, tanh_slope)
MAP_ADD(sigmoid_grad, sigmoid_slope)
MAP_ADD(mul_add, mul)
ZIP(add, add)
ZIP(sub, sub)
ZIP(mul, mul)
ZIP(silu_gated, silu_gated)
ZIP(gelu_gated, gelu_gated)

#define GATED_GRAD(name, f)                                                                                      \
    void NAME(name)(float *dgate, float *dx, const float *gate, const float *x, const float *dy, int64_t n)      \
    {                                                                                                            \
        for (int64_t i = 0; i < n; i += W) {                                                                     \
            vf g = get(gate + i, n - i, 0), d = get(dy + i, n - i, 0);                                           \
            if (dgate) put(dgate + i, get(dgate + i, n - i, 0) + f##_slope(g, d * get(x + i, n - i, 0)), n - i); \
            if (dx) put(dx + i, get(dx + i, n - i, 0) + f(g) * d, n - i);                                        \
        }                                                                                                        \
    }
GATED_GRAD(silu_gated_grad, silu)
GATED_GRAD(gelu_gated_grad, gelu)

void NAME(scale)(float *y, const float *x, float by, int64_t n)
{
    for (int64_t i = 0; i < n; i += W) put(y + i, by * get(x + i, n - i, 0), n - i);
}

void NAME(axpy)(float *y, const float *x, float by, int64_t n)
{
    for (int64_t i = 0; i < n; i += W) put(y + i, get(y + i, n - i, 0) + by * get(x + i, n - i, 0), n - i);
}

void NAME(add_difference)(float *y, const float *a, const float *b, float by, int64_t n)
{
    for (int64_t i = 0; i < n; i += W)
        put(y + i, get(y + i, n - i, 0) + by * (get(a + i, n - i, 0) - get(b + i, n - i, 0)), n - i);
}

/* ---- dropout ---- */

/* y = keep ? by x : 0, or added to y. A block of 16 counters gives 32 elements: the first words, then the second words. */
static inline void drop(float *y, const float *x, int64_t n, int64_t first, qkv__key key, uint32_t below, float by, bool add_to)
{
    for (int64_t i = 0; i < n; i += 32) {
        uint64_t counter = (uint64_t)(first + i) / 32 * 16;
        for (int64_t j = 0; j < 16; j += W) {
            vu words[2];
            threefry(key, (uint32_t)counter + (uint32_t)j, (uint32_t)(counter >> 32), &words[0], &words[1]);
            for (int64_t half = 0; half < 2; half++) {
                int64_t at = i + half * 16 + j, left = n - at;
                if (left <= 0) break;
                vf value = pick((vi)(words[half] < below), by * get(x + at, left, 0), (vf){ 0 });
                put(y + at, add_to ? get(y + at, left, 0) + value : value, left);
            }
        }
    }
}

void NAME(dropout)(float *y, const float *x, int64_t n, int64_t first, qkv__key key, uint32_t below, float by)
{
    drop(y, x, n, first, key, below, by, false);
}

void NAME(dropout_grad)(float *dx, const float *dy, int64_t n, int64_t first, qkv__key key, uint32_t below, float by)
{
    drop(dx, dy, n, first, key, below, by, true);
}

/* ---- sums: four running vectors, then the lanes ---- */

#define SUM(name, f)                                         \
    float NAME(name)(const float *x, int64_t n)              \
    {                                                        \
        vf s0 = { 0 }, s1 = { 0 }, s2 = { 0 }, s3 = { 0 };   \
        int64_t i = 0;                                       \
        for (; i + 4 * W <= n; i += 4 * W) {                 \
            s0 += f(load(x + i));                            \
            s1 += f(load(x + i + W));                        \
            s2 += f(load(x + i + 2 * W));                    \
            s3 += f(load(x + i + 3 * W));                    \
        }                                                    \
        for (; i < n; i += W) s0 += f(get(x + i, n - i, 0)); \
        return lane_sum((s0 + s1) + (s2 + s3));              \
    }

#define SUM2(name, f)                                                              \
    float NAME(name)(const float *a, const float *b, int64_t n)                    \
    {                                                                              \
        vf s0 = { 0 }, s1 = { 0 }, s2 = { 0 }, s3 = { 0 };                         \
        int64_t i = 0;                                                             \
        for (; i + 4 * W <= n; i += 4 * W) {                                       \
            s0 += f(load(a + i), load(b + i));                                     \
            s1 += f(load(a + i + W), load(b + i + W));                             \
            s2 += f(load(a + i + 2 * W), load(b + i + 2 * W));                     \
            s3 += f(load(a + i + 3 * W), load(b + i + 3 * W));                     \
        }                                                                          \
        for (; i < n; i += W) s0 += f(get(a + i, n - i, 0), get(b + i, n - i, 0)); \
        return lane_sum((s0 + s1) + (s2 + s3));                                    \
    }

static inline vf itself(vf x) { return x; }
static inline vf square(vf x) { return x * x; }
static inline vf squared_difference(vf a, vf b) { return (a - b) * (a - b); }

SUM(sum, itself)
SUM(sum_squares, square)
SUM2(dot, mul)
SUM2(squared_distance, squared_difference)

float NAME(max)(const float *x, int64_t n)
{
    vf m0 = set1(-INFINITY), m1 = m0, m2 = m0, m3 = m0;
    int64_t i = 0;
    for (; i + 4 * W <= n; i += 4 * W) {
        m0 = vmax(load(x + i), m0);
        m1 = vmax(load(x + i + W), m1);
        m2 = vmax(load(x + i + 2 * W), m2);
        m3 = vmax(load(x + i + 3 * W), m3);
    }
    for (; i < n; i += W) m0 = vmax(get(x + i, n - i, -INFINITY), m0);
    return lane_max(vmax(vmax(m0, m1), vmax(m2, m3)));
}

void NAME(add_rows)(float *y, const float *x, int64_t rows, int64_t stride, int64_t n)
{
    for (int64_t r = 0; r < rows; r++) NAME(add)(y, y, x + r * stride, n);
}

/* ---- softmax ---- */

void NAME(softmax)(float *y, const float *x, int64_t rows, int64_t n)
{
    for (; rows > 0; rows--, x += n, y += n) {
        float max = NAME(max)(x, n);
        if (max == -INFINITY) { /* nothing but -inf, and NaN, which must show */
            for (int64_t i = 0; i < n; i++) y[i] = x[i] == x[i] ? 0 : x[i];
            continue;
        }
        vf sum = { 0 };
        for (int64_t i = 0; i < n; i += W) {
            vf e = vexp(get(x + i, n - i, -INFINITY) - max);
            sum += e;
            put(y + i, e, n - i);
        }
        NAME(scale)(y, y, 1.0f / lane_sum(sum), n);
    }
}

void NAME(log_sum)(float out[3], const float *x, int64_t n)
{
    float max = NAME(max)(x, n);
    vf sum = { 0 }, below = { 0 };
    for (int64_t i = 0; i < n; i += W) {
        vf d = get(x + i, n - i, max) - max;
        vf e = vexp(d);
        below += d;
        if (n - i < W) e = load_part((const float *)&e, n - i, 0);
        sum += e;
    }
    out[0] = max;
    out[1] = logf(lane_sum(sum));
    out[2] = lane_sum(below);
}

void NAME(log_softmax)(float *y, const float *x, int64_t rows, int64_t n)
{
    for (; rows > 0; rows--, x += n, y += n) {
        float row[3];
        NAME(log_sum)(row, x, n);
        for (int64_t i = 0; i < n; i += W) {
            vf value = get(x + i, n - i, 0) - row[0] - row[1];
            put(y + i, row[0] == -INFINITY ? get(x + i, n - i, 0) : value, n - i);
        }
    }
}

void NAME(softmax_grad)(float *dx, const float *y, const float *dy, int64_t rows, int64_t n)
{
    for (; rows > 0; rows--, dx += n, y += n, dy += n) {
        float mean = NAME(dot)(y, dy, n);
        for (int64_t i = 0; i < n; i += W)
            put(dx + i, get(dx + i, n - i, 0) + get(y + i, n - i, 0) * (get(dy + i, n - i, 0) - mean), n - i);
    }
}

void NAME(log_softmax_grad)(float *dx, const float *y, const float *dy, int64_t rows, int64_t n)
{
    for (; rows > 0; rows--, dx += n, y += n, dy += n) {
        float sum = NAME(sum)(dy, n);
        for (int64_t i = 0; i < n; i += W)
            put(dx + i, get(dx + i, n - i, 0) + get(dy + i, n - i, 0) - vexp(get(y + i, n - i, 0)) * sum, n - i);
    }
}

void NAME(cross_entropy_grad)(float *dx, const float *x, float max, float log_sum, float uniform, float by, bool add_to,
                              int64_t n)
{
    for (int64_t i = 0; i < n; i += W) {
        vf slope = by * (vexp(get(x + i, n - i, 0) - max - log_sum) - uniform);
        put(dx + i, add_to ? get(dx + i, n - i, 0) + slope : slope, n - i);
    }
}

/* ---- norms ---- */

static inline vf normal(vf x, const float *stats) { return ((x - stats[0]) - stats[1]) * stats[2]; }

/* The mean of the deviations from the rounded mean is what the rounding lost; it corrects mean and variance both. */
static inline void moments(float *stats, const float *x, float eps, int64_t n)
{
    float mean = NAME(sum)(x, n) / (float)n;
    vf sum = { 0 }, squares = { 0 };
    for (int64_t i = 0; i < n; i += W) {
        vf d = get(x + i, n - i, mean) - mean;
        sum += d;
        squares += d * d;
    }
    float lost = lane_sum(sum) / (float)n, variance = lane_sum(squares) / (float)n - lost * lost;
    stats[0] = mean;
    stats[1] = lost;
    stats[2] = 1.0f / sqrtf((variance < 0 ? 0 : variance) + eps);
}

void NAME(layernorm)(float *y, float *stats, const float *x, const float *gain, const float *bias, float eps, int64_t rows,
                     int64_t n)
{
    for (; rows > 0; rows--, y += n, x += n, stats += 3) {
        moments(stats, x, eps, n);
        for (int64_t i = 0; i < n; i += W) {
            vf value = normal(get(x + i, n - i, 0), stats) * get(gain + i, n - i, 0);
            put(y + i, bias ? value + get(bias + i, n - i, 0) : value, n - i);
        }
    }
}

void NAME(rmsnorm)(float *y, float *stats, const float *x, const float *gain, float eps, int64_t rows, int64_t n)
{
    for (; rows > 0; rows--, y += n, x += n, stats += 3) {
        stats[0] = stats[1] = 0;
        stats[2] = 1.0f / sqrtf(NAME(sum_squares)(x, n) / (float)n + eps);
        for (int64_t i = 0; i < n; i += W) put(y + i, get(x + i, n - i, 0) * stats[2] * get(gain + i, n - i, 0), n - i);
    }
}

/* dx += (g - mean(g) - v mean(g v)) / deviation, g = dy gain, v the normalised x; RMS norm has no mean(g) */
static inline void norm_grad(float *dx, const float *x, const float *dy, const float *gain, const float *stats, int64_t n,
                             bool centred)
{
    vf sum = { 0 }, products = { 0 };
    for (int64_t i = 0; i < n; i += W) {
        vf g = get(dy + i, n - i, 0) * get(gain + i, n - i, 0);
        sum += g;
        products += g * normal(get(x + i, n - i, 0), stats);
    }
    float mean = centred ? lane_sum(sum) / (float)n : 0, along = lane_sum(products) / (float)n;
    for (int64_t i = 0; i < n; i += W) {
        vf g = get(dy + i, n - i, 0) * get(gain + i, n - i, 0), v = normal(get(x + i, n - i, 0), stats);
        put(dx + i, get(dx + i, n - i, 0) + stats[2] * (g - mean - v * along), n - i);
    }
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
    for (; rows > 0; rows--, x += stride, dy += stride, stats += 3) {
        for (int64_t i = 0; i < n; i += W) {
            vf g = get(dy + i, n - i, 0);
            if (dgain) put(dgain + i, get(dgain + i, n - i, 0) + g * normal(get(x + i, n - i, 0), stats), n - i);
            if (dbias) put(dbias + i, get(dbias + i, n - i, 0) + g, n - i);
        }
    }
}

/* ---- 16 bits ---- */

typedef uint16_t vn __attribute__((vector_size(QKV_VECTOR_BYTES / 2)));

/* The next W of x's numbers, `left` of which are there. */
static inline vu get_narrow(const uint16_t *x, int64_t left)
{
    vn narrow = { 0 };
    if (left >= W) memcpy(&narrow, x, sizeof narrow);
    else memcpy(&narrow, x, sizeof *x * (size_t)left);
    return __builtin_convertvector(narrow, vu);
}

void NAME(widen_bfloat)(float *y, const uint16_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += W) put(y + i, (vf)(get_narrow(x + i, n - i) << 16), n - i);
}

void NAME(widen_half)(float *y, const uint16_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += W) put(y + i, widen_halves(get_narrow(x + i, n - i)), n - i);
}

/* ---- rotary positions ---- */

/* In double: at position 100000 a float's angle is off by almost a hundredth. angle = quarters pi/2 + r, |r| <= pi/4; sin r and
 * cos r by polynomials fitted as in vlog (6e-14); odd quarters swap the two. Plain C that the compiler turns into vectors. */
void NAME(angles)(float *cosine, float *sine, const double *frequency, double position, int64_t n)
{
    const double two_over_pi = 0.63661977236758134308, half_pi = 1.57079632679489661923, round_magic = 6755399441055744.0;
    for (int64_t i = 0; i < n; i++) {
        double angle = frequency[i] * position, quarters = angle * two_over_pi + round_magic;
        int64_t quadrant;
        memcpy(&quadrant, &quarters, sizeof quadrant);
        double r = angle - (quarters - round_magic) * half_pi, z = r * r;
        double s = -2.4761699118219793e-08, c = -2.718010525303363e-07;
        s = s * z + 2.7555358497357955e-06, c = c * z + 2.479904110279374e-05;
        s = s * z - 0.00019841263827126985, c = c * z - 0.0013888881079020705;
        s = s * z + 0.008333333325281349, c = c * z + 0.04166666656208318;
        s = s * z - 0.16666666666631672, c = c * z - 0.4999999999954513;
        s = s * z * r + r, c = c * z + 1;
        double x = quadrant & 1 ? s : c, y = quadrant & 1 ? c : s;
        cosine[i] = (float)((quadrant + 1) & 2 ? -x : x);
        sine[i] = (float)(quadrant & 2 ? -y : y);
    }
}

/* Turns every pair by its angle; turned is -1 to turn back. */
static inline void turn_pairs(float *y, const float *x, const float *cosine, const float *sine, int64_t half, float way,
                              bool add_to)
{
    for (int64_t i = 0; i < half; i++) {
        float a = x[2 * i], b = x[2 * i + 1], c = cosine[i], s = way * sine[i];
        y[2 * i] = (add_to ? y[2 * i] : 0) + (a * c - b * s);
        y[2 * i + 1] = (add_to ? y[2 * i + 1] : 0) + (b * c + a * s);
    }
}

static inline void turn_halves(float *y, const float *x, const float *cosine, const float *sine, int64_t half, float way,
                               bool add_to)
{
    for (int64_t i = 0; i < half; i += W) {
        int64_t left = half - i;
        vf a = get(x + i, left, 0), b = get(x + half + i, left, 0), c = get(cosine + i, left, 0),
           s = way * get(sine + i, left, 0);
        vf first = a * c - b * s, second = b * c + a * s;
        put(y + i, add_to ? get(y + i, left, 0) + first : first, left);
        put(y + half + i, add_to ? get(y + half + i, left, 0) + second : second, left);
    }
}

void NAME(rotary)(float *y, const float *x, const float *cosine, const float *sine, int64_t half, bool interleaved)
{
    if (interleaved) turn_pairs(y, x, cosine, sine, half, 1.0f, false);
    else turn_halves(y, x, cosine, sine, half, 1.0f, false);
}

void NAME(rotary_grad)(float *dx, const float *dy, const float *cosine, const float *sine, int64_t half, bool interleaved)
{
    if (interleaved) turn_pairs(dx, dy, cosine, sine, half, -1.0f, true);
    else turn_halves(dx, dy, cosine, sine, half, -1.0f, true);
}

/* ---- additive attention ---- */

float NAME(additive_score)(const float *q, const float *k, const float *w, int64_t n)
{
    vf sum = { 0 };
    for (int64_t i = 0; i < n; i += W) sum += get(w + i, n - i, 0) * vtanh(get(q + i, n - i, 0) + get(k + i, n - i, 0));
    return lane_sum(sum);
}

void NAME(additive_grad)(float *dq, float *dk, float *dw, const float *q, const float *k, const float *w, float dscore,
                         int64_t n)
{
    for (int64_t i = 0; i < n; i += W) {
        vf t = vtanh(get(q + i, n - i, 0) + get(k + i, n - i, 0));
        vf inner = dscore * get(w + i, n - i, 0) * (1.0f - t * t);
        if (dq) put(dq + i, get(dq + i, n - i, 0) + inner, n - i);
        if (dk) put(dk + i, get(dk + i, n - i, 0) + inner, n - i);
        if (dw) put(dw + i, get(dw + i, n - i, 0) + dscore * t, n - i);
    }
}
