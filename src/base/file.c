/* file.c: whole files in, whole files out, the names in a folder, and memory that lies in a file. */
#include "file.h"

#include <qkv/unstable/util.h>

#include "size.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int default_open(const char *path, int flags, mode_t mode) { return open(path, flags, mode); }

#define DEFAULT_FILES                                                                                                    \
    {                                                                                                                    \
        default_open, read, write, fsync, close, rename, unlink, mkdir, posix_fallocate, mmap, munmap, opendir, readdir, \
            closedir                                                                                                     \
    }
static const qkv__files default_files = DEFAULT_FILES;
static qkv__files files = DEFAULT_FILES;

void qkv__set_files(const qkv__files *table) { files = table ? *table : default_files; }

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

/* A pipe is not waited for, and a file without an end not read: only a regular file is opened for its whole contents. */
static qkv_status open_regular(const char *path, int *fd, struct stat *about)
{
    *fd = files.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    if (*fd < 0) return qkv__fail(QKV_IO, "%s: cannot open: %s", path, strerror(errno));
    qkv_status status = QKV_OK;
    if (fstat(*fd, about)) status = qkv__fail(QKV_IO, "%s: cannot look at it: %s", path, strerror(errno));
    else if (S_ISDIR(about->st_mode)) status = qkv__fail(QKV_IO, "%s: cannot read: it is a folder", path);
    else if (!S_ISREG(about->st_mode))
        status = qkv__fail(QKV_IO, "%s: cannot read: it is a pipe or a device, expected a regular file", path);
    if (status) files.close(*fd);
    return status;
}

bool qkv__file_exists(const char *path)
{
    int fd = files.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    if (fd >= 0) files.close(fd);
    return fd >= 0 || (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG); /* below no folder there is nothing */
}

static qkv_status read_open_file(int fd, const char *path, size_t limit, qkv__bytes *out)
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

/* Reads all of an open file, and closes it. */
static qkv_status read_and_close(int fd, const char *path, size_t limit, qkv__bytes *out)
{
    qkv_status status = read_open_file(fd, path, limit, out);
    files.close(fd);
    if (!status) status = qkv__refuse_lfs_pointer(path, out);
    if (status) qkv__bytes_free(out);
    return status;
}

qkv_status qkv__file_read(const char *path, size_t limit, qkv__bytes *out)
{
    struct stat about;
    int fd;
    *out = (qkv__bytes){ 0 };
    qkv_status status = open_regular(path, &fd, &about);
    return status ? status : read_and_close(fd, path, limit, out);
}

qkv_status qkv__stream_read(const char *path, size_t limit, qkv__bytes *out)
{
    int fd;
    *out = (qkv__bytes){ 0 };
    qkv_status status = qkv__read_begin(path, &fd);
    return status ? status : read_and_close(fd, path, limit, out);
}

/* Not reserved: a file larger than the memory can be mapped, and little of it is written. */
static qkv_status map_all(int fd, const char *path, size_t size, qkv__bytes *out)
{
    void *data = files.mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    if (data == MAP_FAILED)
        return qkv__fail(errno == ENOMEM ? QKV_MEMORY : QKV_IO, "%s: cannot map: %s", path, strerror(errno));
    *out = (qkv__bytes){ .data = data, .size = size, .capacity = size, .mapped = true };
    return QKV_OK;
}

static qkv__stamp stamp_of(const struct stat *about)
{
    return (qkv__stamp){ .device = about->st_dev,
                         .inode = about->st_ino,
                         .size = about->st_size,
                         .seconds = about->st_mtim.tv_sec,
                         .nanoseconds = about->st_mtim.tv_nsec };
}

bool qkv__file_stamp(const char *path, qkv__stamp *stamp)
{
    struct stat about;
    if (stat(path, &about)) return false;
    *stamp = stamp_of(&about);
    return true;
}

bool qkv__file_is_same(const char *path, const qkv__stamp *stamp)
{
    qkv__stamp now;
    return qkv__file_stamp(path, &now) && now.device == stamp->device && now.inode == stamp->inode && now.size == stamp->size &&
           now.seconds == stamp->seconds && now.nanoseconds == stamp->nanoseconds;
}

/* Pages that the kernel fills: a read into them takes no memory twice. */
static qkv_status copy_all(int fd, const char *path, size_t size, qkv__bytes *out)
{
    void *data = files.mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    qkv_status status = QKV_OK;
    if (data == MAP_FAILED) return qkv__fail(QKV_MEMORY, "%s: out of memory: %zu bytes are wanted", path, size);
    *out = (qkv__bytes){ .data = data, .size = size, .capacity = size, .mapped = true, .is_copy = true };
    for (size_t at = 0, got = 1; at < size && !status; at += got) {
        status = qkv__read_some(fd, path, out->data + at, size - at, &got);
        if (!status && !got) status = qkv__fail(QKV_IO, "%s: the file was cut while it was read", path);
    }
    return status;
}

