/* examples.c: texts as examples of a dataset. */
#include "examples.h"

#include "../base/memory.h"
#include "../base/options.h"
#include "../base/size.h"
#include "../data/corpus.h"
#include "../model/reader.h"

#include <math.h>
#include <string.h>

bool qkv__labels_have(const int32_t *target, int64_t label)
{
    return (uint32_t)target[label / QKV__LABEL_BITS] >> label % QKV__LABEL_BITS & 1;
}

float qkv__label_value(const int32_t *target)
{
    float value;
    memcpy(&value, target, sizeof value);
    return value;
}

static qkv_status add_labels(qkv_dataset *d, const qkv__reader *r, const uint8_t *labels, int64_t n_labels)
{
    if (!labels || n_labels < 1) return qkv__fail(QKV_USAGE, "examples: the labels of the text are needed");
    size_t n = (size_t)qkv__ceil_div(n_labels, QKV__LABEL_BITS), bytes = n * sizeof(uint32_t);
    uint32_t *target = qkv__alloc_zero(bytes);
    if (!target) return QKV_MEMORY;
    for (int64_t k = 0; k < n_labels; k++) target[k / QKV__LABEL_BITS] |= (uint32_t)(labels[k] != 0) << k % QKV__LABEL_BITS;
    qkv_status status = qkv_dataset_add_ids(d, r->ids, (size_t)r->n, (int32_t *)target, n);
    qkv__release(target, bytes);
    return status;
}

/* Windows of `context` tokens to predict, the last token of one being the first of the next. */
static qkv_status add_document(qkv_dataset *d, qkv__reader *r, const qkv_model *m, qkv_str text, int64_t context)
{
    if (context < 1) return qkv__fail(QKV_USAGE, "examples: a document needs windows of at least 1 token");
    qkv_status status = qkv__reader_document(r, m, text.data, text.length);
    for (int64_t at = 0; at + 1 < r->n && !status; at += context)
        status = qkv_dataset_add_ids(d, NULL, 0, r->ids + at, (size_t)qkv__min(context + 1, r->n - at));
    return status;
}

static qkv_status add_translation(qkv_dataset *d, qkv__reader *r, const qkv_model *m, const qkv_example *x)
{
    const qkv_tokenizer *from = qkv_model_tokenizer(m, QKV_SIDE_SOURCE), *to = qkv_model_tokenizer(m, QKV_SIDE_TARGET);
    if (!from || !to) return qkv__fail(QKV_USAGE, "examples: the model has no tokenizers");
    qkv_status status = qkv__reader_encode(r, from, x->text.data, x->text.length);
    int64_t n = r->n;
    if (!status) status = qkv__reader_encode(r, to, x->target.data, x->target.length);
    int64_t target = r->n - n, limit = x->max_length ? x->max_length : r->n;
    if (status) return status;
    return qkv_dataset_add_ids(d, r->ids, (size_t)qkv__min(n, limit), r->ids + n, (size_t)qkv__min(target, limit));
}

static bool is_string(qkv_str s) { return s.data || !s.length; }

static qkv_status add_example(qkv_dataset *d, qkv__reader *r, const qkv_model *m, const qkv_example *x)
{
    const qkv__given given = { x->text.data, x->pair.data, x->text.length, x->pair.length };
    int32_t bits = x->class_id;
    if (x->kind == QKV_EXAMPLE_TRANSLATION) return add_translation(d, r, m, x);
    if (x->kind == QKV_EXAMPLE_DOCUMENT) return add_document(d, r, m, x->text, x->max_length);
    qkv_status status = qkv__reader_training_example(r, m, &given, x->max_length);
    if (status) return status;
    if (x->kind == QKV_EXAMPLE_LABELS) return add_labels(d, r, x->labels, x->n_labels);
    /* The target makes room for as many labels as the source has ids. */
    if (x->kind == QKV_EXAMPLE_TEXT) return qkv_dataset_add_ids(d, r->ids, (size_t)r->n, r->ids, (size_t)r->n);
    if (x->kind == QKV_EXAMPLE_VALUE) memcpy(&bits, &x->value, sizeof bits);
    return qkv_dataset_add_ids(d, r->ids, (size_t)r->n, &bits, 1);
}

qkv_status qkv_dataset_add(qkv_dataset *d, const qkv_model *m, const qkv_example *x)
{
    qkv_example e;
    if (QKV__READ_OPTIONS(&e, max_length, x, "examples")) return QKV_USAGE;
    if (!d || !m || !x || !is_string(e.text) || !is_string(e.pair) || !is_string(e.target))
        return qkv__fail(QKV_USAGE, "examples: a dataset, a model and a text are needed");
    if ((unsigned)e.kind > QKV_EXAMPLE_DOCUMENT || e.max_length < 0)
        return qkv__fail(QKV_USAGE, "examples: no such kind, or a negative max_length");
    if (e.kind == QKV_EXAMPLE_VALUE && !isfinite(e.value))
        return qkv__fail(QKV_USAGE, "examples: the value of a text is not finite");
    qkv__reader r = { 0 };
    qkv_status status = add_example(d, &r, m, &e);
    qkv__reader_free(&r);
    return status;
}

qkv_status qkv_dataset_add_files(qkv_dataset *d, const qkv_model *m, const char *source, const char *target,
                                 const qkv_corpus_opts *opts, qkv_read_stats *read)
{
    const qkv_tokenizer *from = qkv_model_tokenizer(m, QKV_SIDE_SOURCE), *to = qkv_model_tokenizer(m, QKV_SIDE_TARGET);
    if (!from || !to) return qkv__fail(QKV_USAGE, "examples: a model with tokenizers is needed");
    return qkv__dataset_add_corpus(d, from, to, source, target, opts, read);
}
