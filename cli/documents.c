/* documents.c: plain text, document by document. */
#include "documents.h"

#include "lines.h"

document_values documents;
const char *const document_names[] = { "lines", "paragraphs", "files", NULL }; /* in the order of qkv_document_kind */

qkv_status read_documents(const value_list *files, bool strict, bool quiet, qkv_document_each each, void *data,
                          qkv_corpus_read *out)
{
    int64_t n = 0;
    if (out) *out = (qkv_corpus_read){ 0 };
    for (int i = 0; i < files->n; i++) {
        qkv_corpus_read read = { 0 };
        if (qkv_documents_read(files->at[i], (qkv_document_kind)documents.kind, strict, each, data, &read))
            return library_failed();
        n += read.pairs;
        if (out) out->pairs += read.pairs, out->empty += read.empty;
        if (!quiet) tell_repaired(files->at[i], read.repaired, read.first_repaired);
    }
    return n ? QKV_OK : fail(QKV_FORMAT, "%s: there is no text", files->at[0]);
}
