/* bench_products.c: y = x W^T in the shapes that layers have. */
#include "bench.h"
#include "measure.h"

#include "../../src/base/memory.h"
#include "../../src/tensor/product.h"

#include <stdio.h>
#include <string.h>

/* A layer's weights are (out, in); x has `rows` rows. */
typedef struct layer {
    int64_t rows, out, in;
} layer;
static const layer layers[] = { { 512, 512, 512 },   { 2048, 512, 512 }, { 2048, 2048, 512 },
                                { 2048, 512, 2048 }, { 32, 2048, 512 },  { 8, 2048, 512 },
                                { 1, 512, 512 },     { 1, 32000, 512 },  { 2048, 32000, 512 } };
enum { FEW_ROWS = 8 }; /* that take no longer than reading the weights */

static qkv_status multiply_layer(void *work, double *aside)
{
    (void)aside;
    return qkv__multiply(work);
}

static void fill_numbers(float *x, int64_t n)
{
    uint32_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)state * 0x1p-31f;
    }
}

static qkv_status measure_layer(const qkv__bench *b, const layer *l)
{
    int64_t inputs = l->rows * l->in, weights = l->out * l->in, results = l->rows * l->out;
    size_t bytes = sizeof(float) * (size_t)(inputs + weights + results);
    float *x = qkv__alloc(bytes), *w = x + inputs;
    if (!x) return QKV_MEMORY;
    fill_numbers(x, inputs + weights);
    qkv__product p = { .a = x, .b = w, .c = w + weights, .m = l->rows, .n = l->out, .k = l->in };
    p.a_row = p.b_col = l->in, p.a_col = p.b_row = 1, p.c_row = l->out;
    qkv_bench_row row = { .unit = "products", .amount = 1, .operations = 2.0 * (double)(l->rows * weights) };
    snprintf(row.name, sizeof row.name, "%lld x %lld x %lld", (long long)l->rows, (long long)l->out, (long long)l->in);
    if (l->rows <= FEW_ROWS) row.bytes = row.block = (double)weights * sizeof(float);
    qkv_status status = qkv__bench_measure(b, row, multiply_layer, &p);
    qkv__release(x, bytes);
    return status;
}

qkv_status qkv__bench_products(const qkv__bench *b)
{
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < sizeof layers / sizeof *layers && !status; i++) {
        layer l = layers[i];
        bool is_seen = false; /* with rows of its own */
        for (size_t k = 0; k < i; k++) is_seen = is_seen || (layers[k].out == l.out && layers[k].in == l.in);
        if (b->o.batch && is_seen) continue;
        if (b->o.batch) l.rows = b->o.batch;
        if (b->o.quick && l.rows * l.out > 2048 * 2048) continue;
        status = measure_layer(b, &l);
    }
    return status;
}
