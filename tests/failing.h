/* failing.h: memory and files that count what is held and fail the n-th call, for tests. */
#ifndef QKV_TESTS_FAILING_H
#define QKV_TESTS_FAILING_H

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is counted, and the call that fails: -1 for none. */
static struct failing {
    atomic_long calls; /* of any thread */
    long fail_at;
    atomic_bool failed;
    atomic_size_t held; /* bytes of memory */
    int open;           /* files */
    size_t mapped;      /* bytes of files */
    bool renamed;       /* before the failure, if any */
} failing = { .fail_at = -1 };

static bool fails_now(void)
{
    if (failing.calls++ != failing.fail_at) return false;
    failing.failed = true;
    errno = EIO;
    return true;
}

static void *failing_alloc(size_t bytes, size_t alignment)
{
    void *memory = NULL;
    if (fails_now() || posix_memalign(&memory, alignment, bytes ? bytes : 1)) return NULL;
    failing.held += bytes;
    memset(memory, 0xA5, bytes); /* memory is not cleared */
    return memory;
}

static void failing_release(void *memory, size_t bytes)
{
    failing.held -= bytes;
    free(memory);
}

/* Runs run() again and again, failing the first, second, ... allocation until none is left to fail. Each failure must give
 * MEMORY, and nothing may be held after any run; the last run must succeed. Gives how many failures there were. */
static inline long each_allocation_fails(qkv_status (*run)(void))
{
    const qkv__memory table = { failing_alloc, failing_release };
    long n = 0;
    qkv_shutdown();
    qkv__set_memory(&table);
    for (failing = (struct failing){ .fail_at = n };; failing = (struct failing){ .fail_at = ++n }) {
        qkv_status status = run();
        qkv_shutdown();
        assert_int_equal(failing.held, 0);
        assert_int_equal(status, failing.failed ? QKV_MEMORY : QKV_OK);
        if (!failing.failed) break;
    }
    failing.fail_at = -1;
    qkv__set_memory(NULL);
    return n;
}

static int failing_open(const char *path, int flags, mode_t mode)
{
    int fd = fails_now() ? -1 : open(path, flags, mode);
    failing.open += fd >= 0;
    return fd;
}

static ssize_t failing_read(int fd, void *to, size_t bytes) { return fails_now() ? -1 : read(fd, to, bytes); }

/* At most 100 bytes at a time, as a full pipe would. */
static ssize_t failing_write(int fd, const void *from, size_t bytes)
{
    return fails_now() ? -1 : write(fd, from, bytes < 100 ? bytes : 100);
}

/* Of the writes of a file the first stands for all: for what writes large ones. */
static inline ssize_t whole_write(int fd, const void *from, size_t bytes)
{
    return lseek(fd, 0, SEEK_CUR) == 0 && fails_now() ? -1 : write(fd, from, bytes);
}

static int failing_fsync(int fd) { return fails_now() ? -1 : fsync(fd); }

/* The file is closed even when the call fails, as Linux does it. */
static int failing_close(int fd)
{
    bool fails = fails_now();
    failing.open--;
    close(fd);
    return fails ? -1 : 0;
}

static int failing_rename(const char *from, const char *to)
{
    if (fails_now()) return -1;
    failing.renamed = true;
    return rename(from, to);
}

static int failing_unlink(const char *path) { return fails_now() ? -1 : unlink(path); }

static int failing_mkdir(const char *path, mode_t mode) { return fails_now() ? -1 : mkdir(path, mode); }

static int failing_fallocate(int fd, off_t from, off_t bytes)
{
    return fails_now() ? ENOSPC : posix_fallocate(fd, from, bytes);
}

static void *failing_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t from)
{
    void *mapped = fails_now() ? MAP_FAILED : mmap(at, bytes, protection, flags, fd, from);
    if (mapped != MAP_FAILED) failing.mapped += bytes;
    return mapped;
}

static int failing_munmap(void *at, size_t bytes)
{
    failing.mapped -= bytes;
    return munmap(at, bytes);
}

static DIR *failing_opendir(const char *path)
{
    DIR *folder = fails_now() ? NULL : opendir(path);
    failing.open += folder != NULL;
    return folder;
}

static struct dirent *failing_readdir(DIR *folder) { return fails_now() ? NULL : readdir(folder); }

static int failing_closedir(DIR *folder)
{
    bool fails = fails_now();
    failing.open--;
    closedir(folder);
    return fails ? -1 : 0;
}

static inline void use_failing_files(long fail_at)
{
    const qkv__files table = { failing_open,   failing_read,    failing_write,   failing_fsync,     failing_close,
                               failing_rename, failing_unlink,  failing_mkdir,   failing_fallocate, failing_mmap,
                               failing_munmap, failing_opendir, failing_readdir, failing_closedir };
    failing = (struct failing){ .fail_at = fail_at };
    qkv__set_files(&table);
}

#endif
