/* quantized_dots.c: products of weights in 8 and 4 bits where one instruction adds four products of bytes to every lane:
 * AVX-VNNI, AVX-512 VNNI and the dot product of ARM. Plain C stands in for it in tests.
 *
 * quantized.h fixes the bits, and quantized.c has the ways; here a step of k is four numbers, a quad. On x86 one factor is
 * unsigned: that is w, taken 128 too high by turning its first bit (nibbles are 8 too high as they lie). What this adds to a
 * sum depends on the row of a alone, and is taken off first or last. On the way a sum may wrap around; at the end it fits. */
#include "tile.h"

#include "quantized_parts.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

typedef int8_t vb __attribute__((vector_size(QKV_VECTOR_BYTES)));
typedef int8_t vb_any __attribute__((vector_size(QKV_VECTOR_BYTES), aligned(1), may_alias));
typedef uint8_t v16 __attribute__((vector_size(QKV__GROUP_BYTES)));

#if defined(__ARM_FEATURE_DOTPROD)
enum { RAISED = 0 };
#else
enum { RAISED = 128 };
#endif
enum { GROUP = QKV__GROUP, BYTES = QKV__GROUP_BYTES, CHAINS = QKV__GROUP_CHAINS };

static inline vb load_bytes(const int8_t *p) { return (vb) * (const vb_any *)p; }

/* Bytes of w as the instruction takes them. */
static inline vb raised(vb w) { return RAISED ? w ^ (int8_t)-128 : w; }

/* sum + w[4i] a[4i] + ... + w[4i+3] a[4i+3] in lane i, w from 0 to 255 where weights are raised */
static inline vi add_quads(vi sum, vb w, vb a)
{
#if defined(__AVX512VNNI__) && QKV_VECTOR_BYTES == 64
    return (vi)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, (__m512i)a);
#elif defined(__AVXVNNI__) && QKV_VECTOR_BYTES == 32
    return (vi)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)w, (__m256i)a);
#elif defined(__ARM_FEATURE_DOTPROD)
    return (vi)vdotq_s32((int32x4_t)sum, (int8x16_t)w, (int8x16_t)a);
#else
    vu total = (vu)sum;
    for (int i = 0; i < QKV_VECTOR_BYTES; i++) total[i / 4] += (uint32_t)((uint8_t)w[i] * a[i]);
    return (vi)total;
#endif
}

/* ---- few rows, 8 bits ---- */

/* The lanes of each of four vectors, added up; on the way they may wrap around. */
static inline void lane_totals(const vi x[4], int32_t sums[4])
{
#if defined(__AVX512VNNI__) && QKV_VECTOR_BYTES == 64
    __m512i first = _mm512_add_epi32(_mm512_unpacklo_epi32((__m512i)x[0], (__m512i)x[1]),
                                     _mm512_unpackhi_epi32((__m512i)x[0], (__m512i)x[1]));
    __m512i last = _mm512_add_epi32(_mm512_unpacklo_epi32((__m512i)x[2], (__m512i)x[3]),
                                    _mm512_unpackhi_epi32((__m512i)x[2], (__m512i)x[3]));
    __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(first, last), _mm512_unpackhi_epi64(first, last));
    __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
    _mm_storeu_si128((__m128i *)(void *)sums, _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
#else
    EACH (r, 4) {
        vu lanes = (vu)x[r];
        uint32_t sum = 0;
        EACH (i, W) sum += lanes[i];
        sums[r] = (int32_t)sum;
    }
#endif
}

/* What w being raised adds to the sum of n numbers of a. */
static int32_t excess_of(const int8_t *a, int64_t n, int32_t by)
{
    vi lanes = { 0 };
    int64_t p = 0;
    int32_t sum = 0;
    for (; p + QKV_VECTOR_BYTES <= n; p += QKV_VECTOR_BYTES) lanes = add_quads(lanes, (vb){ 0 } + (int8_t)1, load_bytes(a + p));
    EACH (i, W) sum += lanes[i];
    for (; p < n; p++) sum += a[p];
    return by * sum;
}

/* The next bytes of m rows of a with those of four rows of w. */
ALWAYS void add_few(const int m, const int8_t *a, int64_t a_row, const int8_t *w, int64_t apart, vi sum[FEW][4])
{
    EACH (r, 4) {
        vb row = raised(load_bytes(w + r * apart));
        EACH (i, m) sum[i][r] = add_quads(sum[i][r], row, load_bytes(a + i * a_row));
    }
}

