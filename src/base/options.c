/* options.c: how the option struct of a caller is read, whichever release it was compiled with. */
#include "options.h"

#include <stdbool.h>
#include <string.h>

enum { MOST_BYTES = 4096 };

/* The bytes that the caller's struct has. */
static qkv_status options_size(const void *options, size_t first_size, const char *call, size_t *size)
{
    memcpy(size, options, sizeof *size);
    if (!*size) *size = first_size;
    else if (*size <= sizeof *size || *size % sizeof *size || *size > MOST_BYTES)
        return qkv__fail(QKV_USAGE, "%s: the options say that they are %zu bytes: begin with QKV_OPTS(), or with all zero",
                         call, *size);
    return QKV_OK;
}

static bool is_zero(const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i]) return false;
    return true;
}

qkv_status qkv__options_read(void *to, size_t size, size_t first_size, const void *from, const char *call)
{
    size_t theirs = 0;
    memset(to, 0, size);
    if (from) {
        qkv_status status = options_size(from, first_size, call, &theirs);
        if (status) return status;
        if (theirs > size && !is_zero((const unsigned char *)from + size, theirs - size))
            return qkv__fail(QKV_USAGE,
                             "%s: an option is set that this libqkv (%s) does not know: the program was made for a newer one",
                             call, QKV_VERSION_STRING);
        memcpy(to, from, theirs < size ? theirs : size);
    }
    memcpy(to, &size, sizeof size);
    return QKV_OK;
}

qkv_status qkv__options_write(void *to, size_t size, size_t first_size, const void *from, const char *call)
{
    size_t theirs, given;
    qkv_status status = options_size(to, first_size, call, &theirs);
    if (status) return status;
    memcpy(&given, to, sizeof given);
    memset(to, 0, theirs);
    memcpy(to, from, theirs < size ? theirs : size);
    memcpy(to, &given, sizeof given);
    return QKV_OK;
}
