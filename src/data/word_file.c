/* word_file.c: the words of a file. */
#include "lines.h"

qkv_status qkv_word_counts_add_file(qkv_word_counts *w, const char *path, int strict, qkv_lines_read *read)
{
    qkv__lines l;
    bool more = true;
    if (!w || !path) return qkv__fail(QKV_USAGE, "words: words or path is NULL");
    qkv_status status = qkv__lines_open(&l, path);
    while (!status && more) {
        status = qkv__lines_next_utf8(&l, strict, &more);
        if (!status && more) status = qkv_word_counts_add(w, l.line.data, l.line.length);
    }
    qkv__lines_close(&l);
    if (read) *read = (qkv_lines_read){ .lines = l.number, .repaired = l.repaired, .first_repaired = l.first_repaired };
    return status;
}
