/* attention.c: scaled dot-product attention without a Tq x Tk buffer, forward and backward, on one thread (after Dao et al.
 * 2022).
 *
 * Queries are taken in panels of NR, one a lane. A tile of scores is kept as [key][query], which suits all seven products: the
 * keys, values and weights are read as they lie, and only a panel of queries is ever transposed; maxima and sums over keys run
 * down the lanes. A row depends on its own query and on the order of the keys alone: not on the rows beside it, nor on how the
 * rows are cut into tasks. */
#include "attend.h"

/* ---- masks ---- */

typedef struct block { /* rows from .. from+n-1 of one head */
    const qkv__attention *x;
    int64_t b, h, from, n, panels;
} block;

static block block_of(const qkv__attention *x, int64_t b, int64_t h, int64_t from, int64_t n)
{
    return (block){ x, b, h, from, n, qkv__ceil_div(n, NR) };
}

/* rows of panel p, and the keys that end those that its last row sees: no other sees later ones */
static inline int64_t panel_rows(const block *w, int64_t p) { return qkv__min(NR, w->n - p * NR); }
static inline int64_t panel_sees(const block *w, int64_t p)
{
    return qkv__seen_to(w->x, w->b, w->from + p * NR + panel_rows(w, p) - 1);
}

/* where the tiles begin that some row of the block sees, tiles being cut alike for all blocks */
static inline int64_t first_tile(const block *w) { return qkv__seen_from(w->x, w->from) / BK * BK; }

static inline bool plain(const qkv__attention *x) { return !x->seen.keep && !x->seen.bias && x->scale > 0; }

/* What -inf hides by a window before its rows begin to see, in scores [n][NR] of keys j0 .. j0+n-1. */
static void hide_starts(const block *w, int64_t p, int64_t j0, int64_t n, float *s)
{
    for (int64_t i = 0; i < panel_rows(w, p); i++)
        for (int64_t j = 0, end = qkv__min(n, qkv__seen_from(w->x, w->from + p * NR + i) - j0); j < end; j++)
            s[j * NR + i] = -INFINITY;
}

/* What -inf hides by causality and length, in scores [n][NR] of keys j0 .. j0+n-1. */
static void hide_ends(const block *w, int64_t p, int64_t j0, int64_t n, float *s)
{
    int32_t sees[NR];
    for (int64_t i = 0; i < NR; i++)
        sees[i] = (int32_t)qkv__min(n, qkv__max(0, qkv__seen_to(w->x, w->b, w->from + qkv__min(p * NR + i, w->n - 1)) - j0));
    for (int64_t j = sees[0]; j < n; j++) /* the first row sees least */
        EACH (v, NV) {
            vi limit;
            memcpy(&limit, sees + v * W, sizeof limit);
            float *at = s + j * NR + v * W;
            store(at, pick(limit > (int32_t)j, load(at), set1(-INFINITY)));
        }
}

/* The whole of it, of scaled scores: for masks that are maps. */
static void hide_by_maps(const block *w, int64_t p, int64_t j0, int64_t n, float *s)
{
    const qkv__attention *x = w->x;
    const int64_t *ks = x->seen.keep_step, *bs = x->seen.bias_step;
    for (int64_t i = 0; i < panel_rows(w, p); i++) {
        int64_t row = w->from + p * NR + i, sees = qkv__seen_to(x, w->b, row), first = qkv__seen_from(x, row);
        const uint8_t *keep = x->seen.keep ? x->seen.keep + w->b * ks[0] + w->h * ks[1] + row * ks[2] : NULL;
        const float *bias = x->seen.bias ? x->seen.bias + w->b * bs[0] + w->h * bs[1] + row * bs[2] : NULL;
        for (int64_t j = j0; j < j0 + n; j++) {
            float *score = s + (j - j0) * NR + i;
            bool seen = j >= first && j < sees && (!keep || keep[j * ks[3]]);
            *score = seen ? *score + (bias ? bias[j * bs[3]] : 0) : -INFINITY;
        }
    }
}

