/* quantized.c: products of weights in 8 and 4 bits, on one thread. op/quantized.c shares rows and columns among threads.
 *
 * quantized.h fixes the bits. Two ways, which differ in speed alone:
 *   few rows   w is read once as it lies, k along the vector: as fast as memory gives it
 *   tiles      c^T = w a^T: MR rows of w, widened to 16 bits, times panels of a's rows, a row a lane. Both hold pairs of k,
 *              which one instruction multiplies and adds (pmaddwd); for bytes one of them would have to be unsigned */
#include "tile.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef int16_t vh __attribute__((vector_size(QKV_VECTOR_BYTES)));
typedef int8_t vb_any __attribute__((vector_size(QKV_VECTOR_BYTES / 2), aligned(1), may_alias));
typedef int8_t vb_narrow __attribute__((vector_size(W)));
typedef int32_t pair __attribute__((may_alias)); /* two numbers of 16 bits */
typedef uint8_t v16 __attribute__((vector_size(QKV__GROUP_BYTES)));
typedef float v4 __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));
typedef float v8 __attribute__((vector_size(32)));
typedef int32_t v8i __attribute__((vector_size(32)));
typedef float v8_any __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t v8i_any __attribute__((vector_size(32), aligned(4), may_alias));

enum { H = 2 * W, GROUP = QKV__GROUP, BYTES = QKV__GROUP_BYTES, CHAINS = QKV__GROUP_CHAINS };
enum { AHEAD = 2048 }; /* bytes of w that are fetched before they are read */
enum { FEW = 4 };      /* rows of a, at most, for which w is read as it lies */

/* gcc 12 makes a conversion of two halves. */
static inline vh widen(const int8_t *p)
{
#if defined(__AVX512BW__) && QKV_VECTOR_BYTES == 64
    return (vh)_mm512_cvtepi8_epi16((__m256i) * (const vb_any *)p);
#elif defined(__AVX2__) && QKV_VECTOR_BYTES == 32
    return (vh)_mm256_cvtepi8_epi16((__m128i) * (const vb_any *)p);
#else
    return __builtin_convertvector(*(const vb_any *)p, vh);
#endif
}
static inline vf floats(vi x) { return __builtin_convertvector(x, vf); }

/* a[2i] b[2i] + a[2i+1] b[2i+1] */
static inline vi multiply_pairs(vh a, vh b)
{
#if defined(__AVX512BW__) && QKV_VECTOR_BYTES == 64
    return (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__) && QKV_VECTOR_BYTES == 32
    return (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__) && QKV_VECTOR_BYTES == 16
    return (vi)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    vi even = ((vi)((vu)a << 16) >> 16) * ((vi)((vu)b << 16) >> 16);
    return even + ((vi)a >> 16) * ((vi)b >> 16);
#endif
}

/* The lanes of each of four vectors, added up. */
static inline v4i lane_totals(const vi x[4])
{
#if defined(__AVX2__) && QKV_VECTOR_BYTES == 32
    __m256i low = _mm256_hadd_epi32((__m256i)x[0], (__m256i)x[1]), high = _mm256_hadd_epi32((__m256i)x[2], (__m256i)x[3]);
    __m256i both = _mm256_hadd_epi32(low, high);
    return (v4i)_mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
#else
    v4i sum = { 0 };
    for (int r = 0; r < 4; r++)
        for (int i = 0; i < W; i++) sum[r] += x[r][i];
    return sum;
#endif
}

/* ---- activations ---- */

/* Bits of floats without their sign are ordered as the floats are; those of infinity and NaN are above all others. */
static int32_t largest_bits(const float *x, int64_t n)
{
    vi largest = { 0 };
    int32_t v[W], most = 0;
    for (int64_t i = 0; i < n; i += W) {
        vi bits = (vi)vabs(get(x + i, n - i, 0)), more = bits > largest;
        largest = (more & bits) | (~more & largest);
    }
    memcpy(v, &largest, sizeof v);
    for (int i = 0; i < W; i++) most = v[i] > most ? v[i] : most;
    return most;
}

