/* product.c: the matrix product on all threads. */
#include "product.h"

#include "packed.h"
#include "quantized.h"
#include "types.h"

typedef struct cut {
    qkv__product whole;
    int64_t a_next, b_next, c_next;
    int64_t rows, columns;         /* of a task's part of c */
    int64_t row_cuts, column_cuts; /* tasks a product */
    const qkv_tensor *widened;     /* b, to be widened as it is read; NULL: whole.b */
} cut;

/* Floats that are widened at a time: they stay in the cache until they are read. */
enum { SLAB = 1 << 17 };

/* Of scratch, behind what a product of floats needs: for them, or for a unit's operands. */
static size_t widened_bytes(int64_t k)
{
    size_t wide = sizeof(float) * (size_t)qkv__max(SLAB, k), operands = qkv__bfloat_scratch(k);
    return operands > QKV__PRODUCT_SCRATCH + wide ? operands - QKV__PRODUCT_SCRATCH : wide;
}

/* A few rows of b after the other, widened behind what the product itself needs. */
static void multiply_widening(const qkv_tensor *b, int64_t row, qkv__product *x, void *scratch)
{
    float *wide = (float *)((char *)scratch + QKV__PRODUCT_SCRATCH);
    qkv__product part = *x;
    part.packed = NULL; /* for more rows than there are here */
    int64_t step = qkv__max(1, SLAB / qkv__max(1, x->k));
    for (int64_t j = 0; j < x->n; j += step) {
        part.n = qkv__min(step, x->n - j);
        qkv__widen(b, (row + j) * x->k, part.n * x->k, wide);
        part.b = wide;
        part.c = x->c + j;
        part.bias = x->bias ? x->bias + j : NULL;
        kern->multiply(&part, scratch);
    }
}

/* The part of the product that a task has; packed_at is its first column in any case. */
static qkv__product part_of(const cut *w, int64_t task)
{
    int64_t part = task % (w->row_cuts * w->column_cuts), index = task / (w->row_cuts * w->column_cuts);
    int64_t i = part / w->column_cuts * w->rows, j = part % w->column_cuts * w->columns;
    qkv__product x = w->whole;
    x.m = qkv__min(w->rows, x.m - i);
    x.n = qkv__min(w->columns, x.n - j);
    x.a += index * w->a_next + i * x.a_row;
    if (x.b) x.b += index * w->b_next + j * x.b_col;
    x.c += index * w->c_next + i * x.c_row + j;
    if (x.bias) x.bias += j;
    x.packed_at = j;
    return x;
}

static void multiply_part(void *work, int64_t task, void *scratch)
{
    const cut *w = work;
    qkv__product x = part_of(w, task);
    int64_t j = x.packed_at;
    qkv__bfloat_product *unit = w->widened ? qkv__bfloat_unit(w->widened) : NULL;
    if (unit) unit(&x, qkv__value_at(w->widened, j * x.k), scratch);
    else if (w->widened && x.m <= QKV__DOTS_ROWS) qkv__type_of(w->widened)->dots(&x, qkv__value_at(w->widened, j * x.k));
    else if (w->widened && !(x.packed && x.m > QKV__PACK_ROWS)) multiply_widening(w->widened, j, &x, scratch);
    else kern->multiply(&x, scratch);
}

/* Even parts of n, each a whole number of tiles. */
static void cut_side(int64_t n, int64_t cuts, int64_t tile, int64_t *part, int64_t *parts)
{
    *part = qkv__round_up(qkv__ceil_div(n, cuts), tile);
    *parts = qkv__ceil_div(n, *part);
}

enum { COLUMN_TILE = QKV__PACK_COLUMNS };

/* Every part of the columns packs its rows of a; with packed weights nothing is packed for a part of the rows, as long as it
 * has enough of them to read those. */
static bool cuts_rows_of_packed(const qkv__product *x, int64_t cuts)
{
    int64_t rows, parts;
    cut_side(x->m, cuts, kern->row_tile, &rows, &parts);
    return x->m - (parts - 1) * rows > QKV__PACK_ROWS;
}

/* Parts that fit the caches; then the longer side is cut once more until there are a few parts to share, or they would be too
 * small to pay for packing their operands. A thread that is alone packs them once: no element's bits depend on the cuts. */
static void cut_evenly(cut *w, int64_t count)
{
    enum { ROWS = 768, COLUMNS = 1024, WANTED = 4, LEAST_WORK = 1 << 16 };
    const qkv__product *x = &w->whole;
    bool alone = qkv__is_alone();
    int64_t row_cuts = alone ? 1 : qkv__ceil_div(x->m, ROWS), column_cuts = alone ? 1 : qkv__ceil_div(x->n, COLUMNS);
    for (;;) {
        cut_side(x->m, row_cuts, kern->row_tile, &w->rows, &w->row_cuts);
        cut_side(x->n, column_cuts, COLUMN_TILE, &w->columns, &w->column_cuts);
        if (alone || count * w->row_cuts * w->column_cuts >= WANTED || w->rows * w->columns * x->k < 2 * LEAST_WORK) return;
        bool has_rows = w->rows > kern->row_tile, has_columns = w->columns > COLUMN_TILE; /* to be cut */
        if (!has_rows && !has_columns) return;
        bool cuts_rows = x->packed ? cuts_rows_of_packed(x, 2 * row_cuts) : w->rows > w->columns;
        if (!has_columns || (has_rows && cuts_rows)) row_cuts *= 2;
        else column_cuts *= 2;
    }
}

