/* dots.c: products of a few rows with b stored (n,k), floats or numbers of 16 bits, on one thread: as fast as memory gives b.
 *
 * Vectors have 32 bytes here also where they could have 64. A vector of 64 has the chains of four rows of b, so that sixteen rows
 * are read at a time: too many runs to read ahead in, each in pieces of 16 bytes. See docs/decisions.md. */
#if QKV_VECTOR_BYTES == 64
#undef QKV_VECTOR_BYTES
#define QKV_VECTOR_BYTES 32
#endif
#include "dot_chains.h"

#if defined(__AVX512VL__) || defined(__aarch64__)
enum { A_ROWS = 4 }; /* whose sums fit the registers: 32 of them */
#else
enum { A_ROWS = 2 };
#endif

/* Bytes by which b is fetched ahead in every run, to the second cache: what is on its way to the first one keeps reading from
 * going on. Measured where the vectors of AVX-512 are; elsewhere 0, none. See docs/decisions.md. */
#if defined(__AVX512VL__)
enum { AHEAD = 2048, LINE = 64 };
#else
enum { AHEAD = 0, LINE = 64 };
#endif

/* How the numbers of b are kept; a constant wherever it is asked. */
typedef enum kept { FLOATS, HALVES, BFLOATS } kept;

/* Four numbers of 16 bits as floats, exactly. Zeros are put before or behind each: gcc makes several instructions of a
 * conversion of half a vector. */
ALWAYS v4 widen_four(const uint16_t *p, const kept as)
{
    typedef uint16_t n8 __attribute__((vector_size(16)));
    typedef uint64_t two __attribute__((vector_size(16)));
    uint64_t low;
    memcpy(&low, p, sizeof low);
    n8 narrow = (n8)(two){ low }, zero = { 0 };
    if (as == BFLOATS) return (v4)__builtin_shufflevector(zero, narrow, 0, 8, 1, 9, 2, 10, 3, 11);
#if QKV_VECTOR_BYTES > 16
    return (v4)_mm_cvtph_ps((__m128i)narrow);
#else
    return widen_halves((vu)__builtin_shufflevector(narrow, zero, 0, 8, 1, 9, 2, 10, 3, 11));
#endif
}

ALWAYS int64_t bytes_of(const kept as) { return as == FLOATS ? (int64_t)sizeof(float) : (int64_t)sizeof(uint16_t); }

ALWAYS const void *number_at(const void *b, int64_t i, const kept as) { return (const char *)b + i * bytes_of(as); }

/* One number. */
ALWAYS float one_of(const void *b, int64_t i, const kept as)
{
    uint16_t narrow[4] = { 0 };
    if (as == FLOATS) return *(const float *)number_at(b, i, as);
    memcpy(narrow, number_at(b, i, as), sizeof *narrow);
    return widen_four(narrow, as)[0];
}

#if QKV_VECTOR_BYTES > 16
ALWAYS __m128i eight_of(const uint16_t *p) { return _mm_loadu_si128((const __m128i *)(const void *)p); }
#endif

/* Numbers of 16 bits, eight each of rows 0, 4, 8, ... of b: out[0] has the first four of every row, a row a quarter, out[1] the
 * other four. The instructions are named, as gcc widens a row at a time: see docs/decisions.md. */
