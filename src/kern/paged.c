/* paged.c: attention to keys and values that are kept in pages, of any number of queries, on one thread.
 *
 * Many queries go as in attention.c, one a lane. A few go one by one, with a key a lane for the scores and a number of the
 * value a lane for the sum, so that no lane is idle. Both take every sum in the order of attention.c: a query's bits are the
 * same whichever way it goes, and the same as those of a forward over the whole sequence. */
#include "attend.h"

enum { PAGE = QKV__PAGE, TILE_PAGES = BK / PAGE, FEW = 4, QUERIES = QKV__PAGED_QUERIES };
enum { AT_ONCE = QKV_VECTOR_BYTES == 64 ? 6 : 3 }; /* pages of which a query has its scores */
_Static_assert(BK % PAGE == 0 && PAGE % W == 0, "a tile is whole pages, a page whole vectors");
_Static_assert(QUERIES % NR == 0 && QUERIES <= 2 * BQ, "panels are whole, and the scratch is enough");

/* One head of one sequence. */
typedef struct head {
    const qkv__paged *x;
    int64_t k_at, v_at; /* where its keys and values are in a page */
    const float *q;
    float *y;
    int64_t h;
} head;

static head head_of(const qkv__paged *x, int64_t h)
{
    int64_t kv_head = h / (x->heads / x->kv_heads);
    return (head){ .x = x,
                   .k_at = x->at + kv_head * x->dk * PAGE,
                   .v_at = x->at + x->kv_heads * x->dk * PAGE + kv_head * PAGE * x->dv,
                   .q = x->q + h * x->dk,
                   .y = x->y + h * x->dv,
                   .h = h };
}

/* Where the tiles begin that query i sees; they are cut alike for every query. */
static inline int64_t first_tile(const qkv__paged *x, int64_t i) { return qkv__paged_from(x, i) / BK * BK; }

/* Scores are capped, or have their bias, as they are computed: what is left of the scale. */
static inline float scale_after(const qkv__paged *x) { return x->cap > 0 || x->relative.at ? 1 : x->scale; }

static inline const float *keys_of(const head *w, int64_t j) { return w->x->pages[j / PAGE] + w->k_at; }
static inline const float *values_of(const head *w, int64_t j) { return w->x->pages[j / PAGE] + w->v_at; }

/* ---- one query ---- */

/* A head's part of a page is a few KB that lie alone: nothing that the processor could run ahead in. So the values of a page
 * are asked for while its keys are read, and the keys of the next tile while values are. */

/* s[j] = key j0+j . q for some pages of a tile, all at once: each is a chain, and a few chains hide each other's latency */
ALWAYS void dot_pages(const int pages, const head *w, int64_t j0, const float *q, float *s)
{
    enum { PV = PAGE / W };
    const int64_t values = w->v_at - w->k_at;
    const float *k[TILE_PAGES];
    vf sum[TILE_PAGES][PV];
    EACH (p, pages) {
        k[p] = keys_of(w, j0 + p * PAGE);
        EACH (v, PV) sum[p][v] = (vf){ 0 };
    }
    for (int64_t d = 0; d < w->x->dk; d++) {
        vf value = set1(q[d]);
        EACH (p, pages) {
            __builtin_prefetch(k[p] + values + d * PAGE, 0, 2);
            EACH (v, PV) sum[p][v] += load(k[p] + d * PAGE + v * W) * value;
        }
    }
    EACH (p, pages)
        EACH (v, PV) store(s + p * PAGE + v * W, sum[p][v]);
}

/* As many chains as hide the latency: six. */
static void dot_some_pages(int64_t pages, const head *w, int64_t j0, const float *q, float *s)
{
    switch (pages) {
    case 1: dot_pages(1, w, j0, q, s); break;
    case 2: dot_pages(2, w, j0, q, s); break;
    case 3: dot_pages(3, w, j0, q, s); break;
#if QKV_VECTOR_BYTES == 64
    case 4: dot_pages(4, w, j0, q, s); break;
    case 5: dot_pages(5, w, j0, q, s); break;
    case 6: dot_pages(6, w, j0, q, s); break;
#endif
    }
}

