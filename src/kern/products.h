/* products.h: what the matrix product and the attention kernels are asked to do. */
#ifndef QKV_SRC_PRODUCTS_H
#define QKV_SRC_PRODUCTS_H

#include "../base/random.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* c = a b (+ c) (+ bias).   a (m,k)   b (k,n)   c (m,n);   element (i,j) of a is a[i*a_row + j*a_col], of b likewise.
 * Each element of c is a sum of chains of fused multiply-adds, whose order depends on k and on b's layout alone:
 *   b stored (n,k), b_row 1: k in blocks of QKV__CHAINS * QKV__CHAIN, and in a block one chain for each remainder of k
 *   otherwise:               k in blocks of QKV__CHAIN, one chain each
 * A chain starts from 0 and runs in the order of k; chains are added to c one after the other; then the bias. So an element's
 * bits depend on its row of a and its column of b, and on nothing else: not on m or n, nor on how the work is cut.
 * (Four interleaved chains are what a dot product of two rows in memory can do at the speed of memory.) */
enum { QKV__CHAIN = 256, QKV__CHAINS = 4 };

typedef struct qkv__product {
    const float *a, *b, *bias; /* bias: n numbers, or NULL */
    float *c;
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col, c_row;
    bool add;
    const float *packed;         /* b, a weight stored (n,k), as pack_weight() leaves it; NULL: there is only b */
    int64_t packed_n, packed_at; /* its columns, and the one that is the first here: a multiple of QKV__PACK_COLUMNS */
    /* another product of the same rows of a, which is packed once for both; NULL: none. Both have packed weights, more than
     * QKV__PACK_ROWS rows and the same k: a kernel that packs nothing does not look at it. */
    const struct qkv__product *also;
} qkv__product;

/* A product of at most so many rows is not worth a packed weight; and a task has so many columns, or a multiple. */
enum { QKV__PACK_ROWS = 16, QKV__PACK_COLUMNS = 32 };

/* Rows that a product with a weight of 16 bits may have to widen it as it is read: see dots_half. */
enum { QKV__DOTS_ROWS = 4 };

/* Bytes of scratch a product needs on each thread. */
#define QKV__PRODUCT_SCRATCH ((size_t)3 << 20)

/* ---- bfloats on both sides: what a unit for them computes (AMX), rounding a too ----
 * a's numbers become the nearest bfloats, ties to even. k is cut in blocks of QKV__BFLOAT_BLOCK, with zeros behind its end, and a
 * block has two chains of fused multiply-adds from 0: one of its even k and one of its odd, in the order of k. The two are added,
 * and the blocks one after the other, from 0; then to c, where it is added to, and then the bias. Up to there numbers too small
 * to be normal count as zero, before every step and after its rounding. Nothing but its row of a and its row of b decides about
 * an element. */
enum { QKV__BFLOAT_BLOCK = 32, QKV__BFLOAT_ROWS = 256, QKV__BFLOAT_COLUMNS = 32 };

/* ---- the same in pairs: what an instruction for pairs of bfloats computes (AVX512_BF16) ----
 * Numbers 2p and 2p + 1 of k are a pair, and belong to chain p % QKV__PAIR_CHAINS of their element: a chain starts from 0 and
 * takes its pairs in the order of k, of each first the odd number's product and then the even one's, by fused multiply-adds.
 * Behind k there are zeros, to a pair for every chain. In all this, and in a before it is rounded, numbers too small to be
 * normal count as zero. Then the chains are added one after the other, the sum to c where it is added to, and the bias. */
enum { QKV__PAIR_CHAINS = 16, QKV__PAIR_ROWS = 512, QKV__PAIR_COLUMNS = 32 };

/* Bytes of scratch that the two need: rows of a and of b, and sums of some of them. */
static inline size_t qkv__bfloat_scratch(int64_t k)
{
    int64_t row = (k + QKV__BFLOAT_BLOCK - 1) / QKV__BFLOAT_BLOCK * QKV__BFLOAT_BLOCK * (int64_t)sizeof(uint16_t);
    return (size_t)((QKV__PAIR_ROWS + QKV__PAIR_COLUMNS) * row + 2 * QKV__BFLOAT_COLUMNS * 16 * (int64_t)sizeof(float));
}
_Static_assert((int)QKV__PAIR_ROWS >= (int)QKV__BFLOAT_ROWS && (int)QKV__PAIR_COLUMNS >= (int)QKV__BFLOAT_COLUMNS &&
                   2 * (int)QKV__PAIR_CHAINS == (int)QKV__BFLOAT_BLOCK,
               "what pairs need is enough for both");

/* ---- attention: y = softmax(q k^T * scale + bias) v in every head; with a cap c > 0 the scaled scores are
 * c tanh(q k^T * scale / c), and there is no bias ---- */

/* Where the rows of an operand are: row t of head h in sequence b is data + b*batch + h*head + t*row. */
typedef struct qkv__strides {
    int64_t batch, head, row;
} qkv__strides;

