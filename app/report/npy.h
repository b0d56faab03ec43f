/* npy.h: a .npy file that is in memory. */
#ifndef QKV_SRC_NPY_H
#define QKV_SRC_NPY_H

#include "results.h"
#include "../../src/base/file.h"

#include "arrays.h"

bool qkv__is_npy(const qkv__bytes *file);

/* As qkv_npy_read(); the path is for sentences. */
qkv_status qkv__npy_parse(const char *path, const qkv__bytes *file, qkv_array *out);

#endif
