/* pickle.h: the tensors that the pickle of a PyTorch file rebuilds.
 *
 * A pickle is a program. This is a machine for the few steps of it that put tensors into a dictionary: it knows the numbers,
 * texts, tuples and dictionaries of a state_dict, the functions that rebuild a tensor from a part of a storage, and the types of
 * storages. It has nothing to run: a name that it does not know is refused, whatever would be done with it. */
#ifndef QKV_SRC_PICKLE_H
#define QKV_SRC_PICKLE_H

#include <qkv/tensor.h>

#include "../base/memory.h"

/* numbers offset + sum of i_d stride[d] of a storage, for i_d in 0 .. shape[d]-1; nothing of it is compared with a storage yet */
typedef struct qkv__pickled_tensor {
    const char *name, *storage; /* in the pickle, without a NUL */
    size_t name_length, storage_length;
    const char *dtype; /* as safetensors spell it */
    int64_t item;      /* bytes of a number */
    int64_t numbers;   /* that the storage is said to have */
    int64_t offset;
    int ndim;
    int64_t shape[QKV_MAX_DIMS], stride[QKV_MAX_DIMS];
} qkv__pickled_tensor;

typedef struct qkv__pickled {
    size_t n;
    qkv__pickled_tensor *tensors; /* of the dictionary, in its order */
    size_t bytes;
} qkv__pickled;

/* place is where the pickle starts in its file, for sentences. UNSUPPORTED for a name or a step that rebuilds no tensor, FORMAT
 * for a program that cannot be run or does not end in a dictionary of tensors, LIMIT for too many dimensions, MEMORY; memory
 * and time grow with size alone. *out is empty on error; bytes must outlive it. */
qkv_status qkv__pickle_read(const char *path, size_t place, const unsigned char *bytes, size_t size, qkv__pickled *out);
void qkv__pickled_free(qkv__pickled *p);

#endif
