/* safetensors.c: named tensors in one file. The rules are those of the published format: each is checked before the file is
 * believed. */
#include "safetensors.h"

#include "../base/size.h"
#include "../base/number.h"

#include <stdlib.h>
#include <string.h>

#define HEADER_MAX 100000000u /* bytes, as the format has it */
enum { SOME = 1024 };         /* numbers that are written at a time */
#define METADATA "__metadata__"

/* Every type of the format, in bits because some are smaller than a byte. */
static const struct {
    const char *name;
    unsigned bits;
} dtypes[] = {
    { "F64", 64 },    { "F32", 32 },    { "F16", 16 },    { "BF16", 16 },   { "I64", 64 },    { "I32", 32 }, { "I16", 16 },
    { "I8", 8 },      { "U64", 64 },    { "U32", 32 },    { "U16", 16 },    { "U8", 8 },      { "BOOL", 8 }, { "C64", 64 },
    { "F8_E4M3", 8 }, { "F8_E5M2", 8 }, { "F8_E8M0", 8 }, { "F6_E2M3", 6 }, { "F6_E3M2", 6 }, { "F4", 4 },
};

/* ---- reading ---- */

static qkv_status broken(const qkv__safetensors *s, const qkv__stored *t, const char *what)
{
    return qkv__fail(QKV_FORMAT, "%s: tensor \"%.200s\" at byte %llu of the data: %s", s->path, t->name,
                     (unsigned long long)t->begin, what);
}

static unsigned bits_of(const char *dtype)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(dtypes[i].name, dtype)) return dtypes[i].bits;
    return 0;
}

static bool get_unsigned(const qkv__json_value *value, uint64_t *out)
{
    if (!qkv__json_is_int(value) || qkv__json_int(value) < 0) return false;
    *out = (uint64_t)qkv__json_int(value);
    return true;
}

static qkv_status parse_shape(const qkv__safetensors *s, const qkv__json_value *shape, qkv__stored *t)
{
    if (!qkv__json_is_array(shape)) return broken(s, t, "its shape is not an array");
    if (qkv__json_size(shape) > QKV_MAX_DIMS)
        return qkv__fail(QKV_LIMIT, "%s: tensor \"%.200s\" has %zu dimensions, at most %d are supported", s->path, t->name,
                         qkv__json_size(shape), QKV_MAX_DIMS);
    for (t->ndim = 0; t->ndim < (int)qkv__json_size(shape); t->ndim++) {
        uint64_t dim;
        if (!get_unsigned(qkv__json_at(shape, (size_t)t->ndim), &dim)) return broken(s, t, "a dimension is not a count");
        t->shape[t->ndim] = (int64_t)dim;
    }
    return qkv__shape_count(t->ndim, t->shape, &t->count) ? QKV_OK : broken(s, t, "its shape is larger than memory can be");
}

/* {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]} */
static qkv_status parse_tensor(const qkv__safetensors *s, const qkv__json_value *entry, size_t data_bytes, qkv__stored *t)
{
    const qkv__json_value *offsets = qkv__json_get(entry, "data_offsets");
    if (!qkv__json_is_object(entry) || !qkv__json_is_array(offsets) || qkv__json_size(offsets) != 2 ||
        !get_unsigned(qkv__json_at(offsets, 0), &t->begin) || !get_unsigned(qkv__json_at(offsets, 1), &t->end))
        return broken(s, t, "expected dtype, shape and data_offsets [begin, end]");
    if (t->begin > t->end || t->end > data_bytes) return broken(s, t, "its data_offsets are outside the file");
    qkv_status status = parse_shape(s, qkv__json_get(entry, "shape"), t);
    if (status) return status;
    const char *dtype = qkv__json_get_text(entry, "dtype");
    unsigned bits = dtype ? bits_of(dtype) : 0;
    uint64_t all_bits;
    if (!bits) return broken(s, t, "its dtype is not one of the format's");
    if (__builtin_mul_overflow((uint64_t)t->count, bits, &all_bits) || all_bits % 8 || all_bits / 8 != t->end - t->begin)
        return broken(s, t, "its dtype and shape do not make the bytes of its data_offsets");
    t->dtype = dtype;
    t->data = s->file.data + (s->file.size - data_bytes) + t->begin;
    return QKV_OK;
}

static qkv_status check_metadata(const qkv__safetensors *s, const qkv__json_value *metadata)
{
    bool ok = qkv__json_is_object(metadata);
    for (size_t i = 0; i < qkv__json_size(metadata) && ok; i++) ok = qkv__json_is_string(qkv__json_at(metadata, i));
    return ok ? QKV_OK : qkv__fail(QKV_FORMAT, "%s: " METADATA " may hold only text", s->path);
}