/* Sums of m rows of a with four rows of w, `apart` bytes from each other. The end of a row goes through copies: nothing is read
 * behind w. */
ALWAYS void dots_of_four(const int m, const int8_t *a, int64_t a_row, const int8_t *w, int64_t k, int64_t apart,
                         int32_t sums[FEW][4])
{
    vi sum[FEW][4];
    int64_t p = 0;
    EACH (i, m)
        EACH (r, 4) sum[i][r] = (vi){ 0 };
    for (; p + QKV_VECTOR_BYTES <= k; p += QKV_VECTOR_BYTES) add_few(m, a + p, a_row, w + p, apart, sum);
    if (p < k) {
        int8_t last[FEW][QKV_VECTOR_BYTES] = { 0 }, rest[4][QKV_VECTOR_BYTES] = { 0 };
        EACH (i, m) memcpy(last[i], a + i * a_row + p, (size_t)(k - p));
        EACH (r, 4) memcpy(rest[r], w + r * apart + p, (size_t)(k - p));
        add_few(m, last[0], QKV_VECTOR_BYTES, rest[0], QKV_VECTOR_BYTES, sum);
    }
    EACH (i, m) lane_totals(sum[i], sums[i]);
}

/* Rows of a that are summed in one pass: as many as the registers hold. */
#if QKV_VECTOR_BYTES == 64 || defined(__aarch64__)
enum { AT_ONCE = 4 };
#else
enum { AT_ONCE = 2 };
#endif

ALWAYS void sums_of_columns(const qkv__quantized *x, int64_t j, int64_t apart, int32_t sums[FEW][4])
{
    int64_t row = qkv__whole_groups(x->k);
    const int8_t *w = (const int8_t *)x->w + j * x->k;
    for (int64_t i = 0; i < x->m; i += AT_ONCE) switch (qkv__min(AT_ONCE, x->m - i)) {
        case 1: dots_of_four(1, x->a + i * row, row, w, x->k, apart * x->k, sums + i); break;
        case 2: dots_of_four(2, x->a + i * row, row, w, x->k, apart * x->k, sums + i); break;
#if QKV_VECTOR_BYTES == 64 || defined(__aarch64__)
        case 3: dots_of_four(3, x->a + i * row, row, w, x->k, apart * x->k, sums + i); break;
        case 4: dots_of_four(4, x->a + i * row, row, w, x->k, apart * x->k, sums + i); break;
#endif
        }
}

static inline void few_columns_int8(const qkv__quantized *x, const void *excess, int64_t j, int64_t apart, int64_t columns)
{
    const float *w_scales = x->w_scales;
    int32_t sums[FEW][4];
    sums_of_columns(x, j, apart, sums);
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t q = 0, at = j; q < columns; q++, at += apart) {
            int32_t sum = (int32_t)((uint32_t)sums[i][q] - (uint32_t)((const int32_t *)excess)[i]);
            float y = (float)sum * (x->a_scales[i] * w_scales[at]);
            x->c[i * x->c_row + at] = x->bias ? y + x->bias[at] : y;
        }
}

static void few_rows_int8(const qkv__quantized *x)
{
    int32_t excess[FEW];
    for (int64_t i = 0; i < x->m; i++) excess[i] = excess_of(x->a + i * qkv__whole_groups(x->k), x->k, RAISED);
    each_column_of_quarters(x, excess, few_columns_int8);
}

/* ---- few rows, 4 bits: 8 groups at a time, one for each chain, of two rows of w side by side ---- */

#if defined(__AVX512VNNI__) && QKV_VECTOR_BYTES == 64
/* A row of a: of every four groups the first halves, then the last halves, so that they lie as the bits of 64 bytes of w do; and
 * what their sums start with, as w is kept 8 too high: four numbers a group. */
typedef struct nibble_row {
    int8_t *values;
    int32_t *starts;
    float *scales;
} nibble_row;

enum { FOUR_GROUPS = 4 * GROUP };

static inline __m512i load_64(const void *p) { return _mm512_loadu_si512(p); }