static qkv_status open_all(const char *path, bool is_copy, qkv__bytes *out)
{
    struct stat about;
    int fd;
    *out = (qkv__bytes){ 0 };
    qkv_status status = open_regular(path, &fd, &about);
    if (status || !about.st_size) return status ? status : read_and_close(fd, path, SIZE_MAX, out);
    status = (is_copy ? copy_all : map_all)(fd, path, (size_t)about.st_size, out);
    if (!status) out->stamp = stamp_of(&about);
    files.close(fd);
    if (!status) status = qkv__refuse_lfs_pointer(path, out);
    if (status) qkv__bytes_free(out);
    return status;
}

qkv_status qkv__file_map(const char *path, qkv__bytes *out) { return open_all(path, false, out); }
qkv_status qkv__file_copy(const char *path, qkv__bytes *out) { return open_all(path, true, out); }

void qkv__bytes_drop(const qkv__bytes *b, size_t offset, size_t bytes)
{
    if (b->mapped) madvise(b->data + offset, bytes, MADV_DONTNEED);
}

void qkv__bytes_forget(const qkv__bytes *b)
{
    if (b->mapped && !b->is_copy) madvise(b->data, b->capacity, MADV_DONTNEED);
}

void qkv__bytes_free(qkv__bytes *b)
{
    if (b->mapped) files.munmap(b->data, b->capacity);
    else qkv__release(b->data, b->capacity);
    *b = (qkv__bytes){ 0 };
}

/* ---- folders ---- */

qkv_status qkv__is_folder(const char *path, bool *is_folder)
{
    int fd = files.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    *is_folder = fd >= 0;
    if (fd >= 0) files.close(fd);
    return fd >= 0 || errno == ENOTDIR ? QKV_OK : qkv__fail(QKV_IO, "%s: cannot open: %s", path, strerror(errno));
}

static qkv_status add_name(qkv__names *out, const char *name)
{
    size_t size = strlen(name) + 1, wanted;
    if (!qkv__size_add(out->used, size, &wanted)) return qkv__fail(QKV_LIMIT, "a folder has too many names");
    if (qkv__grow((void **)&out->text, &out->text_bytes, wanted)) return QKV_MEMORY;
    memcpy(out->text + out->used, name, size);
    out->used = wanted;
    out->n++;
    return QKV_OK;
}

static qkv_status add_names(DIR *folder, const char *path, qkv__names *out)
{
    qkv_status status = QKV_OK;
    while (!status) {
        errno = 0; /* readdir tells an error from the end by it alone */
        const struct dirent *entry = files.readdir(folder);
        if (!entry && errno) return qkv__fail(QKV_IO, "%s: cannot list the folder: %s", path, strerror(errno));
        if (!entry) break;
        if (*entry->d_name != '.') status = add_name(out, entry->d_name);
    }
    return status;
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The text has moved while it grew: only now do its names have a place. */
static qkv_status sort_names(qkv__names *out)
{
    if (!out->n) return QKV_OK;
    out->at_bytes = out->n * sizeof *out->at;
    if (!(out->at = qkv__alloc(out->at_bytes))) return QKV_MEMORY;
    char *name = out->text;
    for (size_t i = 0; i < out->n; i++, name += strlen(name) + 1) out->at[i] = name;
    qsort(out->at, out->n, sizeof *out->at, by_bytes);
    return QKV_OK;
}

qkv_status qkv__folder_list(const char *path, qkv__names *out)
{
    *out = (qkv__names){ 0 };
    DIR *folder = files.opendir(path);
    if (!folder) return qkv__fail(QKV_IO, "%s: cannot list the folder: %s", path, strerror(errno));
    qkv_status status = add_names(folder, path, out);
    files.closedir(folder);
    if (!status) status = sort_names(out);
    if (status) qkv__names_free(out);
    return status;
}

void qkv__names_free(qkv__names *names)
{
    qkv__release(names->at, names->at_bytes);
    qkv__release(names->text, names->text_bytes);
    *names = (qkv__names){ 0 };
}

/* ---- out ---- */

qkv_status qkv__folder_make(const char *path)
{
    if (!files.mkdir(path, 0777) || errno == EEXIST) return QKV_OK;
    return qkv__fail(QKV_IO, "%s: cannot make the folder: %s", path, strerror(errno));
}

/* Where the bytes for a path go: into what is there, or into a new file that takes the place of `at`. */
typedef struct destination {
    bool in_place;
    char at[4096];
} destination;

/* A link of /proc (/dev/stdout leads to one) stands for an open file, whose name is another thing. */
static bool is_open_file(const char *link)
{
    struct stat about, proc;
    return !lstat(link, &about) && !stat("/proc", &proc) && about.st_dev == proc.st_dev;
}

/* Puts the path that a link holds in its place, once; *is_link false: it is none. */
static qkv_status follow_link(destination *d, bool *is_link)
{
    char link[sizeof d->at];
    ssize_t length = readlink(d->at, link, sizeof link);
    const char *slash = strrchr(d->at, '/');
    *is_link = length >= 0;
    if (!*is_link) return QKV_OK;
    size_t start = *link == '/' || !slash ? 0 : (size_t)(slash - d->at) + 1;
    if (start + (size_t)length >= sizeof d->at)
        return qkv__fail(QKV_LIMIT, "%.60s...: a link to a path that is too long", d->at);
    d->in_place = is_open_file(d->at);
    memcpy(d->at + start, link, (size_t)length);
    d->at[start + (size_t)length] = '\0';
    return QKV_OK;
}

/* The one rule of what writing to a path does: only a regular file is replaced, at the end of the links that lead to it. */
static qkv_status find_destination(const char *path, destination *d)
{
    struct stat about;
    if (strlen(path) >= sizeof d->at)
        return qkv__fail(QKV_LIMIT, "%.60s...: the path is longer than %zu bytes", path, sizeof d->at - 1);
    bool is_there = !stat(path, &about), is_link = true;
    if (!is_there && errno != ENOENT) return qkv__fail(QKV_IO, "%s: cannot write there: %s", path, strerror(errno));
    if (is_there && S_ISDIR(about.st_mode)) return qkv__fail(QKV_IO, "%s: it is a folder: name a file to write", path);
    *d = (destination){ .in_place = is_there && !S_ISREG(about.st_mode) };
    strcpy(d->at, path);
    qkv_status status = QKV_OK;
    for (int i = 0; !status && is_link && !d->in_place && i < 64; i++) status = follow_link(d, &is_link);
    return status;
}

/* The folder that a path is in, "." without one. */
static void cut_name(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash) slash[slash == path] = '\0';
    else strcpy(path, ".");
}

