/* lfs.c: a file that stands for another one: what git leaves where Git LFS did not fetch the file itself. */
#include "file.h"

#include <stdlib.h>
#include <string.h>

#define POINTER_START "version https://git-lfs.github.com/spec/v1\n"
enum { POINTER_MAX = 1024 }; /* bytes, as its specification has it */

qkv_status qkv__refuse_lfs_pointer(const char *path, const qkv__bytes *file)
{
    const size_t start = strlen(POINTER_START);
    char text[POINTER_MAX];
    if (file->size < start || file->size >= POINTER_MAX || memcmp(file->data, POINTER_START, start)) return QKV_OK;
    memcpy(text, file->data, file->size);
    text[file->size] = '\0';
    const char *size = strstr(text, "\nsize ");
    return qkv__fail(QKV_FORMAT,
                     "%s is a Git LFS pointer, not the file itself (%llu bytes are meant): run git lfs pull, or download it",
                     path, size ? strtoull(size + 6, NULL, 10) : 0ull);
}
