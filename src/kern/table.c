/* table.c: the kernels of one instruction set. */
#include "isa.h"

#ifdef QKV_VECTOR_BYTES
#define QKV_NO_UNITS
#endif

const qkv__kernels NAME(kernels) = {
    .isa = ISA_NAME,
    .floats = ISA_NAME,
    .row_tile = ROW_TILE,
#define K(kind, result, name, parameters) .name = NAME(name),
#include "kernels.def"
#undef K
};
