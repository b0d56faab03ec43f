/* file.h: whole files in, whole files out. */
#ifndef QKV_SRC_FILE_H
#define QKV_SRC_FILE_H

#include "memory.h"

/* A file's bytes. */
typedef struct qkv__bytes {
    unsigned char *data;
    size_t size;
    size_t capacity; /* of the allocation */
} qkv__bytes;

/* Reads a whole regular file (or pipe); limit bounds its size. IO, LIMIT, MEMORY; *out is empty on error. */
qkv_status qkv__file_read(const char *path, size_t limit, qkv__bytes *out);
void qkv__bytes_free(qkv__bytes *b);

/* A file read piece by piece: begin, any number of somes, end. *got is 0 at the end of the file only. IO. */
qkv_status qkv__read_begin(const char *path, int *fd);
qkv_status qkv__read_some(int fd, const char *path, void *to, size_t room, size_t *got);
void qkv__read_end(int fd);

/* Makes a folder if it is not there. IO. */
qkv_status qkv__folder_make(const char *path);

/* A file that appears under its name only when it is complete: a temporary file in the same folder, written, fsynced, renamed,
 * and the folder fsynced. begin, any number of puts, end; on an error of any of them call abandon, which removes the temporary
 * file. */
typedef struct qkv__writer {
    int fd;
    char *path, *temporary;
} qkv__writer;
qkv_status qkv__write_begin(qkv__writer *w, const char *path);
qkv_status qkv__write_put(qkv__writer *w, const void *bytes, size_t size);
qkv_status qkv__write_end(qkv__writer *w);
void qkv__write_abandon(qkv__writer *w);

#endif
