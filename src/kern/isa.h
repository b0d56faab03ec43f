/* isa.h: names and prototypes of one instruction set's kernels. Included only by files that meson compiles once per instruction
 * set, with QKV_ISA defined as its name. */
#ifndef QKV_SRC_ISA_H
#define QKV_SRC_ISA_H

#include "kern.h"

#define NAME(name) QKV_KERNEL(QKV_ISA, name)
#define QUOTE_(x) #x
#define QUOTE(x) QUOTE_(x)
#define ISA_NAME QUOTE(QKV_ISA)

#define K(kind, result, name, parameters) result NAME(name) parameters;
#include "kernels.def"
#undef K

/* A set of a few kernels, which takes the others from QKV_BASE, may call those. */
#ifdef QKV_BASE
#define K(kind, result, name, parameters) result QKV_KERNEL(QKV_BASE, name) parameters;
#include "kernels.def"
#undef K
#endif

/* Rows of matmul.c's tiles, or a few times as many. */
#if defined(QKV_VECTOR_BYTES) && QKV_VECTOR_BYTES == 64
enum { ROW_TILE = 16 };
#else
enum { ROW_TILE = 12 };
#endif

extern const qkv__kernels NAME(kernels);

#endif
