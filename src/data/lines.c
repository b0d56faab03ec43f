/* lines.c: the lines of a file, plain or gzip, one at a time, or all of it. */
#include "lines.h"

#include <qkv/unstable/util.h>

#include "../base/file.h"
#include "../base/options.h"
#include "start.h"

#include <string.h>
#include <zlib.h>

enum { PIECE = 64 << 10, ENOUGH = 4096 /* bytes, to tell what a file is */ };

struct qkv__stream {
    int fd;
    bool is_gzip, in_member; /* in_member: the compressed data must go on */
    bool is_started;         /* bytes of the text were seen */
    qkv__encoding encoding;
    z_stream zip;
    size_t raw_at, raw_end;    /* of raw: bytes of the file not used yet */
    size_t at, end;            /* of plain: bytes not given yet */
    size_t n_wide;             /* of wide: bytes of UTF-16 not converted yet */
    qkv_buffer converted;      /* from UTF-16 */
    qkv_buffer ahead;          /* the first bytes of the text, where they were looked at */
    const unsigned char *text; /* plain, converted or ahead: what at and end count in */
    unsigned char raw[PIECE], plain[PIECE], wide[PIECE + 4];
};
typedef struct qkv__stream stream;

static void *lend(void *unused, unsigned n, unsigned size)
{
    (void)unused;
    return qkv__lend((size_t)n * size); /* both are 32 bits wide */
}

static void take_back(void *unused, void *memory)
{
    (void)unused;
    qkv__take_back(memory);
}

static qkv_status fill_raw(const qkv__lines *l, stream *s)
{
    size_t got;
    qkv_status status = qkv__read_some(s->fd, l->path, s->raw + s->raw_end, PIECE - s->raw_end, &got);
    s->raw_end += got;
    return status;
}

/* A pipe may give its bytes one by one. */
static qkv_status look_at_start(const qkv__lines *l, stream *s)
{
    qkv_status status = QKV_OK;
    for (size_t before = 1; !status && s->raw_end < ENOUGH && s->raw_end != before;) {
        before = s->raw_end;
        status = fill_raw(l, s);
    }
    if (status || s->raw_end < 2 || s->raw[0] != 0x1F || s->raw[1] != 0x8B) return status;
    s->zip = (z_stream){ .zalloc = lend, .zfree = take_back };
    if (inflateInit2(&s->zip, 15 + 16) != Z_OK) return qkv__fail(QKV_MEMORY, "%s: out of memory for decompression", l->path);
    s->is_gzip = s->in_member = true;
    return QKV_OK;
}

static void end_file(stream *s)
{
    if (s->is_gzip) inflateEnd(&s->zip);
    qkv_buffer_free(&s->converted);
    qkv_buffer_free(&s->ahead);
    if (s->fd >= 0) qkv__read_end(s->fd);
    memset(s, 0, offsetof(stream, raw));
    s->fd = -1;
}

qkv_status qkv__lines_reopen(qkv__lines *l, const char *path)
{
    int fd;
    l->path = path;
    l->number = l->repaired = l->first_repaired = 0;
    if (l->stream) end_file(l->stream);
    qkv_status status = qkv__read_begin(path, &fd);
    if (status) return status;
    if (!l->stream && !(l->stream = qkv__alloc(sizeof *l->stream))) {
        qkv__read_end(fd);
        return QKV_MEMORY;
    }
    memset(l->stream, 0, offsetof(stream, raw));
    l->stream->fd = fd;
    return look_at_start(l, l->stream);
}

qkv_status qkv__lines_open(qkv__lines *l, const char *path)
{
    *l = (qkv__lines){ 0 };
    qkv_status status = qkv__lines_reopen(l, path);
    if (status) qkv__lines_close(l);
    return status;
}

void qkv__lines_close(qkv__lines *l)
{
    if (l->stream) end_file(l->stream);
    qkv__release(l->stream, sizeof *l->stream);
    qkv_buffer_free(&l->line);
    qkv_buffer_free(&l->spare);
    l->stream = NULL;
}

