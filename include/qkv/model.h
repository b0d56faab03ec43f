/* qkv/model.h: weights in files. */
#ifndef QKV_MODEL_H
#define QKV_MODEL_H

#include <qkv/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes every weight as float32 to a safetensors file, under its name: whole or not at all. IO, MEMORY. */
QKV_API qkv_status qkv_params_save(const qkv_params *p, const char *path);

/* Reads every weight of p from a safetensors file (F64, F32, F16 or BF16, turned into float32). All or nothing: on any error no
 * weight changes. FORMAT when the file breaks a rule of the format, or lacks a weight, has one that p lacks, or one of another
 * shape (the sentence names them all); UNSUPPORTED for other types; IO; MEMORY. */
QKV_API qkv_status qkv_params_load(qkv_params *p, const char *path);

#ifdef __cplusplus
}
#endif
#endif
