/* mask.h: the operands, options and masks that both kinds of attention share. */
#ifndef QKV_SRC_MASK_H
#define QKV_SRC_MASK_H

#include "op.h"

/* Checks q, k, v, the mask and the options, and fills in *x: sizes, where rows are, the scale of the options (0 if
 * they have none), mask, dropout; y's shape goes to *ndim and shape. Not the pointers to values. Masks are copied to the tape
 * when `keeps`, so that backward can read them. False with the error on the tape when something does not fit. */
bool qkv__attention_setup(qkv_tape *t, const char *name, qkv_tensor *const qkv[3], const qkv_mask *mask,
                          const qkv_attention_opts *opts, bool keeps, qkv__attention *x, int *ndim, int64_t shape[4]);

/* Reads a caller's options; the maps that it asks for are NULL until they are there. */
qkv_status qkv__attention_options(qkv_attention_opts *to, const qkv_attention_opts *from, const char *name);

/* qkv_attention() with opts->additive, which were read. */
qkv_tensor *qkv__additive_attention(qkv_tensor *q, qkv_tensor *k, qkv_tensor *v, const qkv_mask *mask,
                                    const qkv_attention_opts *opts);

/* The default scale, 1/sqrt(width), is used when the options have none. */
float qkv__default_scale(int64_t width);

/* A constant (batch, heads, tq, tk) on the tape, not yet set. */
qkv_tensor *qkv__attention_map(qkv_tape *t, const qkv__attention *x);

#endif
