/* array_matrix.c: one matrix of an array of more dimensions. */
#include "results.h"
#include "arrays.h"

#include "../../src/base/status.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

static const float *wrong_index(const qkv_array *a, const char *name)
{
    int leading = a->ndim > 2 ? a->ndim - 2 : 0;
    qkv__fail(QKV_USAGE, "%s has %d dimensions: %s, such as --index %s", name, a->ndim,
              leading ? "give --index a number for each but the last two" : "it is shown without --index",
              leading > 1 ? "0,0" : "0");
    return NULL;
}

/* Where the matrix begins. */
static const float *find_matrix(const qkv_array *a, const char *index, const char *name)
{
    const float *at = a->data;
    int64_t size = qkv_array_count(a);
    int leading = a->ndim > 2 ? a->ndim - 2 : 0, n = 0;
    const char *text = index ? index : "";
    for (; *text && n < leading; n++) {
        char *end;
        errno = 0;
        long long i = isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : -1;
        if (i < 0 || errno || (*end && *end != ',')) return wrong_index(a, name);
        if (i >= a->shape[n]) {
            qkv__fail(QKV_USAGE, "--index %s: dimension %d has %lld places, from 0", index, n, (long long)a->shape[n]);
            return NULL;
        }
        size /= a->shape[n];
        at += i * size;
        text = *end ? end + 1 : end;
    }
    return n == leading && !*text ? at : wrong_index(a, name);
}

const float *qkv_array_matrix(const qkv_array *a, const char *index, const char *name, int64_t shape[2])
{
    if (!a || !name || !shape)
        return qkv__fail(QKV_USAGE, "array: an array, its name and a place for the shape are needed"), NULL;
    if (!qkv_array_count(a)) return qkv__fail(QKV_USAGE, "%s: the array is empty", name), NULL;
    shape[0] = a->ndim > 1 ? a->shape[a->ndim - 2] : 1;
    shape[1] = a->ndim ? a->shape[a->ndim - 1] : 1;
    return find_matrix(a, index, name);
}
