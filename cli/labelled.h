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

/* ---- is it what it is taken for? (labelled_check.c) ---- */
typedef struct labelled_look {
    int64_t texts, spaced; /* spaced: with a space in the label */
    double label_bytes, text_bytes;
    bool starts_at_1; /* line 1 of a table was read as a text: the next two are its label and its text */
    char first_label[64], first_text[64];
} labelled_look;

/* Takes a text into account; then FORMAT, reported, for a header that is read as a text, or for labels of which most occur
 * once: the option that helps is named. Warns, unless quiet, of what is only suspicious. */
void look_at_labelled(labelled_look *k, const char *path, const qkv_labelled *x);
qkv_status check_labelled(const labelled_look *k, const label_set *s, const char *path, bool quiet);

/* What to add to a sentence about a label that is not known: "" unless it looks like a header's. */
const char *header_hint(const qkv_labelled *x);

#endif