ALWAYS void widen_two_steps(const uint16_t *b, int64_t b_col, const kept as, vf out[2])
{
#if QKV_VECTOR_BYTES == 16
    (void)b_col;
    EACH (s, 2) out[s] = (vf)widen_four(b + s * CHAINS, as);
#elif QKV_VECTOR_BYTES == 32
    __m128i r0 = eight_of(b), r1 = eight_of(b + 4 * b_col);
    __m256i rows = _mm256_set_m128i(r1, r0), zero = _mm256_setzero_si256();
    out[0] = as == HALVES ? (vf)_mm256_cvtph_ps(_mm_unpacklo_epi64(r0, r1)) : (vf)_mm256_unpacklo_epi16(zero, rows);
    out[1] = as == HALVES ? (vf)_mm256_cvtph_ps(_mm_unpackhi_epi64(r0, r1)) : (vf)_mm256_unpackhi_epi16(zero, rows);
#else
    __m128i r0 = eight_of(b), r1 = eight_of(b + 4 * b_col), r2 = eight_of(b + 8 * b_col), r3 = eight_of(b + 12 * b_col);
    __m256i low = _mm256_set_m128i(_mm_unpacklo_epi64(r2, r3), _mm_unpacklo_epi64(r0, r1));
    __m256i high = _mm256_set_m128i(_mm_unpackhi_epi64(r2, r3), _mm_unpackhi_epi64(r0, r1));
    out[0] = as == HALVES ? (vf)_mm512_cvtph_ps(low) : (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(low), 16);
    out[1] = as == HALVES ? (vf)_mm512_cvtph_ps(high) : (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16);
#endif
}

/* The next two steps of every chain of m rows of a with DOT_ROWS rows of b. */
ALWAYS void dot_two_steps(const int m, const kept as, const float *a, int64_t a_row, const void *b, int64_t b_col,
                          vf sum[A_ROWS][FOUR])
{
    EACH (g, FOUR) {
        vf rows[2];
        if (as == FLOATS)
            EACH (s, 2) rows[s] = load_quarters((const float *)b + g * b_col + s * CHAINS, b_col);
        else widen_two_steps((const uint16_t *)b + g * b_col, b_col, as, rows);
        EACH (i, m)
            EACH (s, 2) sum[i][g] += load_four(a + i * a_row + s * CHAINS) * rows[s];
    }
}

/* A cache line of each of them, while those AHEAD are fetched. */
ALWAYS void dot_lines(const int m, const kept as, const float *a, int64_t a_row, const void *b, int64_t b_col,
                      vf sum[A_ROWS][FOUR])
{
    EACH (r, DOT_ROWS) __builtin_prefetch((const char *)number_at(b, r * b_col, as) + AHEAD, 0, 2);
    EACH (s, LINE / (2 * CHAINS) / bytes_of(as))
        dot_two_steps(m, as, a + s * 2 * CHAINS, a_row, number_at(b, s * 2 * CHAINS, as), b_col, sum);
}

/* The last n numbers of rows 0, 4, 8, ... of b, fewer than eight. Not inlined, so that the sums stay in registers. */
static __attribute__((noinline)) vf dot_last(vf sum, const float *a, const void *b, int64_t b_col, int64_t n, kept as)
{
    float lane[W];
    memcpy(lane, &sum, sizeof lane);
    for (int s = 0; s < SIDE; s++)
        for (int64_t p = 0; p < n; p++) {
            float *chain = lane + s * CHAINS + p % CHAINS;
            *chain = add_product(*chain, a[p], one_of(b, 4 * s * b_col + p, as));
        }
    return load(lane);
}

/* c[r*c_col] (+)= the chains of row r: see add_chains() */
ALWAYS void put_chains(const vf s[FOUR], float *c, int64_t c_col, bool add)
{
    float t[DOT_ROWS];
    for (int r = 0; add && r < DOT_ROWS; r++) t[r] = c[r * c_col];
    add_chains(s, t, add);
    for (int r = 0; r < DOT_ROWS; r++) c[r * c_col] = t[r];
}

