/* notes.c: text that is read, and what is told of it. */
#include "notes.h"

#include <qkv/unstable/util.h>

#include "../../src/base/memory.h"
#include "../../src/base/status.h"
#include "../term/translator.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void qkv__tell_with(qkv__notes to, const char *format, va_list args)
{
    char text[1024];
    if (!to.note) return;
    vsnprintf(text, sizeof text, qkv__translated(format), args);
    to.note(to.data, text);
}

void qkv__tell(qkv__notes to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    qkv__tell_with(to, format, args);
    va_end(args);
}

void qkv__tell_repaired(qkv__notes to, const char *path, int64_t n, int64_t first)
{
    if (n == 1)
        qkv__tell(
            to,
            "%s: line %lld is not UTF-8: replaced by U+FFFD; if the file has another encoding: iconv -f WINDOWS-1252 -t UTF-8",
            path, (long long)first);
    if (n > 1)
        qkv__tell(to,
                  "%s: %lld lines are not UTF-8, the first is line %lld: replaced by U+FFFD; if the file has another encoding: "
                  "iconv -f WINDOWS-1252 "
                  "-t UTF-8",
                  path, (long long)n, (long long)first);
}

/* ---- labelled text ---- */

/* The caller's function, and the first file of a folder that was not UTF-8. */
typedef struct watched {
    qkv_labelled_each each;
    void *data;
    bool is_theirs;      /* the error is that of the function */
    char *repaired_path; /* NULL: none so far */
    int64_t repaired_line;
} watched;

static qkv_status watch_labelled(void *data, const qkv_labelled *x)
{
    watched *w = data;
    if (x->repaired && !w->repaired_path && (w->repaired_path = qkv__copy_text(x->path))) w->repaired_line = x->repaired;
    qkv_status status = w->each(w->data, x);
    w->is_theirs = status != QKV_OK;
    return status;
}

static void note_labelled(qkv__notes to, const char *path, const watched *w, const qkv_read_stats *read)
{
    if (w->repaired_path) qkv__tell_repaired(to, w->repaired_path, 1, w->repaired_line);
    else qkv__tell_repaired(to, path, read->repaired, read->first_repaired);
    if (w->repaired_path && read->repaired > 1)
        qkv__tell(to, "%s: %lld more files are not UTF-8", path, (long long)read->repaired - 1);
    if (read->empty)
        qkv__tell(to, "%s: empty texts: %lld, the first is line %lld: left out", path, (long long)read->empty,
                  (long long)read->first_empty);
    if (read->unlabelled)
        qkv__tell(to, "%s: texts without a label: %lld, the first is line %lld: left out", path, (long long)read->unlabelled,
                  (long long)read->first_unlabelled);
}

void qkv__tell_unknown(qkv__notes to, const char *path, const qkv__unknown_labels *u)
{
    if (u->n)
        qkv__tell(to, "%s: texts with an unknown label: %lld, the first is line %lld, \"%.60s\": left out%s", path,
                  (long long)u->n, (long long)u->first_line, u->first,
                  u->first_line == 1 ? qkv__translated(QKV__N("; if line 1 is a header, give --header")) : "");
}

void qkv__note_unknown(qkv__unknown_labels *u, const qkv_labelled *x, const char *label)
{
    if (u->n++) return;
    u->first_line = x->line;
    snprintf(u->first, sizeof u->first, "%.*s", (int)qkv_utf8_valid(label, strnlen(label, sizeof u->first - 1)), label);
}

qkv_status qkv__labelled_read(const char *path, const qkv_labelled_opts *opts, qkv_labelled_each each, void *data,
                              qkv__notes notes, qkv_read_stats *read)
{
    watched w = { .each = each, .data = data };
    qkv_read_stats own = { 0 };
    if (!read) read = &own;
    qkv_status status = qkv_read_labelled(path, opts, watch_labelled, &w, read);
    if (!status) note_labelled(notes, path, &w, read);
    else qkv__tell_repaired(notes, path, read->repaired, read->first_repaired); /* it may be the cause */
    qkv__release_text(w.repaired_path);
    /* What is wrong with the first line is mostly which columns it has. */
    bool is_first = read->lines == 1 && !read->pairs && !read->empty;
    if (status != QKV_FORMAT || w.is_theirs || (opts && opts->strict) || !is_first) return status;
    char sentence[QKV_SENTENCE_MAX];
    snprintf(sentence, sizeof sentence, "%s", qkv_error());
    if (*sentence && sentence[strlen(sentence) - 1] == '?') return status; /* a question suggests a column */
    return qkv__fail(status, "%.900s; --label-column and --text-column choose columns, by name or number", sentence);
}

/* ---- documents ---- */

qkv_status qkv__documents_read(const char *const *paths, int n, qkv_document_kind kind, int strict, qkv_document_each each,
                               void *data, qkv__notes notes, qkv_read_stats *read)
{
    *read = (qkv_read_stats){ 0 };
    for (int i = 0; i < n; i++) {
        qkv_read_stats one = { 0 };
        qkv_status status = qkv_read_documents(paths[i], kind, strict, each, data, &one);
        if (status) return status;
        read->pairs += one.pairs;
        read->empty += one.empty;
        qkv__tell_repaired(notes, paths[i], one.repaired, one.first_repaired);
    }
    return read->pairs ? QKV_OK : qkv__fail(QKV_FORMAT, "%s: there is no text", paths[0]);
}
