/* pytorch.h: the tensors of a pytorch_model.bin, which is a zip archive: data.pkl, a pickle that says what there is, and a file
 * of numbers for each storage. */
#ifndef QKV_SRC_PYTORCH_H
#define QKV_SRC_PYTORCH_H

#include "safetensors.h"

/* Numbers that lie side by side stay in the mapped file; others are copied. FORMAT for a broken rule of the archive, its pickle
 * or its tensors, and for a tensor that is there twice; UNSUPPORTED for what zip.h and pickle.h do not read, for a file of
 * PyTorch before 1.6, of TorchScript or of a big-endian machine; LIMIT for a pickle of more than 32 MB, too many dimensions, and
 * copies of more bytes than the file has; IO, MEMORY. *out is empty on error. path must outlive *out. */
qkv_status qkv__pytorch_read(const char *path, qkv__safetensors *out);

/* The same; is_copy: of a copy of the file in memory. */
qkv_status qkv__pytorch_open(const char *path, bool is_copy, qkv__safetensors *out);

#endif
