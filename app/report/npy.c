/* npy.c: numpy's array files. Magic, version, length of the header, the header (a Python dict as text), the numbers. */
#include "arrays.h"
#include "results.h"
#include "npy.h"

#include "../../src/base/size.h"
#include "../../src/base/number.h"

#include <stdio.h>

static const unsigned char magic[6] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };

/* The header's text and what it says. */
typedef struct header {
    const char *path;
    const char *start, *at, *end; /* of the dict's text */
    size_t offset;                /* of start in the file */
    char kind;                    /* 'f', 'i', 'u' or 'b' */
    int size;                     /* bytes of a number */
    bool big_endian, fortran;
    int ndim;
    int64_t shape[QKV_MAX_DIMS];
    int64_t count;
} header;

int64_t qkv_array_count(const qkv_array *a)
{
    int64_t count;
    return a && a->data && qkv__shape_count(a->ndim, a->shape, &count) ? count : 0;
}

void qkv_array_free(qkv_array *a)
{
    if (!a) return;
    qkv__release(a->data, sizeof(float) * (size_t)qkv_array_count(a));
    *a = (qkv_array){ 0 };
}

/* ---- the dict ---- */

static qkv_status malformed_npy(const header *h, const char *what)
{
    return qkv__fail(QKV_FORMAT, "%s: byte %zu: expected %s", h->path, h->offset + (size_t)(h->at - h->start), what);
}

static void skip_spaces(header *h)
{
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\t')) h->at++;
}

/* Takes the character if it comes next. */
static bool take_character(header *h, char wanted)
{
    skip_spaces(h);
    if (h->at >= h->end || *h->at != wanted) return false;
    h->at++;
    return true;
}

static bool take_word(header *h, const char *word)
{
    size_t length = strlen(word);
    skip_spaces(h);
    if ((size_t)(h->end - h->at) < length || memcmp(h->at, word, length)) return false;
    h->at += length;
    return true;
}

/* A string in single or double quotes, without escapes: all that these headers have. NULL when it is none. */
static const char *take_string(header *h, size_t *length)
{
    skip_spaces(h);
    if (h->at >= h->end || (*h->at != '\'' && *h->at != '"')) return NULL;
    const char *text = h->at + 1, *close = memchr(text, *h->at, (size_t)(h->end - text));
    if (!close || memchr(text, '\\', (size_t)(close - text))) return NULL;
    h->at = close + 1;
    *length = (size_t)(close - text);
    return text;
}

static qkv_status parse_descr(header *h)
{
    static const char known[] = "f2 f4 f8 b1 i1 i2 i4 i8 u1 u2 u4 u8";
    skip_spaces(h);
    if (h->at < h->end && *h->at == '[') return qkv__fail(QKV_UNSUPPORTED, "%s: its numbers are records", h->path);
    size_t length;
    const char *text = take_string(h, &length);
    if (!text) return malformed_npy(h, "a dtype in quotes");
    char name[3] = { 0 };
    if (length == 3 && strchr("<>|=", text[0]) && text[0]) memcpy(name, text + 1, 2);
    if (!name[0] || !name[1] || !strstr(known, name) || name[0] == ' ' || name[1] == ' ')
        return qkv__fail(QKV_UNSUPPORTED, "%s: dtype \"%.*s\" is not supported: only floats, integers and bool are", h->path,
                         (int)qkv__min((int64_t)length, 40), text);
    h->kind = name[0];
    h->size = name[1] - '0';
    h->big_endian = text[0] == '>';
    return QKV_OK;
}

static qkv_status parse_order(header *h)
{
    if (take_word(h, "True")) h->fortran = true;
    else if (!take_word(h, "False")) return malformed_npy(h, "True or False");
    return QKV_OK;
}

static bool take_number(header *h, int64_t *number)
{
    skip_spaces(h);
    const char *first = h->at;
    *number = 0;
    for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
        if (__builtin_mul_overflow(*number, 10, number) || __builtin_add_overflow(*number, *h->at - '0', number)) return false;
    return h->at > first;
}

