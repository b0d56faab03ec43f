/* kern.h: the kernels of the instruction set in use, as kern->name(...). kernels.def lists them and says what each must do. */
#ifndef QKV_SRC_KERN_H
#define QKV_SRC_KERN_H

#include "../base/random.h"
#include "../base/status.h"
#include "products.h"
#include "quantized.h"

#include <stdbool.h>

typedef struct qkv__kernels {
    const char *isa, *floats; /* its name, and that of the set whose products of floats it has */
    int64_t row_tile;         /* rows that its products take at a time: a part of a product should have a multiple of them */
#define K(kind, result, name, parameters) result(*name) parameters;
#include "kernels.def"
#undef K
} qkv__kernels;

/* Set by the first qkv_isa(), which every qkv_tape_new() and qkv_params_new() calls. */
extern const qkv__kernels *qkv__kern;
#define kern qkv__kern

/* The table of the i-th instruction set that qkv_isa_at(i) names; NULL after the last. For tests and benchmarks. */
const qkv__kernels *qkv__kernels_available(int i);

/* Every kernel that `own` lacks becomes that of `from`: an instruction set gives only what it does better. */
void qkv__kernels_inherit(qkv__kernels *own, const qkv__kernels *from);

/* Each instruction set has functions qkv__ISA_name: QKV_KERNEL(isa, name). */
#define QKV_KERNEL_(isa, name) qkv__##isa##_##name
#define QKV_KERNEL(isa, name) QKV_KERNEL_(isa, name)

#endif