static void arrange_four_groups(const int8_t *a, int8_t *values, int32_t *starts)
{
    const __m512i first = _mm512_setr_epi64(0, 1, 4, 5, 8, 9, 12, 13), last = _mm512_setr_epi64(2, 3, 6, 7, 10, 11, 14, 15);
    __m512i low = _mm512_permutex2var_epi64(load_64(a), first, load_64(a + 64));
    __m512i high = _mm512_permutex2var_epi64(load_64(a), last, load_64(a + 64));
    __m512i eight = _mm512_set1_epi8(8), zero = _mm512_setzero_si512();
    __m512i excess = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(zero, eight, low), eight, high);
    _mm512_storeu_si512(values, low);
    _mm512_storeu_si512(values + 64, high);
    _mm512_storeu_si512(starts, _mm512_sub_epi32(zero, excess));
}

/* Groups behind the last are zeros, also their scales. */
static nibble_row arrange_for_nibbles(const int8_t *a, const float *scales, int64_t groups, char *scratch)
{
    int64_t room = qkv__round_up(groups, CHAINS);
    nibble_row to = { (int8_t *)scratch, (int32_t *)(void *)(scratch + room * GROUP), NULL };
    to.scales = (float *)(to.starts + 4 * room);
    for (int64_t g = 0; g < room; g += 4) {
        int8_t rest[FOUR_GROUPS] = { 0 };
        const int8_t *from = a + g * GROUP;
        if (g + 4 > groups) {
            memcpy(rest, from, (size_t)(GROUP * qkv__max(0, groups - g)));
            from = rest;
        }
        arrange_four_groups(from, to.values + g * GROUP, to.starts + 4 * g);
    }
    memset(to.scales + groups, 0, sizeof(float) * (size_t)(room - groups));
    memcpy(to.scales, scales, sizeof(float) * (size_t)groups);
    return to;
}

/* Eight groups of two rows of w: [row][four groups] their low and their high bits, and [row][group] their scales. */
typedef struct two_rows {
    __m512i low[2][2], high[2][2];
    __m512 scales;
} two_rows;

ALWAYS two_rows unpack_two_rows(const uint8_t *w, const uint16_t *w_scales, int64_t apart)
{
    const __m512i low_bits = _mm512_set1_epi8(15);
    two_rows x;
    EACH (r, 2)
        EACH (f, 2) {
            __m512i both = load_64(w + r * apart * BYTES + f * 4 * BYTES);
            x.low[r][f] = _mm512_and_si512(both, low_bits);
            x.high[r][f] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low_bits);
        }
    x.scales = _mm512_cvtph_ps(_mm256_set_m128i(_mm_loadu_si128((const __m128i *)(const void *)(w_scales + apart)),
                                                _mm_loadu_si128((const __m128i *)(const void *)w_scales)));
    return x;
}

/* x[0] + x[1] of every two lanes, y's behind them */
ALWAYS __m512i add_pairs_32(__m512i x, __m512i y)
{
    return _mm512_add_epi32(_mm512_unpacklo_epi32(x, y), _mm512_unpackhi_epi32(x, y));
}

/* chains, [row][group], + what eight groups from g on add to them */
ALWAYS __m512 add_eight_groups(__m512 chains, const two_rows *w, const nibble_row *a, int64_t g)
{
    const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i half[2];
    EACH (r, 2) {
        __m512i four[2];
        EACH (f, 2) {
            const int8_t *values = a->values + g * GROUP + f * FOUR_GROUPS;
            four[f] = _mm512_dpbusd_epi32(load_64(a->starts + 4 * g + f * 16), w->low[r][f], load_64(values));
            four[f] = _mm512_dpbusd_epi32(four[f], w->high[r][f], load_64(values + 64));
        }
        half[r] = add_pairs_32(four[0], four[1]); /* of each group two numbers are left, every other one */
    }
    __m512i sums = _mm512_add_epi32(_mm512_unpacklo_epi64(half[0], half[1]), _mm512_unpackhi_epi64(half[0], half[1]));
    __m512 scales = _mm512_mul_ps(_mm512_broadcast_f32x8(_mm256_loadu_ps(a->scales + g)), w->scales);
    return _mm512_add_ps(chains, _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_permutexvar_epi32(in_order, sums)), scales));
}

