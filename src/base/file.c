/* file.c: whole files in, whole files out. */
#include "file.h"

#include "size.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int default_open(const char *path, int flags, mode_t mode) { return open(path, flags, mode); }

static const qkv_files default_files = { default_open, read, write, fsync, close, rename, unlink, mkdir };
static qkv_files files = { default_open, read, write, fsync, close, rename, unlink, mkdir };

void qkv_set_files(const qkv_files *table) { files = table ? *table : default_files; }

/* ---- in ---- */

qkv_status qkv__read_begin(const char *path, int *fd)
{
    *fd = files.open(path, O_RDONLY | O_CLOEXEC, 0);
    return *fd < 0 ? qkv__fail(QKV_IO, "%s: cannot open: %s", path, strerror(errno)) : QKV_OK;
}

qkv_status qkv__read_some(int fd, const char *path, void *to, size_t room, size_t *got)
{
    ssize_t n;
    do n = files.read(fd, to, room);
    while (n < 0 && errno == EINTR);
    *got = n < 0 ? 0 : (size_t)n;
    return n < 0 ? qkv__fail(QKV_IO, "%s: cannot read: %s", path, strerror(errno)) : QKV_OK;
}

void qkv__read_end(int fd) { files.close(fd); }

static qkv_status read_all(int fd, const char *path, size_t limit, qkv__bytes *out)
{
    for (;;) {
        if (out->size == out->capacity) {
            size_t wanted;
            if (!qkv__size_add(out->size, 64 << 10, &wanted)) wanted = SIZE_MAX;
            if (qkv__grow((void **)&out->data, &out->capacity, wanted)) return QKV_MEMORY;
        }
        size_t got;
        qkv_status status = qkv__read_some(fd, path, out->data + out->size, out->capacity - out->size, &got);
        if (status || !got) return status;
        out->size += got;
        if (out->size > limit) return qkv__fail(QKV_LIMIT, "%s: larger than %zu bytes", path, limit);
    }
}

qkv_status qkv__file_read(const char *path, size_t limit, qkv__bytes *out)
{
    *out = (qkv__bytes){ 0 };
    int fd;
    qkv_status status = qkv__read_begin(path, &fd);
    if (status) return status;
    status = read_all(fd, path, limit, out);
    qkv__read_end(fd);
    if (status) qkv__bytes_free(out);
    return status;
}

void qkv__bytes_free(qkv__bytes *b)
{
    qkv__release(b->data, b->capacity);
    *b = (qkv__bytes){ 0 };
}

/* ---- out ---- */

qkv_status qkv__folder_make(const char *path)
{
    if (!files.mkdir(path, 0777) || errno == EEXIST) return QKV_OK;
    return qkv__fail(QKV_IO, "%s: cannot make the folder: %s", path, strerror(errno));
}

qkv_status qkv__write_begin(qkv__writer *w, const char *path)
{
    *w = (qkv__writer){ .fd = -1 };
    char ending[32];
    int n = snprintf(ending, sizeof ending, ".%ld.tmp", (long)getpid());
    size_t length = strlen(path);
    w->path = qkv__copy_text(path);
    w->temporary = qkv__alloc(length + (size_t)n + 1);
    if (!w->path || !w->temporary) {
        qkv__release(w->temporary, length + (size_t)n + 1);
        w->temporary = NULL; /* nothing there to remove */
        return QKV_MEMORY;
    }
    memcpy(w->temporary, path, length);
    memcpy(w->temporary + length, ending, (size_t)n + 1);
    w->fd = files.open(w->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (w->fd < 0) return qkv__fail(QKV_IO, "%s: cannot create: %s", path, strerror(errno));
    return QKV_OK;
}

qkv_status qkv__write_put(qkv__writer *w, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t put = files.write(w->fd, at, size);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return qkv__fail(QKV_IO, "%s: cannot write: %s", w->path, put ? strerror(errno) : "nothing was taken");
        at += put;
        size -= (size_t)put;
    }
    return QKV_OK;
}

/* The rename itself is on disk only when the folder is. */
static qkv_status sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = qkv__copy_text(slash ? path : ".");
    if (!folder) return QKV_MEMORY;
    size_t bytes = strlen(folder) + 1;
    if (slash) folder[slash == path ? 1 : slash - path] = '\0';
    int fd = files.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    /* A folder that may not be read, or a file system that cannot sync folders, is no reason to call a complete file lost. */
    int failed = fd >= 0 && files.fsync(fd) && errno != EINVAL && errno != ENOTSUP;
    qkv_status status = failed ? qkv__fail(QKV_IO, "%s: cannot sync its folder: %s", path, strerror(errno)) : QKV_OK;
    if (fd >= 0) files.close(fd);
    qkv__release(folder, bytes);
    return status;
}

static void forget(qkv__writer *w)
{
    qkv__release_text(w->path);
    qkv__release_text(w->temporary);
    *w = (qkv__writer){ .fd = -1 };
}

qkv_status qkv__write_end(qkv__writer *w)
{
    if (files.fsync(w->fd)) return qkv__fail(QKV_IO, "%s: cannot sync: %s", w->path, strerror(errno));
    int fd = w->fd;
    w->fd = -1;
    if (files.close(fd)) return qkv__fail(QKV_IO, "%s: cannot close: %s", w->path, strerror(errno));
    if (files.rename(w->temporary, w->path))
        return qkv__fail(QKV_IO, "%s: cannot rename the finished file: %s", w->path, strerror(errno));
    qkv_status status = sync_folder(w->path);
    forget(w);
    return status;
}

void qkv__write_abandon(qkv__writer *w)
{
    if (w->fd >= 0) files.close(w->fd);
    if (w->temporary) files.unlink(w->temporary);
    forget(w);
}
