/* walk.c: one attention with everything it computes on the way, to be shown step by step. */
#include "../report/arrays.h"
#include "../report/results.h"
#include "walk.h"

#include "../term/errors.h"
#include "../term/language.h"

#include <math.h>
#include <stdio.h>

static float example_q[] = { 0.83469225f, 0.97844849f, -0.22140911f, -0.50136356f, -0.38048561f, -0.49219428f };
static float example_k[] = { 0.93336044f, 1.38711376f, -0.4832162f, -0.40850584f, -0.40378534f, -0.55737316f };
static float example_v[] = { 1.0333236f,   -0.07687391f, 1.94313157f,  -1.26162928f, 1.18221604f,  -0.0298283f,
                             -1.46568319f, 1.37369452f,  -0.13959719f, -0.50792964f, -0.88052409f, 1.52022357f };
const operands example_operands = { .q = { .ndim = 2, .shape = { 3, 2 }, .data = example_q },
                                    .k = { .ndim = 2, .shape = { 3, 2 }, .data = example_k },
                                    .v = { .ndim = 2, .shape = { 3, 4 }, .data = example_v } };
const char *const example_tokens[] = { "哈基咪 (133)", "南北 (23)", "绿豆 (58)" };
const char *const example_columns[] = { "哈基咪", "南北", "绿豆" };

const char *const example_about = N_(
    "The three tokens are words of a Chinese tutorial: 哈基咪 (hajimi, a cat), 南北 (nanbei, north and south) and 绿豆 "
    "(lüdou, mung bean). The numbers in parentheses are token ids: row numbers of the embedding table.");

qkv_status walk_attention(qkv_tape *t, const operands *o, const qkv_mask *mask, walked *w)
{
    w->q = qkv_constant(t, 2, o->q.shape, o->q.data);
    w->k = qkv_constant(t, 2, o->k.shape, o->k.data);
    w->v = qkv_constant(t, 2, o->v.shape, o->v.data);
    w->output = qkv_attention(w->q, w->k, w->v, mask,
                              &(qkv_attention_opts){ .scores = &w->scores, .scaled = &w->scaled, .weights = &w->weights });
    return qkv_tape_status(t) ? library_failed() : QKV_OK;
}

void show_matrix(const qkv_tensor *x, labels row, labels column, int decimals, bool sums)
{
    print_table(&(table){ .values = qkv_tensor_data(x),
                          .rows = qkv_tensor_dim(x, -2),
                          .columns = qkv_tensor_dim(x, -1),
                          .row = row,
                          .column = column,
                          .decimals = decimals,
                          .sums = sums });
}

void show_sum(const char *name, const float *a, const float *b, int64_t step, int64_t n, float result)
{
    if (n < 1 || n > 4) return;
    printf("   %s =", name);
    for (int64_t i = 0; i < n; i++) printf("%s %.3f * %.3f", i ? " +" : "", (double)a[i], (double)b[i * step]);
    printf(" = %.3f\n", (double)result);
}

/* ---- operands from files ---- */

qkv_status check_finite(const char *name, const float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return fail(QKV_NUMERIC, "%s: number %lld is %s, which is not finite", name, (long long)i,
                        isnan(values[i]) ? "nan"
                        : values[i] > 0  ? "inf"
                                         : "-inf");
    return QKV_OK;
}

static qkv_status load_operand(const char *path, qkv_array *a)
{
    if (qkv_array_read(path, a)) return library_failed();
    if (a->ndim < 2 || a->ndim > 4)
        return fail(QKV_USAGE, "%s: has %d dimensions, expected 2 (T,D), 3 (B,T,D) or 4 (B,H,T,D)", path, a->ndim);
    return check_finite(path, a->data, qkv_array_count(a));
}

static qkv_status same_rank(const char *path, const qkv_array *a, const char *q_path, const qkv_array *q)
{
    if (a->ndim == q->ndim) return QKV_OK;
    return fail(QKV_USAGE, "%s: has %d dimensions, but %s has %d", path, a->ndim, q_path, q->ndim);
}

qkv_status load_operands(operands *o, const char *q, const char *k, const char *v)
{
    qkv_status status = load_operand(q, &o->q);
    if (!status) status = load_operand(k, &o->k);
    if (!status) status = load_operand(v, &o->v);
    if (!status) status = same_rank(k, &o->k, q, &o->q);
    if (!status) status = same_rank(v, &o->v, q, &o->q);
    return status;
}

void free_operands(operands *o)
{
    qkv_array_free(&o->q);
    qkv_array_free(&o->k);
    qkv_array_free(&o->v);
}
