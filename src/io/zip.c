/* zip.c: the directory at the end of a zip archive. Every number of it is compared with the bytes that are there. */
#include "zip.h"

#include "../base/number.h"

#include <stdlib.h>

enum {
    LOCAL = 30,     /* bytes of the record before an entry's data, without its name and what follows that */
    DIRECTORY = 46, /* of an entry in the directory */
    END = 22,
    LOCATOR = 20, /* before the end, where there is */
    END64 = 56,
    COMMENT_MAX = 65535
};
#define MANY32 0xFFFFFFFFu /* the number stands in a 64-bit field */

static uint64_t number_at(const unsigned char *at, int bytes) { return qkv__load(at, bytes, false); }

static qkv_status zip_broken(const qkv__zip *z, size_t place, const char *what)
{
    return qkv__fail(QKV_FORMAT, "%s: byte %zu: %s", z->path, place, what);
}

static qkv_status zip_unsupported(const qkv__zip *z, size_t place, const char *what)
{
    return qkv__fail(QKV_UNSUPPORTED, "%s: byte %zu: %s", z->path, place, what);
}

/* Whether a record of so many bytes with this sign lies at a place before `end`. */
static bool has_record(const qkv__zip *z, uint64_t place, size_t bytes, size_t end, const char *sign)
{
    return place <= end && bytes <= end - place && !memcmp(z->bytes + place, sign, 4);
}

/* ---- where the directory is ---- */

typedef struct directory {
    uint64_t n, bytes, place;
    size_t end; /* where the records after it start */
} directory;

/* The last record, whose comment goes to the last byte. */
static qkv_status find_end(const qkv__zip *z, size_t *place)
{
    for (size_t comment = 0; comment <= COMMENT_MAX && comment + END <= z->size; comment++) {
        *place = z->size - END - comment;
        if (has_record(z, *place, END, z->size, "PK\5\6") && number_at(z->bytes + *place + 20, 2) == comment) return QKV_OK;
    }
    return qkv__fail(QKV_FORMAT, "%s: cut, or no zip archive: it has no directory at its end", z->path);
}

/* The 64-bit record, where there is one. */
static qkv_status read_end64(const qkv__zip *z, directory *d)
{
    if (d->end < LOCATOR || !has_record(z, d->end - LOCATOR, LOCATOR, d->end, "PK\6\7")) return QKV_OK;
    const unsigned char *locator = z->bytes + d->end - LOCATOR;
    uint64_t place = number_at(locator + 8, 8);
    if (!has_record(z, place, END64, d->end - LOCATOR, "PK\6\6"))
        return zip_broken(z, d->end - LOCATOR, "the 64-bit record is not where it is said to be");
    const unsigned char *record = z->bytes + place;
    if (number_at(record + 16, 4) || number_at(record + 20, 4))
        return zip_unsupported(z, (size_t)place, "the archive has several parts");
    *d = (directory){ number_at(record + 32, 8), number_at(record + 40, 8), number_at(record + 48, 8), (size_t)place };
    return QKV_OK;
}

static qkv_status find_directory(const qkv__zip *z, directory *d)
{
    size_t place = 0;
    qkv_status status = find_end(z, &place);
    if (status) return status;
    const unsigned char *end = z->bytes + place;
    if (number_at(end + 4, 2) || number_at(end + 6, 2)) return zip_unsupported(z, place, "the archive has several parts");
    *d = (directory){ number_at(end + 10, 2), number_at(end + 12, 4), number_at(end + 16, 4), place };
    status = read_end64(z, d);
    if (status) return status;
    if (d->place > d->end || d->bytes != d->end - d->place)
        return zip_broken(z, place, "the directory is not where it is said to be");
    return d->n <= d->bytes / DIRECTORY ? QKV_OK : zip_broken(z, place, "more entries than the directory has bytes for");
}

/* ---- an entry ---- */

/* Its numbers as the directory has them, and where the directory's next entry is. */
typedef struct listed {
    uint64_t size, packed, begin;
    size_t next;
} listed;

/* The 64-bit numbers, in this order, of those that are too large for their place. */
static qkv_status read_extra64(const qkv__zip *z, size_t place, size_t at, size_t end, listed *l)
{
    uint64_t *const numbers[] = { &l->size, &l->packed, &l->begin };
    bool is_missing = false;
    for (size_t length; end - at >= 4; at += 4 + length) {
        length = (size_t)number_at(z->bytes + at + 2, 2);
        if (length > end - at - 4) return zip_broken(z, at, "a field of an entry is cut");
        if (number_at(z->bytes + at, 2) != 1) continue;
        size_t used = 0;
        for (int i = 0; i < 3; i++) {
            if (*numbers[i] != MANY32 || length - used < 8) continue;
            *numbers[i] = number_at(z->bytes + at + 4 + used, 8);
            used += 8;
        }
    }
    for (int i = 0; i < 3; i++) is_missing = is_missing || *numbers[i] == MANY32;
    return is_missing ? zip_broken(z, place, "an entry lacks its 64-bit numbers") : QKV_OK;
}