/* "()", "(3,)", "(3, 4)": one number needs its comma, as in Python. */
static qkv_status parse_shape(header *h)
{
    bool comma = true;
    if (!take_character(h, '(')) return malformed_npy(h, "a shape in parentheses");
    while (!take_character(h, ')')) {
        if (!comma) return malformed_npy(h, "a comma or a closing parenthesis");
        if (h->ndim == QKV_MAX_DIMS)
            return qkv__fail(QKV_LIMIT, "%s: the array has more than %d dimensions", h->path, QKV_MAX_DIMS);
        if (!take_number(h, &h->shape[h->ndim])) return malformed_npy(h, "a dimension below 2^63");
        h->ndim++;
        comma = take_character(h, ',');
    }
    return h->ndim == 1 && !comma ? malformed_npy(h, "a comma after the only dimension") : QKV_OK;
}

static qkv_status parse_dict(header *h)
{
    static const struct {
        const char *key;
        qkv_status (*parse)(header *h);
    } keys[] = { { "descr", parse_descr }, { "fortran_order", parse_order }, { "shape", parse_shape } };
    bool seen[3] = { false }, comma = true;
    if (!take_character(h, '{')) return malformed_npy(h, "{");
    while (!take_character(h, '}')) {
        size_t length;
        const char *key = comma ? take_string(h, &length) : NULL;
        int i = 0;
        while (key && i < 3 && (length != strlen(keys[i].key) || memcmp(key, keys[i].key, length))) i++;
        if (!key || i == 3 || seen[i] || !take_character(h, ':'))
            return malformed_npy(h, "each of descr, fortran_order and shape once");
        seen[i] = true;
        qkv_status status = keys[i].parse(h);
        if (status) return status;
        comma = take_character(h, ',');
    }
    if (!seen[0] || !seen[1] || !seen[2]) return malformed_npy(h, "each of descr, fortran_order and shape once");
    skip_spaces(h);
    if (h->at < h->end && *h->at == '\n') h->at++;
    return h->at == h->end ? QKV_OK : malformed_npy(h, "nothing after the dict");
}

/* ---- the numbers ---- */

static float decode_element(const header *h, const unsigned char *from)
{
    uint64_t word = qkv__load(from, h->size, h->big_endian);
    int unused = 64 - 8 * h->size;
    switch (h->kind) {
    case 'f':
        if (h->size == 2) return qkv__float_of_half((uint32_t)word);
        return h->size == 4 ? qkv__float_of_bits((uint32_t)word) : (float)qkv__double_of_bits(word);
    case 'i': return (float)((int64_t)(word << unused) >> unused); /* the sign moves to the top and back */
    case 'b': return word ? 1.0f : 0.0f;
    default: return (float)word;
    }
}

/* Walks the result in its order, dim 0 outermost, and the file in its own, which has dim 0 innermost. */
static void decode_fortran(const header *h, const unsigned char *from, float *to)
{
    int64_t index[QKV_MAX_DIMS] = { 0 };
    for (int64_t i = 0; i < h->count; i++) {
        int64_t place = 0;
        for (int d = h->ndim - 1; d >= 0; d--) place = place * h->shape[d] + index[d];
        to[i] = decode_element(h, from + place * h->size);
        for (int d = h->ndim - 1; d >= 0 && ++index[d] == h->shape[d]; d--) index[d] = 0;
    }
}

static void decode_all(const header *h, const unsigned char *from, float *to)
{
    if (h->fortran && h->ndim > 1) decode_fortran(h, from, to);
    else if (h->kind == 'f' && h->size == 4 && !h->big_endian) memcpy(to, from, sizeof(float) * (size_t)h->count);
    else
        for (int64_t i = 0; i < h->count; i++) to[i] = decode_element(h, from + i * h->size);
}

/* ---- the file ---- */

bool qkv__is_npy(const qkv__bytes *file) { return file->size >= sizeof magic && !memcmp(file->data, magic, sizeof magic); }

/* Everything before the numbers. */
static qkv_status parse_header(header *h, const qkv__bytes *file)
{
    if (file->size < 8 || !qkv__is_npy(file)) return qkv__fail(QKV_FORMAT, "%s: not a .npy file", h->path);
    int version = file->data[6], width = version == 1 ? 2 : 4;
    if (version < 1 || version > 3 || file->data[7] != 0)
        return qkv__fail(QKV_UNSUPPORTED, "%s: .npy format %d.%d, expected 1.0 to 3.0", h->path, version, file->data[7]);
    h->offset = 8 + (size_t)width;
    uint64_t length = file->size < h->offset ? 0 : qkv__load(file->data + 8, width, false);
    if (file->size < h->offset || length > file->size - h->offset)
        return qkv__fail(QKV_FORMAT, "%s: cut in its header: %zu bytes", h->path, file->size);
    h->start = h->at = (const char *)file->data + h->offset;
    h->end = h->start + length;
    return parse_dict(h);
}

