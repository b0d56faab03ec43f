/* quantized.c: products of weights in 8 and 4 bits, on one thread. op/quantized.c shares rows and columns among threads.
 *
 * quantized.h fixes the bits. Two ways, which differ in speed alone:
 *   few rows   w is read once as it lies, k along the vector: as fast as memory gives it
 *   tiles      MR rows of one operand times panels of the other's rows, a row a lane. One instruction (pmaddubsw) multiplies
 *              bytes and adds pairs of them, if one operand has no sign and the sums fit 16 bits. Those of 4 bits do, kept as
 *              0 .. 15, and a whole group of them; for int8 see below */
#include "tile.h"

#include "quantized_parts.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef int16_t vh __attribute__((vector_size(QKV_VECTOR_BYTES)));
typedef uint16_t vhu __attribute__((vector_size(QKV_VECTOR_BYTES)));
typedef int8_t vb_any __attribute__((vector_size(QKV_VECTOR_BYTES / 2), aligned(1), may_alias));
typedef int8_t vb_narrow __attribute__((vector_size(W)));
typedef uint8_t v16 __attribute__((vector_size(QKV__GROUP_BYTES)));
typedef int16_t v16h __attribute__((vector_size(QKV__GROUP)));
typedef uint16_t v16hu __attribute__((vector_size(QKV__GROUP)));
typedef float v4 __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));
typedef float v8 __attribute__((vector_size(32)));
typedef int32_t v8i __attribute__((vector_size(32)));
typedef uint32_t v8u __attribute__((vector_size(32)));
typedef int64_t v4l __attribute__((vector_size(32)));
typedef float v8_any __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t v8i_any __attribute__((vector_size(32), aligned(4), may_alias));

enum { H = 2 * W, GROUP = QKV__GROUP, BYTES = QKV__GROUP_BYTES, CHAINS = QKV__GROUP_CHAINS };

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

/* The same of bytes, those of a without a sign; a sum that does not fit 16 bits is not to come. */
static inline vh multiply_nibbles(vi a, vi b)
{
#if defined(__AVX512BW__) && QKV_VECTOR_BYTES == 64
    return (vh)_mm512_maddubs_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__) && QKV_VECTOR_BYTES == 32
    return (vh)_mm256_maddubs_epi16((__m256i)a, (__m256i)b);
#else
    vh even = (vh)(a & 0x00ff00ff) * ((vh)((vhu)b << 8) >> 8);
    return even + (vh)((vhu)a >> 8) * ((vh)b >> 8);
#endif
}

/* x[2i] + x[2i+1] */
static inline vi add_pairs(vh x)
{
#if defined(__SSE2__)
    return multiply_pairs(x, (vh){ 0 } + 1);
#else
    return ((vi)((vu)x << 16) >> 16) + ((vi)x >> 16);
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

/* Four vectors of numbers that fit a byte. gcc takes a conversion apart, number by number. */
static inline void narrow_four(int8_t *to, const vi x[4])
{
#if defined(__AVX2__) && QKV_VECTOR_BYTES == 32
    __m256i low = _mm256_packs_epi32((__m256i)x[0], (__m256i)x[1]), high = _mm256_packs_epi32((__m256i)x[2], (__m256i)x[3]);
    const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    vi bytes = (vi)_mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), in_order);
    memcpy(to, &bytes, sizeof bytes);
#elif defined(__SSE2__) && QKV_VECTOR_BYTES == 16
    __m128i low = _mm_packs_epi32((__m128i)x[0], (__m128i)x[1]), high = _mm_packs_epi32((__m128i)x[2], (__m128i)x[3]);
    vi bytes = (vi)_mm_packs_epi16(low, high);
    memcpy(to, &bytes, sizeof bytes);
#else
    EACH (v, 4) {
        vb_narrow bytes = __builtin_convertvector(x[v], vb_narrow);
        memcpy(to + v * W, &bytes, sizeof bytes);
    }
