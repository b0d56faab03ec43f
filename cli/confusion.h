/* confusion.h: what texts are, and what a classifier says they are. */
#ifndef QKV_CLI_CONFUSION_H
#define QKV_CLI_CONFUSION_H

#include "options.h"

typedef struct confusion {
    int64_t classes, n;  /* n: texts counted */
    int64_t *counts;     /* (classes, classes): what it is, what was said */
    const char **labels; /* (classes): the model's */
} confusion;

/* MEMORY, reported. */
qkv_status begin_confusion(confusion *c, const qkv_model *m);
void free_confusion(confusion *c);

int find_class(const confusion *c, const char *label); /* -1: there is none of that name */
void count_answer(confusion *c, int is, int said);

/* Accuracy; precision, recall and F1 of each class; the matrix. Reports its error. */
qkv_status print_scores(const confusion *c, bool json);

/* A CSV file: label, said, texts. IO, reported. */
qkv_status write_confusion(const confusion *c, const char *path);

#endif