/* Scores [n][NR] of a panel, or of its first `lanes`; multiply them by what it gives back to get scaled ones, -inf where hidden. */
static float masked_scores(const block *w, int64_t p, int64_t j0, int64_t n, const float *queries, int64_t lanes, float *s)
{
    const qkv__attention *x = w->x;
    const float *k = x->k + w->b * x->k_rows.batch + w->h / (x->heads / x->kv_heads) * x->k_rows.head + j0 * x->k_rows.row;
    float scale = x->cap > 0 ? 1 : x->scale;
    rows_times_panel(k, x->k_rows.row, n, x->dk, queries, lanes, s);
    if (x->cap > 0) cap_scores(s, n * NR, x->scale, x->cap);
    if (plain(x)) {
        hide_ends(w, p, j0, n, s);
        if (x->seen.window) hide_starts(w, p, j0, n, s);
        return scale;
    }
    if (scale != 1) scale_scores(s, n * NR, scale);
    hide_by_maps(w, p, j0, n, s);
    return 1;
}

/* gate[j][lane] = 0 or 1/(1-p): what dropout multiplies the weights with */
static void drop_gates(const block *w, int64_t p, int64_t j0, int64_t n, float *gate)
{
    const qkv__attention *x = w->x;
    uint32_t row = (uint32_t)((w->b * x->heads + w->h) * x->tq + w->from + p * NR);
    for (int64_t j = 0; j < n; j++)
        EACH (v, NV) {
            vu word[2];
            threefry(x->key, row + (uint32_t)(v * W), (uint32_t)((j0 + j) / 2), &word[0], &word[1]);
            store(gate + j * NR + v * W, pick((vi)(word[(j0 + j) % 2] < x->keep_below), set1(x->drop_scale), (vf){ 0 }));
        }
}

static void multiply_by(float *x, const float *by, int64_t n)
{
    for (int64_t i = 0; i < n; i += W) store(x + i, load(x + i) * load(by + i));
}

/* ---- forward ---- */

/* y = sum of weights times values, divided by the sum of the weights; largest and 1/sum are kept for backward */
static void finish_rows(const block *w, const float *largest, const float *sum, const float *y, int64_t y_row)
{
    const qkv__attention *x = w->x;
    int64_t first = (w->b * x->heads + w->h) * x->tq + w->from;
    float *out = x->y + w->b * x->y_rows.batch + w->h * x->y_rows.head + w->from * x->y_rows.row;
    for (int64_t i = 0; i < w->n; i++) {
        float inverse = sum[i] == 0 ? 0 : 1 / sum[i];
        for (int64_t d = 0; d < x->dv; d++) out[i * x->y_rows.row + d] = y[i * y_row + d] * inverse;
        x->largest[first + i] = largest[i] > -INFINITY ? largest[i] : 0;
        x->inverse[first + i] = inverse;
    }
}

static void pack_queries(const block *w, float *queries)
{
    const qkv__attention *x = w->x;
    const float *q = x->q + w->b * x->q_rows.batch + w->h * x->q_rows.head + w->from * x->q_rows.row;
    for (int64_t p = 0; p < w->panels; p++)
        pack_panel(q + p * NR * x->q_rows.row, x->q_rows.row, panel_rows(w, p), x->dk, queries + p * NR * x->dk);
}

void NAME(attend)(const qkv__attention *x, int64_t b, int64_t h, int64_t from, int64_t to, float *scratch)
{
    block w = block_of(x, b, h, from, to - from);
    const float *v = x->v + b * x->v_rows.batch + h / (x->heads / x->kv_heads) * x->v_rows.head;
    const int64_t width = padded(x->dv);
    float largest[BQ], sum[BQ] = { 0 };
    float *queries = scratch, *values = queries + BQ * x->dk, *y = values + BK * width, *s = y + BQ * width,
          *gate = s + BK * NR;
    pack_queries(&w, queries);
    memset(y, 0, sizeof(float) * (size_t)(w.panels * NR * width));
    for (int64_t i = 0; i < BQ; i++) largest[i] = -INFINITY;
    int64_t end = panel_sees(&w, w.panels - 1);
    for (int64_t j = first_tile(&w); j < end; j += BK) {
        int64_t keys = qkv__min(BK, end - j);
        pack_chunks(v + j * x->v_rows.row, x->v_rows.row, keys, x->dv, values);
        for (int64_t p = 0; p < w.panels; p++) {
            int64_t n = qkv__min(keys, panel_sees(&w, p) - j), rows = panel_rows(&w, p), step = column_height(rows);
            if (n <= 0 || j + keys <= qkv__seen_from(x, from + p * NR)) continue;
            float *out = y + p * NR * width;
            float scale = masked_scores(&w, p, j, n, queries + p * NR * x->dk, rows, s);
            absorb(s, n, scale, rows, largest + p * NR, sum + p * NR, out, width);
            if (x->drops) drop_gates(&w, p, j, n, gate), multiply_by(s, gate, n * NR);
            for (int64_t i = 0; i < rows; i += step)
                columns_times_chunks(s + i, NR, qkv__min(step, rows - i), values, keys, x->dv, n, out + i * width, width);
        }
    }
    finish_rows(&w, largest, sum, y, width);
}