static float quantize_group(int8_t *q, const float *x, int64_t n)
{
    const float round_magic = 12582912.0f; /* the sum's low bits are the nearest whole number */
    const int32_t infinity = 0x7f800000, bits = largest_bits(x, n);
    float largest;
    memcpy(&largest, &bits, sizeof largest);
    if (bits >= infinity || largest < QKV__SMALLEST) {
        memset(q, 0, (size_t)n);
        return bits >= infinity ? NAN : 0;
    }
    vf inverse = set1(127.0f / largest);
    for (int64_t i = 0; i < n; i += W) {
        vf sum = get(x + i, n - i, 0) * inverse + round_magic;
        vb_narrow bytes = __builtin_convertvector((vi)sum - (vi)set1(round_magic), vb_narrow);
        memcpy(q + i, &bytes, (size_t)qkv__min(W, n - i));
    }
    return largest / 127.0f;
}

void NAME(quantize_rows)(int8_t *q, int64_t q_row, float *scales, const float *x, int64_t rows, int64_t k, int64_t group)
{
    for (int64_t r = 0; r < rows; r++, x += k, q += q_row) {
        for (int64_t p = 0; p < k; p += group) *scales++ = quantize_group(q + p, x + p, qkv__min(group, k - p));
        memset(q + k, 0, (size_t)(q_row - k));
    }
}

/* ---- few rows, 8 bits ---- */

/* Sums of one row of a with four rows of w, those beyond `rows` the last once more. The end of a row goes through a copy:
 * nothing is read behind w. */
static inline v4i dots_of_four(const int8_t *a, const int8_t *w, int64_t k, int64_t rows)
{
    vi sum[4];
    const int8_t *row[4];
    int64_t p = 0;
    EACH (r, 4) sum[r] = (vi){ 0 }, row[r] = w + qkv__min(r, rows - 1) * k;
    for (; p + H <= k; p += H) {
        vh x = widen(a + p);
        __builtin_prefetch(w + 4 * k + 4 * p); /* the next four rows: theirs are too short for the machine to run ahead */
        EACH (r, 4) sum[r] += multiply_pairs(x, widen(row[r] + p));
    }
    if (p < k)
        EACH (r, 4) {
            int8_t rest[H] = { 0 };
            memcpy(rest, row[r] + p, (size_t)(k - p));
            sum[r] += multiply_pairs(widen(a + p), widen(rest));
        }
    return lane_totals(sum);
}

static inline v4 load_four(const float *p, int64_t n)
{
    v4 x = { 0 };
    memcpy(&x, p, n < 4 ? sizeof *p * (size_t)n : sizeof x);
    return x;
}

static void few_rows_int8(const qkv__quantized *x)
{
    for (int64_t j = 0; j < x->n; j += 4)
        for (int64_t i = 0; i < x->m; i++) {
            const int8_t *a = x->a + i * qkv__whole_groups(x->k), *w = (const int8_t *)x->w + j * x->k;
            int64_t rows = qkv__min(4, x->n - j);
            v4i sums = dots_of_four(a, w, x->k, rows);
            v4 y = __builtin_convertvector(sums, v4) * (x->a_scales[i] * load_four((const float *)x->w_scales + j, rows));
            if (x->bias) y += load_four(x->bias + j, rows);
            memcpy(x->c + i * x->c_row + j, &y, rows < 4 ? sizeof(float) * (size_t)rows : sizeof y);
        }
}

/* ---- few rows, 4 bits: 8 groups at a time, one for each chain ---- */

/* A row of a: of every two groups the first halves, then the last halves, so that they lie as the bits of 32 bytes of w do; and
 * what w being kept 8 too high adds to a group's sum. */
typedef struct nibble_row {
    int8_t *values;
    float *scales;
    int32_t *excess;
} nibble_row;

static void arrange_for_nibbles(const int8_t *a, const float *scales, int64_t groups, nibble_row *out)
{
    for (int64_t g = 0; g < qkv__round_up(groups, CHAINS); g++) {
        int8_t *to = out->values + g / 2 * 2 * GROUP + g % 2 * BYTES;
        int32_t sum = 0;
        out->scales[g] = g < groups ? scales[g] : 0;
        if (g < groups) {
            memcpy(to, a + g * GROUP, BYTES);
            memcpy(to + GROUP, a + g * GROUP + BYTES, BYTES);
            for (int i = 0; i < GROUP; i++) sum += a[g * GROUP + i];
        } else memset(to, 0, BYTES), memset(to + GROUP, 0, BYTES);
        out->excess[g] = 8 * sum;
    }
}

#if defined(__AVX2__)
/* Of two groups: four sums each. */
static inline __m256i two_groups(const uint8_t *w, const int8_t *a)
{
    const __m256i low_bits = _mm256_set1_epi8(15), both = _mm256_loadu_si256((const __m256i *)w);
    const __m256i low = _mm256_and_si256(both, low_bits), high = _mm256_and_si256(_mm256_srli_epi16(both, 4), low_bits);
    __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(low, _mm256_loadu_si256((const __m256i *)a)),
                                     _mm256_maddubs_epi16(high, _mm256_loadu_si256((const __m256i *)(a + GROUP))));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

