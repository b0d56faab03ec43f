/* word_file.c: the words of a file. */
#include "../base/options.h"
#include "../token/word_counts.h"
#include "lines.h"

#include <string.h>
#include "corpus.h"

qkv_status qkv__word_counts_add_file(qkv_word_counts *w, const char *path, int strict, qkv__lines_read *read)
{
    qkv__lines l;
    bool more = true;
    if (!w || !path) return qkv__fail(QKV_USAGE, "words: words or path is NULL");
    qkv_status status = qkv__lines_open(&l, path);
    while (!status && more) {
        status = qkv__lines_next_utf8(&l, strict, &more);
        if (!status && more) status = qkv_word_counts_add(w, (qkv_str){ l.line.data, l.line.length });
    }
    qkv__lines_close(&l);
    if (read) *read = (qkv__lines_read){ .lines = l.number, .repaired = l.repaired, .first_repaired = l.first_repaired };
    return status;
}

static qkv_status count_texts(qkv_word_counts *w, const char *path)
{
    qkv__lines l;
    bool more = true;
    qkv_status status = qkv__lines_open(&l, path);
    while (!status && !(status = qkv__lines_next_utf8(&l, 0, &more)) && more) {
        const char *text = l.line.data, *end = text + l.line.length;
        for (const char *tab; !status && text <= end; text = tab + 1) {
            tab = memchr(text, '\t', (size_t)(end - text));
            if (!tab) tab = end;
            status = qkv_word_counts_add(w, (qkv_str){ text, (size_t)(tab - text) });
        }
    }
    qkv__lines_close(&l);
    return status;
}

qkv_tokenizer *qkv_tokenizer_train_files(const char *const *paths, int n, const qkv_tokenizer_opts *opts)
{
    qkv_tokenizer_opts o;
    if (QKV__READ_OPTIONS(&o, kind, opts, "tokenizer")) return NULL;
    if (!paths || n < 1) return qkv__fail(QKV_USAGE, "tokenizer: no files are given"), NULL;
    qkv_word_counts *w = qkv_word_counts_new(o.kind);
    qkv_status status = w ? QKV_OK : qkv_error_status();
    for (int i = 0; i < n && !status; i++)
        status = paths[i] ? count_texts(w, paths[i]) : qkv__fail(QKV_USAGE, "tokenizer: path %d is NULL", i);
    if (!status && !qkv__word_counts_size(w)) status = qkv__fail(QKV_FORMAT, "%s: there is no text to learn from", paths[0]);
    qkv_tokenizer *t = status ? NULL : qkv_tokenizer_train(w, &o);
    qkv_word_counts_free(w);
    return t;
}
