/* isa.h: names and prototypes of one instruction set's kernels. Included only by files that meson compiles once per instruction
 * set, with QKV_ISA defined as its name. */
#ifndef QKV_SRC_ISA_H
#define QKV_SRC_ISA_H

#include "kern.h"

#define NAME(name) QKV_KERNEL(QKV_ISA, name)

#define K(kind, result, name, parameters) result NAME(name) parameters;
#include "kernels.def"
#undef K

extern const qkv__kernels NAME(kernels);

#endif