static inline void sum_eight_groups(const uint8_t *w, const int8_t *a, v8i *out)
{
    __m256i low = _mm256_hadd_epi32(two_groups(w, a), two_groups(w + 32, a + 64));
    __m256i high = _mm256_hadd_epi32(two_groups(w + 64, a + 128), two_groups(w + 96, a + 192));
    const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    *out = (v8i)_mm256_permutevar8x32_epi32(_mm256_hadd_epi32(low, high), in_order);
}

static inline void widen_eight_halves(const uint16_t *x, v8 *out)
{
    *out = (v8)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)x));
}
#else
static inline void sum_eight_groups(const uint8_t *w, const int8_t *a, v8i *out)
{
    for (int g = 0; g < CHAINS; g++) {
        const uint8_t *from = w + g * BYTES;
        const int8_t *first = a + g / 2 * 2 * GROUP + g % 2 * BYTES;
        int32_t sum = 0;
        for (int i = 0; i < BYTES; i++) sum += (from[i] & 15) * first[i] + (from[i] >> 4) * first[GROUP + i];
        (*out)[g] = sum;
    }
}

static inline void widen_eight_halves(const uint16_t *x, v8 *out)
{
    float wide[CHAINS];
    NAME(widen_half)(wide, x, CHAINS);
    memcpy(out, wide, sizeof wide);
}
#endif

static inline void add_eight_groups(v8 *chains, const uint8_t *w, const uint16_t *w_scales, const nibble_row *a, int64_t g)
{
    v8i sums;
    v8 scales;
    sum_eight_groups(w, a->values + g * GROUP, &sums);
    widen_eight_halves(w_scales, &scales);
    sums -= *(const v8i_any *)(a->excess + g);
    *chains += __builtin_convertvector(sums, v8) * (*(const v8_any *)(a->scales + g) * scales);
}

static float dot_of_groups(const uint8_t *w, const uint16_t *w_scales, const nibble_row *a, int64_t groups)
{
    v8 chains = { 0 };
    int64_t g = 0;
    for (; g + CHAINS <= groups; g += CHAINS) {
        __builtin_prefetch(w + g * BYTES + AHEAD);
        __builtin_prefetch(w + g * BYTES + AHEAD + 64);
        add_eight_groups(&chains, w + g * BYTES, w_scales + g, a, g);
    }
    if (g < groups) {
        uint8_t rest[CHAINS * BYTES] = { 0 };
        uint16_t rest_scales[CHAINS] = { 0 };
        memcpy(rest, w + g * BYTES, (size_t)((groups - g) * BYTES));
        memcpy(rest_scales, w_scales + g, sizeof *w_scales * (size_t)(groups - g));
        add_eight_groups(&chains, rest, rest_scales, a, g);
    }
    v4 four = __builtin_shufflevector(chains, chains, 0, 1, 2, 3) + __builtin_shufflevector(chains, chains, 4, 5, 6, 7);
    return (four[0] + four[2]) + (four[1] + four[3]);
}

static void few_rows_int4(const qkv__quantized *x, char *scratch)
{
    int64_t groups = qkv__groups(x->k), room = qkv__round_up(groups, CHAINS);
    nibble_row rows[FEW];
    for (int64_t i = 0; i < x->m; i++) {
        rows[i] = (nibble_row){ .values = (int8_t *)scratch };
        rows[i].scales = (float *)(void *)(scratch + room * GROUP);
        rows[i].excess = (int32_t *)(void *)(rows[i].scales + room);
        scratch = (char *)(rows[i].excess + room);
        arrange_for_nibbles(x->a + i * groups * GROUP, x->a_scales + i * groups, groups, &rows[i]);
    }
    for (int64_t j = 0; j < x->n; j++)
        for (int64_t i = 0; i < x->m; i++) {
            float sum = dot_of_groups((const uint8_t *)x->w + j * groups * BYTES, (const uint16_t *)x->w_scales + j * groups,
                                      &rows[i], groups);
            x->c[i * x->c_row + j] = x->bias ? sum + x->bias[j] : sum;
        }
}

/* ---- tiles ---- */

/* Up to QKV__QUANTIZED_ROWS rows of a in panels of NR, the last of one vector where that is enough: [pairs of k][row]; their
 * scales, [group][row]; MR rows of w; and the scales of their groups. */