#endif
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
    for (int64_t i = 0; i < n; i += 4 * W) {
        int8_t bytes[4 * W], *to = n - i >= 4 * W ? q + i : bytes;
        vi whole[4];
        EACH (v, 4) {
            int64_t left = n - i - v * W;
            vf some = left > 0 ? get(x + i + v * W, left, 0) : (vf){ 0 };
            whole[v] = (vi)(some * inverse + round_magic) - (vi)set1(round_magic);
        }
        narrow_four(to, whole);
        if (to == bytes) memcpy(q + i, bytes, (size_t)(n - i));
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

/* Sums of a row of a with four rows of w, `apart` bytes from each other. The end of a row goes through a copy: nothing is read
 * behind w. */
static inline v4i dots_of_four(const int8_t *a, const int8_t *w, int64_t k, int64_t apart)
{
    vi sum[4];
    int64_t p = 0;
    EACH (r, 4) sum[r] = (vi){ 0 };
    for (; p + H <= k; p += H) {
        vh x = widen(a + p);
        EACH (r, 4) sum[r] += multiply_pairs(x, widen(w + r * apart + p));
    }
    if (p < k)
        EACH (r, 4) {
            int8_t rest[H] = { 0 };
            memcpy(rest, w + r * apart + p, (size_t)(k - p));
            sum[r] += multiply_pairs(widen(a + p), widen(rest));
        }
    return lane_totals(sum);
}

static inline void few_columns_int8(const qkv__quantized *x, const void *unused, int64_t j, int64_t apart, int64_t columns)
{
    (void)unused;
    const float *w_scales = x->w_scales;
    for (int64_t i = 0; i < x->m; i++) {
        v4i sums = dots_of_four(x->a + i * qkv__whole_groups(x->k), (const int8_t *)x->w + j * x->k, x->k, apart * x->k);
        for (int64_t q = 0, at = j; q < columns; q++, at += apart) {
            float y = (float)sums[q] * (x->a_scales[i] * w_scales[at]);
            x->c[i * x->c_row + at] = x->bias ? y + x->bias[at] : y;
        }
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

static inline float sum_of_chains(const v8 *chains)
{
    v4 four = __builtin_shufflevector(*chains, *chains, 0, 1, 2, 3) + __builtin_shufflevector(*chains, *chains, 4, 5, 6, 7);
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/* A row of a with four rows of w, `apart` groups from each other. */
static inline void dots_of_groups(const uint8_t *w, const uint16_t *w_scales, int64_t apart, const nibble_row *a,
                                  int64_t groups, float sum[4])
{
    v8 chains[4];
    int64_t g = 0, left = groups % CHAINS;
    EACH (r, 4) chains[r] = (v8){ 0 };
    for (; g + CHAINS <= groups; g += CHAINS)
        EACH (r, 4) add_eight_groups(&chains[r], w + (r * apart + g) * BYTES, w_scales + r * apart + g, a, g);
    for (int r = 0; left && r < 4; r++) {
        uint8_t rest[CHAINS * BYTES] = { 0 };
        uint16_t rest_scales[CHAINS] = { 0 };
        memcpy(rest, w + (r * apart + g) * BYTES, (size_t)(left * BYTES));
        memcpy(rest_scales, w_scales + r * apart + g, sizeof *w_scales * (size_t)left);
        add_eight_groups(&chains[r], rest, rest_scales, a, g);
    }
    EACH (r, 4) sum[r] = sum_of_chains(&chains[r]);
}

static inline void few_columns_int4(const qkv__quantized *x, const void *rows, int64_t j, int64_t apart, int64_t columns)
{
    int64_t groups = qkv__groups(x->k);
    for (int64_t i = 0; i < x->m; i++) {
        float sums[4];
        dots_of_groups((const uint8_t *)x->w + j * groups * BYTES, (const uint16_t *)x->w_scales + j * groups, apart * groups,
                       (const nibble_row *)rows + i, groups, sums);
        for (int64_t q = 0, at = j; q < columns; q++, at += apart)
            x->c[i * x->c_row + at] = x->bias ? sums[q] + x->bias[at] : sums[q];
    }
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
    each_column_of_quarters(x, rows, few_columns_int4);
}

/* ---- tiles, 8 bits ----
 * Of w, kept 128 too high, a panel has NR rows: [word of k][row], a word having four bytes. A pair of them times a pair of a
 * fits 16 bits up to |a0 + a1| = 128, as 255 * 128 does (and 255 * 127, where their signs differ). What a has beyond that is
 * left for later: few words of a row have it, unless nearly all its numbers are large. (Sums with such bytes may wrap around;
 * what is left of them without the excess fits again.) */

enum { ROWS = MR / 3 * 2 }; /* of a in a tile: with more the sums would not stay in registers */
enum { PANELS = 128 / NR }; /* at a time, of short rows: they stay in level 2 */

typedef struct left_word {
    int32_t at;
    word four;
} left_word;

/* Some rows of a, and zeros up to whole tiles of ROWS; and panels of w, which are packed once for all of them. */
typedef struct split_rows {
    int8_t *low;     /* [row][k], without what is left */
    left_word *left; /* of the tile whose first row is i: [n_left[i]][ROWS] from i * words on, zeros where a row has fewer */
    int32_t *n_left;
    int32_t *excess; /* of every row: what w being kept too high adds to its sums */
    word *panels;
    int64_t words, rows, n_panels; /* room for so many rows and panels */
} split_rows;

static split_rows cut_int8_scratch(char *scratch, int64_t k)
{
    split_rows t = { .panels = (word *)(void *)scratch, .words = qkv__whole_groups(k) / 4 };
    bool is_short = k <= QKV__SHORT_ROW;
    t.rows = qkv__round_up(is_short ? 3 * QKV__QUANTIZED_ROWS : QKV__QUANTIZED_ROWS, ROWS);
    t.n_panels = is_short ? PANELS : 1;
    t.left = (left_word *)(void *)(t.panels + t.n_panels * NR * t.words);
    t.low = (int8_t *)(t.left + t.rows * t.words);
    t.excess = (int32_t *)(void *)(t.low + t.rows * 4 * t.words);
    t.n_left = t.excess + t.rows;
    return t;
}

/* 32 bytes of a row: low gets what fits, over what is left, if there is any; gives their sum. */
static inline int32_t split_bytes(const int8_t *a, int8_t *low, int32_t over[GROUP / 4], int64_t *any)
{
    v16h both, even, odd, sum, above, below;
    memcpy(&both, a, sizeof both);
    even = (v16h)((v16hu)both << 8) >> 8, odd = both >> 8, sum = even + odd;
    above = sum > 128, below = sum < -128;
    v16h left = (v16h)((v16hu)((above & (sum - 128)) | (below & (sum + 128))) << 8);
    both -= left; /* of the second byte of a pair */
    memcpy(low, &both, sizeof both);
    memcpy(over, &left, sizeof left);
    v4l bits = (v4l)left;
    v8i pairs = ((v8i)((v8u)sum << 16) >> 16) + ((v8i)sum >> 16);
    *any = (bits[0] | bits[1]) | (bits[2] | bits[3]);
    return ((pairs[0] + pairs[1]) + (pairs[2] + pairs[3])) + ((pairs[4] + pairs[5]) + (pairs[6] + pairs[7]));
}

/* Row i, to its place in the tile whose first row is `tile`. Gives how many words are left. */
static int32_t split_row(const int8_t *a, const split_rows *t, int64_t i, int64_t tile)
{
    left_word *left = t->left + tile * t->words + (i - tile);
    int32_t n = 0, total = 0, over[GROUP / 4];
    for (int32_t p = 0; p < t->words; p += GROUP / 4) {
        int64_t any;
        total += split_bytes(a + 4 * p, t->low + 4 * (i * t->words + p), over, &any);
        for (int32_t q = 0; any && q < GROUP / 4; q++) {
            left[n * ROWS] = (left_word){ p + q, over[q] };
            n += over[q] != 0;
        }
    }
    t->excess[i] = 128 * total;
    return n;
}

static void split_tile(const qkv__quantized *x, int64_t first, int64_t rows, int64_t tile, const split_rows *t)
{
    int32_t n[ROWS] = { 0 }, most = 0;
    for (int64_t r = 0; r < ROWS; r++) {
        if (tile + r < rows) n[r] = split_row(x->a + (first + tile + r) * 4 * t->words, t, tile + r, tile);
        else memset(t->low + (tile + r) * 4 * t->words, 0, (size_t)(4 * t->words)), t->excess[tile + r] = 0;
        most = n[r] > most ? n[r] : most;
    }
    for (int64_t r = 0; r < ROWS; r++)
        for (int32_t l = n[r]; l < most; l++) t->left[tile * t->words + l * ROWS + r] = (left_word){ 0, 0 };
    t->n_left[tile] = most;
}

/* sum[v] += a word of a row of a times a panel's */
ALWAYS void add_word(vi sum[NV], const word *panel, int32_t four)
{
    vi both = four - (vi){ 0 };
    EACH (v, NV) sum[v] += add_pairs(multiply_nibbles((vi)load((const float *)panel + v * W), both));
}

/* ROWS rows of a from row i on times a panel, whose first column is j. Meanwhile what comes `next` is asked for, some bytes with
 * every word. */
static __attribute__((noinline)) void tile_int8(const qkv__quantized *x, const split_rows *t, int64_t first, int64_t i,
                                                int64_t rows, const word *packed, int64_t j, const char *next,
                                                int64_t next_step)
{
    const word *low = (const word *)(const void *)t->low + i * t->words, *panel = packed;
    const left_word *left = t->left + i * t->words;
    vi sum[ROWS][NV];
    EACH (r, ROWS)
        EACH (v, NV) sum[r][v] = (vi){ 0 };
    for (int64_t p = 0; p < t->words; p++, panel += NR) {
        __builtin_prefetch(next + p * next_step, 0, 2);
        EACH (r, ROWS) add_word(sum[r], panel, low[r * t->words + p]);
    }
    for (int32_t l = 0; l < t->n_left[i]; l++, left += ROWS)
        EACH (r, ROWS) add_word(sum[r], packed + left[r].at * NR, left[r].four);
    EACH (r, ROWS)
        EACH (v, NV)
            if (i + r < rows && j + v * W < x->n)
                put_int8(x, first + i + r, j + v * W, sum[r][v] - t->excess[i + r], x->n - j - v * W);
}

/* So few rows of a that they stay in level 1, with every panel from column j on. Each tile asks for its part of what takes the
 * panel's place: to be packed, rows of w are read a few bytes at a time, in which no processor runs ahead. */
static void tiles_of_panels(const qkv__quantized *x, const split_rows *t, int64_t first, int64_t from, int64_t rows, int64_t j)
{
    int64_t to = qkv__min(rows, from + QKV__QUANTIZED_ROWS), tiles = qkv__ceil_div(rows, ROWS);
    int64_t step = qkv__ceil_div((int64_t)sizeof(word) * NR, tiles);
    const word *panel = t->panels;
    for (int64_t q = 0; q < t->n_panels && j < x->n; q++, j += NR, panel += NR * t->words) {
        const char *next = (const char *)x->w + (j + t->n_panels * NR) * x->k;
        for (int64_t i = from; i < to; i += ROWS)
            tile_int8(x, t, first, i, rows, panel, j, next + NR * x->k * (i / ROWS) / tiles, step);
    }
}

static void in_tiles_int8(const qkv__quantized *x, char *scratch)
{
    const split_rows t = cut_int8_scratch(scratch, x->k);
    for (int64_t first = 0; first < x->m; first += t.rows) {
        int64_t rows = qkv__min(t.rows, x->m - first);
        for (int64_t i = 0; i < rows; i += ROWS) split_tile(x, first, rows, i, &t);
        for (int64_t j = 0; j < x->n; j += t.n_panels * NR) {
            for (int64_t q = 0; q < t.n_panels && j + q * NR < x->n; q++)
                pack_weights(x, j + q * NR, t.words, 128, t.panels + q * NR * t.words);
            for (int64_t i = 0; i < rows; i += QKV__QUANTIZED_ROWS) tiles_of_panels(x, &t, first, i, rows, j);
        }
    }
}

/* ---- tiles, 4 bits: c^T = w a^T ---- */

/* Up to QKV__QUANTIZED_ROWS rows of a in panels of NR, the last of one vector where that is enough: [words of k][row], a word
 * having four bytes; [group][row] their scales, and what w being kept 8 too high adds to a sum; MR rows of w in such words; and
 * the scales of their groups. */
typedef struct tiling {
    word *a, *w;
    float *a_scales, *w_scales;
    int32_t *excess;
    float *chains; /* of a tile */
    int64_t words, scales;
    vh ones; /* in memory: in a register they would take the place of a sum */
} tiling;

static tiling cut_scratch(char *scratch, int64_t k)
{
    tiling t = { .words = qkv__whole_groups(k) / 4, .scales = qkv__groups(k), .ones = (vh){ 0 } + 1 };
    t.chains = (float *)(void *)scratch;
    t.a = (word *)(t.chains + CHAINS * MR * NR);
    t.w = t.a + QKV__QUANTIZED_ROWS * t.words;
    t.a_scales = (float *)(t.w + MR * t.words);
    t.excess = (int32_t *)(t.a_scales + QKV__QUANTIZED_ROWS * t.scales);
    t.w_scales = (float *)(t.excess + QKV__QUANTIZED_ROWS * t.scales);
    return t;
}

static void pack_panel(const qkv__quantized *x, int64_t first, int64_t rows, word *to)
{
    int64_t width = vectors_of(rows) * W, k = qkv__whole_groups(x->k);
    for (int64_t v = 0; v < width; v += W)
        for (int64_t p = 0; p < k; p += 16) {
            vf column[4];
            columns_of_first_rows((const float *)(const void *)(x->a + (first + v) * k + p), k / 4, rows - v, column);
            EACH (c, 4) store((float *)(to + (p / 4 + c) * width + v), column[c]);
        }
}

static void pack_scales(const qkv__quantized *x, int64_t first, int64_t rows, const tiling *t, float *scales, int32_t *excess)
{
    int64_t width = vectors_of(rows) * W;
    for (int64_t i = 0; i < width; i++)
        for (int64_t g = 0; g < t->scales; g++) {
            const int8_t *group = x->a + ((first + i) * t->scales + g) * GROUP;
            int32_t sum = 0;
            for (int p = 0; i < rows && p < GROUP; p++) sum += group[p];
            scales[g * width + i] = i < rows ? x->a_scales[(first + i) * t->scales + g] : 0;
            excess[g * width + i] = 8 * sum;
        }
}

static void pack_panels(const qkv__quantized *x, int64_t first, int64_t rows, const tiling *t)
{
    for (int64_t i = 0; i < rows; i += NR) {
        int64_t some = qkv__min(NR, rows - i);
        pack_panel(x, first + i, some, t->a + i * t->words);
        pack_scales(x, first + i, some, t, t->a_scales + i * t->scales, t->excess + i * t->scales);
    }
}

/* sum[i][v] = a group of MR rows of w times nv vectors of a panel: in 16 bits, as 32 * 15 * 127 / 2 fits them */
ALWAYS void tile_of_group(const int nv, const word *w, int64_t w_row, const word *a, vh sum[MR][NV])
{
    vh own[MR][NV];
    EACH (i, MR)
        EACH (v, nv) own[i][v] = (vh){ 0 };
    for (int64_t p = 0; p < GROUP / 4; p++, a += nv * W) {
        vi row[NV];
        EACH (v, nv) memcpy(&row[v], a + v * W, sizeof row[v]);
        EACH (i, MR) {
            vi four = (int32_t)w[i * w_row + p] - (vi){ 0 };
            EACH (v, nv) own[i][v] += multiply_nibbles(four, row[v]);
        }
    }
    EACH (i, MR)
        EACH (v, nv) sum[i][v] = own[i][v];
}

ALWAYS void tile_int4(const int nv, const tiling *t, const word *a, const float *a_scales, const int32_t *excess, float *out)
{
    const int size = MR * nv * W;
    memset(t->chains, 0, sizeof(float) * (size_t)(CHAINS * size));
    for (int64_t g = 0; g < t->scales; g++, a += GROUP / 4 * nv * W, a_scales += nv * W, excess += nv * W) {
        vh sum[MR][NV];
        float *chain = t->chains + g % CHAINS * size;
        tile_of_group(nv, t->w + g * GROUP / 4, t->words, a, sum);
        EACH (i, MR)
            EACH (v, nv) {
                float *to = chain + (i * nv + v) * W;
                vf scale = load(a_scales + v * W) * t->w_scales[i * t->scales + g];
                vi exact = multiply_pairs(sum[i][v], t->ones) - (vi)load((const float *)(const word *)excess + v * W);
                store(to, load(to) + floats(exact) * scale);
            }
    }
    for (int half = CHAINS / 2; half; half /= 2)
        for (int i = 0; i < half * size; i += W) store(t->chains + i, load(t->chains + i) + load(t->chains + half * size + i));
    memcpy(out, t->chains, sizeof(float) * (size_t)size);
}

/* A row of groups: bytes 0 .. 15 in the order of k. */
static void widen_int4_row(const uint8_t *from, const tiling *t, word *to)
{
    for (int64_t g = 0; g < t->scales; g++) {
        v16 bytes, low, high;
        memcpy(&bytes, from + g * BYTES, sizeof bytes);
        low = bytes & 15, high = bytes >> 4;
        memcpy(to + g * GROUP / 4, &low, sizeof low);
        memcpy(to + g * GROUP / 4 + BYTES / 4, &high, sizeof high);
    }
}

static void widen_rows(const qkv__quantized *x, int64_t j, const tiling *t)
{
    for (int64_t r = 0; r < MR; r++) {
        word *to = t->w + r * t->words;
        float *scales = t->w_scales + r * t->scales;
        if (j + r >= x->n) {
            memset(to, 0, sizeof *to * (size_t)t->words);
            memset(scales, 0, sizeof *scales * (size_t)t->scales);
        } else {
            NAME(widen_half)(scales, (const uint16_t *)x->w_scales + (j + r) * t->scales, t->scales);
            widen_int4_row((const uint8_t *)x->w + (j + r) * t->scales * BYTES, t, to);
        }
    }
}

static void tiles_of_columns(const qkv__quantized *x, int64_t first, int64_t rows, int64_t j, const tiling *t)
{
    float out[TILE_ROWS * NR] = { 0 };
    for (int64_t i = 0; i < rows; i += NR) {
        int64_t some = qkv__min(NR, rows - i);
        const word *a = t->a + i * t->words;
        const float *a_scales = t->a_scales + i * t->scales;
        const int32_t *excess = t->excess + i * t->scales;
        if (vectors_of(some) == 1) tile_int4(1, t, a, a_scales, excess, out);
        else tile_int4(NV, t, a, a_scales, excess, out);
        put_tile(x, first + i, some, j, out, vectors_of(some) * W);
    }
}

static void in_tiles_int4(const qkv__quantized *x, char *scratch)
{
    const tiling t = cut_scratch(scratch, x->k);
    for (int64_t i = 0; i < x->m; i += QKV__QUANTIZED_ROWS) {
        int64_t rows = qkv__min(QKV__QUANTIZED_ROWS, x->m - i);
        pack_panels(x, i, rows, &t);
        for (int64_t j = 0; j < x->n; j += MR) {
            widen_rows(x, j, &t);
            tiles_of_columns(x, i, rows, j, &t);
        }
    }
}

void NAME(multiply_int8)(const qkv__quantized *x, void *scratch)
{
    if (x->m <= FEW) each_column_of_quarters(x, NULL, few_columns_int8);
    else in_tiles_int8(x, scratch);
}

void NAME(multiply_int4)(const qkv__quantized *x, void *scratch)
{
    if (x->m <= FEW) few_rows_int4(x, scratch);
    else in_tiles_int4(x, scratch);
}
