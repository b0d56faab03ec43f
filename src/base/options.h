/* options.h: how the option struct of a caller is read, whichever release it was compiled with. */
#ifndef QKV_SRC_OPTIONS_H
#define QKV_SRC_OPTIONS_H

#include "status.h"

/* Copies a caller's option struct, which begins with its size, to *to, the same struct as this library has it: as much as both
 * have, and zeros for the rest. NULL gives zeros; a size of 0 means first_size. USAGE, in a sentence that begins with `call`,
 * for a size that no struct has, and for bytes behind ours that are not zero: options that this library does not know. */
qkv_status qkv__options_read(void *to, size_t size, size_t first_size, const void *from, const char *call);

/* Copies options the other way, to where a caller has room for them; its size stays as it was. */
qkv_status qkv__options_write(void *to, size_t size, size_t first_size, const void *from, const char *call);

/* The same for a pointer to a struct of its type; `last` is the last member that the struct had in 0.2.0, in which sizes began,
 * and never changes. A member that is added begins behind what was the whole struct: not in the padding at its end, which need
 * not be zero in a program that was compiled before. */
#define QKV__READ_OPTIONS(to, last, from, call) \
    qkv__options_read((to), sizeof *(to), QKV__SIZE_UP_TO(to, last), 1 ? (from) : (to), (call))
#define QKV__WRITE_OPTIONS(to, last, from, call) \
    qkv__options_write((to), sizeof *(to), QKV__SIZE_UP_TO(to, last), 1 ? (from) : (to), (call))
#define QKV__SIZE_UP_TO(to, last) (offsetof(__typeof__(*(to)), last) + sizeof(to)->last)

#endif