/* ---- weights and scores on request ---- */

/* The same scores again, and the weights they give; nothing that attend() uses is touched. */
void NAME(attend_show)(const qkv__attention *x, int64_t b, int64_t h, int64_t from, int64_t to, float *scratch)
{
    block w = block_of(x, b, h, from, to - from);
    const float *k = x->k + b * x->k_rows.batch + h / (x->heads / x->kv_heads) * x->k_rows.head;
    float *queries = scratch, *raw = queries + BQ * x->dk, *s = raw + BK * NR;
    pack_queries(&w, queries);
    for (int64_t j0 = 0; j0 < x->tk; j0 += BK)
        for (int64_t p = 0; p < w.panels; p++) {
            int64_t n = qkv__min(BK, x->tk - j0);
            rows_times_panel(k + j0 * x->k_rows.row, x->k_rows.row, n, x->dk, queries + p * NR * x->dk, NR, raw);
            float scale = masked_scores(&w, p, j0, n, queries + p * NR * x->dk, NR, s);
            float largest[NR] = { 0 };
            for (int64_t i = 0; i < panel_rows(&w, p); i++) {
                int64_t row = (b * x->heads + h) * x->tq + from + p * NR + i;
                largest[i] = x->largest[row];
                for (int64_t j = 0; j < n; j++) {
                    if (x->scores) x->scores[row * x->tk + j0 + j] = raw[j * NR + i];
                    if (x->scaled) x->scaled[row * x->tk + j0 + j] = s[j * NR + i] * scale;
                }
            }
            /* as vectors, whose sums every compiler fuses alike: paged.c has the same line */
            for (int64_t i = 0; x->weights && i < n * NR; i += W)
                store(s + i, vexp(load(s + i) * scale - load(largest + i % NR)));
            for (int64_t i = 0; x->weights && i < panel_rows(&w, p); i++) {
                int64_t row = (b * x->heads + h) * x->tq + from + p * NR + i;
                for (int64_t j = 0; j < n; j++) x->weights[row * x->tk + j0 + j] = s[j * NR + i] * x->inverse[row];
            }
        }
}

/* ---- backward ----
 * P = exp(S - largest) * inverse,  y = (P o G) v with G the gates of dropout:
 *   dv = (P o G)^T dy,   dP = G o (dy v^T),   dS = P o (dP - sum_d dy y),   dq = scale dS k,   dk = scale dS^T q
 * With a cap c, S = c tanh(Z):   dZ = c (1 - tanh(Z)^2) dS, and Z = scale/c q k^T */

typedef struct gradient {
    block w;
    const float *k, *v, *q, *dy;
    float *queries, *outs;            /* panels [d][NR] of q and dy */
    float *query_chunks, *out_chunks; /* chunks [row][NR] of q and dy */
    float *key_chunks;                /* chunks [key][NR] of k */
    float *weights, *dscores;         /* [key][BQ] */
    float *s, *dp, *gate;             /* [key][NR] */
    float *dq;                        /* [row][padded dk] */
    float largest[BQ], inverse[BQ], delta[BQ];
} gradient;