/* m rows of a with four rows of w, `apart` groups from each other: chains, [row of a][two rows of w]. */
ALWAYS void chains_of_four(const int m, const nibble_row *a, const uint8_t *w, const uint16_t *w_scales, int64_t apart,
                           int64_t groups, __m512 chains[FEW][2])
{
    int64_t g = 0, left = groups % CHAINS;
    EACH (i, m)
        EACH (h, 2) chains[i][h] = _mm512_setzero_ps();
    for (; g + CHAINS <= groups; g += CHAINS)
        EACH (h, 2) {
            two_rows two = unpack_two_rows(w + (2 * h * apart + g) * BYTES, w_scales + 2 * h * apart + g, apart);
            EACH (i, m) chains[i][h] = add_eight_groups(chains[i][h], &two, &a[i], g);
        }
    for (int h = 0; left && h < 2; h++) {
        uint8_t rest[2 * CHAINS * BYTES] = { 0 };
        uint16_t rest_scales[2 * CHAINS] = { 0 };
        for (int64_t r = 0; r < 2; r++) {
            memcpy(rest + r * CHAINS * BYTES, w + ((2 * h + r) * apart + g) * BYTES, (size_t)(left * BYTES));
            memcpy(rest_scales + r * CHAINS, w_scales + (2 * h + r) * apart + g, sizeof *w_scales * (size_t)left);
        }
        two_rows two = unpack_two_rows(rest, rest_scales, CHAINS);
        EACH (i, m) chains[i][h] = add_eight_groups(chains[i][h], &two, &a[i], g);
    }
}

/* Chains i and i + 4, then i and i + 2, then the last two. */
static inline float sum_of_chains(const float c[CHAINS])
{
    return ((c[0] + c[4]) + (c[2] + c[6])) + ((c[1] + c[5]) + (c[3] + c[7]));
}

ALWAYS void few_columns_int4_of(const int m, const qkv__quantized *x, const nibble_row *rows, int64_t j, int64_t apart,
                                int64_t columns)
{
    int64_t groups = qkv__groups(x->k);
    __m512 chains[FEW][2];
    chains_of_four(m, rows, (const uint8_t *)x->w + j * groups * BYTES, (const uint16_t *)x->w_scales + j * groups,
                   apart * groups, groups, chains);
    EACH (i, m) {
        float each[4 * CHAINS];
        EACH (h, 2) _mm512_storeu_ps(each + 2 * h * CHAINS, chains[i][h]);
        for (int64_t q = 0, at = j; q < columns; q++, at += apart) {
            float y = sum_of_chains(each + q * CHAINS);
            x->c[i * x->c_row + at] = x->bias ? y + x->bias[at] : y;
        }
    }
}

static inline void few_columns_int4(const qkv__quantized *x, const void *rows, int64_t j, int64_t apart, int64_t columns)
{
    switch (x->m) {
    case 1: few_columns_int4_of(1, x, rows, j, apart, columns); break;
    case 2: few_columns_int4_of(2, x, rows, j, apart, columns); break;
    case 3: few_columns_int4_of(3, x, rows, j, apart, columns); break;
    case 4: few_columns_int4_of(4, x, rows, j, apart, columns); break;
    }
}

static void few_rows_int4(const qkv__quantized *x, char *scratch)
{
    int64_t groups = qkv__groups(x->k), room = qkv__round_up(groups, CHAINS);
    nibble_row rows[FEW];
    for (int64_t i = 0; i < x->m; i++)
        rows[i] = arrange_for_nibbles(x->a + i * groups * GROUP, x->a_scales + i * groups, groups,
                                      scratch + i * room * (GROUP + 5 * (int64_t)sizeof(float)));
    each_column_of_quarters(x, rows, few_columns_int4);
}
#else
/* Unpacked for longer than they are multiplied: quantized.c's way is as fast. */
static void few_rows_int4(const qkv__quantized *x, char *scratch) { QKV_KERNEL(QKV_BASE, multiply_int4)(x, scratch); }
#endif

/* ---- tiles ---- */

/* Up to QKV__QUANTIZED_ROWS rows of a in panels of NR, the last of one vector where that is enough: [quads of k][row]; what
 * each group's sum starts with and its scale, [group][row]; MR rows of raised w; and the scales of their groups. */
typedef struct quad_tiling {
    word *a, *w;
    int32_t *starts;
    float *a_scales, *w_scales;
    float *chains; /* of a tile, for int4 */
    int64_t quads, groups;
} quad_tiling;