/* The entry of the directory at a place before end. */
static qkv_status read_listed(const qkv__zip *z, size_t place, size_t end, qkv__zip_entry *e, listed *l)
{
    if (!has_record(z, place, DIRECTORY, end, "PK\1\2")) return zip_broken(z, place, "an entry of the directory is expected");
    const unsigned char *at = z->bytes + place;
    size_t extra = (size_t)number_at(at + 30, 2), comment = (size_t)number_at(at + 32, 2);
    e->name = (const char *)at + DIRECTORY;
    e->length = (size_t)number_at(at + 28, 2);
    if (e->length + extra + comment > end - place - DIRECTORY) return zip_broken(z, place, "an entry of the directory is cut");
    if (number_at(at + 8, 2) & 1) return zip_unsupported(z, place, "an entry is encrypted");
    if (number_at(at + 10, 2))
        return qkv__fail(QKV_UNSUPPORTED, "%s: byte %zu: entry \"%s\" is compressed: PyTorch stores them as they are", z->path,
                         place, QKV__SHOWN(e->name, e->length));
    if (number_at(at + 34, 2)) return zip_unsupported(z, place, "the archive has several parts");
    *l = (listed){ number_at(at + 24, 4), number_at(at + 20, 4), number_at(at + 42, 4), place };
    size_t fields = place + DIRECTORY + e->length;
    l->next = fields + extra + comment;
    return read_extra64(z, place, fields, fields + extra, l);
}

/* Its data, after a record that has its name once more, and before the directory. */
static qkv_status read_local(const qkv__zip *z, size_t directory_place, const listed *l, qkv__zip_entry *e)
{
    const unsigned char *at = z->bytes + l->begin;
    if (!has_record(z, l->begin, LOCAL, directory_place, "PK\3\4"))
        return qkv__fail(QKV_FORMAT, "%s: entry \"%s\" is not where the directory says", z->path,
                         QKV__SHOWN(e->name, e->length));
    size_t left = directory_place - (size_t)l->begin - LOCAL, before = (size_t)number_at(at + 26, 2);
    if (before != e->length || before > left || memcmp(at + LOCAL, e->name, before))
        return zip_broken(z, (size_t)l->begin, "an entry has another name than in the directory");
    before += (size_t)number_at(at + 28, 2);
    if (number_at(at + 8, 2)) return zip_unsupported(z, (size_t)l->begin, "an entry is compressed");
    if (before > left || l->size != l->packed || l->size > left - before)
        return zip_broken(z, (size_t)l->begin, "an entry is longer than the file");
    e->begin = (size_t)l->begin;
    e->data = at + LOCAL + before;
    e->size = (size_t)l->size;
    return QKV_OK;
}

/* ---- all of them ---- */

static int by_place(const void *a, const void *b)
{
    const qkv__zip_entry *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static int by_name(const void *a, const void *b)
{
    const qkv__zip_entry *x = a, *y = b;
    int order = memcmp(x->name, y->name, x->length < y->length ? x->length : y->length);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

static qkv_status check_entries(const qkv__zip *z)
{
    qsort(z->entries, z->n, sizeof *z->entries, by_place);
    for (size_t i = 1; i < z->n; i++) {
        const qkv__zip_entry *before = &z->entries[i - 1];
        if (z->bytes + z->entries[i].begin < before->data + before->size)
            return zip_broken(z, z->entries[i].begin, "an entry overlaps another");
    }
    qsort(z->entries, z->n, sizeof *z->entries, by_name);
    for (size_t i = 1; i < z->n; i++)
        if (!by_name(&z->entries[i - 1], &z->entries[i]))
            return zip_broken(z, z->entries[i].begin, "two entries have the same name");
    return QKV_OK;
}

static qkv_status read_entries(qkv__zip *z)
{
    directory d = { 0 };
    qkv_status status = find_directory(z, &d);
    if (status) return status;
    z->entries_bytes = sizeof *z->entries * (size_t)d.n;
    if (!(z->entries = qkv__alloc(z->entries_bytes))) return QKV_MEMORY;
    size_t place = (size_t)d.place;
    for (uint64_t i = 0; i < d.n && !status; i++) {
        listed l = { 0 };
        status = read_listed(z, place, d.end, &z->entries[z->n], &l);
        if (!status) status = read_local(z, (size_t)d.place, &l, &z->entries[z->n++]);
        if (!status) place = l.next;
    }
    if (!status && place != d.end) status = zip_broken(z, place, "the directory has more bytes than entries");
    return status ? status : check_entries(z);
}

qkv_status qkv__zip_open(const char *path, const unsigned char *bytes, size_t size, qkv__zip *out)
{
    *out = (qkv__zip){ .path = path, .bytes = bytes, .size = size };
    qkv_status status = read_entries(out);
    if (status) qkv__zip_close(out);
    return status;
}

void qkv__zip_close(qkv__zip *z)
{
    qkv__release(z->entries, z->entries_bytes);
    *z = (qkv__zip){ 0 };
}

const qkv__zip_entry *qkv__zip_find(const qkv__zip *z, const char *name, size_t length)
{
    const qkv__zip_entry wanted = { .name = name, .length = length };
    return z->n ? bsearch(&wanted, z->entries, z->n, sizeof wanted, by_name) : NULL;
}