static qkv_status damaged(const qkv__lines *l, const char *what)
{
    return qkv__fail(QKV_FORMAT, "%s: damaged gzip file after line %lld: %s", l->path, (long long)l->number, what);
}

/* One call of zlib on the raw bytes there are. */
static qkv_status inflate_some(const qkv__lines *l, stream *s)
{
    s->zip.next_in = s->raw + s->raw_at;
    s->zip.avail_in = (unsigned)(s->raw_end - s->raw_at);
    s->zip.next_out = s->plain;
    s->zip.avail_out = PIECE;
    int result = inflate(&s->zip, Z_NO_FLUSH);
    s->raw_at = s->raw_end - s->zip.avail_in;
    s->at = 0;
    s->end = PIECE - s->zip.avail_out;
    s->in_member = result != Z_STREAM_END;
    if (result == Z_MEM_ERROR) return qkv__fail(QKV_MEMORY, "%s: out of memory for decompression", l->path);
    if (result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR) return QKV_OK;
    return damaged(l, s->zip.msg ? s->zip.msg : "its data are wrong");
}

/* Plain bytes as they come; none (at == end) at the end of the file. */
static qkv_status fill_any(const qkv__lines *l, stream *s)
{
    s->at = s->end = 0;
    for (qkv_status status = QKV_OK; s->at == s->end;) {
        if (s->raw_at == s->raw_end) {
            s->raw_at = s->raw_end = 0;
            status = fill_raw(l, s);
            if (status) return status;
            if (!s->raw_end) return s->in_member ? damaged(l, "it is cut") : QKV_OK;
        }
        if (!s->is_gzip) {
            s->end = s->raw_end - s->raw_at;
            memcpy(s->plain, s->raw + s->raw_at, s->end);
            s->raw_at = s->raw_end;
            return QKV_OK;
        }
        if (!s->in_member) inflateReset(&s->zip); /* gzip files may be joined end to end */
        status = inflate_some(l, s);
        if (status) return status;
    }
    return QKV_OK;
}

/* The bytes in plain, from UTF-16 to UTF-8. */
static qkv_status convert_plain(stream *s, bool is_end)
{
    size_t n = s->end - s->at, used;
    memcpy(s->wide + s->n_wide, s->plain + s->at, n);
    s->n_wide += n;
    qkv__buffer_clear(&s->converted);
    qkv_status status = qkv__utf16_put(&s->converted, s->encoding, s->wide, s->n_wide, is_end, &used);
    if (status) return status;
    s->n_wide -= used;
    memmove(s->wide, s->wide + used, s->n_wide);
    s->text = (const unsigned char *)s->converted.data;
    s->at = 0;
    s->end = s->converted.length;
    return QKV_OK;
}

/* The same as UTF-8, without a byte order mark. */
static qkv_status fill_text(const qkv__lines *l, stream *s)
{
    for (;;) {
        qkv__start start = { 0 };
        qkv_status status = fill_any(l, s);
        bool is_end = s->at == s->end;
        s->text = s->plain;
        if (!status && !is_end && !s->is_started) {
            status = qkv__text_start(l->path, (const char *)s->plain, s->end, &start);
            s->is_started = true;
            s->encoding = start.encoding;
            s->at = start.mark;
        }
        if (!status && s->encoding) status = convert_plain(s, is_end);
        if (status || is_end || s->at < s->end) return status;
    }
}

qkv_status qkv__lines_peek(qkv__lines *l, size_t limit, const char **start, size_t *length, bool *is_whole)
{
    stream *s = l->stream;
    qkv_status status = QKV_OK;
    bool more = true;
    while (!status && more && s->ahead.length <= limit) {
        status = fill_text(l, s);
        more = s->at < s->end;
        if (!status && more) status = qkv__buffer_put(&s->ahead, s->text + s->at, s->end - s->at);
    }
    s->text = (const unsigned char *)s->ahead.data;
    s->at = 0;
    s->end = s->ahead.length;
    *start = s->ahead.data ? s->ahead.data : "";
    *length = s->end < limit ? s->end : limit;
    *is_whole = *length == s->end; /* a longer one is read on */
    return status;
}

