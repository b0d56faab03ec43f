/* table.c: the kernels of one instruction set. */
#include "isa.h"

#define QUOTE_(x) #x
#define QUOTE(x) QUOTE_(x)

const qkv__kernels NAME(kernels) = {
    .isa = QUOTE(QKV_ISA),
#define K(kind, result, name, parameters) .name = NAME(name),
#include "kernels.def"
#undef K
};
