/* classified_text.c: what a classifier says of a text, as a line and as JSON. */
#include "../text/out.h"

#include <qkv/task.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_probability(const void *a, const void *b)
{
    const float *const *x = a, *const *y = b;
    if (**x != **y) return **x > **y ? -1 : 1;
    return (*x > *y) - (*x < *y);
}

static void put_label(qkv__out *out, const qkv_model *m, int64_t i)
{
    const char *label = qkv_model_label(m, i);
    qkv__out_json(out, label, strlen(label));
}

/* order: the classes, the likeliest first, as places in the row. */
static void put_classes(qkv__out *out, const qkv_model *m, const float *row, const float *const *order, int64_t n, int json)
{
    if (json) {
        qkv__out_printf(out, "{\"label\": ");
        put_label(out, m, order[0] - row);
        qkv__out_printf(out, ", \"probabilities\": {");
    }
    for (int64_t i = 0; i < n; i++) {
        qkv__out_printf(out, "%s", !i ? "" : json ? ", " : "\t");
        if (json) put_label(out, m, order[i] - row), qkv__out_printf(out, ": %.9g", (double)*order[i]);
        else qkv__out_printf(out, "%s\t%.6f", qkv_model_label(m, order[i] - row), (double)*order[i]);
    }
    if (json) qkv__out_printf(out, "}}");
}

/* A model with one class scores texts: its logit x, and 1 / (1 + e^-x). */
static void put_only_class(qkv__out *out, const qkv_model *m, double logit, int json)
{
    double sigmoid = 1 / (1 + exp(-logit));
    if (!json) {
        qkv__out_printf(out, "%s\t%.6f\t%.6f", qkv_model_label(m, 0), sigmoid, logit);
        return;
    }
    qkv__out_printf(out, "{\"label\": ");
    put_label(out, m, 0);
    qkv__out_printf(out, ", \"sigmoid\": %.9g, \"logit\": %.9g}", sigmoid, logit); /* programs read them back */
}

qkv_status qkv_classified_text(const qkv_model *m, const float *row, int all, int json, qkv_text *out)
{
    int64_t classes = 0;
    if (!m || !row || !out)
        return qkv__fail(QKV_USAGE, "classified: a model, a row of its results and a place for the text are needed");
    while (qkv_model_label(m, classes)) classes++;
    if (!classes) return qkv__fail(QKV_USAGE, "classified: the model has no classes");
    size_t bytes = (size_t)classes * sizeof row;
    const float **order = qkv__alloc(bytes);
    if (!order) return QKV_MEMORY;
    for (int64_t i = 0; i < classes; i++) order[i] = row + i;
    qsort(order, (size_t)classes, sizeof *order, by_probability);
    qkv__out text = qkv__out_begin(out);
    if (classes == 1) put_only_class(&text, m, (double)*row, json);
    else put_classes(&text, m, row, order, all || json ? classes : 1, json);
    qkv__release(order, bytes);
    return qkv__out_end(&text);
}
