/* zip.h: the files inside a zip archive that is in memory, without copying them: stored ones only, with the 64-bit records. */
#ifndef QKV_SRC_ZIP_H
#define QKV_SRC_ZIP_H

#include "../base/memory.h"

#include <stdint.h>

typedef struct qkv__zip_entry {
    const char *name; /* length bytes, in the archive */
    size_t length;
    size_t begin; /* of its local header */
    const unsigned char *data;
    size_t size;
} qkv__zip_entry;

typedef struct qkv__zip {
    const char *path; /* for sentences */
    const unsigned char *bytes;
    size_t size;
    size_t n;
    qkv__zip_entry *entries; /* by name */
    size_t entries_bytes;
} qkv__zip;

/* FORMAT for a broken rule: a record that is cut or lies elsewhere than it says, entries that overlap or have the same name;
 * UNSUPPORTED for entries that are compressed or encrypted and for archives in several parts; MEMORY. Checksums are not
 * looked at: PyTorch can leave them out, and computing them would read all of the file. *out is empty on error; bytes must
 * outlive it. */
qkv_status qkv__zip_open(const char *path, const unsigned char *bytes, size_t size, qkv__zip *out);
void qkv__zip_close(qkv__zip *z);

/* NULL when there is none. */
const qkv__zip_entry *qkv__zip_find(const qkv__zip *z, const char *name, size_t length);

#endif