/* s[j*step] += bias, of query i and the keys j0 .. that it sees */
static void add_bias(const head *w, int64_t i, int64_t j0, int64_t n, int64_t step, float *s)
{
    const qkv__paged *x = w->x;
    const float *bias = x->relative.at + w->h * x->relative.row + j0 - (x->keys - x->n + i);
    for (int64_t j = 0, end = qkv__min(n, qkv__paged_to(x, i) - j0); j < end; j++) s[j * step] += bias[j];
}

/* Of query i with keys j0 .. j0+n-1, to whole pages: -inf where it does not see. */
static void query_scores(const head *w, int64_t i, int64_t j0, int64_t n, float *s)
{
    const float *q = w->q + i * w->x->q_row;
    int64_t pages = qkv__ceil_div(n, PAGE);
    for (int64_t page = 0; page < pages; page += AT_ONCE)
        dot_some_pages(qkv__min(AT_ONCE, pages - page), w, j0 + page * PAGE, q, s + page * PAGE);
    if (w->x->cap > 0) cap_scores(s, pages * PAGE, w->x->scale, w->x->cap);
    if (w->x->relative.at) scale_scores(s, pages * PAGE, w->x->scale), add_bias(w, i, j0, n, 1, s);
    for (int64_t j = 0, from = qkv__paged_from(w->x, i) - j0; j < from; j++) s[j] = -INFINITY;
    for (int64_t j = n; j < pages * PAGE; j++) s[j] = -INFINITY;
    for (int64_t j = 0; w->x->hidden && j < n; j++)
        if (w->x->hidden[j0 + j]) s[j] = -INFINITY;
}

/* absorb() for one query: the weights are summed one after the other, as down a lane */
static float absorb_query(float *s, int64_t n, float scale, float *largest, float *sum)
{
    int64_t whole = qkv__round_up(n, W);
    vf top = set1(-INFINITY), before = set1(*largest);
    for (int64_t j = 0; j < whole; j += W) top = vmax(load(s + j), top);
    top = vmax(set1(lane_max(top)) * scale, before);
    vf base = pick(top > -INFINITY, top, (vf){ 0 }), ratio = vexp(before - base);
    float total = 0;
    for (int64_t j = 0; j < whole; j += W) store(s + j, vexp(load(s + j) * scale - base));
    for (int64_t j = 0; j < n; j++) total += s[j];
    *largest = top[0];
    *sum = (set1(*sum) * ratio + set1(total))[0]; /* a scalar need not be fused as a vector is */
    return ratio[0];
}

/* y[c..] += sum over j of s[j] * value j0+j, for nv vectors of the value */
ALWAYS void add_values(const int nv, const head *w, int64_t j0, int64_t n, const float *s, int64_t c, float *y)
{
    vf sum[8];
    EACH (v, nv) sum[v] = (vf){ 0 };
    for (int64_t j = 0; j < n; j += PAGE) {
        const float *row = values_of(w, j0 + j) + c;
        const float *next = keys_of(w, qkv__min(j0 + j + BK, w->x->keys - 1)) + c * PAGE;
        for (int64_t i = j; i < qkv__min(j + PAGE, n); i++, row += w->x->dv, next += nv * W) {
            vf weight = set1(s[i]);
            EACH (line, (nv * W + PAGE - 1) / PAGE) __builtin_prefetch(next + line * PAGE, 0, 2);
            EACH (v, nv) sum[v] += weight * load(row + v * W);
        }
    }
    EACH (v, nv) store(y + c + v * W, load(y + c + v * W) + sum[v]);
}

static void add_last_values(const head *w, int64_t j0, int64_t n, const float *s, int64_t c, float *y)
{
    int64_t left = w->x->dv - c;
    vf sum = { 0 };
    for (int64_t j = 0; j < n; j++)
        sum += set1(s[j]) * load_part(values_of(w, j0 + j) + (j0 + j) % PAGE * w->x->dv + c, left, 0);
    store(y + c, load(y + c) + sum);
}

static void add_all_values(const head *w, int64_t j0, int64_t n, const float *s, float *y)
{
    int64_t c = 0, dv = w->x->dv;
    for (; c + 8 * W <= dv; c += 8 * W) add_values(8, w, j0, n, s, c, y);
    for (; c + 4 * W <= dv; c += 4 * W) add_values(4, w, j0, n, s, c, y);
    for (; c + W <= dv; c += W) add_values(1, w, j0, n, s, c, y);
    if (c < dv) add_last_values(w, j0, n, s, c, y);
}