static int by_place(const void *a, const void *b)
{
    const qkv__stored *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static int by_name(const void *a, const void *b)
{
    const qkv__stored *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* Side by side from the first byte to the last: no holes, no overlap. */
static qkv_status check_places(const qkv__safetensors *s, size_t data_bytes)
{
    uint64_t reached = 0;
    qsort(s->tensors, (size_t)s->n, sizeof *s->tensors, by_place);
    for (const qkv__stored *t = s->tensors; t < s->tensors + s->n; reached = t++->end) {
        if (t->begin < reached) return broken(s, t, "it overlaps another");
        if (t->begin > reached) return broken(s, t, "there is a hole before it");
    }
    if (reached == data_bytes) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: %llu bytes after the last tensor belong to none", s->path,
                     (unsigned long long)(data_bytes - reached));
}

static qkv_status parse_tensors(qkv__safetensors *s, size_t data_bytes)
{
    const qkv__json_value *top = s->header.top;
    qkv_status status = QKV_OK;
    s->tensors_bytes = sizeof *s->tensors * qkv__json_size(top);
    if (!(s->tensors = qkv__alloc_zero(s->tensors_bytes))) return QKV_MEMORY;
    for (size_t i = 0; i < qkv__json_size(top); i++) {
        const char *name = qkv__json_key(top, i);
        const qkv__json_value *entry = qkv__json_at(top, i);
        if (!strcmp(name, METADATA)) {
            status = check_metadata(s, entry);
        } else {
            s->tensors[s->n].name = name;
            status = parse_tensor(s, entry, data_bytes, &s->tensors[s->n++]);
        }
        if (status) return status;
    }
    status = check_places(s, data_bytes);
    if (!status) qsort(s->tensors, (size_t)s->n, sizeof *s->tensors, by_name);
    return status;
}

static qkv_status parse_safetensors(qkv__safetensors *s)
{
    if (s->file.size < 8) return qkv__fail(QKV_FORMAT, "%s: not a safetensors file: it has %zu bytes", s->path, s->file.size);
    size_t left = s->file.size - 8;
    uint64_t length = qkv__load(s->file.data, 8, false);
    const char *text = (const char *)s->file.data + 8;
    if (length > HEADER_MAX)
        return qkv__fail(QKV_FORMAT, "%s: not a safetensors file: a header of %llu bytes, at most %u are allowed", s->path,
                         (unsigned long long)length, HEADER_MAX);
    if (length > left)
        return qkv__fail(QKV_FORMAT, "%s: cut in its header: %zu of %llu bytes", s->path, left, (unsigned long long)length);
    if (!length || text[0] != '{') return qkv__fail(QKV_FORMAT, "%s: byte 8: its header does not start with {", s->path);
    const qkv__json_source source = { .name = s->path, .text = text, .length = (size_t)length, .first_byte = 8 };
    qkv_status status = qkv__json_parse(&source, &s->header);
    return status ? status : parse_tensors(s, left - (size_t)length);
}

qkv_status qkv__safetensors_open(const char *path, bool is_copy, qkv__safetensors *out)
{
    *out = (qkv__safetensors){ .path = path };
    qkv_status status = (is_copy ? qkv__file_copy : qkv__file_map)(path, &out->file);
    if (!status) status = parse_safetensors(out);
    if (status) qkv__safetensors_free(out);
    return status;
}

qkv_status qkv__safetensors_read(const char *path, qkv__safetensors *out) { return qkv__safetensors_open(path, false, out); }

void qkv__safetensors_free(qkv__safetensors *s)
{
    qkv__release(s->tensors, s->tensors_bytes);
    qkv__release(s->made, s->made_bytes);
    qkv__bytes_free(&s->file);
    qkv__json_free(&s->header);
    *s = (qkv__safetensors){ 0 };
}

const qkv__stored *qkv__safetensors_find(const qkv__safetensors *s, const char *name)
{
    const qkv__stored wanted = { .name = name };
    return s->n ? bsearch(&wanted, s->tensors, (size_t)s->n, sizeof wanted, by_name) : NULL;
}

const char *qkv__safetensors_note(const qkv__safetensors *s, const char *key)
{
    return qkv__json_get_text(qkv__json_get(s->header.top, METADATA), key);
}

bool qkv__safetensors_decodes(const qkv__stored *t)
{
    return !strcmp(t->dtype, "F64") || !strcmp(t->dtype, "F32") || !strcmp(t->dtype, "F16") || !strcmp(t->dtype, "BF16");
}

void qkv__safetensors_decode_some(const qkv__stored *t, int64_t first, int64_t n, float *to)
{
    const unsigned char *from = t->data;
    if (!strcmp(t->dtype, "F32")) memcpy(to, from + 4 * first, 4 * (size_t)n);
    else if (!strcmp(t->dtype, "F64"))
        for (int64_t i = 0; i < n; i++) to[i] = (float)qkv__double_of_bits(qkv__load(from + 8 * (first + i), 8, false));
    else if (!strcmp(t->dtype, "F16"))
        for (int64_t i = 0; i < n; i++) to[i] = qkv__float_of_half((uint32_t)qkv__load(from + 2 * (first + i), 2, false));
    else
        for (int64_t i = 0; i < n; i++) to[i] = qkv__float_of_bfloat((uint32_t)qkv__load(from + 2 * (first + i), 2, false));
}

void qkv__safetensors_decode(const qkv__stored *t, float *to) { qkv__safetensors_decode_some(t, 0, t->count, to); }

const float *qkv__safetensors_floats(const qkv__stored *t)
{
    return !strcmp(t->dtype, "F32") && (uintptr_t)t->data % sizeof(float) == 0 ? (const float *)(const void *)t->data : NULL;
}

/* ---- writing ---- */

static int64_t number_bytes(const qkv__to_store *t) { return t->dtype ? bits_of(t->dtype) / 8 : 4; }

static int by_size_and_name(const void *a, const void *b)
{
    const qkv__to_store *x = a, *y = b;
    int64_t size = number_bytes(y) - number_bytes(x);
    return size ? (int)size : strcmp(x->name, y->name);
}

/* The tensors are sorted. */
static void put_description(qkv__json_writer *w, int n, const qkv__to_store *tensors, int n_notes, const qkv__note *notes)
{
    int64_t at = 0;
    qkv__json_open_object(w, NULL);
    if (n_notes) qkv__json_open_object(w, METADATA);
    for (int i = 0; i < n_notes; i++) qkv__json_put_text(w, notes[i].key, notes[i].value);
    if (n_notes) qkv__json_close(w);
    for (const qkv__to_store *t = tensors; t < tensors + n; t++) {
        qkv__json_open_object(w, t->name);
        qkv__json_put_text(w, "dtype", t->dtype ? t->dtype : "F32");
        qkv__json_open_array(w, "shape");
        for (int i = 0; i < t->ndim; i++) qkv__json_put_int(w, NULL, t->shape[i]);
        qkv__json_close(w);
        qkv__json_open_array(w, "data_offsets");
        qkv__json_put_int(w, NULL, at);
        qkv__json_put_int(w, NULL, at += number_bytes(t) * t->count);
        qkv__json_close(w);
        qkv__json_close(w);
    }
    qkv__json_close(w);
}

static qkv_status check_names(const char *path, int n, const qkv__to_store *tensors)
{
    for (int i = 0; i < n; i++) {
        if (!qkv__json_is_utf8(tensors[i].name, strlen(tensors[i].name)) || !strcmp(tensors[i].name, METADATA))
            return qkv__fail(QKV_USAGE, "%s: a tensor cannot be named \"%.200s\"", path, tensors[i].name);
        if (i && !strcmp(tensors[i].name, tensors[i - 1].name))
            return qkv__fail(QKV_USAGE, "%s: two tensors are named \"%.200s\"", path, tensors[i].name);
    }
    return QKV_OK;
}

/* Spaces after the header bring the numbers to a multiple of 8 bytes. */
static qkv_status put_header(qkv__writer *w, const qkv__json_writer *text)
{
    size_t padding = (8 - text->length % 8) % 8;
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)((text->length + padding) >> 8 * i);
    qkv_status status = qkv__write_put(w, length, sizeof length);
    if (!status) status = qkv__write_put(w, text->text, text->length);
    return status ? status : qkv__write_put(w, "       ", padding);
}

