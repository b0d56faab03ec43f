/* start.c: what the first bytes of a file say of it: a byte order mark, or that it is not text as it is. */
#include "buffer.h"

#include <stdbool.h>
#include <string.h>

enum { LOOKED_AT = 64 }; /* bytes, by which UTF-16 without a mark is told */

/* How files start that no text starts like, and what makes text of them. */
static const struct {
    const char *bytes;
    size_t length;
    const char *name, *cure;
} starts[] = {
    { "\x1F\x8B", 2, "gzip", "decompress it first, as in \"gzip -dc FILE >OUT\"" },
    { "\xFD\x37zXZ\0", 6, "xz", "decompress it first, as in \"xz -dc FILE >OUT\"" },
    { "\x28\xB5\x2F\xFD", 4, "Zstandard", "decompress it first, as in \"zstd -dc FILE >OUT\"" },
    { "PK\3\4", 4, "a ZIP archive", "unpack it first, as in \"unzip -p FILE >OUT\"" },
    { "\xFF\xFE\0\0", 4, "UTF-32", "convert it first, as in \"iconv -f UTF-32 -t UTF-8 FILE >OUT\"" },
    { "\0\0\xFE\xFF", 4, "UTF-32", "convert it first, as in \"iconv -f UTF-32 -t UTF-8 FILE >OUT\"" },
    { "\xFF\xFE", 2, "UTF-16", "convert it first, as in \"iconv -f UTF-16 -t UTF-8 FILE >OUT\"" },
    { "\xFE\xFF", 2, "UTF-16", "convert it first, as in \"iconv -f UTF-16 -t UTF-8 FILE >OUT\"" },
};

static qkv_status not_text(const char *name, const char *what, const char *cure)
{
    return qkv__fail(QKV_UNSUPPORTED, "%s: it is %s, not text in UTF-8: %s", name, what, cure);
}

/* The letters "BZh" and a digit may start a text; the six bytes after them do not. */
static bool is_bzip2(const char *start, size_t length)
{
    return length >= 10 && !memcmp(start, "BZh", 3) &&
           (!memcmp(start + 4, "\x31\x41\x59\x26\x53\x59", 6) || !memcmp(start + 4, "\x17\x72\x45\x38\x50\x90", 6));
}

/* Latin letters in UTF-16: of every two bytes this one is NUL, and the other one is not. Two letters at least. */
static bool has_nuls_at(const char *start, size_t length, size_t parity)
{
    if (length > LOOKED_AT) length = LOOKED_AT;
    for (size_t i = 0; i < length; i++)
        if (!start[i] != (i % 2 == parity)) return false;
    return length >= 4;
}

qkv_status qkv_text_start(const char *name, const char *start, size_t length, size_t *mark)
{
    if (!name || !start || !mark) return qkv__fail(QKV_USAGE, "text: a name, its first bytes and a place are needed");
    *mark = length >= 3 && !memcmp(start, "\xEF\xBB\xBF", 3) ? 3 : 0;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (length >= starts[i].length && !memcmp(start, starts[i].bytes, starts[i].length))
            return not_text(name, starts[i].name, starts[i].cure);
    if (is_bzip2(start, length)) return not_text(name, "bzip2", "decompress it first, as in \"bzip2 -dc FILE >OUT\"");
    if (has_nuls_at(start, length, 1))
        return not_text(name, "UTF-16", "convert it first, as in \"iconv -f UTF-16LE -t UTF-8 FILE >OUT\"");
    if (has_nuls_at(start, length, 0))
        return not_text(name, "UTF-16", "convert it first, as in \"iconv -f UTF-16BE -t UTF-8 FILE >OUT\"");
    return QKV_OK;
}
