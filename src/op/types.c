/* types.c: how the numbers of a weight are kept, and the products that read them. */
#include "types.h"

#include "packed.h"
#include "product.h"

static void widen_f32(float *to, const void *from, int64_t n) { memcpy(to, from, sizeof(float) * (size_t)n); }
static void widen_f16(float *to, const void *from, int64_t n) { kern->widen_half(to, from, n); }
static void widen_bf16(float *to, const void *from, int64_t n) { kern->widen_bfloat(to, from, n); }

static void dots_f16(const qkv__product *p, const void *w) { kern->dots_half(p, w); }
static void dots_bf16(const qkv__product *p, const void *w) { kern->dots_bfloat(p, w); }

static qkv_status multiply_f32(const qkv__product *p, const qkv_tensor *w)
{
    (void)w;
    return qkv__multiply(p);
}

static qkv_status multiply_widened(const qkv__product *p, const qkv_tensor *w) { return qkv__multiply_widened(p, w); }

#define T(name, spelling, bytes, widen, dots, multiply) { spelling, bytes, widen, dots, multiply },
static const qkv__type types[] = {
#include "types.def"
};
#undef T

const qkv__type *qkv__type_named(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name)) return &types[i];
    return NULL;
}

const qkv__type *qkv__type_of(const qkv_tensor *x) { return x->type ? x->type : &types[0]; }

const void *qkv__value_at(const qkv_tensor *w, int64_t i)
{
    const char *values = w->type ? w->values : qkv_data(w);
    return values + (size_t)i * qkv__type_of(w)->bytes;
}

void qkv__widen(const qkv_tensor *w, int64_t from, int64_t n, float *to)
{
    qkv__type_of(w)->widen(to, qkv__value_at(w, from), n);
}

qkv_status qkv__multiply_weight(const qkv__product *p, const qkv_tensor *w)
{
    qkv__product x = *p;
    qkv_status status = qkv__packed_weight(w, p->m, &x.packed);
    x.packed_n = p->n;
    return status ? status : qkv__type_of(w)->multiply(&x, w);
}
