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
    { "label-column", .value = "NAME", .help = "of a table with a header", .text = &labelled.label_column }, \
    { "text-column", .value = "NAME", .help = "of a table with a header", .text = &labelled.text_column }, \
    { "pair-column", .value = "NAME", .help = "of the second text, for pairs of texts", .text = &labelled.pair_column }

/* Reads a file or folder by these options; warns of lines that were repaired or left out unless quiet. Reports its error. Where
 * `each` reports one itself it gives told(status). */
qkv_status read_labelled(const char *path, bool strict, bool no_label, bool quiet, qkv_labelled_each each, void *data);
qkv_status told(qkv_status status);

/* ---- names of classes, sorted ---- */
typedef struct label_set {
    char **names;
    int n;
} label_set;

/* The number of a name, -1 when there is none; adds it, where it belongs. MEMORY, reported. */
int find_label(const label_set *s, const char *name);
qkv_status add_label(label_set *s, const char *name);
void free_labels(label_set *s);

#endif