qkv_status qkv__multiply_many(const qkv__product *p, int64_t count, int64_t a_next, int64_t b_next, int64_t c_next)
{
    if (p->m <= 0 || p->n <= 0 || count <= 0) return QKV_OK;
    cut w = { .whole = *p, .a_next = a_next, .b_next = b_next, .c_next = c_next };
    cut_evenly(&w, count);
    return qkv__parallel(count * w.row_cuts * w.column_cuts, QKV__PRODUCT_SCRATCH, multiply_part, &w);
}

qkv_status qkv__multiply(const qkv__product *p) { return qkv__multiply_many(p, 1, 0, 0, 0); }

qkv_status qkv__multiply_widened(const qkv__product *p, const qkv_tensor *b)
{
    if (p->m <= 0 || p->n <= 0) return QKV_OK;
    cut w = { .whole = *p, .widened = b };
    cut_evenly(&w, 1);
    return qkv__parallel(w.row_cuts * w.column_cuts, QKV__PRODUCT_SCRATCH + widened_bytes(p->k), multiply_part, &w);
}

/* ---- several at once ---- */

typedef struct cuts {
    cut at[QKV__TOGETHER];
    int n;
} cuts;

static void multiply_part_of_one(void *work, int64_t task, void *scratch)
{
    cut *w = ((cuts *)work)->at;
    for (; task >= w->row_cuts * w->column_cuts; w++) task -= w->row_cuts * w->column_cuts;
    multiply_part(w, task, scratch);
}

/* Whether all are cut into the same rows and nothing else, enough of them to read packed weights: then a task has these rows of
 * all of them, unless that would leave too few tasks to share. */
static bool have_the_same_rows(const cuts *w)
{
    bool same = w->n > 1 && (qkv__is_alone() || w->at[0].row_cuts >= 2 * qkv_num_threads());
    for (int i = 0; i < w->n && same; i++) {
        const cut *x = &w->at[i];
        int64_t last = x->whole.m - (x->row_cuts - 1) * x->rows;
        same = x->whole.packed && x->whole.a == w->at[0].whole.a && x->column_cuts == 1 && x->rows == w->at[0].rows &&
               last > QKV__PACK_ROWS;
    }
    return same;
}

static void multiply_same_rows(void *work, int64_t task, void *scratch)
{
    const cuts *w = work;
    qkv__product x[QKV__TOGETHER];
    for (int i = 0; i < w->n; i++) {
        x[i] = part_of(&w->at[i], task);
        if (i) x[i - 1].also = &x[i];
    }
    kern->multiply(x, scratch);
}

/* Whether all are floats of some width, which multiply_part() can read, or all of one type with scales. */
static bool can_go_together(const qkv__product *p, qkv_tensor *const *w, int n)
{
    bool can = n > 0 && n <= QKV__TOGETHER;
    for (int i = 0; i < n && can; i++) {
        bool same_kind = qkv__is_quantized(w[0]) ? w[i]->type == w[0]->type : !qkv__is_quantized(w[i]);
        can = same_kind && p[i].m > 0 && p[i].n > 0;
    }
    return can;
}

/* All of them cut, in one call. */
static qkv_status multiply_together(const qkv__product *p, qkv_tensor *const *w, int n)
{
    cuts all = { .n = n };
    int64_t tasks = 0;
    size_t wide = 0;
    for (int i = 0; i < n; i++) {
        cut *x = &all.at[i];
        *x = (cut){ .whole = p[i], .widened = w[i]->type ? w[i] : NULL };
        qkv_status status = qkv__packed_weight(w[i], p[i].m, &x->whole.packed);
        if (status) return status;
        x->whole.packed_n = p[i].n;
        cut_evenly(x, 1);
        tasks += x->row_cuts * x->column_cuts;
        if (x->widened) wide = widened_bytes(p[i].k); /* k is one for all */
    }
    if (have_the_same_rows(&all)) return qkv__parallel(all.at[0].row_cuts, QKV__PRODUCT_SCRATCH, multiply_same_rows, &all);
    return qkv__parallel(tasks, QKV__PRODUCT_SCRATCH + wide, multiply_part_of_one, &all);
}

qkv_status qkv__multiply_weights(const qkv__product *p, qkv_tensor *const *w, int n)
{
    if (can_go_together(p, w, n))
        return qkv__is_quantized(w[0]) ? qkv__multiply_quantized(p, (const qkv_tensor *const *)w, n)
                                       : multiply_together(p, w, n);
    qkv_status status = QKV_OK;
    for (int i = 0; i < n && !status; i++) status = qkv__multiply_weight(&p[i], w[i]);
    return status;
}
