/* gather.c: y[i, :] = table[ids[i], :], an embedding. */
#include "parallel_for.h"
#include "types.h"

typedef struct rows_taken {
    int64_t n;
    int32_t ids[];
} rows_taken;

typedef struct work {
    const rows_taken *taken;
    float *to;
    const float *from;
    int64_t dim;
    const qkv_tensor *table; /* in forward */
} work;

static void gather_forward_rows(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    for (int64_t i = from; i < to; i++) qkv__widen(w->table, w->taken->ids[i] * w->dim, w->dim, w->to + i * w->dim);
}

/* y[i] = table[ids[i]]:   dtable[ids[i]] += dy[i]. An id may come twice: tasks take columns and go through all rows. */
static void gather_backward_columns(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    for (int64_t i = 0; i < w->taken->n; i++)
        kern->axpy(w->to + w->taken->ids[i] * w->dim + from, w->from + i * w->dim + from, 1.0f, to - from);
}

static void gather_backward(qkv_tensor *y)
{
    work w = { .taken = y->saved, .to = qkv__grad(y->in[0]), .from = y->grad, .dim = y->in[0]->shape[1] };
    if (w.to) qkv__parallel_for(y->tape, w.dim, qkv__columns(w.taken->n), gather_backward_columns, &w);
}

static rows_taken *copy_ids(qkv_tape *t, const qkv_tensor *table, const int32_t *ids, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= table->shape[0]) {
            qkv__error(t, QKV_USAGE, "gather: id %ld at place %lld is outside 0..%lld", (long)ids[i], (long long)i,
                       (long long)table->shape[0] - 1);
            return NULL;
        }
    rows_taken *taken = qkv__save(t, sizeof *taken + sizeof *ids * (size_t)n);
    if (!taken) return NULL;
    taken->n = n;
    if (n) memcpy(taken->ids, ids, sizeof *ids * (size_t)n);
    return taken;
}

qkv_tensor *qkv_gather(qkv_tape *t, qkv_tensor *table, const int32_t *ids, int ndim, const int64_t *shape)
{
    int64_t n, full[QKV_MAX_DIMS];
    if (!table || qkv_tape_status(t)) return NULL;
    if (table->tape && table->tape != t) return qkv__error(t, QKV_USAGE, "gather: the table lives on another tape");
    if (table->ndim != 2) return qkv__error(t, QKV_USAGE, "gather: the table is %s, it must be (V, D)", QKV_TEXT(table));
    if (ndim < 0 || ndim >= QKV_MAX_DIMS)
        return qkv__error(t, QKV_USAGE, "gather: ids may have 0 to %d dimensions, not %d", QKV_MAX_DIMS - 1, ndim);
    if (!qkv__shape_count(ndim, shape, &n))
        return qkv__error(t, QKV_USAGE, "gather: ids cannot have the shape %s",
                          qkv__shape_text((char[QKV_SHAPE_TEXT]){ 0 }, ndim, shape));
    if (n && !ids) return qkv__error(t, QKV_USAGE, "gather: there are no ids");
    rows_taken *taken = copy_ids(t, table, ids, n);
    if (!taken) return NULL;
    if (ndim) memcpy(full, shape, sizeof *shape * (size_t)ndim);
    full[ndim] = table->shape[1];
    qkv_tensor *y = qkv__result(t, ndim + 1, full, gather_backward, 1, &table);
    if (!y) return NULL;
    y->saved = taken;
    work w = { .taken = taken, .to = y->data, .table = table, .dim = table->shape[1] };
    return qkv__parallel_for(t, n, qkv__grain(w.dim), gather_forward_rows, &w) ? y : NULL;
}
