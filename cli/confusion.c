/* confusion.c: what texts are, and what a classifier says they are. */
#include "confusion.h"

#include "json.h"
#include "results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

qkv_status begin_confusion(confusion *c, const qkv_model *m)
{
    *c = (confusion){ .model = m, .classes = qkv_transformer_options(qkv_model_transformer(m))->classes };
    c->counts = calloc((size_t)(c->classes * c->classes), sizeof *c->counts);
    return c->counts ? QKV_OK : fail(QKV_MEMORY, "out of memory");
}

void free_confusion(confusion *c) { free(c->counts); }

int find_class(const confusion *c, const char *label)
{
    for (int i = 0; i < c->classes; i++)
        if (!strcmp(qkv_model_label(c->model, i), label)) return i;
    return -1;
}

void count_answer(confusion *c, int is, int said)
{
    c->counts[is * c->classes + said]++;
    c->n++;
}

/* ---- scores ---- */

static int longest_label(const confusion *c)
{
    int longest = 5;
    for (int64_t i = 0; i < c->classes; i++) {
        int length = (int)strlen(qkv_model_label(c->model, i));
        if (length > longest) longest = length;
    }
    return longest;
}

static void print_matrix(const confusion *c)
{
    int64_t classes = c->classes;
    int width = longest_label(c);
    if (classes > 20) return (void)puts("\nconfusion: more than 20 classes; see --confusion");
    printf("\nconfusion (a row is what it is, a column what was said)\n%*s", width, "");
    for (int64_t i = 0; i < classes; i++) printf("  %*s", width, qkv_model_label(c->model, i));
    putchar('\n');
    for (int64_t i = 0; i < classes; i++) {
        printf("%*s", width, qkv_model_label(c->model, i));
        for (int64_t k = 0; k < classes; k++) printf("  %*lld", width, (long long)c->counts[i * classes + k]);
        putchar('\n');
    }
}

static void print_confusion_json(const confusion *c, const qkv_class_score *each, const qkv_classes_score *all)
{
    printf("{\"texts\": %lld, \"accuracy\": %.6f, \"macro_f1\": %.6f, \"classes\": {", (long long)c->n, all->accuracy,
           all->macro_f1);
    for (int64_t i = 0; i < c->classes; i++) {
        const qkv_class_score s = each[i];
        const char *label = qkv_model_label(c->model, i);
        fputs(i ? ", " : "", stdout);
        put_json_text(label, strlen(label));
        printf(": {\"precision\": %.6f, \"recall\": %.6f, \"f1\": %.6f, \"texts\": %lld}", s.precision, s.recall, s.f1,
               (long long)s.texts);
    }
    puts("}}");
}

static void print_table_of(const confusion *c, const qkv_class_score *each, const qkv_classes_score *all)
{
    int width = longest_label(c);
    printf("accuracy %.4f (%lld of %lld), macro F1 %.4f\n\n%*s  precision  recall      F1   texts\n", all->accuracy,
           (long long)all->right, (long long)c->n, all->macro_f1, width, "");
    for (int64_t i = 0; i < c->classes; i++)
        printf("%*s     %.4f  %.4f  %.4f  %6lld\n", width, qkv_model_label(c->model, i), each[i].precision, each[i].recall,
               each[i].f1, (long long)each[i].texts);
    print_matrix(c);
}

qkv_status print_scores(const confusion *c, bool json)
{
    qkv_classes_score all;
    qkv_class_score *each = calloc((size_t)c->classes, sizeof *each);
    if (!each) return fail(QKV_MEMORY, "out of memory");
    qkv_status status = qkv_score_classes(c->counts, c->classes, each, &all) ? library_failed() : QKV_OK;
    if (!status && json) print_confusion_json(c, each, &all);
    else if (!status) print_table_of(c, each, &all);
    free(each);
    return status;
}

static void put_csv(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++) {
        if (*text == '"') fputc('"', f);
        fputc(*text, f);
    }
    fputc('"', f);
}

qkv_status write_confusion(const confusion *c, const char *path)
{
    text_file file;
    FILE *f = begin_text(&file);
    if (!f) return QKV_MEMORY;
    fputs("label,said,texts\n", f);
    for (int64_t i = 0; i < c->classes * c->classes; i++) {
        put_csv(f, qkv_model_label(c->model, i / c->classes));
        fputc(',', f);
        put_csv(f, qkv_model_label(c->model, i % c->classes));
        fprintf(f, ",%lld\n", (long long)c->counts[i]);
    }
    return end_text(&file, path);
}
