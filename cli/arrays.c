/* arrays.c: reads the masks of attention. */
#include "arrays.h"
#include "options.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

static qkv_status load_array(const char *path, qkv_array *a) { return qkv_array_read(path, a) ? library_failed() : QKV_OK; }

/* ---- masks ---- */

/* The shape of a mask, aligned at the last dimension, as (B, H, Tq, Tk) with 1 where it has none. */
static qkv_status align(const char *path, const qkv_array *a, bool one_head, int64_t shape[4])
{
    if (a->ndim < 1 || a->ndim > 4) return fail(QKV_USAGE, "%s: has %d dimensions, a mask has 1 to 4", path, a->ndim);
    for (int i = 0; i < 4; i++) shape[i] = i < 4 - a->ndim ? 1 : a->shape[i - (4 - a->ndim)];
    if (one_head && a->ndim == 3) {
        shape[0] = a->shape[0];
        shape[1] = 1;
    }
    return QKV_OK;
}

/* Anything but 0 and 1 is refused: an additive mask (0 and -inf) given here by mistake would mean its opposite. */
static qkv_status check_keep(const char *path, int64_t i, float value)
{
    if (value == 0 || value == 1) return QKV_OK;
    return fail(isnan(value) ? QKV_NUMERIC : QKV_USAGE,
                "%s: number %lld is %g: a keep map has 1 (may be seen) and 0 (hidden) only", path, (long long)i, (double)value);
}

static qkv_status keep_from(mask_files *m, const char *path, const qkv_array *a)
{
    int64_t n = qkv_array_count(a);
    if (!(m->keep = malloc((size_t)n + 1))) return fail(QKV_MEMORY, "%s: no memory for %lld numbers", path, (long long)n);
    for (int64_t i = 0; i < n; i++) {
        qkv_status status = check_keep(path, i, a->data[i]);
        if (status) return status;
        m->keep[i] = a->data[i] == 1;
    }
    m->mask.keep = m->keep;
    return QKV_OK;
}

qkv_status load_keep(mask_files *m, const char *path, bool one_head)
{
    qkv_array a = { 0 };
    qkv_status status = load_array(path, &a);
    if (!status) status = align(path, &a, one_head, m->mask.keep_shape);
    if (!status) status = keep_from(m, path, &a);
    qkv_array_free(&a);
    return status;
}

static qkv_status check_bias(const char *path, const qkv_array *a)
{
    for (int64_t i = 0; i < qkv_array_count(a); i++)
        if (!(a->data[i] < INFINITY))
            return fail(QKV_NUMERIC, "%s: number %lld is %g: a bias is finite or -inf", path, (long long)i, (double)a->data[i]);
    return QKV_OK;
}

qkv_status load_bias(mask_files *m, const char *path, bool one_head)
{
    qkv_status status = load_array(path, &m->bias);
    if (!status) status = align(path, &m->bias, one_head, m->mask.bias_shape);
    if (!status) status = check_bias(path, &m->bias);
    m->mask.bias = m->bias.data;
    return status;
}

qkv_status read_lengths(mask_files *m, const char *text, int64_t batch)
{
    int64_t n = 0;
    if (!(m->lengths = calloc((size_t)batch + 1, sizeof *m->lengths))) return fail(QKV_MEMORY, "no memory for the lengths");
    for (const char *at = text; at; n++) {
        char *end;
        long length = isdigit((unsigned char)*at) ? strtol(at, &end, 10) : -1;
        if (length < 0 || length > INT32_MAX || (*end && *end != ','))
            return fail(QKV_USAGE, "--lengths: \"%s\" is not a list of whole numbers such as 3,5", text);
        if (n < batch) m->lengths[n] = (int32_t)length;
        at = *end ? end + 1 : NULL;
    }
    m->mask.key_lengths = m->lengths;
    if (n == batch) return QKV_OK;
    return fail(QKV_USAGE, "--lengths: %lld numbers for %lld sequences", (long long)n, (long long)batch);
}

void free_mask(mask_files *m)
{
    free(m->lengths);
    free(m->keep);
    qkv_array_free(&m->bias);
}