/* The declared shape must be what the file holds, before anything of its size is allocated. */
static qkv_status check_npy_size(header *h, size_t left)
{
    bool fits = qkv__shape_count(h->ndim, h->shape, &h->count); /* times 8 fits too, so times size does */
    if (fits && (size_t)h->count * (size_t)h->size == left) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: the header says %s of %d bytes each, the file has %zu bytes for them", h->path,
                     qkv__shape_text((char[QKV_SHAPE_TEXT]){ 0 }, h->ndim, h->shape), h->size, left);
}

qkv_status qkv__npy_parse(const char *path, const qkv__bytes *file, qkv_array *out)
{
    header own = { .path = path }, *h = &own;
    qkv_status status = parse_header(h, file);
    if (status) return status;
    size_t data = h->offset + (size_t)(h->end - h->start);
    status = check_npy_size(h, file->size - data);
    if (status) return status;
    float *numbers = qkv__alloc(sizeof(float) * (size_t)h->count);
    if (!numbers) return QKV_MEMORY;
    decode_all(h, file->data + data, numbers);
    *out = (qkv_array){ .ndim = h->ndim, .data = numbers };
    memcpy(out->shape, h->shape, sizeof out->shape);
    return QKV_OK;
}

qkv_status qkv_npy_read(const char *path, qkv_array *out)
{
    if (!path || !out) return qkv__fail(QKV_USAGE, "npy: a path and a place for the array are needed");
    qkv__bytes file;
    qkv_status status = qkv__stream_read(path, SIZE_MAX, &file);
    if (status) return status;
    status = qkv__npy_parse(path, &file, out);
    qkv__bytes_free(&file);
    return status;
}

/* ---- writing ---- */

enum { HEADER_ROOM = 256 }; /* 6 dimensions of 19 digits and the words around them are less */

/* Gives the whole length, a multiple of 64 so that the numbers are aligned when the file is mapped. */
static size_t make_header(char header_text[HEADER_ROOM], int ndim, const int64_t *shape)
{
    char *text = header_text + 10;
    int room = HEADER_ROOM - 10, n = snprintf(text, (size_t)room, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (int i = 0; i < ndim; i++) n += snprintf(text + n, (size_t)(room - n), "%s%lld", i ? ", " : "", (long long)shape[i]);
    n += snprintf(text + n, (size_t)(room - n), "%s), }", ndim == 1 ? "," : "");
    size_t used = 10 + (size_t)n, whole = (size_t)qkv__round_up((int64_t)used + 1, 64);
    memset(header_text + used, ' ', whole - used - 1);
    header_text[whole - 1] = '\n';
    memcpy(header_text, magic, sizeof magic);
    header_text[6] = 1;
    header_text[7] = 0;
    header_text[8] = (char)((whole - 10) & 255);
    header_text[9] = (char)((whole - 10) >> 8);
    return whole;
}

qkv_status qkv_npy_write(const char *path, int ndim, const int64_t *shape, const float *data)
{
    int64_t count;
    if (!path) return qkv__fail(QKV_USAGE, "npy: a path is needed");
    if (ndim < 0 || ndim > QKV_MAX_DIMS || !qkv__shape_count(ndim, shape, &count))
        return qkv__fail(QKV_USAGE, "%s: an array of %d dimensions, or one of them negative or huge, cannot be written", path,
                         ndim);
    if (count && !data) return qkv__fail(QKV_USAGE, "%s: there are no numbers to write", path);
    char text[HEADER_ROOM];
    size_t length = make_header(text, ndim, shape);
    qkv__writer w;
    qkv_status status = qkv__write_begin(&w, path);
    if (!status) status = qkv__write_put(&w, text, length);
    if (!status) status = qkv__write_put(&w, data, sizeof(float) * (size_t)count);
    if (!status) status = qkv__write_end(&w);
    if (status) qkv__write_abandon(&w);
    return status;
}
