/* qkv_failing.c: linked into the command: the file call of the library with the number QKV_FAIL_AT fails, and the file
 * QKV_FAILED tells at the end whether there was one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "failing.h"

__attribute__((constructor)) static void begin_failing(void)
{
    const qkv__files table = { failing_open,   failing_read,    whole_write,     failing_fsync,     failing_close,
                              failing_rename, failing_unlink,  failing_mkdir,   failing_fallocate, failing_mmap,
                              failing_munmap, failing_opendir, failing_readdir, failing_closedir };
    const char *at = getenv("QKV_FAIL_AT");
    if (!at) return;
    failing = (struct failing){ .fail_at = strtol(at, NULL, 10) };
    qkv__set_files(&table);
}

__attribute__((destructor)) static void tell_failed(void)
{
    const char *path = getenv("QKV_FAILED");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fputs(failing.failed ? "yes" : "no", file);
    fclose(file);
}
