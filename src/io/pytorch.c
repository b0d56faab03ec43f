/* pytorch.c: from the archive and its pickle to tensors. */
#include "pytorch.h"

#include "../base/size.h"
#include "pickle.h"
#include "zip.h"

#include <stdlib.h>
#include <string.h>

#define PICKLE "/data.pkl"
#define PICKLE_MAX ((size_t)32 << 20)
enum { LINE = 64 }; /* bytes; copies start at a multiple of it */

/* A file on its way. */
typedef struct archive {
    const char *path;
    qkv__zip zip;
    const char *folder; /* that all entries lie in, with its slash */
    size_t folder_length;
    qkv__pickled pickled;
    const unsigned char **storages; /* of each tensor: where its numbers are */
    size_t storages_bytes;
    size_t names_bytes, copied_bytes;
} archive;

static void free_archive(archive *a)
{
    qkv__release(a->storages, a->storages_bytes);
    qkv__pickled_free(&a->pickled);
    qkv__zip_close(&a->zip);
}

/* ---- the archive ---- */

static qkv_status check_start(const char *path, const qkv__bytes *file)
{
    static const unsigned char old[] = { 0x80, 2, 0x8A, 10, 0x6C, 0xFC, 0x9C, 0x46, 0xF9, 0x20, 0x6A, 0xA8, 0x50, 0x19 };
    if (file->size >= 4 && !memcmp(file->data, "PK\3\4", 4)) return QKV_OK;
    if (file->size < sizeof old || memcmp(file->data, old, sizeof old) != 0)
        return qkv__fail(QKV_FORMAT, "%s: no file of PyTorch: it does not start like a zip archive", path);
    return qkv__fail(QKV_UNSUPPORTED,
                     "%s: written in the way of PyTorch before 1.6: fetch the model's model.safetensors, or write it anew in "
                     "Python: torch.save(torch.load(\"old.bin\", weights_only=True), \"pytorch_model.bin\")",
                     path);
}

/* An entry of the archive's folder. */
static const qkv__zip_entry *find_entry(const archive *a, const char *before, const char *name, size_t length)
{
    char path[512];
    size_t start = strlen(before);
    if (a->folder_length + start > sizeof path || length > sizeof path - a->folder_length - start) return NULL;
    memcpy(path, a->folder, a->folder_length);
    memcpy(path + a->folder_length, before, start);
    memcpy(path + a->folder_length + start, name, length);
    return qkv__zip_find(&a->zip, path, a->folder_length + start + length);
}

static bool is_pickle(const qkv__zip_entry *e)
{
    size_t length = sizeof PICKLE - 1;
    return e->length > length && !memcmp(e->name + e->length - length, PICKLE, length) &&
           !memchr(e->name, '/', e->length - length);
}

static qkv_status find_pickle(archive *a, const qkv__zip_entry **out)
{
    *out = NULL;
    for (size_t i = 0; i < a->zip.n; i++) {
        if (!is_pickle(&a->zip.entries[i])) continue;
        if (*out) return qkv__fail(QKV_FORMAT, "%s: the archive has two pickles", a->path);
        *out = &a->zip.entries[i];
    }
    if (!*out) return qkv__fail(QKV_FORMAT, "%s: a zip archive, but none of PyTorch: it has no data.pkl", a->path);
    a->folder = (*out)->name;
    a->folder_length = (*out)->length - (sizeof PICKLE - 2);
    return QKV_OK;
}

static qkv_status check_archive(const archive *a, const qkv__zip_entry *pickle)
{
    const qkv__zip_entry *order = find_entry(a, "byteorder", "", 0);
    if (order && (order->size != 6 || memcmp(order->data, "little", 6) != 0))
        return qkv__fail(QKV_UNSUPPORTED, "%s: its numbers are not little-endian", a->path);
    if (find_entry(a, "constants.pkl", "", 0))
        return qkv__fail(QKV_UNSUPPORTED, "%s: a program of TorchScript: save the model's state_dict() with torch.save()",
                         a->path);
    if (pickle->size <= PICKLE_MAX) return QKV_OK;
    return qkv__fail(QKV_LIMIT, "%s: its pickle has %zu bytes, at most %zu are read", a->path, pickle->size, PICKLE_MAX);
}