typedef struct tiling {
    pair *a, *w;
    float *a_scales, *w_scales;
    float *chains; /* of a tile, for int4 */
    int64_t pairs, scales;
} tiling;

static tiling cut_scratch(char *scratch, int64_t k, int64_t scales)
{
    tiling t = { .pairs = qkv__whole_groups(k) / 2, .scales = scales };
    t.chains = (float *)(void *)scratch;
    t.a = (pair *)(t.chains + CHAINS * MR * NR);
    t.w = t.a + QKV__QUANTIZED_ROWS * t.pairs;
    t.a_scales = (float *)(t.w + MR * t.pairs);
    t.w_scales = t.a_scales + QKV__QUANTIZED_ROWS * scales;
    return t;
}

static inline int vectors_of(int64_t rows) { return rows > W ? NV : 1; }

static void pack_panel(const int8_t *a, const float *a_scales, int64_t rows, const tiling *t, pair *to, float *scales)
{
    int64_t width = vectors_of(rows) * W;
    for (int64_t p = 0; p < t->pairs; p++, to += width)
        for (int64_t i = 0; i < width; i++) {
            int16_t both[2] = { 0, 0 };
            if (i < rows) both[0] = a[i * 2 * t->pairs + 2 * p], both[1] = a[i * 2 * t->pairs + 2 * p + 1];
            memcpy(to + i, both, sizeof both);
        }
    for (int64_t g = 0; g < t->scales; g++, scales += width)
        for (int64_t i = 0; i < width; i++) scales[i] = i < rows ? a_scales[i * t->scales + g] : 0;
}

static void pack_panels(const qkv__quantized *x, int64_t first, int64_t rows, const tiling *t)
{
    for (int64_t i = 0; i < rows; i += NR)
        pack_panel(x->a + (first + i) * 2 * t->pairs, x->a_scales + (first + i) * t->scales, qkv__min(NR, rows - i), t,
                   t->a + i * t->pairs, t->a_scales + i * t->scales);
}

/* sum[i][v] = MR rows of w times nv vectors of a panel, some pairs of them */
ALWAYS void tile_of_pairs(const int nv, const pair *w, int64_t w_row, const pair *a, int64_t pairs, vi sum[MR][NV])
{
    vi own[MR][NV];
    EACH (i, MR)
        EACH (v, nv) own[i][v] = (vi){ 0 };
    for (int64_t p = 0; p < pairs; p++, a += nv * W) {
        vh row[NV];
        EACH (v, nv) memcpy(&row[v], a + v * W, sizeof row[v]);
        EACH (i, MR) {
            vh both = (vh)((int32_t)w[i * w_row + p] - (vi){ 0 });
            EACH (v, nv) own[i][v] += multiply_pairs(both, row[v]);
        }
    }
    EACH (i, MR)
        EACH (v, nv) sum[i][v] = own[i][v];
}

/* MR values for each row of a, from a tile that has them the other way round. */
static void put_tile(const qkv__quantized *x, int64_t first, int64_t rows, int64_t j, const float *tile, int64_t width)
{
    int64_t columns = qkv__min(MR, x->n - j);
    for (int64_t i = 0; i < rows; i++) {
        float *c = x->c + (first + i) * x->c_row + j;
        for (int64_t r = 0; r < columns; r++) c[r] = x->bias ? tile[r * width + i] + x->bias[j + r] : tile[r * width + i];
    }
}

ALWAYS void tile_int8(const int nv, const tiling *t, const pair *a, const float *a_scales, float *out)
{
    vi sum[MR][NV];
    tile_of_pairs(nv, t->w, t->pairs, a, t->pairs, sum);
    EACH (i, MR)
        EACH (v, nv) store(out + (i * nv + v) * W, floats(sum[i][v]) * (load(a_scales + v * W) * t->w_scales[i]));
}

ALWAYS void tile_int4(const int nv, const tiling *t, const pair *a, const float *a_scales, float *out)
{
    const int size = MR * nv * W;
    memset(t->chains, 0, sizeof(float) * (size_t)(CHAINS * size));
    for (int64_t g = 0; g < t->scales; g++, a += GROUP / 2 * nv * W, a_scales += nv * W) {
        vi sum[MR][NV];
        float *chain = t->chains + g % CHAINS * size;
        tile_of_pairs(nv, t->w + g * GROUP / 2, t->pairs, a, GROUP / 2, sum);
        EACH (i, MR)
            EACH (v, nv) {
                float *to = chain + (i * nv + v) * W;
                vf scale = load(a_scales + v * W) * t->w_scales[i * t->scales + g];
                store(to, load(to) + floats(sum[i][v]) * scale);
            }
    }
    for (int half = CHAINS / 2; half; half /= 2)
        for (int i = 0; i < half * size; i += W) store(t->chains + i, load(t->chains + i) + load(t->chains + half * size + i));
    memcpy(out, t->chains, sizeof(float) * (size_t)size);
}

