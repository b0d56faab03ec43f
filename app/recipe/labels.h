/* labels.h: the names of classes, and whether labelled text is what it is taken for. */
#ifndef QKV_SRC_JOB_LABELS_H
#define QKV_SRC_JOB_LABELS_H

#include <qkv/data.h>

#include <stdbool.h>

/* Sorted. */
typedef struct qkv__label_set {
    char **names;
    int64_t *counts; /* texts of each */
    size_t names_bytes, counts_bytes;
    int n;
    struct qkv__label_key *keys; /* of a set that was merged: n_keys, sorted */
    size_t keys_bytes;
    int n_keys;
} qkv__label_set;

/* The number of a name, or in a merged set of one that differs from it only in case or white space, to *class_id; -1: there is none.
 * MEMORY. */
qkv_status qkv__label_match(const qkv__label_set *s, const char *name, int *class_id);

/* Finds names that differ only in case or white space: *alike is their number, list shows the first of them with their counts. With
 * merges, each group becomes one name: the most frequent, of equals the first. MEMORY. */
qkv_status qkv__labels_alike(qkv__label_set *s, bool merges, int *alike, char list[512]);

/* The number of a name, -1 when there is none; counts a text of it, and adds it, where it belongs, if it is new: MEMORY. */
int qkv__label_find(const qkv__label_set *s, const char *name);
qkv_status qkv__label_add(qkv__label_set *s, const char *name);
void qkv__label_set_free(qkv__label_set *s);

/* ---- is it what it is taken for? ---- */
typedef struct qkv__labelled_look {
    const qkv_labelled_opts *opts;
    int64_t texts, spaced; /* spaced: with a space in the label */
    double label_bytes, text_bytes;
    bool starts_at_1; /* line 1 of a table was read as a text: the next two are its label and its text */
    char first_label[64], first_text[64];
} qkv__labelled_look;

/* Takes a text into account; then FORMAT for a header that is read as a text, or for labels of which most occur once: the
 * option that helps is named. What is only suspicious goes to `warning`, "" for nothing. */
void qkv__labelled_look_at(qkv__labelled_look *k, const char *path, const qkv_labelled *x);
qkv_status qkv__labelled_check(const qkv__labelled_look *k, const qkv__label_set *s, const char *path, char warning[512]);

/* What to add to a sentence about a label that is not known: "" unless it looks like a header's. */
const char *qkv__header_hint(const qkv_labelled *x);

#endif
