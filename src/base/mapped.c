/* mapped.c: which file lies at an address, from /proc/self/maps: "7f00-7f10 r--p 00000000 fe:01 1234    /path". Only calls that
 * a handler of signals may make: open and read themselves, not those of the table. */
#include <qkv/base.h>
#include <qkv/unstable/util.h>

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

typedef struct maps_reader {
    int fd;
    ssize_t size, at;
    char bytes[1024];
} maps_reader;

static int next_char(maps_reader *r)
{
    if (r->at == r->size) {
        r->size = read(r->fd, r->bytes, sizeof r->bytes);
        r->at = 0;
        if (r->size <= 0) return r->size = 0, -1;
    }
    return (unsigned char)r->bytes[r->at++];
}

static uintptr_t next_number(maps_reader *r)
{
    static const char digits[] = "0123456789abcdef";
    uintptr_t n = 0;
    for (const char *digit;; n = n * 16 + (uintptr_t)(digit - digits)) {
        int c = next_char(r);
        if (c <= 0 || !(digit = strchr(digits, c))) return n; /* with it goes the character behind the number */
    }
}

/* What is left of a line behind the four fields before the path; false at the end of the file. */
static bool next_path(maps_reader *r, char *path, size_t room)
{
    size_t length = 0;
    int fields = 0, c, before = 'x';
    while ((c = next_char(r)) > 0 && c != '\n') {
        if (fields == 4 && c != ' ') fields = 5;
        if (fields == 5 && length + 1 < room) path[length++] = (char)c;
        if (fields < 4 && c == ' ' && before != ' ') fields++;
        before = c;
    }
    path[length] = '\0';
    return c == '\n';
}

int qkv_mapped_file(const void *address, char *path, size_t room)
{
    uintptr_t wanted = (uintptr_t)address;
    bool found = false;
    if (!path || !room) return 0;
    maps_reader r = { .fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC) };
    for (bool more = r.fd >= 0; more && !found;) {
        uintptr_t from = next_number(&r), to = next_number(&r);
        more = next_path(&r, path, room);
        found = more && from <= wanted && wanted < to;
    }
    if (r.fd >= 0) close(r.fd);
    if (!found) *path = '\0';
    return *path == '/';
}
