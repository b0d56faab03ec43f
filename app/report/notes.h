/* notes.h: what is told of text that was read and is no error: lines that were repaired, texts that were left out. */
#ifndef QKV_APP_REPORT_NOTES_H
#define QKV_APP_REPORT_NOTES_H

#include <qkv/data.h>

#include <stdarg.h>

/* Who is told; note NULL: nobody. */
typedef struct qkv__notes {
    void (*note)(void *data, const char *text);
    void *data;
} qkv__notes;

/* A sentence in the reader's language. */
void qkv__tell(qkv__notes to, const char *format, ...) QKV_PRINTF(2, 3);
void qkv__tell_with(qkv__notes to, const char *format, va_list args);

/* That so many lines of a file, of which this is the first, were not UTF-8; nothing for none. */
void qkv__tell_repaired(qkv__notes to, const char *path, int64_t n, int64_t first);

/* Texts whose labels are none of those that are known. */
typedef struct qkv__unknown_labels {
    int64_t n, first_line;
    char first[64];
} qkv__unknown_labels;
void qkv__note_unknown(qkv__unknown_labels *u, const qkv_labelled *x, const char *label);
void qkv__tell_unknown(qkv__notes to, const char *path, const qkv__unknown_labels *u); /* nothing for none */

/* qkv_read_labelled(), and notes of what was repaired and left out. Where the first line is refused, but not by `each`, the
 * sentence also says which options choose columns. read may be NULL. */
qkv_status qkv__labelled_read(const char *path, const qkv_labelled_opts *opts, qkv_labelled_each each, void *data,
                              qkv__notes notes, qkv_read_stats *read);

/* qkv_read_documents() for n files, and notes of what was repaired. *read tells of all of them, pairs and empty alone. FORMAT
 * where there is no text at all. */
qkv_status qkv__documents_read(const char *const *paths, int n, qkv_document_kind kind, int strict, qkv_document_each each,
                               void *data, qkv__notes notes, qkv_read_stats *read);

#endif