qkv_status qkv__lines_next(qkv__lines *l, bool *more)
{
    stream *s = l->stream;
    const unsigned char *newline = NULL;
    *more = false;
    qkv__buffer_clear(&l->line);
    while (!newline) {
        qkv_status status = s->at == s->end ? fill_text(l, s) : QKV_OK;
        if (status) return status;
        if (s->at == s->end) break;
        size_t left = s->end - s->at;
        newline = memchr(s->text + s->at, '\n', left);
        size_t taken = newline ? (size_t)(newline - (s->text + s->at)) : left;
        if (qkv__buffer_put(&l->line, s->text + s->at, taken)) return QKV_MEMORY;
        s->at += taken + (newline != NULL);
        *more = true;
    }
    l->number += *more;
    return QKV_OK;
}

/* Of a whole file there are several lines. */
static void count_repaired(qkv__lines *l)
{
    const char *at = l->line.data, *end = at + l->line.length;
    for (int64_t line = l->number; at < end; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((newline ? newline : end) - at);
        if (qkv_utf8_valid(at, length) < length && !l->repaired++) l->first_repaired = line;
        at += length + 1;
    }
}

static qkv_status wrong_byte(const qkv__lines *l, size_t place, const char *what)
{
    int64_t line = l->number;
    const char *start = l->line.data, *wrong = start + place, *newline;
    for (; (newline = memchr(start, '\n', (size_t)(wrong - start))); start = newline + 1) line++;
    return qkv__fail(QKV_FORMAT, "%s: line %lld: byte %zu %s", l->path, (long long)line, (size_t)(wrong - start) + 1, what);
}

/* No text has a NUL in it; without this rule an array of numbers would be trained on. */
static qkv_status repair(qkv__lines *l, int strict)
{
    size_t length = l->line.length, nul = length ? strlen(l->line.data) : 0;
    if (nul < length)
        return wrong_byte(
            l, nul, "is NUL: not a text file, or UTF-16 without a byte order mark; \"tr -d '\\0' <FILE >OUT\" removes NULs");
    size_t good = qkv_utf8_valid(l->line.data, length);
    if (good == length) return QKV_OK;
    if (strict) return wrong_byte(l, good, "is not UTF-8");
    count_repaired(l);
    qkv_status status = qkv__utf8_repair(l->line.data, l->line.length, &l->spare);
    qkv_buffer repaired = l->spare;
    l->spare = l->line;
    l->line = repaired;
    return status;
}

qkv_status qkv__lines_next_utf8(qkv__lines *l, int strict, bool *more)
{
    qkv_status status = qkv__lines_next(l, more);
    return status || !*more ? status : repair(l, strict);
}

qkv_status qkv__lines_next_text(qkv__lines *l, int strict, bool *more)
{
    qkv_status status = qkv__lines_next_utf8(l, strict, more);
    qkv_buffer *line = &l->line;
    if (!status && line->length && line->data[line->length - 1] == '\r') line->data[--line->length] = '\0';
    return status;
}

qkv_status qkv__lines_whole_utf8(qkv__lines *l, int strict, size_t limit)
{
    stream *s = l->stream;
    l->number = 1;
    qkv__buffer_clear(&l->line);
    for (;;) {
        qkv_status status = fill_text(l, s);
        if (status) return status;
        if (s->at == s->end) break;
        if (s->end - s->at > limit - l->line.length)
            return qkv__fail(QKV_LIMIT, "%s: a text of more than %zu bytes", l->path, limit);
        if (qkv__buffer_put(&l->line, s->text + s->at, s->end - s->at)) return QKV_MEMORY;
    }
    return repair(l, strict);
}

qkv_status qkv__read_stats_write(qkv_read_stats *to, const qkv_read_stats *from)
{
    return to ? QKV__WRITE_OPTIONS(to, first_unlabelled, from, "read") : QKV_OK;
}
