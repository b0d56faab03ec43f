/* types.c: how the numbers of a weight are kept, and the products that read them. */
#include "types.h"

#include "packed.h"
#include "product.h"
#include "quantized.h"

static void widen_f32(float *to, const qkv_tensor *w, int64_t first, int64_t n)
{
    memcpy(to, qkv__value_at(w, first), sizeof(float) * (size_t)n);
}
static void widen_f16(float *to, const qkv_tensor *w, int64_t first, int64_t n)
{
    kern->widen_half(to, qkv__value_at(w, first), n);
}
static void widen_bf16(float *to, const qkv_tensor *w, int64_t first, int64_t n)
{
    kern->widen_bfloat(to, qkv__value_at(w, first), n);
}
static void widen_int8(float *to, const qkv_tensor *w, int64_t first, int64_t n) { qkv__widen_int8(to, w, first, n); }
static void widen_int4(float *to, const qkv_tensor *w, int64_t first, int64_t n) { qkv__widen_int4(to, w, first, n); }

static void dots_f16(const qkv__product *p, const void *w) { kern->dots_half(p, w); }
static void dots_bf16(const qkv__product *p, const void *w) { kern->dots_bfloat(p, w); }

static qkv_status multiply_f32(const qkv__product *p, const qkv_tensor *w)
{
    (void)w;
    return qkv__multiply(p);
}

static qkv_status multiply_widened(const qkv__product *p, const qkv_tensor *w) { return qkv__multiply_widened(p, w); }

static qkv_status multiply_quantized(const qkv__product *p, const qkv_tensor *w) { return qkv__multiply_quantized(p, &w, 1); }

#define T(name, spelling, dtype, bits, scales, widen, dots, multiply) \
    { spelling, QKV_DTYPE_##dtype, bits, scales, widen, dots, multiply },
static const qkv__type types[] = {
#include "types.def"
};
#undef T
#define T(name, spelling, dtype, bits, scales, widen, dots, multiply) TYPE_##name,
enum {
#include "types.def"
};
#undef T

const qkv__type *qkv__type_named(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name)) return &types[i];
    return NULL;
}

const qkv__type *qkv__type_quantized(int bits)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].scales && types[i].bits == bits) return &types[i];
    return NULL;
}

const qkv__type *qkv__type_bf16_both(void) { return &types[TYPE_bf16_both]; }

/* The reference's products say what a unit computes; they are no unit. */
qkv__bfloat_product *qkv__bfloat_unit(const qkv_tensor *w)
{
    const qkv__kernels *ref = qkv__kernels_available(0);
    if (w->type != &types[TYPE_bf16_both]) return NULL;
    if (kern->multiply_bfloat != ref->multiply_bfloat) return kern->multiply_bfloat;
    return kern->multiply_pairs != ref->multiply_pairs ? kern->multiply_pairs : NULL;
}

int64_t qkv__type_row_bytes(const qkv__type *t, int64_t in)
{
    return t->bits == 4 ? qkv__groups(in) * QKV__GROUP_BYTES : t->bits / 8 * in;
}

int64_t qkv__type_row_scales(const qkv__type *t, int64_t in) { return !t->scales ? 0 : t->bits == 4 ? qkv__groups(in) : 1; }

int64_t qkv__type_scale_bytes(const qkv__type *t) { return t->scales ? qkv__type_named(t->scales)->bits / 8 : 0; }

const qkv__type *qkv__type_of(const qkv_tensor *x) { return x->type ? x->type : &types[0]; }

const void *qkv__value_at(const qkv_tensor *w, int64_t i)
{
    const char *values = w->type ? w->values : qkv_tensor_data(w);
    return values + i * (qkv__type_of(w)->bits / 8);
}

qkv_dtype qkv_tensor_dtype(const qkv_tensor *x) { return x ? qkv__type_of(x)->dtype : QKV_DTYPE_STORED; }

const void *qkv_tensor_bytes(const qkv_tensor *x) { return x ? qkv__value_at(x, 0) : NULL; }

void qkv__widen(const qkv_tensor *w, int64_t from, int64_t n, float *to) { qkv__type_of(w)->widen(to, w, from, n); }

qkv_status qkv__multiply_weight(const qkv__product *p, const qkv_tensor *w)
{
    qkv__product x = *p;
    qkv_status status = qkv__packed_weight(w, p->m, &x.packed);
    x.packed_n = p->n;
    return status ? status : qkv__type_of(w)->multiply(&x, w);
}
