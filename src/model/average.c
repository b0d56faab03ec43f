/* average.c: the mean of each weight over several files. */
#include "params_file.h"

#include "../base/size.h"
#include "../tensor/tape.h"

typedef struct sums {
    double *sum;   /* of each weight, in the order of p's block */
    float *values; /* of one tensor of one file */
    size_t sum_bytes, values_bytes;
} sums;

static qkv_status make_sums(const qkv_params *p, sums *s)
{
    int64_t longest = 0;
    for (int i = 0; i < qkv_params_tensors(p); i++) longest = qkv__max(longest, qkv_params_tensor(p, i)->count);
    *s = (sums){ .sum_bytes = sizeof(double) * (size_t)qkv_params_block(p), .values_bytes = sizeof(float) * (size_t)longest };
    s->sum = qkv__alloc_zero(s->sum_bytes);
    s->values = qkv__alloc(s->values_bytes);
    return s->sum && s->values ? QKV_OK : QKV_MEMORY;
}

static void free_sums(sums *s)
{
    qkv__release(s->sum, s->sum_bytes);
    qkv__release(s->values, s->values_bytes);
}

static qkv_status add_file(qkv_params *p, const char *path, bool is_first, sums *s)
{
    qkv__safetensors file;
    qkv_status status = qkv__params_read(p, path, true, &file);
    if (status) return status;
    for (int i = 0; i < qkv_params_tensors(p); i++) {
        const qkv_tensor *w = qkv_params_tensor(p, i);
        double *sum = s->sum + (w->data - qkv_params_data(p));
        qkv__safetensors_decode(qkv__safetensors_find(&file, qkv_params_name(p, i)), s->values);
        for (int64_t k = 0; k < w->count; k++) /* 0 + -0 would be 0, and the mean of one file another file */
            sum[k] = is_first ? (double)s->values[k] : sum[k] + (double)s->values[k];
    }
    qkv__safetensors_free(&file);
    return QKV_OK;
}

qkv_status qkv_params_average(qkv_params *p, const char *const *paths, int n)
{
    sums s;
    qkv_status status = qkv_params_status(p);
    if (status) return status;
    if (!paths || n < 1) return qkv__fail(QKV_USAGE, "average: at least one file is needed");
    status = qkv_params_materialize(p);
    if (status) return status;
    status = make_sums(p, &s);
    for (int i = 0; i < n && !status; i++) status = add_file(p, paths[i], i == 0, &s);
    for (int i = 0; i < qkv_params_tensors(p) && !status; i++) {
        qkv_tensor *w = qkv_params_tensor(p, i);
        const double *sum = s.sum + (w->data - qkv_params_data(p));
        for (int64_t k = 0; k < w->count; k++) w->data[k] = (float)(sum[k] / n);
    }
    free_sums(&s);
    return status;
}
