/* documents.h: plain text, as the jobs that read documents do. */
#ifndef QKV_CLI_DOCUMENTS_H
#define QKV_CLI_DOCUMENTS_H

#include "options.h"

typedef struct document_values {
    int kind;
} document_values;
extern document_values documents;
extern const char *const document_names[];

#define DOCUMENT_OPTIONS \
    { "documents", .group = DATA_GROUP, .value = "KIND", \
      .help = "what a document is: lines (unless given), paragraphs or files", \
      .choice = &documents.kind, .names = document_names }

/* Calls each for every document of the files. Reports its error, and that of each, which is the library's. */
qkv_status read_documents(const value_list *files, bool strict, bool quiet, qkv_document_each each, void *data,
                          qkv_corpus_read *out);

#endif
