/* weights.h: the tensors of a model's folder: of model.safetensors, or of the files that model.safetensors.index.json names; else
 * of pytorch_model.bin, or of the files that pytorch_model.bin.index.json names. */
#ifndef QKV_SRC_WEIGHTS_H
#define QKV_SRC_WEIGHTS_H

#include "safetensors.h"

/* Mapped, or read into memory, and found sound. */
typedef struct qkv__weights {
    const struct qkv__weights_form *form;
    char *path; /* of the file or of the index, for sentences */
    int n;
    qkv__stored *tensors; /* of all files, by name */
    int n_files;
    qkv__safetensors *files;
    char **paths;
    size_t tensors_bytes;
    size_t bytes; /* of all files */
    bool is_copy; /* they lie in memory, not in their files */
} qkv__weights;

/* IO; FORMAT for a broken rule of the format, an index that is none, names a file with a path, or disagrees with its files;
 * UNSUPPORTED, with what to do, for a folder that has only weights of another kind; LIMIT, MEMORY. *out is empty on error. is_copy:
 * files are read, not mapped. */
qkv_status qkv__weights_open(const char *folder, bool is_copy, qkv__weights *out);
void qkv__weights_close(qkv__weights *w);

/* Whether the path is a file of another program, or the folder holds one: UNSUPPORTED, with what to do; else OK. IO, MEMORY. */
qkv_status qkv__weights_refuse_file(const char *path);
qkv_status qkv__weights_refuse_folder(const char *folder);

/* The file or the index that a folder's weights are read from; model.safetensors where there is none of them. */
const char *qkv__weights_name(const char *folder);

/* NULL when there is none. */
const qkv__stored *qkv__weights_find(const qkv__weights *w, const char *name);

#endif
