/* attend_measure.c: the weights of a head over the units that are shown, rollout, and what a head does. */
#include "attend.h"

#include "../base/pool.h"
#include "../model/touched.h"
#include "../tensor/tape.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- axes ---- */

static bool has_kind(const qkv_attention_capture *a, qkv_attention_kind kind)
{
    return a && (unsigned)kind < QKV_ATTENTION_KINDS && a->layers[kind] > 0;
}

const qkv_axis *qkv_attention_rows(const qkv_attention_capture *a, qkv_attention_kind kind)
{
    if (!has_kind(a, kind)) return NULL;
    return kind == QKV_ATTENTION_ENCODER ? &a->source : kind == QKV_ATTENTION_DECODER ? &a->target : &a->predicted;
}

const qkv_axis *qkv_attention_columns(const qkv_attention_capture *a, qkv_attention_kind kind)
{
    if (!has_kind(a, kind)) return NULL;
    return kind == QKV_ATTENTION_DECODER ? &a->target : &a->source;
}

static qkv_status check_kind(const qkv_attention_capture *a, qkv_attention_kind kind, const void *out)
{
    if (!a || !out) return qkv__fail(QKV_USAGE, "attention: what was attended to and a place for the result are needed");
    if ((unsigned)kind >= QKV_ATTENTION_KINDS) return qkv__fail(QKV_USAGE, "attention: there is no kind %d", (int)kind);
    if (has_kind(a, kind)) return QKV_OK;
    char has[64] = "";
    for (int k = 0; k < QKV_ATTENTION_KINDS; k++)
        if (a->layers[k])
            snprintf(has + strlen(has), sizeof has - strlen(has), "%s%s", *has ? ", " : "",
                     qkv__attention_kind_name((qkv_attention_kind)k));
    return qkv__fail(QKV_USAGE, "attention: the model has no %s attention: it has %s", qkv__attention_kind_name(kind),
                     *has ? has : "none");
}

/* lowest: -1 where the mean over all may be asked for. */
static qkv_status check_head(const qkv_attention_capture *a, qkv_attention_kind kind, int layer, int head, int lowest,
                             const void *out)
{
    qkv_status status = check_kind(a, kind, out);
    if (status) return status;
    if (layer < lowest || layer >= a->layers[kind])
        return qkv__fail(QKV_USAGE, "attention: there is no layer %d: %s attention has layers 0 to %d", layer,
                         qkv__attention_kind_name(kind), a->layers[kind] - 1);
    if (head < lowest || head >= a->heads)
        return qkv__fail(QKV_USAGE, "attention: there is no head %d: every layer has heads 0 to %d", head, a->heads - 1);
    return QKV_OK;
}

/* ---- tokens become units ---- */

static int64_t unit_begin(const qkv_axis *x, int64_t unit) { return x->begin ? x->begin[unit] : unit; }
static int64_t unit_count(const qkv_axis *x, int64_t unit) { return x->first ? x->first[unit + 1] - x->first[unit] : 1; }

static void add_row(const qkv__joining *j, const float *weights, double *sums)
{
    for (int64_t k = 0; k < j->columns.n; k++) {
        const float *at = weights + unit_begin(&j->columns, k);
        for (int64_t c = 0, n = unit_count(&j->columns, k); c < n; c++) sums[k] += (double)at[c];
    }
}

/* One row of units: the mean over its tokens and over all maps. */
static void join_row(void *work, int64_t unit, void *scratch)
{
    const qkv__joining *j = work;
    double *sums = scratch;
    int64_t begin = unit_begin(&j->rows, unit), count = unit_count(&j->rows, unit);
    memset(sums, 0, sizeof *sums * (size_t)j->columns.n);
    for (int b = 0; b < j->n_blocks; b++)
        for (int h = j->first_head; h < j->first_head + j->heads; h++)
            for (int64_t r = begin; r < begin + count; r++)
                add_row(j, j->blocks[b] + (h * j->rows.n_tokens + r) * j->columns.n_tokens, sums);
    double n = (double)count * (double)j->n_blocks * (double)j->heads;
    for (int64_t k = 0; k < j->columns.n; k++) j->out[unit * j->columns.n + k] = (float)(sums[k] / n);
}

qkv_status qkv__join_maps(const qkv__joining *j)
{
    return qkv__parallel(j->rows.n, sizeof(double) * (size_t)j->columns.n, join_row, (void *)j);
}

qkv_status qkv_attention_weights(const qkv_attention_capture *a, qkv_attention_kind kind, int layer, int head, float *weights)
{
    qkv_status status = check_head(a, kind, layer, head, -1, weights);
    if (status) return status;
    qkv__joining j = { .blocks = qkv__capture_of(a)->maps[kind] + (layer < 0 ? 0 : layer),
                       .n_blocks = layer < 0 ? a->layers[kind] : 1,
                       .first_head = head < 0 ? 0 : head,
                       .heads = head < 0 ? a->heads : 1,
                       .rows = *qkv_attention_rows(a, kind),
                       .columns = *qkv_attention_columns(a, kind),
                       .out = weights };
    return qkv__join_maps(&j);
}