/* What a query may see, see qkv_mask and qkv_attention_opts.window. A step is 0 where a map of (batch, heads, Tq, Tk)
 * stretches. */
typedef struct qkv__seen {
    bool causal;
    const int32_t *lengths;
    const uint8_t *keep;
    const float *bias;
    int64_t keep_step[4], bias_step[4];
    int64_t window; /* 0: none */
} qkv__seen;

typedef struct qkv__attention {
    int64_t batch, heads, kv_heads, tq, tk, dk, dv;
    const float *q, *k, *v;
    float *y;
    qkv__strides q_rows, k_rows, v_rows, y_rows; /* a gradient lies as its operand does */
    float scale, cap;                            /* cap 0: none */
    qkv__seen seen;
    /* dropout of the weight of key j for a query: word j%2 of the counter (row, j/2), row counting the queries of all heads */
    bool drops;
    float drop_scale; /* 1 / (1-p) */
    uint32_t keep_below;
    qkv__key key;
    /* of every query, (batch, heads, tq): the largest score and 1 / sum of exp(score - largest); 0 and 0 where nothing is seen.
     * Two numbers and not one log-sum-exp: with scores of 1e4 that would lose the digits that tell weights apart. */
    float *largest, *inverse;
    /* for backward */
    const float *dy;
    float *grad_q, *grad_k, *grad_v; /* added to; NULL where nobody wants it */
    float *grad_relative;            /* (batch, heads, tq+tk-1): of a bias by j - i + tq - 1; the same */
    /* on request, (batch, heads, tq, tk); NULL otherwise */
    float *weights, *scaled, *scores;
} qkv__attention;

/* Keys that causality, length and window let query i of sequence b see end before this one; later queries do not see less. */
static inline int64_t qkv__seen_to(const qkv__attention *a, int64_t b, int64_t i)
{
    int64_t to = a->seen.lengths ? a->seen.lengths[b] : a->tk, ahead = a->seen.causal ? 1 : a->seen.window;
    if (ahead && to - (i + a->tk - a->tq) > ahead) to = i + a->tk - a->tq + ahead;
    return to < 0 ? 0 : to;
}

/* The first key that the window lets query i see; later queries do not see earlier ones. */
static inline int64_t qkv__seen_from(const qkv__attention *a, int64_t i)
{
    int64_t place = i + a->tk - a->tq;
    return a->seen.window && place >= a->seen.window ? place - a->seen.window + 1 : 0;
}

/* Rows of queries that make a task, and bytes of scratch a task needs for heads of these widths. */
enum { QKV__QUERY_BLOCK = 96 };
static inline size_t qkv__attention_scratch(int64_t dk, int64_t dv)
{
    /* blocks of queries and keys by dk and dv, each rounded up to a panel, and blocks of queries by keys */
    return sizeof(float) * (size_t)(8 * QKV__QUERY_BLOCK * (dk + dv + 64) + 8 * QKV__QUERY_BLOCK * QKV__QUERY_BLOCK);
}

/* ---- the same for keys and values that are kept in pages of QKV__PAGE tokens, of one sequence ----
 * At `at` a page has for every kv head its keys, [dk][QKV__PAGE]: a token a column, then for every kv head its values,
 * [QKV__PAGE][dv]. Key j is in pages[j / QKV__PAGE]. */
enum { QKV__PAGE = 16 };

/* Queries that make a task here. Its keys and values come from memory for each task, so that there should be few of them. */
enum { QKV__PAGED_QUERIES = 192 };

/* A bias by the distance of key j from query i: at[h*row + j - i] of head h. at NULL: none. */
typedef struct qkv__relative {
    const float *at;
    int64_t row;
} qkv__relative;

typedef struct qkv__paged {
    const float *q; /* query i of head h: q + i*q_row + h*dk */
    float *y;       /* y + i*y_row + h*dv */
    int64_t q_row, y_row;
    int64_t heads, kv_heads, dk, dv;
    int64_t n, keys; /* queries and keys */
    bool causal;     /* the last query sees all keys, the one before it one less, and so on; else each sees all */
    float *const *pages;
    int64_t at;
    float scale;            /* above 0 */
    const uint8_t *hidden;  /* (keys): 1 where no query sees; NULL: none */
    float *weights;         /* on request, (heads, n, keys) */
    int64_t window;         /* where causal: a query sees so many keys at most, the last ones; 0: all */
    float cap;              /* of scores; 0: none */
    qkv__relative relative; /* query i stands at key keys - n + i; without a cap */
} qkv__paged;

/* Query i sees keys from .. to-1. */
static inline int64_t qkv__paged_to(const qkv__paged *x, int64_t i) { return x->causal ? x->keys - x->n + 1 + i : x->keys; }
static inline int64_t qkv__paged_from(const qkv__paged *x, int64_t i)
{
    int64_t to = qkv__paged_to(x, i);
    return x->causal && x->window && to > x->window ? to - x->window : 0;
}

#endif