qkv_status qkv_file_writable(const char *path)
{
    destination d;
    if (!path) return qkv__fail(QKV_USAGE, "file: the path is NULL");
    qkv_status status = find_destination(path, &d);
    if (status) return status;
    cut_name(d.at);
    if (!(d.in_place ? access(path, W_OK) : access(d.at, W_OK | X_OK))) return QKV_OK;
    return qkv__fail(QKV_IO, "%s: cannot write there: %s", path, strerror(errno));
}

/* Not truncated: an open file that a path of /proc leads to goes on at its end. */
static qkv_status open_in_place(qkv__writer *w)
{
    struct stat about;
    int append = !stat(w->path, &about) && S_ISREG(about.st_mode) ? O_APPEND : 0;
    w->fd = files.open(w->path, O_WRONLY | O_NOCTTY | O_CLOEXEC | append, 0);
    return w->fd < 0 ? qkv__fail(QKV_IO, "%s: cannot open: %s", w->path, strerror(errno)) : QKV_OK;
}

static qkv_status open_temporary(qkv__writer *w)
{
    char ending[32];
    size_t length = strlen(w->target), n = (size_t)snprintf(ending, sizeof ending, ".%ld.tmp", (long)getpid());
    char *temporary = qkv__alloc(length + n + 1);
    if (!temporary) return QKV_MEMORY;
    memcpy(temporary, w->target, length);
    memcpy(temporary + length, ending, n + 1);
    w->temporary = temporary;
    w->fd = files.open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return w->fd < 0 ? qkv__fail(QKV_IO, "%s: cannot create: %s", w->path, strerror(errno)) : QKV_OK;
}

