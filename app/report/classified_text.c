/* classified_text.c: what a classifier says of a text, as a line and as JSON. */
#include "results.h"
#include "labelled_texts.h"
#include "../../src/base/options.h"
#include "out.h"
#include "../../src/task/texts.h"

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

/* order: the classes, the likeliest first, as places in the row. And what ends the object. */
static void put_probabilities(qkv__out *out, const qkv_model *m, const float *row, const float *const *order, int64_t n)
{
    qkv__out_printf(out, "\"probabilities\": {");
    for (int64_t i = 0; i < n; i++) {
        if (i) qkv__out_printf(out, ", ");
        put_label(out, m, order[i] - row);
        qkv__out_printf(out, ": %.9g", (double)*order[i]);
    }
    qkv__out_printf(out, "}}");
}

static void put_classes(qkv__out *out, const qkv_model *m, const float *row, const float *const *order, int64_t n, int json)
{
    if (json) {
        qkv__out_printf(out, "{\"label\": ");
        put_label(out, m, order[0] - row);
        qkv__out_printf(out, ", ");
        put_probabilities(out, m, row, order, n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        qkv__out_printf(out, "%s%s\t%.6f", i ? "\t" : "", qkv_model_label(m, order[i] - row), (double)*order[i]);
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

/* Each label by itself. */
static void put_several(qkv__out *out, const qkv_model *m, const float *row, const float *const *order, int64_t classes,
                        const qkv_classified_opts *o)
{
    int64_t n = 0;
    while (n < classes && (double)*order[n] >= qkv__label_threshold(o->threshold)) n++;
    if (!o->json) {
        put_classes(out, m, row, order, o->all ? classes : n, 0);
        return;
    }
    qkv__out_printf(out, "{\"labels\": [");
    for (int64_t i = 0; i < n; i++) {
        if (i) qkv__out_printf(out, ", ");
        put_label(out, m, order[i] - row);
    }
    qkv__out_printf(out, "], ");
    put_probabilities(out, m, row, order, classes);
}

static void put_number(qkv__out *out, double number, int json)
{
    if (json) qkv__out_printf(out, "{\"number\": %.9g}", number);
    else qkv__out_printf(out, "%.7g", number);
}

static void put_found(qkv__out *out, const qkv_model *m, const float *row, const float *const *order, int64_t classes,
                      const qkv_classified_opts *o)
{
    qkv_problem problem = qkv_model_get_info(m)->problem;
    if (problem == QKV_PROBLEM_REGRESSION) put_number(out, (double)*row, o->json);
    else if (problem == QKV_PROBLEM_MULTILABEL) put_several(out, m, row, order, classes, o);
    else if (classes == 1) put_only_class(out, m, (double)*row, o->json);
    else put_classes(out, m, row, order, o->all || o->json ? classes : 1, o->json);
}

qkv_status qkv_classified_text(const qkv_model *m, const float *row, int all, int json, qkv_buffer *out)
{
    const qkv_classified_opts o = { .size = sizeof o, .all = all, .json = json };
    return qkv_classified_text_with(m, row, &o, out);
}

double qkv__label_threshold(double given) { return given == 0 ? 0.5 : given < 0 ? 0 : given; }

qkv_status qkv_classified_text_with(const qkv_model *m, const float *row, const qkv_classified_opts *opts, qkv_buffer *out)
{
    int64_t classes = 0;
    qkv_classified_opts o;
    if (QKV__READ_OPTIONS(&o, json, opts, "classified")) return QKV_USAGE;
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
    put_found(&text, m, row, order, classes, &o);
    qkv__release(order, bytes);
    return qkv__out_end(&text);
}