static quad_tiling cut_quad_scratch(char *scratch, int64_t k, int64_t groups)
{
    quad_tiling t = { .quads = qkv__whole_groups(k) / 4, .groups = groups };
    t.chains = (float *)(void *)scratch;
    t.a = (word *)(t.chains + CHAINS * MR * NR);
    t.w = t.a + QKV__QUANTIZED_ROWS * t.quads;
    t.starts = (int32_t *)(t.w + MR * t.quads);
    t.a_scales = (float *)(t.starts + QKV__QUANTIZED_ROWS * groups);
    t.w_scales = t.a_scales + QKV__QUANTIZED_ROWS * groups;
    return t;
}

static void pack_quad_panel(const int8_t *a, const float *a_scales, int64_t rows, const quad_tiling *t, int64_t at, bool int4)
{
    int64_t width = vectors_of(rows) * W, k = 4 * t->quads, group = k / t->groups;
    for (int64_t i = 0; i < width; i += W)
        columns_of_some_rows((const float *)(const void *)(a + i * k), t->quads, rows - i, t->quads,
                             (float *)(void *)(t->a + at * t->quads + i), width);
    for (int64_t g = 0; g < t->groups; g++)
        for (int64_t i = 0; i < width; i++) {
            int64_t to = at * t->groups + g * width + i;
            t->starts[to] = i < rows ? -excess_of(a + i * k + g * group, group, int4 ? 8 : RAISED) : 0;
            t->a_scales[to] = i < rows ? a_scales[i * t->groups + g] : 0;
        }
}

/* sum[i][v] = starts + MR rows of w times nv vectors of a panel, some quads of them. Meanwhile a line of what comes `next` is
 * fetched for each of them. */
ALWAYS void tile_of_quads(const int nv, const word *w, int64_t w_row, const word *a, int64_t quads, const int32_t *starts,
                          const char *next, vi sum[MR][NV])
{
    vi own[MR][NV];
    EACH (i, MR)
        EACH (v, nv) memcpy(&own[i][v], starts + v * W, sizeof own[i][v]);
    for (int64_t q = 0; q < quads; q++, a += nv * W) {
        vb row[NV];
        __builtin_prefetch(next + 64 * q);
        EACH (v, nv) memcpy(&row[v], a + v * W, sizeof row[v]);
        EACH (i, MR) {
            vb both = (vb)((int32_t)w[i * w_row + q] - (vi){ 0 });
            EACH (v, nv) own[i][v] = add_quads(own[i][v], both, row[v]);
        }
    }
    EACH (i, MR)
        EACH (v, nv) sum[i][v] = own[i][v];
}

ALWAYS void quad_tile_int8(const int nv, const quad_tiling *t, const word *a, int64_t at, const char *next, float *out)
{
    vi sum[MR][NV];
    tile_of_quads(nv, t->w, t->quads, a, t->quads, t->starts + at, next, sum);
    EACH (i, MR)
        EACH (v, nv) store(out + (i * nv + v) * W, floats(sum[i][v]) * (load(t->a_scales + at + v * W) * t->w_scales[i]));
}

ALWAYS void quad_tile_int4(const int nv, const quad_tiling *t, const word *a, int64_t at, const char *next, float *out)
{
    const int size = MR * nv * W;
    memset(t->chains, 0, sizeof(float) * (size_t)(CHAINS * size));
    for (int64_t g = 0; g < t->groups; g++, a += GROUP / 4 * nv * W, at += nv * W) {
        vi sum[MR][NV];
        float *chain = t->chains + g % CHAINS * size;
        tile_of_quads(nv, t->w + g * GROUP / 4, t->quads, a, GROUP / 4, t->starts + at, next + g * 64 * (GROUP / 4), sum);
        EACH (i, MR)
            EACH (v, nv) {
                float *to = chain + (i * nv + v) * W;
                vf scale = load(t->a_scales + at + v * W) * t->w_scales[i * t->groups + g];
                store(to, load(to) + floats(sum[i][v]) * scale);
            }
    }
    for (int half = CHAINS / 2; half; half /= 2)
        for (int i = 0; i < half * size; i += W) store(t->chains + i, load(t->chains + i) + load(t->chains + half * size + i));
    memcpy(out, t->chains, sizeof(float) * (size_t)size);
}

static void raise_int8_row(const int8_t *from, int64_t k, int8_t *to)
{
    int64_t p = 0;
    for (; p + QKV_VECTOR_BYTES <= k; p += QKV_VECTOR_BYTES) *(vb_any *)(to + p) = raised(load_bytes(from + p));
    for (; p < k; p++) to[p] = RAISED ? (int8_t)(from[p] ^ -128) : from[p];
}

