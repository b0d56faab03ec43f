/* safetensors.h: named tensors in one file: 8 bytes with the length of the header, the header (JSON), the numbers. */
#ifndef QKV_SRC_SAFETENSORS_H
#define QKV_SRC_SAFETENSORS_H

#include <qkv/tensor.h>

#include "../base/file.h"
#include "../base/json.h"

#include <stdbool.h>

/* One tensor of a file that was read. */
typedef struct qkv__stored {
    const char *name;
    const char *dtype; /* "F32", "BF16", "I64", ... */
    int ndim;
    int64_t shape[QKV_MAX_DIMS];
    int64_t count;
    uint64_t begin, end; /* its bytes, from the first byte after the header */
    const unsigned char *data;
} qkv__stored;

/* A file that was mapped and found sound: every tensor lies inside it, none overlaps another, nothing is left over. Those of a
 * PyTorch file (pytorch.h) may share numbers. */
typedef struct qkv__safetensors {
    const char *path; /* the caller's, for sentences */
    int n;
    qkv__stored *tensors; /* by name, as strcmp() orders them */
    qkv__bytes file;
    size_t tensors_bytes;
    qkv__json_doc header; /* owns the names */
    unsigned char *made;  /* of a PyTorch file: the names, and numbers that lie apart in the file */
    size_t made_bytes;
} qkv__safetensors;

/* FORMAT for a broken rule, LIMIT for too many dimensions, IO, MEMORY. *out is empty on error. path must outlive *out. */
qkv_status qkv__safetensors_read(const char *path, qkv__safetensors *out);

/* The same; is_copy: of a copy of the file in memory. */
qkv_status qkv__safetensors_open(const char *path, bool is_copy, qkv__safetensors *out);
void qkv__safetensors_free(qkv__safetensors *s);

/* NULL when there is none. */
const qkv__stored *qkv__safetensors_find(const qkv__safetensors *s, const char *name);

/* Whether qkv__safetensors_decode() can turn this into float32: F64, F32, F16 and BF16. */
bool qkv__safetensors_decodes(const qkv__stored *t);
void qkv__safetensors_decode(const qkv__stored *t, float *to);
void qkv__safetensors_decode_some(const qkv__stored *t, int64_t first, int64_t n, float *to); /* numbers first .. first+n-1 */

/* The numbers where they lie in the file; NULL unless they are float32 at a place that a float may have. */
const float *qkv__safetensors_floats(const qkv__stored *t);

/* A tensor to write. */
typedef struct qkv__to_store {
    const char *name;
    int ndim;
    const int64_t *shape;
    int64_t count;
    const void *data; /* NULL: get() gives numbers first .. first+n-1, float32 */
    qkv_status (*get)(const void *from, int64_t first, int64_t n, float *to);
    const void *from;
    const char *dtype; /* NULL: F32 */
} qkv__to_store;

/* A line of the file's own text, "__metadata__". */
typedef struct qkv__note {
    const char *key, *value;
} qkv__note;

/* The value of a line, NULL when there is none; lives as long as s. */
const char *qkv__safetensors_note(const qkv__safetensors *s, const char *key);

/* Writes a whole file or none; sorts the tensors first, so that the file does not depend on their order: those of larger
 * numbers first, so that each lies at a multiple of its number's size, then by name.
 * USAGE for a name the format cannot hold or that comes twice, IO, MEMORY. */
qkv_status qkv__safetensors_write(const char *path, int n, qkv__to_store *tensors, int n_notes, const qkv__note *notes);

#endif
