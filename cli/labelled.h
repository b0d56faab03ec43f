/* labelled.h: labelled texts, as the jobs that classify read them. */
#ifndef QKV_CLI_LABELLED_H
#define QKV_CLI_LABELLED_H

#include "options.h"

/* ---- options ---- */
typedef struct labelled_values {
    const char *label_column, *text_column, *pair_column;
} labelled_values;
extern labelled_values labelled;

#define LABELLED_OPTIONS \
    { "label-column", .value = "NAME", .help = "the label's column by its name in a header, or its number", \
      .text = &labelled.label_column }, \
    { "text-column", .value = "NAME", .help = "the text's column, in the same way", .text = &labelled.text_column }, \
    { "pair-column", .value = "NAME", .help = "of the second text, for pairs of texts", .text = &labelled.pair_column }

/* Reads a file or folder by these options; warns of lines that were repaired or left out unless quiet. What was read goes to
 * *out (may be NULL). Reports its error. Where `each` reports one itself it gives told(status). */
qkv_status read_labelled(const char *path, bool strict, bool no_label, bool quiet, qkv_labelled_each each, void *data,
                         qkv_corpus_read *out);
qkv_status told(qkv_status status);

/* ---- names of classes, sorted ---- */
typedef struct label_set {
    char **names;
    int64_t *counts; /* texts of each */
    int n;
} label_set;

/* The number of a name, -1 when there is none; counts a text of it, and adds it, where it belongs, if it is new. MEMORY,
 * reported. */
int find_label(const label_set *s, const char *name);
qkv_status add_label(label_set *s, const char *name);
void free_labels(label_set *s);

#endif
