/* start.c: the first bytes of a file: a byte order mark, or the sign of a file that is not text. */
#include "start.h"

#include <qkv/unstable/util.h>

#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <utf8proc.h>

enum { LOOKED_AT = 64 }; /* bytes, by which UTF-16 without a mark is told */

#define TO_CSV "save it as CSV, in UTF-8 (in a spreadsheet: Save As)"
#define TO_TEXT "save it as plain text, in UTF-8"
#define TO_EITHER "save it as CSV or as plain text, in UTF-8"
#define TO_JSONL \
    "convert it to JSON lines or CSV, in Python: pandas.read_parquet(FILE).to_json(OUT, orient=\"records\", lines=True)"

/* Signs of files that are not text. */
static const struct {
    const char *bytes;
    size_t length;
    const char *name, *cure;
} starts[] = {
    { "\x1F\x8B", 2, "gzip", "decompress it first, as in \"gzip -dc FILE >OUT\"" },
    { "\xFD\x37zXZ\0", 6, "xz", "decompress it first, as in \"xz -dc FILE >OUT\"" },
    { "\x28\xB5\x2F\xFD", 4, "Zstandard", "decompress it first, as in \"zstd -dc FILE >OUT\"" },
    { "\xFF\xFE\0\0", 4, "UTF-32", "convert it first, as in \"iconv -f UTF-32 -t UTF-8 FILE >OUT\"" },
    { "\0\0\xFE\xFF", 4, "UTF-32", "convert it first, as in \"iconv -f UTF-32 -t UTF-8 FILE >OUT\"" },
    { "%PDF-", 5, "PDF", "convert it to plain text first, as in \"pdftotext FILE OUT\"" },
    { "{\\rtf", 5, "rich text (RTF)", TO_TEXT },
    { "PAR1", 4, "Parquet", TO_JSONL },
    { "SQLite format 3", 16, "an SQLite database", "export the table as CSV" },
};

/* Signs inside ZIP and OLE files of office programs: names of entries. */
static const struct {
    const char *bytes;
    size_t length;
    const char *ending, *name, *cure;
} office[] = {
    { "xl/", 3, ".xlsx", "an Excel workbook (.xlsx)", TO_CSV },
    { "word/", 5, ".docx", "a Word document (.docx)", TO_TEXT },
    { "ppt/", 4, ".pptx", "a presentation (.pptx)", TO_TEXT },
    { "mimetypeapplication/vnd.oasis.opendocument.spreadsheet", 54, ".ods", "a spreadsheet (.ods)", TO_CSV },
    { "mimetypeapplication/vnd.oasis.opendocument.text", 47, ".odt", "a text document (.odt)", TO_TEXT },
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

static bool has_ending(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n >= m && !strcasecmp(name + n - m, ending);
}

/* By the names of the entries that have been read, else by the name of the file. */
static qkv_status zip_found(const char *name, const char *start, size_t length)
{
    enum { HEAD = 30 }; /* bytes before an entry's name */
    const size_t n = sizeof office / sizeof *office;
    for (size_t at = 0; at + HEAD < length; at++) {
        if (memcmp(start + at, "PK\3\4", 4)) continue;
        for (size_t i = 0; i < n; i++)
            if (length - at - HEAD >= office[i].length && !memcmp(start + at + HEAD, office[i].bytes, office[i].length))
                return not_text(name, office[i].name, office[i].cure);
    }
    for (size_t i = 0; i < n; i++)
        if (has_ending(name, office[i].ending)) return not_text(name, office[i].name, office[i].cure);
    return not_text(name, "a ZIP archive", "unpack it first, as in \"unzip -p FILE >OUT\"");
}

static qkv_status ole_found(const char *name)
{
    if (has_ending(name, ".xls")) return not_text(name, "an Excel workbook (.xls)", TO_CSV);
    if (has_ending(name, ".doc")) return not_text(name, "a Word document (.doc)", TO_TEXT);
    return not_text(name, "an old Office file (.xls, .doc)", TO_EITHER);
}

qkv_status qkv__text_start(const char *name, const char *start, size_t length, qkv__start *out)
{
    *out = (qkv__start){ .mark = length >= 3 && !memcmp(start, "\xEF\xBB\xBF", 3) ? 3 : 0 };
    if (length >= 4 && !memcmp(start, "PK\3\4", 4)) return zip_found(name, start, length);
    if (length >= 8 && !memcmp(start, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", 8)) return ole_found(name);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (length >= starts[i].length && !memcmp(start, starts[i].bytes, starts[i].length))
            return not_text(name, starts[i].name, starts[i].cure);
    if (is_bzip2(start, length)) return not_text(name, "bzip2", "decompress it first, as in \"bzip2 -dc FILE >OUT\"");
    if (length >= 2 && !memcmp(start, "\xFF\xFE", 2)) out->encoding = QKV__UTF16_LE;
    if (length >= 2 && !memcmp(start, "\xFE\xFF", 2)) out->encoding = QKV__UTF16_BE;
    if (out->encoding) return out->mark = 2, QKV_OK;
    if (has_nuls_at(start, length, 1))
        return not_text(name, "UTF-16 without a byte order mark",
                        "convert it first, as in \"iconv -f UTF-16LE -t UTF-8 FILE >OUT\"");
    if (has_nuls_at(start, length, 0))
        return not_text(name, "UTF-16 without a byte order mark",
                        "convert it first, as in \"iconv -f UTF-16BE -t UTF-8 FILE >OUT\"");
    return QKV_OK;
}

qkv_status qkv_text_start(const char *name, const char *start, size_t length, size_t *mark)
{
    qkv__start found;
    if (!name || !start || !mark) return qkv__fail(QKV_USAGE, "text: a name, its first bytes and a place are needed");
    qkv_status status = qkv__text_start(name, start, length, &found);
    *mark = found.mark;
    if (status || !found.encoding) return status;
    *mark = 0;
    return not_text(name, "UTF-16", "convert it first, as in \"iconv -f UTF-16 -t UTF-8 FILE >OUT\"");
}

/* ---- UTF-16 ---- */

qkv_status qkv__utf16_put(qkv_buffer *out, qkv__encoding encoding, const unsigned char *bytes, size_t n, bool is_end,
                          size_t *used)
{
    const size_t high = encoding == QKV__UTF16_LE;
    qkv_status status = QKV_OK;
    for (*used = 0; *used + 2 <= n && !status;) {
        const unsigned char *at = bytes + *used;
        uint32_t c = (uint32_t)at[high] << 8 | at[!high], low = 0;
        bool is_high = c >= 0xD800 && c < 0xDC00;
        if (is_high && n - *used >= 4) low = (uint32_t)at[2 + high] << 8 | at[2 + !high];
        else if (is_high && !is_end) break; /* its other half comes later */
        bool is_pair = low >= 0xDC00 && low < 0xE000;
        if (is_pair) c = 0x10000 + ((c & 0x3FF) << 10) + (low & 0x3FF);
        bool is_lone = !is_pair && c >= 0xD800 && c < 0xE000;
        utf8proc_uint8_t utf8[4] = { 0xFF };
        size_t n_utf8 = is_lone ? 1 : (size_t)utf8proc_encode_char((utf8proc_int32_t)c, utf8);
        status = qkv__buffer_put(out, utf8, n_utf8);
        *used += is_pair ? 4 : 2;
    }
    if (!is_end || *used == n || status) return status;
    *used = n;
    return qkv__buffer_put(out, "\xFF", 1); /* half a unit */
}