static qkv_status read_pickle(archive *a, const qkv__bytes *file)
{
    const qkv__zip_entry *pickle;
    qkv_status status = qkv__zip_open(a->path, file->data, file->size, &a->zip);
    if (!status) status = find_pickle(a, &pickle);
    if (!status) status = check_archive(a, pickle);
    if (status) return status;
    return qkv__pickle_read(a->path, (size_t)(pickle->data - file->data), pickle->data, pickle->size, &a->pickled);
}

/* ---- tensors ---- */

static qkv_status tensor_broken(const archive *a, const qkv__pickled_tensor *t, const char *what)
{
    return qkv__fail(QKV_FORMAT, "%s: tensor \"%s\": %s", a->path, QKV__SHOWN(t->name, t->name_length), what);
}

static bool is_plain_name(const qkv__pickled_tensor *t)
{
    for (size_t i = 0; i < t->name_length; i++)
        if (t->name[i] < 0x20 || t->name[i] >= 0x7F) return false;
    return t->name_length;
}

/* Whether its last number is in the storage too. Strides of dimensions that are never stepped along become 0. */
static bool is_inside(qkv__pickled_tensor *t, int64_t count)
{
    int64_t last = t->offset, step;
    for (int i = 0; i < t->ndim; i++) {
        if (t->shape[i] < 2 || !count) t->stride[i] = 0;
        else if (__builtin_mul_overflow(t->shape[i] - 1, t->stride[i], &step) || __builtin_add_overflow(last, step, &last))
            return false;
    }
    return count ? last < t->numbers : last <= t->numbers;
}

static bool is_contiguous(const qkv__pickled_tensor *t, int64_t count)
{
    int64_t expected = 1;
    for (int i = t->ndim - 1; i >= 0 && count; i--) {
        if (t->shape[i] > 1 && t->stride[i] != expected) return false;
        expected *= t->shape[i];
    }
    return true;
}

/* Finds its storage, and counts the bytes that it needs besides. */
static qkv_status check_tensor(archive *a, qkv__pickled_tensor *t, const unsigned char **numbers)
{
    int64_t count, bytes;
    if (!is_plain_name(t)) return tensor_broken(a, t, "its name is empty or not plain ASCII");
    const qkv__zip_entry *storage = find_entry(a, "data/", t->storage, t->storage_length);
    if (!storage) return tensor_broken(a, t, "its storage is not in the archive");
    if (__builtin_mul_overflow(t->numbers, t->item, &bytes) || (uint64_t)bytes != storage->size)
        return tensor_broken(a, t, "its storage does not have the bytes that the pickle says");
    if (!qkv__shape_count(t->ndim, t->shape, &count)) return tensor_broken(a, t, "its shape is larger than memory can be");
    if (!is_inside(t, count)) return tensor_broken(a, t, "it reaches beyond its storage");
    *numbers = storage->data;
    a->names_bytes += t->name_length + 1;
    if (is_contiguous(t, count)) return QKV_OK;
    if ((uint64_t)(count * t->item) > a->zip.size - a->copied_bytes)
        return qkv__fail(QKV_LIMIT, "%s: tensor \"%s\": numbers that lie apart would need more memory than the file has bytes",
                         a->path, QKV__SHOWN(t->name, t->name_length));
    a->copied_bytes += (size_t)(count * t->item);
    return QKV_OK;
}