static void start_block(gradient *g)
{
    const block *w = &g->w;
    const qkv__attention *x = w->x;
    int64_t first = (w->b * x->heads + w->h) * x->tq + w->from;
    const float *y = x->y + w->b * x->y_rows.batch + w->h * x->y_rows.head + w->from * x->y_rows.row;
    g->q = x->q + w->b * x->q_rows.batch + w->h * x->q_rows.head + w->from * x->q_rows.row;
    g->dy = x->dy + w->b * x->y_rows.batch + w->h * x->y_rows.head + w->from * x->y_rows.row;
    pack_queries(w, g->queries);
    for (int64_t p = 0; p < w->panels; p++)
        pack_panel(g->dy + p * NR * x->y_rows.row, x->y_rows.row, panel_rows(w, p), x->dv, g->outs + p * NR * x->dv);
    pack_chunks(g->q, x->q_rows.row, w->n, x->dk, g->query_chunks);
    pack_chunks(g->dy, x->y_rows.row, w->n, x->dv, g->out_chunks);
    memset(g->dq, 0, sizeof(float) * (size_t)(w->n * padded(x->dk)));
    for (int64_t i = 0; i < BQ; i++) {
        vf delta = { 0 };
        for (int64_t d = 0; i < w->n && d < x->dv; d += W) {
            int64_t left = x->dv - d;
            delta += get(g->dy + i * x->y_rows.row + d, left, 0) * get(y + i * x->y_rows.row + d, left, 0);
        }
        g->delta[i] = lane_sum(delta);
        g->largest[i] = i < w->n ? x->largest[first + i] : 0;
        g->inverse[i] = i < w->n ? x->inverse[first + i] : 0; /* a lane without a row gets weights of 0 */
    }
}

/* The gradients of n keys' scores before the cap, from those after it; scores of hidden keys are -inf. */
static void uncap_gradient(const gradient *g, int64_t p, int64_t n)
{
    const float cap = g->w.x->cap;
    for (int64_t j = 0; j < n; j++)
        EACH (v, NV) {
            float *at = g->dscores + j * BQ + p * NR + v * W;
            vf score = load(g->s + j * NR + v * W), t = pick(score > -INFINITY, score, set1(cap)) / cap;
            store(at, load(at) * (1.0f - t * t));
        }
}

/* Weights and gradients of the scores of panel p for n of the tile's keys; zero for the others. */
static void panel_gradient(gradient *g, int64_t p, int64_t j0, int64_t n, int64_t keys)
{
    const qkv__attention *x = g->w.x;
    if (n > 0) {
        float scale = masked_scores(&g->w, p, j0, n, g->queries + p * NR * x->dk, NR, g->s);
        rows_times_panel(g->v + j0 * x->v_rows.row, x->v_rows.row, n, x->dv, g->outs + p * NR * x->dv, NR, g->dp);
        if (x->drops) drop_gates(&g->w, p, j0, n, g->gate), multiply_by(g->dp, g->gate, n * NR);
        EACH (v, NV) {
            int64_t lane = p * NR + v * W;
            vf largest = load(g->largest + lane), inverse = load(g->inverse + lane), delta = load(g->delta + lane);
            for (int64_t j = 0; j < n; j++) {
                int64_t at = j * NR + v * W;
                vf weight = vexp(load(g->s + at) * scale - largest) * inverse;
                store(g->dscores + j * BQ + lane, weight * (load(g->dp + at) - delta) * x->scale);
                store(g->weights + j * BQ + lane, x->drops ? weight * load(g->gate + at) : weight);
            }
        }
        if (x->cap > 0) uncap_gradient(g, p, n);
    }
    for (int64_t j = n > 0 ? n : 0; j < keys; j++) {
        memset(g->weights + j * BQ + p * NR, 0, sizeof(float) * NR);
        memset(g->dscores + j * BQ + p * NR, 0, sizeof(float) * NR);
    }
}

/* out[j][:] += sum over rows of a[j*BQ + row] * chunks[row], for the keys of a tile; rows that do not see a key are left out */
static void add_to_keys(const gradient *g, const float *a, const float *chunks, int64_t d, int64_t j0, int64_t keys, float *out,
                        int64_t out_row)
{
    const block *w = &g->w;
    int64_t step = tile_height(keys), first = 0; /* the first panel that sees key j: later ones see more */
    for (int64_t j = 0; j < keys; j += step) {
        while (panel_sees(w, first) - j0 <= j) first++;
        for (int64_t c = 0; c < d; c += NR)
            tile_edge(tile_by_row, qkv__min(step, keys - j), d - c, a + j * BQ + first * NR, BQ,
                      chunks + c * w->n + first * NR * NR, NR, out + j * out_row + c, out_row, w->n - first * NR, true);
    }
}