static void write_query(const head *w, int64_t i, float sum, const float *y)
{
    float inverse = sum == 0 ? 0 : 1 / sum, *out = w->y + i * w->x->y_row;
    for (int64_t d = 0; d < w->x->dv; d++) out[d] = y[d] * inverse;
}

/* The weights of one query, from the scores again: nothing that y needs is touched. */
static void show_query(const head *w, int64_t i, float largest, float sum)
{
    const qkv__paged *x = w->x;
    float s[BK], inverse = sum == 0 ? 0 : 1 / sum, *out = x->weights + (w->h * x->n + i) * x->keys;
    int64_t from = first_tile(x, i), end = qkv__paged_to(x, i);
    largest = largest > -INFINITY ? largest : 0;
    for (int64_t j = 0; j < from; j++) out[j] = 0;
    for (int64_t j0 = from; j0 < end; j0 += BK) {
        int64_t n = qkv__min(BK, end - j0);
        query_scores(w, i, j0, n, s);
        for (int64_t j = 0; j < n; j += W) store(s + j, vexp(load(s + j) * scale_after(x) - set1(largest)));
        for (int64_t j = 0; j < n; j++) out[j0 + j] = s[j] * inverse;
    }
    for (int64_t j = end; j < x->keys; j++) out[j] = 0;
}

static void attend_query(const head *w, int64_t i, float *y)
{
    const qkv__paged *x = w->x;
    float s[BK], largest = -INFINITY, sum = 0;
    int64_t end = qkv__paged_to(x, i), width = padded(x->dv);
    memset(y, 0, sizeof(float) * (size_t)width);
    for (int64_t j = first_tile(x, i); j < end; j += BK) {
        int64_t n = qkv__min(BK, end - j);
        query_scores(w, i, j, n, s);
        float ratio = absorb_query(s, n, scale_after(x), &largest, &sum);
        for (int64_t d = 0; ratio != 1 && d < width; d += W) store(y + d, load(y + d) * ratio);
        add_all_values(w, j, n, s, y);
    }
    write_query(w, i, sum, y);
    if (x->weights) show_query(w, i, largest, sum);
}

/* ---- a panel of queries ---- */

/* Hides from the queries first .. first+rows-1 what they do not see, in scores [n][NR]. */
static void hide_keys(const qkv__paged *x, int64_t first, int64_t rows, int64_t j0, int64_t n, float *s)
{
    /* the first row's keys end first, the last row's begin last */
    int64_t from = qkv__paged_from(x, first + rows - 1), to = qkv__paged_to(x, first);
    if (!x->hidden && j0 >= from && j0 + n <= to) return;
    for (int64_t j = 0; j < n; j++) {
        bool hidden = x->hidden && x->hidden[j0 + j];
        if (!hidden && j0 + j < to && j0 + j >= from) continue;
        for (int64_t i = 0; i < NR; i++) {
            int64_t row = first + qkv__min(i, rows - 1);
            if (hidden || j0 + j >= qkv__paged_to(x, row) || j0 + j < qkv__paged_from(x, row)) s[j * NR + i] = -INFINITY;
        }
    }
}

/* Scores [n][NR] of keys j0 .. of a panel that begins at query `first`; -inf where a query does not see. */
static void panel_scores(const head *w, int64_t first, int64_t rows, int64_t j0, int64_t n, const float *panel, float *s)
{
    const qkv__paged *x = w->x;
    for (int64_t j = 0; j < n; j += PAGE) {
        int64_t keys = qkv__min(PAGE, n - j), step = column_height(keys);
        for (int64_t a = 0; a < keys; a += step)
            tile_columns(qkv__min(step, keys - a), keys_of(w, j0 + j) + a, PAGE, panel, NR, s + (j + a) * NR, NR, x->dk, false);
    }
    if (x->cap > 0) cap_scores(s, n * NR, x->scale, x->cap);
    if (x->relative.at) scale_scores(s, n * NR, x->scale);
    for (int64_t i = 0; x->relative.at && i < rows; i++) add_bias(w, first + i, j0, n, NR, s + i);
    hide_keys(x, first, rows, j0, n, s);
}