/* Up to A_ROWS rows of a, DOT_ROWS rows of b over a block of k, and columns of c, b_col and c_col apart. */
ALWAYS void dot_panel(const int m, const kept as, const float *a, int64_t a_row, const void *b, int64_t b_col, float *c,
                      int64_t c_row, int64_t c_col, int64_t k, bool add)
{
    enum { STEP = 2 * CHAINS };
    vf sum[A_ROWS][FOUR];
    int64_t p = 0;
    EACH (i, m)
        EACH (g, FOUR) sum[i][g] = (vf){ 0 };
    for (int64_t line = LINE / bytes_of(as); AHEAD > 0 && p + line <= k; p += line)
        dot_lines(m, as, a + p, a_row, number_at(b, p, as), b_col, sum);
    for (; p + STEP <= k; p += STEP) dot_two_steps(m, as, a + p, a_row, number_at(b, p, as), b_col, sum);
    EACH (i, m) {
        if (p < k)
            EACH (g, FOUR)
                sum[i][g] = dot_last(sum[i][g], a + i * a_row + p, number_at(b, g * b_col + p, as), b_col, k - p, as);
        put_chains(sum[i], c + i * c_row, c_col, add);
    }
}

/* One element: what is left of the columns. */
static void dot_one(const float *a, const void *b, float *c, int64_t k, bool add, kept as)
{
    float chain[CHAINS] = { 0 };
    for (int64_t p = 0; p < k; p++) chain[p % CHAINS] = add_product(chain[p % CHAINS], a[p], one_of(b, p, as));
    *c = (add ? *c + chain[0] : chain[0]) + chain[1] + chain[2] + chain[3];
}

/* A block of k of DOT_ROWS rows of b, from row j on and `apart` from each other. What is in the cache is read a second time for
 * more than A_ROWS rows of a. */
ALWAYS void dot_block(const qkv__product *x, const void *b, const int m, const kept as, int64_t j, int64_t apart, int64_t p)
{
    int64_t k = qkv__min(CHAIN * CHAINS, x->k - p), b_col = apart * x->b_col;
    const void *rows = number_at(b, j * x->b_col + p, as);
    const float *a = x->a + p;
    float *c = x->c + j;
    bool add = x->add || p > 0;
    dot_panel(m < A_ROWS ? m : A_ROWS, as, a, x->a_row, rows, b_col, c, x->c_row, apart, k, add);
    if (m > A_ROWS)
        dot_panel(m - A_ROWS, as, a + A_ROWS * x->a_row, x->a_row, rows, b_col, c + A_ROWS * x->c_row, x->c_row, apart, k, add);
}

/* The rows of b of a panel lie far apart, each followed by that of the next panel: a few long runs are what a processor reads
 * ahead in by itself, even where a page of memory is small (see docs/decisions.md). */
ALWAYS void dot_few(const qkv__product *x, const void *b, const int m, const kept as)
{
    int64_t j = 0, block = CHAIN * CHAINS, apart = x->n / DOT_ROWS;
    for (; j < apart; j++)
        for (int64_t p = 0; p < x->k; p += block) dot_block(x, b, m, as, j, apart, p);
    for (j = apart * DOT_ROWS; j < x->n; j++)
        for (int64_t p = 0; p < x->k; p += block)
            EACH (i, m)
                dot_one(x->a + p + i * x->a_row, number_at(b, j * x->b_col + p, as), x->c + i * x->c_row + j,
                        qkv__min(block, x->k - p), x->add || p > 0, as);
}

/* One to four rows. */
ALWAYS void dot_rows(const qkv__product *x, const void *b, const kept as)
{
    switch (x->m) {
    case 1: dot_few(x, b, 1, as); break;
    case 2: dot_few(x, b, 2, as); break;
    case 3: dot_few(x, b, 3, as); break;
    case 4: dot_few(x, b, 4, as); break;
    }
    if (x->k <= 0) no_steps(x);
    else if (x->bias) add_bias(x->c, x->c_row, x->m, x->n, x->bias);
}

void NAME(dots_half)(const qkv__product *x, const uint16_t *b) { dot_rows(x, b, HALVES); }
void NAME(dots_bfloat)(const qkv__product *x, const uint16_t *b) { dot_rows(x, b, BFLOATS); }

void NAME(dots)(const qkv__product *x, float *scratch)
{
    if (x->m <= FOUR) dot_rows(x, x->b, FLOATS);
    else dot_handful(x, scratch);
}