/* dbias[j - i] += dS[i][j]: what lies on a diagonal shares one number */
static void add_to_distances(const gradient *g, int64_t j0, int64_t keys)
{
    const block *w = &g->w;
    const qkv__attention *x = w->x;
    float *zero = x->grad_relative + (w->b * x->heads + w->h) * (x->tq + x->tk - 1) + x->tq - 1;
    for (int64_t i = 0; i < w->n; i++)
        for (int64_t j = 0; j < keys; j++) zero[j0 + j - w->from - i] += g->dscores[j * BQ + i] / x->scale;
}

static void tile_gradient(gradient *g, int64_t j0, int64_t keys)
{
    const block *w = &g->w;
    const qkv__attention *x = w->x;
    int64_t kv_head = w->h / (x->heads / x->kv_heads);
    for (int64_t p = 0; p < w->panels; p++) panel_gradient(g, p, j0, qkv__min(keys, panel_sees(w, p) - j0), keys);
    if (x->grad_v)
        add_to_keys(g, g->weights, g->out_chunks, x->dv, j0, keys,
                    x->grad_v + w->b * x->v_rows.batch + kv_head * x->v_rows.head + j0 * x->v_rows.row, x->v_rows.row);
    if (x->grad_k)
        add_to_keys(g, g->dscores, g->query_chunks, x->dk, j0, keys,
                    x->grad_k + w->b * x->k_rows.batch + kv_head * x->k_rows.head + j0 * x->k_rows.row, x->k_rows.row);
    if (x->grad_relative) add_to_distances(g, j0, keys);
    if (!x->grad_q) return;
    pack_chunks(g->k + j0 * x->k_rows.row, x->k_rows.row, keys, x->dk, g->key_chunks);
    for (int64_t i = 0, step = column_height(w->n), m; i < w->n; i += m) {
        m = qkv__min(step, w->n - i);
        int64_t n = qkv__min(keys, qkv__seen_to(x, w->b, w->from + i + m - 1) - j0);
        if (n > 0)
            columns_times_chunks(g->dscores + i, BQ, m, g->key_chunks, keys, x->dk, n, g->dq + i * padded(x->dk),
                                 padded(x->dk));
    }
}

static void end_block(const gradient *g)
{
    const block *w = &g->w;
    const qkv__attention *x = w->x;
    if (!x->grad_q) return;
    float *to = x->grad_q + w->b * x->q_rows.batch + w->h * x->q_rows.head + w->from * x->q_rows.row;
    for (int64_t i = 0; i < w->n; i++)
        for (int64_t d = 0; d < x->dk; d++) to[i * x->q_rows.row + d] += g->dq[i * padded(x->dk) + d];
}

void NAME(attend_grad)(const qkv__attention *x, int64_t b, int64_t kv_head, float *scratch)
{
    const int64_t group = x->heads / x->kv_heads;
    gradient g;
    g.k = x->k + b * x->k_rows.batch + kv_head * x->k_rows.head;
    g.v = x->v + b * x->v_rows.batch + kv_head * x->v_rows.head;
    g.queries = scratch;
    g.outs = g.queries + BQ * x->dk;
    g.query_chunks = g.outs + BQ * x->dv;
    g.out_chunks = g.query_chunks + BQ * padded(x->dk);
    g.key_chunks = g.out_chunks + BQ * padded(x->dv);
    g.dq = g.key_chunks + BK * padded(x->dk);
    g.weights = g.dq + BQ * padded(x->dk);
    g.dscores = g.weights + BK * BQ;
    g.s = g.dscores + BK * BQ;
    g.dp = g.s + BK * NR;
    g.gate = g.dp + BK * NR;
    for (int64_t h = kv_head * group; h < (kv_head + 1) * group; h++)
        for (int64_t from = 0; from < x->tq; from += BQ) {
            g.w = block_of(x, b, h, from, qkv__min(BQ, x->tq - from));
            int64_t end = panel_sees(&g.w, g.w.panels - 1);
            if (end <= 0) continue;
            start_block(&g);
            for (int64_t j = first_tile(&g.w); j < end; j += BK) tile_gradient(&g, j, qkv__min(BK, end - j));
            end_block(&g);
        }
}