static void pack_values(const head *w, int64_t j0, int64_t n, float *out)
{
    const qkv__paged *x = w->x;
    for (int64_t j = 0; j < n; j += PAGE) {
        int64_t keys = qkv__min(PAGE, n - j);
        for (int64_t c = 0; c < x->dv; c += NR)
            pack_chunks(values_of(w, j0 + j) + c, x->dv, keys, qkv__min(NR, x->dv - c), out + c * n + j * NR);
    }
}

typedef struct panels { /* of one block of queries */
    float *queries, *values, *y, *s;
    float largest[QUERIES], sum[QUERIES];
} panels;

/* Every `apart`-th of the pages from that of key j on, before key `end`: what a head has there is asked for, to the second cache. */
static void ask_for_pages(const head *w, int64_t j, int64_t apart, int64_t end)
{
    enum { LINE = 16 };
    for (; j < end; j += apart * PAGE) {
        for (int64_t at = 0; at < w->x->dk * PAGE; at += LINE) __builtin_prefetch(keys_of(w, j) + at, 0, 2);
        for (int64_t at = 0; at < w->x->dv * PAGE; at += LINE) __builtin_prefetch(values_of(w, j) + at, 0, 2);
    }
}

/* Keys j0 .. of a tile, of keys that go on to `end`. The panels share the next tile: each asks for some of its pages. */
static void attend_tile(const head *w, panels *p, int64_t from, int64_t to, int64_t j0, int64_t end)
{
    const qkv__paged *x = w->x;
    const int64_t width = padded(x->dv), keys = qkv__min(BK, end - j0), next = j0 + BK;
    pack_values(w, j0, keys, p->values);
    for (int64_t at = 0; from + at < to; at += NR) {
        int64_t rows = qkv__min(NR, to - from - at), step = column_height(rows);
        int64_t n = qkv__min(keys, qkv__paged_to(x, from + at + rows - 1) - j0);
        ask_for_pages(w, next + at / NR * PAGE, qkv__ceil_div(to - from, NR), qkv__min(end, next + BK));
        if (n <= 0 || j0 + keys <= qkv__paged_from(x, from + at)) continue;
        float *out = p->y + at * width;
        panel_scores(w, from + at, rows, j0, n, p->queries + at * x->dk, p->s);
        absorb(p->s, n, scale_after(x), rows, p->largest + at, p->sum + at, out, width);
        for (int64_t i = 0; i < rows; i += step)
            columns_times_chunks(p->s + i, NR, qkv__min(step, rows - i), p->values, keys, x->dv, n, out + i * width, width);
    }
}

static void attend_block(const head *w, int64_t from, int64_t to, float *scratch)
{
    const qkv__paged *x = w->x;
    const int64_t width = padded(x->dv), end = qkv__paged_to(x, to - 1);
    panels p = { .queries = scratch };
    p.values = p.queries + QUERIES * x->dk;
    p.y = p.values + BK * width;
    p.s = p.y + QUERIES * width;
    for (int64_t i = 0; i < to - from; i += NR)
        pack_panel(w->q + (from + i) * x->q_row, x->q_row, qkv__min(NR, to - from - i), x->dk, p.queries + i * x->dk);
    memset(p.y, 0, sizeof(float) * (size_t)(qkv__round_up(to - from, NR) * width));
    for (int64_t i = 0; i < QUERIES; i++) p.largest[i] = -INFINITY;
    for (int64_t j = first_tile(x, from); j < end; j += BK) attend_tile(w, &p, from, to, j, end);
    for (int64_t i = from; i < to; i++) {
        write_query(w, i, p.sum[i - from], p.y + (i - from) * width);
        if (x->weights) show_query(w, i, p.largest[i - from], p.sum[i - from]);
    }
}

void NAME(attend_paged)(const qkv__paged *x, int64_t h, int64_t from, int64_t to, float *scratch)
{
    head w = head_of(x, h);
    if (to - from > FEW) attend_block(&w, from, to, scratch);
    else
        for (int64_t i = from; i < to; i++) attend_query(&w, i, scratch);
}
