/* bind.h: the weights of params and the tensors of a folder's files. */
#ifndef QKV_SRC_BIND_H
#define QKV_SRC_BIND_H

#include "family.h"

/* Gives every weight of p, which only plans them (see qkv__params_plan()), its values: those of F32, and matrices of F16 and
 * BF16, stay where they are in the files, others are turned into float32. f NULL: our own names; d_k: the width of a head, by
 * which some families lay out their rows. stored_bits 8 or 4: matrices may lie in so many bits, with scales, and stay there;
 * wanted_bits 8, 4 or 16, which is BF16: others become so. On success the weights are p's and *w is empty. FORMAT when a tensor is
 * missing, has no place or another shape, or a scale is none: the sentence names them all; UNSUPPORTED for other types; NUMERIC
 * for a number that so few bits cannot hold; MEMORY. */
qkv_status qkv__bind(qkv_params *p, const qkv__family *f, qkv__weights *w, int64_t d_k, int stored_bits, int wanted_bits);

/* IO when a file that p's weights lie in is not what it was when it was mapped; copies: when it was read into memory, too. */
qkv_status qkv__bind_check(const qkv_params *p, bool copies);

/* Writes the weights under the names of a family, as their files have them, or under our own (f NULL): those with scales as
 * they are kept, the others as float32. The errors of qkv_params_save(). */
qkv_status qkv__bind_save(const qkv_params *p, const qkv__family *f, int64_t d_k, const char *path);

#endif