/* ---- rollout ---- */

/* (A + I) / 2 with rows that sum to 1, A the mean over the layer's heads. */
static qkv_status mix(const qkv_attention_capture *a, qkv_attention_kind kind, int layer, int64_t n, float *mixed)
{
    const qkv_axis tokens = { .n = n, .n_tokens = n };
    qkv__joining j = { .blocks = qkv__capture_of(a)->maps[kind] + layer,
                       .n_blocks = 1,
                       .heads = a->heads,
                       .rows = tokens,
                       .columns = tokens,
                       .out = mixed };
    qkv_status status = qkv__join_maps(&j);
    for (int64_t i = 0; i < n && !status; i++) {
        float *row = mixed + i * n;
        double sum = 0;
        row[i] += 1;
        for (int64_t k = 0; k < n; k++) sum += (double)row[k];
        for (int64_t k = 0; k < n; k++) row[k] = (float)((double)row[k] / sum);
    }
    return status;
}

static qkv_status roll(const qkv_attention_capture *a, qkv_attention_kind kind, qkv_tape *t, float *weights)
{
    const qkv_axis *axis = qkv_attention_rows(a, kind);
    int64_t n = axis->n_tokens;
    qkv_tensor *product = NULL;
    for (int l = 0; l < a->layers[kind]; l++) {
        qkv_tensor *layer = qkv_constant(t, QKV_SHAPE(n, n), NULL);
        qkv_status status = layer ? mix(a, kind, l, n, qkv__tensor_data(layer)) : qkv_tape_status(t);
        if (status) return status;
        product = l ? qkv_matmul(layer, product, 0) : layer;
    }
    const float *data = qkv_tensor_data(product);
    if (!data) return qkv_tape_status(t);
    return qkv__join_maps(
        &(qkv__joining){ .blocks = &data, .n_blocks = 1, .heads = 1, .rows = *axis, .columns = *axis, .out = weights });
}

qkv_status qkv_attention_rollout(const qkv_attention_capture *a, qkv_attention_kind kind, float *weights)
{
    qkv_status status = check_kind(a, kind, weights);
    if (status) return status;
    if (kind == QKV_ATTENTION_CROSS)
        return qkv__fail(QKV_USAGE, "attention: rollout is of encoder or decoder attention: cross-attention has two sides");
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    status = t ? roll(a, kind, t, weights) : qkv_error_status();
    qkv_tape_free(t);
    return status;
}

/* ---- measures ---- */

/* Where i lies between the first, 0, and the last, 1. */
static double place_between(int64_t i, int64_t n) { return n > 1 ? (double)i / (double)(n - 1) : 0; }

typedef struct mean {
    double sum;
    int64_t n;
} mean;

static void add_at(mean *x, const float *row, int64_t columns, int64_t column)
{
    if (column < 0 || column >= columns) return;
    x->sum += (double)row[column];
    x->n++;
}

static double mean_of(mean x) { return x.n ? x.sum / (double)x.n : 0; }

static void add_spread(const float *row, int64_t columns, double at, double *entropy, double *distance)
{
    for (int64_t k = 0; k < columns; k++) {
        double w = (double)row[k];
        if (w > 0) *entropy -= w * log(w);
        *distance += w * fabs(at - place_between(k, columns));
    }
}

qkv_status qkv_attention_stats(const qkv_attention_capture *a, qkv_attention_kind kind, int layer, int head,
                               qkv_head_measures *out)
{
    qkv_status status = check_head(a, kind, layer, head, 0, out);
    if (status) return status;
    int64_t rows = qkv_attention_rows(a, kind)->n_tokens, columns = qkv_attention_columns(a, kind)->n_tokens;
    const float *map = qkv__capture_of(a)->maps[kind][layer] + head * rows * columns;
    mean first = { 0 }, previous = { 0 }, same = { 0 }, next = { 0 };
    double entropy = 0, distance = 0;
    for (int64_t i = 0; i < rows; i++) {
        const float *row = map + i * columns;
        add_spread(row, columns, place_between(i, rows), &entropy, &distance);
        add_at(&first, row, columns, 0);
        add_at(&previous, row, columns, i - 1);
        add_at(&same, row, columns, i);
        add_at(&next, row, columns, i + 1);
    }
    *out = (qkv_head_measures){ .entropy = entropy / (double)rows,
                                .diagonality = 1 - distance / (double)rows,
                                .first = mean_of(first),
                                .previous = mean_of(previous),
                                .same = mean_of(same),
                                .next = mean_of(next) };
    return QKV_OK;
}