static void widen_int8_rows(const qkv__quantized *x, int64_t j, const tiling *t)
{
    for (int64_t r = 0; r < MR; r++) {
        int16_t *to = (int16_t *)(t->w + r * t->pairs);
        bool is_there = j + r < x->n;
        const int8_t *from = is_there ? (const int8_t *)x->w + (j + r) * x->k : NULL;
        for (int64_t p = 0; is_there && p < x->k; p++) to[p] = from[p];
        int64_t done = is_there ? x->k : 0;
        memset(to + done, 0, sizeof *to * (size_t)(2 * t->pairs - done));
        t->w_scales[r] = is_there ? ((const float *)x->w_scales)[j + r] : 0;
    }
}

static inline void widen_nibbles(const uint8_t *from, int16_t *to)
{
    v16 bytes, low, high;
    int8_t values[GROUP];
    memcpy(&bytes, from, sizeof bytes);
    low = (bytes & 15) - 8, high = (bytes >> 4) - 8;
    memcpy(values, &low, sizeof low);
    memcpy(values + BYTES, &high, sizeof high);
    for (int i = 0; i < GROUP; i += H) {
        vh wide = widen(values + i);
        memcpy(to + i, &wide, sizeof wide);
    }
}

static void widen_int4_rows(const qkv__quantized *x, int64_t j, const tiling *t)
{
    for (int64_t r = 0; r < MR; r++) {
        int16_t *to = (int16_t *)(t->w + r * t->pairs);
        float *scales = t->w_scales + r * t->scales;
        if (j + r >= x->n) {
            memset(to, 0, sizeof *to * (size_t)(2 * t->pairs));
            memset(scales, 0, sizeof *scales * (size_t)t->scales);
            continue;
        }
        const uint8_t *from = (const uint8_t *)x->w + (j + r) * t->scales * BYTES;
        NAME(widen_half)(scales, (const uint16_t *)x->w_scales + (j + r) * t->scales, t->scales);
        for (int64_t g = 0; g < t->scales; g++) widen_nibbles(from + g * BYTES, to + g * GROUP);
    }
}

static void tiles_of_columns(const qkv__quantized *x, int64_t first, int64_t rows, int64_t j, const tiling *t, bool int4)
{
    for (int64_t i = 0; i < rows; i += NR) {
        int64_t some = qkv__min(NR, rows - i);
        const pair *a = t->a + i * t->pairs;
        const float *a_scales = t->a_scales + i * t->scales;
        float out[MR * NR];
        if (vectors_of(some) == 1 && int4) tile_int4(1, t, a, a_scales, out);
        else if (vectors_of(some) == 1) tile_int8(1, t, a, a_scales, out);
        else if (int4) tile_int4(NV, t, a, a_scales, out);
        else tile_int8(NV, t, a, a_scales, out);
        put_tile(x, first + i, some, j, out, vectors_of(some) * W);
    }
}

static void in_tiles(const qkv__quantized *x, char *scratch, bool int4)
{
    const tiling t = cut_scratch(scratch, x->k, int4 ? qkv__groups(x->k) : 1);
    for (int64_t i = 0; i < x->m; i += QKV__QUANTIZED_ROWS) {
        int64_t rows = qkv__min(QKV__QUANTIZED_ROWS, x->m - i);
        pack_panels(x, i, rows, &t);
        for (int64_t j = 0; j < x->n; j += MR) {
            if (int4) widen_int4_rows(x, j, &t);
            else widen_int8_rows(x, j, &t);
            tiles_of_columns(x, i, rows, j, &t, int4);
        }
    }
}

void NAME(multiply_int8)(const qkv__quantized *x, void *scratch)
{
    if (x->m <= FEW) few_rows_int8(x);
    else in_tiles(x, scratch, false);
}

void NAME(multiply_int4)(const qkv__quantized *x, void *scratch)
{
    if (x->m <= FEW) few_rows_int4(x, scratch);
    else in_tiles(x, scratch, true);
}
