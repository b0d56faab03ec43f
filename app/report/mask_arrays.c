/* mask_arrays.c: masks of attention from the arrays and numbers that people give. */
#include "results.h"
#include "arrays.h"

#include "../../src/base/memory.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static qkv_status check_place(const char *source, const qkv_mask_arrays *m)
{
    return source && m ? QKV_OK : qkv__fail(QKV_USAGE, "mask: an array and a place for the mask are needed");
}

/* The shape of a mask, aligned at the last dimension, as (B,H,Tq,Tk) with 1 where it has none. */
static qkv_status align_mask(const char *source, const qkv_array *a, bool one_head, int64_t shape[4])
{
    if (a->ndim < 1 || a->ndim > 4) return qkv__fail(QKV_USAGE, "%s: has %d dimensions, a mask has 1 to 4", source, a->ndim);
    for (int i = 0; i < 4; i++) shape[i] = i < 4 - a->ndim ? 1 : a->shape[i - (4 - a->ndim)];
    if (one_head && a->ndim == 3) {
        shape[0] = a->shape[0];
        shape[1] = 1;
    }
    return QKV_OK;
}

/* ---- what may be seen ---- */

/* Anything but 0 and 1 is refused: an additive mask (0 and -inf) given here by mistake would mean its opposite. */
static qkv_status check_keep(const char *source, int64_t i, float value)
{
    if (value == 0 || value == 1) return QKV_OK;
    return qkv__fail(isnan(value) ? QKV_NUMERIC : QKV_USAGE,
                     "%s: number %lld is %g: a keep map has 1 (may be seen) and 0 (hidden) only", source, (long long)i,
                     (double)value);
}

static qkv_status keep_from(const char *source, const qkv_array *a, qkv_mask_arrays *m)
{
    int64_t n = qkv_array_count(a);
    qkv_status status = qkv__grow((void **)&m->keep, &m->keep_bytes, (size_t)n + 1);
    for (int64_t i = 0; i < n && !status; i++) {
        status = check_keep(source, i, a->data[i]);
        m->keep[i] = a->data[i] == 1;
    }
    if (!status) m->mask.keep = m->keep;
    return status;
}

qkv_status qkv_mask_read_keep(const char *source, int one_head, qkv_mask_arrays *m)
{
    qkv_array a = { 0 };
    qkv_status status = check_place(source, m);
    if (status) return status;
    m->mask.keep = NULL;
    status = qkv_array_read(source, &a);
    if (!status) status = align_mask(source, &a, one_head, m->mask.keep_shape);
    if (!status) status = keep_from(source, &a, m);
    qkv_array_free(&a);
    return status;
}

/* ---- what is added ---- */

static qkv_status check_bias(const char *source, const qkv_array *a)
{
    for (int64_t i = 0; i < qkv_array_count(a); i++)
        if (!(a->data[i] < INFINITY))
            return qkv__fail(QKV_NUMERIC, "%s: number %lld is %g: a bias is finite or -inf", source, (long long)i,
                             (double)a->data[i]);
    return QKV_OK;
}

qkv_status qkv_mask_read_bias(const char *source, int one_head, qkv_mask_arrays *m)
{
    qkv_status status = check_place(source, m);
    if (status) return status;
    m->mask.bias = NULL;
    qkv_array_free(&m->bias);
    status = qkv_array_read(source, &m->bias);
    if (!status) status = align_mask(source, &m->bias, one_head, m->mask.bias_shape);
    if (!status) status = check_bias(source, &m->bias);
    if (!status) m->mask.bias = m->bias.data;
    return status;
}

/* ---- where sequences end ---- */

qkv_status qkv_mask_parse_lengths(const char *text, int64_t batch, const char *name, qkv_mask_arrays *m)
{
    int64_t n = 0;
    if (!text || !name || !m || batch < 0)
        return qkv__fail(QKV_USAGE, "mask: lengths, a name for them and a place for the mask are needed");
    m->mask.key_lengths = NULL;
    qkv_status status = qkv__grow((void **)&m->lengths, &m->lengths_bytes, ((size_t)batch + 1) * sizeof *m->lengths);
    if (status) return status;
    for (const char *at = text; at; n++) {
        char *end;
        long length = isdigit((unsigned char)*at) ? strtol(at, &end, 10) : -1;
        if (length < 0 || length > INT32_MAX || (*end && *end != ','))
            return qkv__fail(QKV_USAGE, "%s: \"%s\" is not a list of whole numbers such as 3,5", name, text);
        if (n < batch) m->lengths[n] = (int32_t)length;
        at = *end ? end + 1 : NULL;
    }
    if (n != batch) return qkv__fail(QKV_USAGE, "%s: %lld numbers for %lld sequences", name, (long long)n, (long long)batch);
    m->mask.key_lengths = m->lengths;
    return QKV_OK;
}

void qkv_mask_arrays_free(qkv_mask_arrays *m)
{
    if (!m) return;
    qkv__release(m->keep, m->keep_bytes);
    qkv__release(m->lengths, m->lengths_bytes);
    qkv_array_free(&m->bias);
    *m = (qkv_mask_arrays){ 0 };
}