static qkv_status check_tensors(archive *a)
{
    a->storages_bytes = sizeof *a->storages * a->pickled.n;
    if (a->pickled.n > INT32_MAX) return qkv__fail(QKV_LIMIT, "%s: %zu tensors are too many", a->path, a->pickled.n);
    if (!(a->storages = qkv__alloc(a->storages_bytes))) return QKV_MEMORY;
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < a->pickled.n && !status; i++) status = check_tensor(a, &a->pickled.tensors[i], &a->storages[i]);
    return status;
}

/* The numbers one after the other, in the order of the indices. */
static void copy_strided(const qkv__pickled_tensor *t, const unsigned char *from, int64_t count, unsigned char *to)
{
    int64_t index[QKV_MAX_DIMS] = { 0 }, at = t->offset;
    for (int64_t i = 0; i < count; i++) {
        memcpy(to + i * t->item, from + at * t->item, (size_t)t->item);
        for (int d = t->ndim - 1; d >= 0; d--) {
            at += t->stride[d];
            if (++index[d] < t->shape[d]) break;
            at -= t->stride[d] * t->shape[d];
            index[d] = 0;
        }
    }
}

/* *name and *copy move on by what is used. */
static void set_tensor(const archive *a, size_t i, const qkv__bytes *file, char **name, unsigned char **copy, qkv__stored *to)
{
    const qkv__pickled_tensor *t = &a->pickled.tensors[i];
    memcpy(*name, t->name, t->name_length);
    *to = (qkv__stored){ .name = *name, .dtype = t->dtype, .ndim = t->ndim };
    *name += t->name_length + 1; /* the block is zeroed */
    memcpy(to->shape, t->shape, sizeof to->shape);
    qkv__shape_count(t->ndim, t->shape, &to->count);
    to->data = a->storages[i] + t->offset * t->item;
    if (!is_contiguous(t, to->count)) {
        to->data = *copy;
        copy_strided(t, a->storages[i], to->count, *copy);
        *copy += qkv__round_up(to->count * t->item, LINE);
    }
    to->begin = (uint64_t)(a->storages[i] - file->data);
    to->end = to->begin + (uint64_t)(to->count * t->item);
}

static int by_name(const void *a, const void *b)
{
    const qkv__stored *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static qkv_status make_tensors(const archive *a, qkv__safetensors *out)
{
    size_t n = a->pickled.n, names = (size_t)qkv__round_up((int64_t)a->names_bytes, LINE);
    out->tensors_bytes = sizeof *out->tensors * n;
    out->made_bytes = names + a->copied_bytes + (a->copied_bytes ? LINE * n : 0); /* each copy is rounded up */
    out->tensors = qkv__alloc(out->tensors_bytes);
    out->made = qkv__alloc_zero(out->made_bytes);
    if (!out->tensors || !out->made) return QKV_MEMORY;
    char *name = (char *)out->made;
    unsigned char *copy = out->made + names;
    for (size_t i = 0; i < n; i++) set_tensor(a, i, &out->file, &name, &copy, &out->tensors[i]);
    out->n = (int)n;
    qsort(out->tensors, n, sizeof *out->tensors, by_name);
    for (size_t i = 1; i < n; i++)
        if (!strcmp(out->tensors[i].name, out->tensors[i - 1].name))
            return qkv__fail(QKV_FORMAT, "%s: tensor \"%.200s\" is there twice", a->path, out->tensors[i].name);
    return QKV_OK;
}

qkv_status qkv__pytorch_open(const char *path, bool is_copy, qkv__safetensors *out)
{
    archive a = { .path = path };
    *out = (qkv__safetensors){ .path = path };
    qkv_status status = (is_copy ? qkv__file_copy : qkv__file_map)(path, &out->file);
    if (!status) status = check_start(path, &out->file);
    if (!status) status = read_pickle(&a, &out->file);
    if (!status) status = check_tensors(&a);
    if (!status) status = make_tensors(&a, out);
    free_archive(&a);
    if (status) qkv__safetensors_free(out);
    return status;
}

qkv_status qkv__pytorch_read(const char *path, qkv__safetensors *out) { return qkv__pytorch_open(path, false, out); }
