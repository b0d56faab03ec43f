/* labelled.h: labelled texts, as the jobs that classify read them. */
#ifndef QKV_CLI_LABELLED_H
#define QKV_CLI_LABELLED_H

#include "options.h"

/* ---- options ---- */
typedef struct labelled_values {
    const char *label_column, *text_column, *pair_column;
    bool header;
} labelled_values;
extern labelled_values labelled;

#define LABELLED_OPTIONS \
    { "header", .group = DATA_GROUP, .help = "the first line of each TSV file is a header, and no text", \
      .flag = &labelled.header }, \
    { "label-column", .group = DATA_GROUP, .value = "NAME", \
      .help = "the label's column by its name in a header, or its number", .text = &labelled.label_column }, \
    { "text-column", .group = DATA_GROUP, .value = "NAME", .help = "the text's column, in the same way", \
      .text = &labelled.text_column }, \
    { "pair-column", .group = DATA_GROUP, .value = "NAME", .help = "of the second text, for pairs of texts", \
      .text = &labelled.pair_column }

/* Reads a file or folder by these options; warns of lines that were repaired or left out unless quiet. What was read goes to
 * *out (may be NULL). Reports its error. Where `each` reports one itself it gives told(status). */
qkv_status read_labelled(const char *path, bool strict, bool no_label, bool quiet, qkv_labelled_each each, void *data,
                         qkv_corpus_read *out);
qkv_status told(qkv_status status);

#endif
