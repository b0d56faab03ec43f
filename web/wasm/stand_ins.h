/* stand_ins.h: what wasi-libc does not have. Every file of the WebAssembly build begins with it. */
#ifndef QKV_WASM_STAND_INS_H
#define QKV_WASM_STAND_INS_H

#include <stddef.h>

void qsort_r(void *base, size_t n, size_t size, int (*compare)(const void *, const void *, void *), void *data);

#endif