qkv_status qkv__write_begin(qkv__writer *w, const char *path)
{
    destination d;
    *w = (qkv__writer){ .fd = -1 };
    qkv_status status = find_destination(path, &d);
    if (status) return status;
    if (!(w->path = qkv__copy_text(path))) return QKV_MEMORY;
    if (d.in_place) return open_in_place(w);
    return (w->target = qkv__copy_text(d.at)) ? open_temporary(w) : QKV_MEMORY;
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

/* Pipes, terminals and the folders of some file systems cannot be synced, and need not be. */
static bool sync_failed(int fd) { return files.fsync(fd) && errno != EINVAL && errno != ENOTSUP && errno != EROFS; }

/* The rename itself is on disk only when the folder is. */
static qkv_status sync_folder(const char *path)
{
    char *folder = qkv__copy_text(path);
    if (!folder) return QKV_MEMORY;
    size_t bytes = strlen(folder) + 1;
    cut_name(folder);
    int fd = files.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    /* A folder that may not be read is no reason to call a complete file lost. */
    bool failed = fd >= 0 && sync_failed(fd);
    qkv_status status = failed ? qkv__fail(QKV_IO, "%s: cannot sync its folder: %s", path, strerror(errno)) : QKV_OK;
    if (fd >= 0) files.close(fd);
    qkv__release(folder, bytes);
    return status;
}

static void forget(qkv__writer *w)
{
    qkv__release_text(w->path);
    qkv__release_text(w->target);
    qkv__release_text(w->temporary);
    *w = (qkv__writer){ .fd = -1 };
}

qkv_status qkv__write_end(qkv__writer *w)
{
    if (sync_failed(w->fd)) return qkv__fail(QKV_IO, "%s: cannot sync: %s", w->path, strerror(errno));
    int fd = w->fd;
    w->fd = -1;
    if (files.close(fd)) return qkv__fail(QKV_IO, "%s: cannot close: %s", w->path, strerror(errno));
    if (w->temporary && files.rename(w->temporary, w->target))
        return qkv__fail(QKV_IO, "%s: cannot rename the finished file: %s", w->path, strerror(errno));
    qkv_status status = w->temporary ? sync_folder(w->target) : QKV_OK;
    forget(w);
    return status;
}

void qkv__write_abandon(qkv__writer *w)
{
    if (w->fd >= 0) files.close(w->fd);
    if (w->temporary) files.unlink(w->temporary);
    forget(w);
}

qkv_status qkv_file_write(const char *path, const void *bytes, size_t size)
{
    qkv__writer w;
    if (!path || (!bytes && size)) return qkv__fail(QKV_USAGE, "file: a path and bytes are needed to write");
    qkv_status status = qkv__write_begin(&w, path);
    if (!status) status = qkv__write_put(&w, bytes, size);
    if (!status) status = qkv__write_end(&w);
    if (status) qkv__write_abandon(&w);
    return status;
}

/* ---- memory in a file ---- */

const char *qkv__temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

/* The first name that nobody has. */
static qkv_status open_new(char *path, size_t room, int *fd)
{
    for (int i = 0; i < 1000; i++) {
        int n = snprintf(path, room, "%s/qkv-%ld-%d.tmp", qkv__temporary_folder(), (long)getpid(), i);
        if (n < 0 || (size_t)n >= room) return qkv__fail(QKV_LIMIT, "TMPDIR: the path is longer than %zu bytes", room);
        *fd = files.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (*fd >= 0) return QKV_OK;
        if (errno != EEXIST) break;
    }
    return qkv__fail(QKV_IO, "%s: cannot create a temporary file: %s", path, strerror(errno));
}

qkv_status qkv__spill_begin(qkv__spill *s)
{
    char path[4096];
    *s = (qkv__spill){ .fd = -1 };
    qkv_status status = open_new(path, sizeof path, &s->fd);
    if (status || !files.unlink(path)) return status;
    status = qkv__fail(QKV_IO, "%s: cannot unlink the temporary file: %s", path, strerror(errno));
    qkv__spill_end(s);
    return status;
}

static qkv_status cannot_grow(size_t bytes, int error)
{
    return qkv__fail(error == ENOMEM ? QKV_MEMORY : QKV_IO,
                     "%s: a temporary file cannot have %zu bytes: %s (TMPDIR names another folder)", qkv__temporary_folder(),
                     bytes, strerror(error));
}

qkv_status qkv__spill_grow(qkv__spill *s, size_t wanted)
{
    enum { STEP = 64 << 10 };
    if (wanted <= s->bytes) return QKV_OK;
    if (wanted > SIZE_MAX / 4) return qkv__fail(QKV_LIMIT, "a temporary file of %zu bytes is too large", wanted);
    size_t more = (size_t)qkv__max((int64_t)(wanted - s->bytes),
                                   (int64_t)(s->bytes / 8)); /* disks are not wasted by doubling */
    size_t bytes = (size_t)qkv__round_up((int64_t)(s->bytes + more), STEP);
    int error;
    /* A hole in the file would be a SIGBUS when the disk is full: its blocks are had now or not at all. */
    do error = files.posix_fallocate(s->fd, (off_t)s->bytes, (off_t)(bytes - s->bytes));
    while (error == EINTR);
    if (error) return cannot_grow(bytes, error);
    void *data = files.mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (data == MAP_FAILED) return cannot_grow(bytes, errno);
    if (s->data) files.munmap(s->data, s->bytes);
    s->data = data;
    s->bytes = bytes;
    return QKV_OK;
}

void qkv__spill_end(qkv__spill *s)
{
    if (s->data) files.munmap(s->data, s->bytes);
    if (s->fd >= 0) files.close(s->fd);
    *s = (qkv__spill){ .fd = -1 };
}
