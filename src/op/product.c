/* product.c: the matrix product on all threads. */
#include "product.h"

typedef struct cut {
    qkv__product whole;
    int64_t a_next, b_next, c_next;
    int64_t rows, columns;         /* of a task's part of c */
    int64_t row_cuts, column_cuts; /* tasks a product */
} cut;

static void multiply_part(void *work, int64_t task, void *scratch)
{
    const cut *w = work;
    int64_t part = task % (w->row_cuts * w->column_cuts), index = task / (w->row_cuts * w->column_cuts);
    int64_t i = part / w->column_cuts * w->rows, j = part % w->column_cuts * w->columns;
    qkv__product x = w->whole;
    x.m = qkv__min(w->rows, x.m - i);
    x.n = qkv__min(w->columns, x.n - j);
    x.a += index * w->a_next + i * x.a_row;
    x.b += index * w->b_next + j * x.b_col;
    x.c += index * w->c_next + i * x.c_row + j;
    if (x.bias) x.bias += j;
    kern->multiply(&x, scratch);
}

/* Halves the longer side of a part until there are a few parts to share, or they would be too small to pay. Both sides stay whole
 * multiples of the widest tiles (96 = 8 x 12 = 3 x 32 rows or columns). */
static void cut_evenly(cut *w, int64_t count)
{
    enum { ROWS = 768, COLUMNS = 1056, STEP = 96, WANTED = 4, LEAST_WORK = 1 << 17 };
    const qkv__product *x = &w->whole;
    w->rows = qkv__min(x->m, ROWS);
    w->columns = qkv__min(x->n, COLUMNS);
    for (;;) {
        w->row_cuts = qkv__ceil_div(x->m, w->rows);
        w->column_cuts = qkv__ceil_div(x->n, w->columns);
        int64_t *longer = w->rows > w->columns ? &w->rows : &w->columns;
        if (count * w->row_cuts * w->column_cuts >= WANTED) return;
        if (*longer <= STEP || w->rows * w->columns < LEAST_WORK / qkv__max(x->k, 1)) return;
        *longer = qkv__round_up(*longer / 2, STEP);
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