static void raise_int4_row(const uint8_t *from, int64_t groups, int8_t *to)
{
    for (int64_t g = 0; g < groups; g++, from += BYTES, to += GROUP) {
        v16 bytes, low, high;
        memcpy(&bytes, from, sizeof bytes);
        low = bytes & 15, high = bytes >> 4;
        memcpy(to, &low, sizeof low);
        memcpy(to + BYTES, &high, sizeof high);
    }
}

/* Rows j .. j+MR-1 of w; what is behind k, or behind the last row, meets zeros of a, or is not kept. */
static void raise_rows(const qkv__quantized *x, int64_t j, const quad_tiling *t, bool int4)
{
    for (int64_t r = 0; r < qkv__min(MR, x->n - j); r++) {
        int8_t *to = (int8_t *)(t->w + r * t->quads);
        float *scales = t->w_scales + r * t->groups;
        if (int4) {
            raise_int4_row((const uint8_t *)x->w + (j + r) * t->groups * BYTES, t->groups, to);
            QKV_KERNEL(QKV_BASE, widen_half)(scales, (const uint16_t *)x->w_scales + (j + r) * t->groups, t->groups);
        } else {
            raise_int8_row((const int8_t *)x->w + (j + r) * x->k, x->k, to);
            memset(to + x->k, 0, (size_t)(4 * t->quads - x->k));
            *scales = ((const float *)x->w_scales)[j + r];
        }
    }
}

static void quad_tiles_of_columns(const qkv__quantized *x, int64_t first, int64_t rows, int64_t j, const quad_tiling *t,
                                  bool int4)
{
    float out[TILE_ROWS * NR] = { 0 };
    int64_t row_bytes = int4 ? t->groups * BYTES : x->k;
    for (int64_t i = 0; i < rows; i += NR) {
        int64_t some = qkv__min(NR, rows - i), at = i * t->groups;
        const word *a = t->a + i * t->quads;
        const char *next = (const char *)x->w + (j + MR) * row_bytes + i / NR * 64 * t->quads;
        if (vectors_of(some) == 1 && int4) quad_tile_int4(1, t, a, at, next, out);
        else if (vectors_of(some) == 1) quad_tile_int8(1, t, a, at, next, out);
        else if (int4) quad_tile_int4(NV, t, a, at, next, out);
        else quad_tile_int8(NV, t, a, at, next, out);
        put_tile(x, first + i, some, j, out, vectors_of(some) * W);
    }
}

static void in_quad_tiles(const qkv__quantized *x, char *scratch, bool int4)
{
    const quad_tiling t = cut_quad_scratch(scratch, x->k, int4 ? qkv__groups(x->k) : 1);
    memset(t.w, 0, sizeof *t.w * (size_t)(MR * t.quads)); /* rows that no w has */
    memset(t.w_scales, 0, sizeof *t.w_scales * (size_t)(MR * t.groups));
    for (int64_t first = 0; first < x->m; first += QKV__QUANTIZED_ROWS) {
        int64_t rows = qkv__min(QKV__QUANTIZED_ROWS, x->m - first);
        for (int64_t i = 0; i < rows; i += NR)
            pack_quad_panel(x->a + (first + i) * 4 * t.quads, x->a_scales + (first + i) * t.groups, qkv__min(NR, rows - i), &t,
                            i, int4);
        for (int64_t j = 0; j < x->n; j += MR) {
            raise_rows(x, j, &t, int4);
            quad_tiles_of_columns(x, first, rows, j, &t, int4);
        }
    }
}

/* ---- tiles of many rows, 8 bits: c = a w^T, rows of a as they lie ---- */

/* From so many rows on it pays to turn rows of w into columns, so that those of c need not be turned. */
enum { MANY = 48, MANY_AT_ONCE = 512 };

/* What put_int8() does, for m rows of whole vectors. */
ALWAYS void put_whole_rows(const int m, const bool has_bias, const qkv__quantized *x, int64_t i, int64_t j, vi sum[MR][NV])
{
    vf scale[NV], bias[NV];
    EACH (v, NV) {
        scale[v] = load((const float *)x->w_scales + j + v * W);
        if (has_bias) bias[v] = load(x->bias + j + v * W);
    }
    EACH (r, m)
        EACH (v, NV) {
            vf y = floats(sum[r][v]) * (x->a_scales[i + r] * scale[v]);
            store(x->c + (i + r) * x->c_row + j + v * W, has_bias ? y + bias[v] : y);
        }
}

