/* file.h: whole files in, whole files out, the names in a folder, and memory that lies in a file. */
#ifndef QKV_SRC_FILE_H
#define QKV_SRC_FILE_H

#include "memory.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

/* Every file call goes through one table, so that a test can fail it; each member behaves like the POSIX call of its name. */
typedef struct qkv__files {
    int (*open)(const char *path, int flags, mode_t mode);
    ssize_t (*read)(int fd, void *to, size_t bytes);
    ssize_t (*write)(int fd, const void *from, size_t bytes);
    int (*fsync)(int fd);
    int (*close)(int fd);
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
    int (*mkdir)(const char *path, mode_t mode);
    int (*posix_fallocate)(int fd, off_t from, off_t bytes);
    void *(*mmap)(void *at, size_t bytes, int protection, int flags, int fd, off_t from);
    int (*munmap)(void *at, size_t bytes);
    DIR *(*opendir)(const char *path);
    struct dirent *(*readdir)(DIR *folder);
    int (*closedir)(DIR *folder);
} qkv__files;

/* Replaces the table; NULL puts the default back. */
void qkv__set_files(const qkv__files *table);

/* What tells a file from another one, and from itself after a change. */
typedef struct qkv__stamp {
    uint64_t device, inode;
    int64_t size, seconds, nanoseconds;
} qkv__stamp;

/* A file's bytes. */
typedef struct qkv__bytes {
    unsigned char *data;
    size_t size;
    size_t capacity; /* of the allocation, or of the map */
    bool mapped;
    bool is_copy;     /* the map is of no file: the bytes were read into it */
    qkv__stamp stamp; /* of a mapped file or its copy, as it was then */
} qkv__bytes;

/* Reads a whole regular file; limit bounds its size. A pipe or a device is refused and never waited for. IO, FORMAT for a Git
 * LFS pointer, LIMIT, MEMORY; *out is empty on error. */
qkv_status qkv__file_read(const char *path, size_t limit, qkv__bytes *out);

/* The same for what a user names as input, which may be a pipe. */
qkv_status qkv__stream_read(const char *path, size_t limit, qkv__bytes *out);
void qkv__bytes_free(qkv__bytes *b);

/* FORMAT, with what to do, for a Git LFS pointer in place of a file. qkv__file_read() and qkv__file_map() ask it. */
qkv_status qkv__refuse_lfs_pointer(const char *path, const qkv__bytes *file);

/* The same without reading it: what is looked at comes from the disk then, and what is written stays with this process. A file
 * without bytes is read. The file must not be cut while it is mapped; one that is replaced stays as it was. */
qkv_status qkv__file_map(const char *path, qkv__bytes *out);

/* The same, but the bytes are read into memory of their own, aligned to pages: the file may change in any way afterwards. IO where
 * it is cut meanwhile. */
qkv_status qkv__file_copy(const char *path, qkv__bytes *out);

/* Gives the memory of a mapped file back, which nobody has written to: what is wanted again is read from the file again. Of a
 * copy, nothing. */
void qkv__bytes_forget(const qkv__bytes *b);

/* Gives up `bytes` bytes of a map or copy from an offset on, both in whole pages; they are not read again. */
void qkv__bytes_drop(const qkv__bytes *b, size_t offset, size_t bytes);

/* The stamp of the file at a path; false where there is none. */
bool qkv__file_stamp(const char *path, qkv__stamp *stamp);

/* Whether the file at the path is the one with this stamp, unchanged. */
bool qkv__file_is_same(const char *path, const qkv__stamp *stamp);

/* A file read piece by piece: begin, any number of somes, end. *got is 0 at the end of the file only. IO. */
qkv_status qkv__read_begin(const char *path, int *fd);
qkv_status qkv__read_some(int fd, const char *path, void *to, size_t room, size_t *got);
void qkv__read_end(int fd);

/* False only when there is none: one that cannot be opened is there. */
bool qkv__file_exists(const char *path);

/* IO for a path that cannot be opened at all. */
qkv_status qkv__is_folder(const char *path, bool *is_folder);

/* What lies in a folder, folders and files alike, in the order of their bytes; names that start with a dot are left out. IO,
 * MEMORY; *out is empty on error. */
typedef struct qkv__names {
    char **at; /* n of them */
    size_t n;
    char *text;
    size_t used, at_bytes, text_bytes;
} qkv__names;
qkv_status qkv__folder_list(const char *path, qkv__names *out);
void qkv__names_free(qkv__names *names);

/* Makes a folder if it is not there. IO. */
qkv_status qkv__folder_make(const char *path);

/* A file written piece by piece, by the rule of qkv_file_write(): a temporary file beside it, written, fsynced, renamed, and
 * the folder fsynced; or what is there, written into. begin, any number of puts, end; on an error of any of them call abandon,
 * which removes the temporary file. */
typedef struct qkv__writer {
    int fd;
    char *path;               /* as it was given */
    char *target, *temporary; /* where the links lead to, and the new file beside it; NULL: written in place */
} qkv__writer;
qkv_status qkv__write_begin(qkv__writer *w, const char *path);
qkv_status qkv__write_put(qkv__writer *w, const void *bytes, size_t size);
qkv_status qkv__write_end(qkv__writer *w);
void qkv__write_abandon(qkv__writer *w);

/* Where temporary files go: TMPDIR, or /tmp. */
const char *qkv__temporary_folder(void);

/* Memory that lies in a temporary file there: the system can take its pages back. The file has no name, so it is gone when the
 * process is. */
typedef struct qkv__spill {
    void *data; /* NULL while it has no bytes */
    size_t bytes;
    int fd;
} qkv__spill;
qkv_status qkv__spill_begin(qkv__spill *s); /* IO; end is then not needed */

/* Makes it hold at least `wanted` bytes, keeping its contents; data may move. IO, MEMORY, LIMIT: then nothing has changed. */
qkv_status qkv__spill_grow(qkv__spill *s, size_t wanted);
void qkv__spill_end(qkv__spill *s);

#endif