static qkv_status put_numbers(qkv__writer *w, const qkv__to_store *t)
{
    float some[SOME];
    qkv_status status = QKV_OK;
    if (t->data || !t->count) return qkv__write_put(w, t->data, (size_t)(number_bytes(t) * t->count));
    for (int64_t i = 0; i < t->count && !status; i += SOME) {
        int64_t n = t->count - i < SOME ? t->count - i : SOME;
        status = t->get(t->from, i, n, some);
        if (!status) status = qkv__write_put(w, some, 4 * (size_t)n);
    }
    return status;
}

static qkv_status write_file(const char *path, const qkv__json_writer *header, int n, const qkv__to_store *tensors)
{
    qkv__writer w;
    qkv_status status = qkv__write_begin(&w, path);
    if (!status) status = put_header(&w, header);
    for (int i = 0; i < n && !status; i++) status = put_numbers(&w, &tensors[i]);
    if (!status) status = qkv__write_end(&w);
    if (status) qkv__write_abandon(&w);
    return status;
}

qkv_status qkv__safetensors_write(const char *path, int n, qkv__to_store *tensors, int n_notes, const qkv__note *notes)
{
    qsort(tensors, (size_t)n, sizeof *tensors, by_size_and_name);
    qkv_status status = check_names(path, n, tensors);
    qkv__json_writer header = { .style = QKV__JSON_COMPACT };
    if (!status) put_description(&header, n, tensors, n_notes, notes);
    if (!status) status = header.status;
    if (!status && header.length > HEADER_MAX - 8)
        status = qkv__fail(QKV_LIMIT, "%s: a header of %zu bytes, at most %u are allowed", path, header.length, HEADER_MAX);
    if (!status) status = write_file(path, &header, n, tensors);
    qkv__json_writer_free(&header);
    return status;
}
