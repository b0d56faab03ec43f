/* translations.h: translations as lines, as JSON or with heatmaps. */
#ifndef QKV_CLI_TRANSLATIONS_H
#define QKV_CLI_TRANSLATIONS_H

#include <qkv/qkv.h>

#include <stdbool.h>

typedef struct translation_format {
    bool n_best, alignment, json, heatmap;
} translation_format;

/* A line of the input. */
typedef struct source_line {
    int64_t number; /* from 1 */
    const char *text;
    size_t length;
} source_line;

/* Prints the translations of text i of t, which is that line. Reports its error: MEMORY. */
qkv_status print_translations(const translation_format *f, const qkv_model *m, source_line line, const qkv_translations *t,
                              int64_t i);

/* Prints what stands for the translation of a line that has none. */
void print_no_translation(const translation_format *f, int64_t number, const char *reason);

#endif
