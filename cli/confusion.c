/* confusion.c: what texts are, and what a classifier says they are. */
#include "confusion.h"

#include "term/heatmap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

qkv_status begin_confusion(confusion *c, const qkv_model *m)
{
    *c = (confusion){ .classes = qkv_transformer_options(qkv_model_transformer(m))->classes };
    c->counts = calloc((size_t)(c->classes * c->classes), sizeof *c->counts);
    c->labels = calloc((size_t)c->classes, sizeof *c->labels);
    for (int64_t i = 0; c->labels && i < c->classes; i++) c->labels[i] = qkv_model_label(m, i);
    return c->counts && c->labels ? QKV_OK : fail(QKV_MEMORY, "out of memory");
}

void free_confusion(confusion *c) { free(c->counts), free(c->labels); }

int find_class(const confusion *c, const char *label)
{
    for (int i = 0; i < c->classes; i++)
        if (!strcmp(c->labels[i], label)) return i;
    return -1;
}

void count_answer(confusion *c, int is, int said)
{
    c->counts[is * c->classes + said]++;
    c->n++;
}

qkv_status print_scores(const confusion *c, bool json)
{
    qkv_text text = { 0 };
    qkv_status status = print_text(qkv_classes_text(c->counts, c->classes, c->labels, json, &text), &text);
    if (!status && !json && c->classes > 20) puts(_("\nconfusion: more than 20 classes; see --confusion"));
    return status;
}

qkv_status write_confusion(const confusion *c, const char *path)
{
    qkv_text text = { 0 };
    qkv_status status = qkv_classes_csv(c->counts, c->classes, c->labels, &text);
    if (!status) status = qkv_file_write(path, text.data, text.length);
    qkv_text_free(&text);
    return status ? library_failed() : QKV_OK;
}