/* m rows of a from row i on times a panel, whose first column is j. Meanwhile a line of what comes `next` is fetched for every
 * word. */
ALWAYS void tile_of_many(const int m, const qkv__quantized *x, int64_t i, const word *panel, int64_t words, int64_t j,
                         const int32_t *starts, const char *next)
{
    const word *a = (const word *)(const void *)x->a + i * words;
    vi sum[MR][NV];
    EACH (r, m)
        EACH (v, NV) sum[r][v] = starts[r] - (vi){ 0 };
    for (int64_t p = 0; p < words; p++, panel += NR) {
        vb row[NV];
        __builtin_prefetch(next + 64 * p);
        EACH (v, NV) memcpy(&row[v], panel + v * W, sizeof row[v]);
        EACH (r, m) {
            vb four = (vb)((int32_t)a[r * words + p] - (vi){ 0 });
            EACH (v, NV) sum[r][v] = add_quads(sum[r][v], row[v], four);
        }
    }
    if (x->n - j >= NR && x->bias) {
        put_whole_rows(m, true, x, i, j, sum);
    } else if (x->n - j >= NR) {
        put_whole_rows(m, false, x, i, j, sum);
    } else {
        EACH (r, m)
            EACH (v, NV)
                if (j + v * W < x->n) put_int8(x, i + r, j + v * W, sum[r][v], x->n - j - v * W);
    }
}

static __attribute__((noinline)) void tile_of_rows(int64_t m, const qkv__quantized *x, int64_t i, const word *panel,
                                                   int64_t words, int64_t j, const int32_t *starts, const char *next)
{
    if (m > 2 * MR / 3) tile_of_many(MR, x, i, panel, words, j, starts, next);
    else if (m > MR / 3) tile_of_many(2 * MR / 3, x, i, panel, words, j, starts, next);
    else tile_of_many(MR / 3, x, i, panel, words, j, starts, next);
}

/* Each tile has MR rows, two thirds or a third of them; the last may begin in the one before it. */
static void many_rows_int8(const qkv__quantized *x, int64_t first, int64_t rows, word *panel)
{
    enum { TILES = 4 * NR / 64 }; /* in which the next panel is fetched */
    int32_t starts[MANY_AT_ONCE];
    int64_t words = qkv__whole_groups(x->k) / 4;
    for (int64_t i = 0; i < rows; i++) starts[i] = -excess_of(x->a + (first + i) * 4 * words, 4 * words, RAISED);
    for (int64_t j = 0; j < x->n; j += NR) {
        const char *next = (const char *)x->w + (j + NR) * x->k;
        pack_weights(x, j, words, RAISED, panel);
        for (int64_t i = 0; i < rows; i += MR) {
            int64_t m = qkv__round_up(qkv__min(MR, rows - i), MR / 3), at = qkv__min(i, rows - m);
            tile_of_rows(m, x, first + at, panel, words, j, starts + at,
                         i / MR < TILES ? next + i / MR * 64 * words : (const char *)panel);
        }
    }
}

static void in_many_rows_int8(const qkv__quantized *x, void *scratch)
{
    int64_t blocks = qkv__ceil_div(x->m, MANY_AT_ONCE), step = qkv__ceil_div(x->m, blocks);
    for (int64_t first = 0; first < x->m; first += step) many_rows_int8(x, first, qkv__min(step, x->m - first), scratch);
}

void NAME(multiply_int8)(const qkv__quantized *x, void *scratch)
{
    if (x->m <= FEW) few_rows_int8(x);
    else if (x->m >= MANY) in_many_rows_int8(x, scratch);
    else in_quad_tiles(x, scratch, false);
}

void NAME(multiply_int4)(const qkv__quantized *x, void *scratch)
{
    if (x->m <= FEW) few_rows_int4(x, scratch);
    else in_quad_tiles(x, scratch, true);
}

const qkv__kernels NAME(kernels) = { .isa = ISA_NAME,
                                     .multiply_int8 = NAME(multiply_int8),
                                     .multiply_int4 = NAME(multiply_int4) };
