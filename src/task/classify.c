/* classify.c: which class a text belongs to. */
#include "texts.h"

#include <qkv/train.h>

#include "../base/size.h"
#include "../model/model_info.h"
#include "../nn/ngrams.h"
#include "../tensor/tape.h"

#include <math.h>
#include <string.h>

/* ---- learning ---- */

static qkv_status add_example(qkv_dataset *p, const qkv_model *m, const qkv__given *x, int64_t max_length,
                              const int32_t *target, size_t n)
{
    if (!p || (x->length && !x->text)) return qkv__fail(QKV_USAGE, "classify: pairs and a text are needed");
    qkv__reader r = { 0 };
    qkv_status status = qkv__reader_training_example(&r, m, x, max_length);
    if (!status) status = qkv_dataset_add_ids(p, r.ids, (size_t)r.n, target, n);
    qkv__reader_free(&r);
    return status;
}

qkv_status qkv_pairs_add_text(qkv_dataset *p, const qkv_model *m, const char *text, size_t length, const char *pair,
                              size_t pair_length, int64_t max_length, int32_t class_id)
{
    return add_example(p, m, &(qkv__given){ text, pair, length, pair_length }, max_length, &class_id, 1);
}

/* 32 labels an id, a bit each: every text has as many ids, so that batches are sorted by the texts alone. */
enum { BITS = 32 };

qkv_status qkv_pairs_add_text_labels(qkv_dataset *p, const qkv_model *m, const char *text, size_t length, const char *pair,
                                     size_t pair_length, int64_t max_length, const uint8_t *has, int64_t labels)
{
    if (!has || labels < 1) return qkv__fail(QKV_USAGE, "classify: which labels the text has is needed");
    size_t n = (size_t)qkv__ceil_div(labels, BITS), bytes = n * sizeof(uint32_t);
    uint32_t *target = qkv__alloc_zero(bytes);
    if (!target) return QKV_MEMORY;
    for (int64_t k = 0; k < labels; k++) target[k / BITS] |= (uint32_t)(has[k] != 0) << k % BITS;
    qkv_status status = add_example(p, m, &(qkv__given){ text, pair, length, pair_length }, max_length, (int32_t *)target, n);
    qkv__release(target, bytes);
    return status;
}

/* The bits of the number are the id. */
qkv_status qkv_pairs_add_text_number(qkv_dataset *p, const qkv_model *m, const char *text, size_t length, const char *pair,
                                     size_t pair_length, int64_t max_length, float number)
{
    int32_t bits;
    if (!isfinite(number)) return qkv__fail(QKV_USAGE, "classify: the number of a text is not finite");
    memcpy(&bits, &number, sizeof bits);
    return add_example(p, m, &(qkv__given){ text, pair, length, pair_length }, max_length, &bits, 1);
}

bool qkv__target_has(const int32_t *target, int64_t label) { return (uint32_t)target[label / BITS] >> label % BITS & 1; }

static int32_t class_of(const qkv_batch *b, int64_t row) { return b->labels[row * b->target_length]; }

static qkv_status count_texts(const qkv_loss *o, qkv_batch *b, uint64_t seed, uint64_t pass)
{
    (void)o, (void)seed, (void)pass;
    b->tokens = b->rows;
    return QKV_OK;
}

/* The weight of each row's class, all 1 without any; and their sum. NULL with the error on the tape. */
static float *row_weights(const float *weights, int64_t n, qkv_tape *t, const qkv_batch *b, double *sum)
{
    float *of_rows = qkv__save(t, sizeof *of_rows * (size_t)b->rows);
    *sum = 0;
    for (int64_t i = 0; of_rows && i < b->rows; i++) {
        int32_t class_id = class_of(b, i);
        if (class_id < 0 || class_id >= n) {
            qkv__error(t, QKV_USAGE, "classify: class %ld is outside 0..%lld", (long)class_id, (long long)n - 1);
            return NULL;
        }
        of_rows[i] = weights ? weights[class_id] : 1;
        *sum += (double)of_rows[i];
    }
    return of_rows;
}

/* Of each token in a batch; NULL with the error on the tape. */
static int32_t *batch_types(const qkv__special_tokens *f, qkv_tape *t, const qkv_batch *b)
{
    int32_t *types = qkv__save(t, sizeof *types * (size_t)(b->rows * b->source_length));
    for (int64_t i = 0; types && i < b->rows; i++) {
        int64_t at = i * b->source_length;
        for (int64_t k = b->source_lengths[i]; k < b->source_length; k++) types[at + k] = 0;
        qkv__token_types(f, b->source + at, b->source_lengths[i], types + at);
    }
    return types;
}

/* The logits of x from its encoder's hidden states, without those of ngrams. A published decoder, BART's, reads the text once more, a
 * place later, behind what starts its texts, and the classifier what that gives at the last token. */
static qkv_tensor *class_logits(const qkv_model *m, qkv_tensor *hidden, const qkv__sources *x)
{
    const qkv_transformer *f = qkv_model_transformer(m);
    const qkv_model_info *info = qkv_model_get_info(m);
    if (!hidden || !qkv_transformer_options(f)->decoder_layers || !qkv__info_is_published(info))
        return qkv_transformer_classify(f, hidden, x->lengths);
    qkv_tape *t = hidden->tape;
    if (info->start < 0) return qkv__error(t, QKV_UNSUPPORTED, "classify: the model does not say what its decoder starts with");
    int32_t *ids = qkv__save(t, sizeof *ids * (size_t)(x->rows * x->length));
    for (int64_t i = 0; ids && i < x->rows * x->length; i++) ids[i] = i % x->length ? x->ids[i - 1] : info->start;
    if (ids) hidden = qkv_transformer_decode(f, t, ids, x->rows, x->length, x->lengths, hidden, x->lengths);
    return ids ? qkv_transformer_classify(f, hidden, x->lengths) : NULL;
}

/* The same of a batch, whose texts go to *s. */
static qkv_tensor *batch_logits(const qkv_model *m, qkv_tape *t, const qkv_batch *b, qkv__sources *s)
{
    qkv__special_tokens f;
    if (qkv__special_tokens_of(m, &f)) f.has_types = false; /* a batch of ids needs no text */
    const int32_t *types = f.has_types ? batch_types(&f, t, b) : NULL;
    if (f.has_types && !types) return NULL;
    const qkv_transformer *x = qkv_model_transformer(m);
    *s = (qkv__sources){ b->source, types, b->rows, b->source_length, b->source_lengths };
    return class_logits(m, qkv_transformer_encode_typed(x, t, s->ids, s->types, s->rows, s->length, s->lengths), s);
}

qkv_tensor *qkv_classify_batch(const qkv_model *m, qkv_tape *t, const qkv_batch *b)
{
    qkv__sources s;
    return m && t && b ? qkv__ngrams_add(qkv_model_transformer(m), batch_logits(m, t, b, &s), &s, NULL) : NULL;
}

/* sum w_i loss_i / texts. Divided by the texts and not by their weights, batches add up to the whole, and weights count in a
 * batch of one text too. */
static qkv_tensor *class_loss(const qkv_loss *o, const qkv_model *m, qkv_tape *t, const qkv_batch *b, float smoothing)
{
    double sum;
    int32_t *classes = qkv__save(t, sizeof *classes * (size_t)b->rows);
    const qkv_transformer *x = qkv_model_transformer(m);
    const float *weights = row_weights(o->data, qkv_transformer_options(x)->classes, t, b, &sum);
    if (!classes || !weights) return NULL;
    for (int64_t i = 0; i < b->rows; i++) classes[i] = class_of(b, i);
    qkv__sources s;
    qkv_tensor *attention = batch_logits(m, t, b, &s), *logits = qkv__ngrams_add(x, attention, &s, classes);
    const qkv_cross_entropy_opts opts = { .smoothing = smoothing, .weights = weights };
    qkv_tensor *loss = qkv_cross_entropy_with(logits, classes, &opts);
    float alone = qkv__is_training(t) ? qkv__ngrams_overlap(x) : 0;
    if (alone > 0)
        loss = qkv_add(qkv_scale(loss, 1 - alone), qkv_scale(qkv_cross_entropy_with(attention, classes, &opts), alone));
    return qkv_scale(loss, (float)(sum / (double)b->rows));
}

qkv_loss qkv_loss_classification(const float *weights, int64_t classes)
{
    uint64_t name = 0x636c617373; /* "class", and the weights */
    for (int64_t i = 0; weights && i < classes; i++) {
        uint32_t bits;
        memcpy(&bits, &weights[i], sizeof bits);
        name = (name ^ bits) * 0x100000001b3u;
    }
    return (qkv_loss){ .prepare = count_texts, .loss = class_loss, .data = weights, .name = name };
}

static const int32_t *target_of(const qkv_batch *b, int64_t row) { return b->labels + row * b->target_length; }

/* The mean over texts and labels; smoothing moves each target that share of the way to 1/2. */
static qkv_tensor *labels_loss(const qkv_loss *o, const qkv_model *m, qkv_tape *t, const qkv_batch *b, float smoothing)
{
    (void)o;
    int64_t labels = qkv_transformer_options(qkv_model_transformer(m))->classes;
    if (labels < 1 || b->target_length <= (labels - 1) / BITS)
        return qkv__error(t, QKV_USAGE, "classify: the texts were not added by qkv_pairs_add_text_labels()");
    float *wanted = qkv__save(t, sizeof *wanted * (size_t)(b->rows * labels));
    for (int64_t i = 0; wanted && i < b->rows; i++)
        for (int64_t k = 0; k < labels; k++)
            wanted[i * labels + k] = qkv__target_has(target_of(b, i), k) ? 1 - smoothing / 2 : smoothing / 2;
    if (!wanted) return NULL;
    return qkv_binary_cross_entropy(qkv_classify_batch(m, t, b), qkv_constant(t, QKV_SHAPE(b->rows, labels), wanted));
}

qkv_loss qkv_loss_multilabel(void)
{
    return (qkv_loss){ .prepare = count_texts, .loss = labels_loss, .name = 0x7365766572616c }; /* "several" */
}

float qkv__target_number(const int32_t *target)
{
    float number;
    memcpy(&number, target, sizeof number);
    return number;
}

static qkv_tensor *number_loss(const qkv_loss *o, const qkv_model *m, qkv_tape *t, const qkv_batch *b, float smoothing)
{
    (void)o, (void)smoothing;
    float *wanted = qkv__save(t, sizeof *wanted * (size_t)b->rows);
    for (int64_t i = 0; wanted && i < b->rows; i++) wanted[i] = qkv__target_number(target_of(b, i));
    if (!wanted) return NULL;
    return qkv_mse(qkv_classify_batch(m, t, b), qkv_constant(t, QKV_SHAPE(b->rows, 1), wanted));
}

qkv_loss qkv_loss_regression(void)
{
    return (qkv_loss){ .prepare = count_texts, .loss = number_loss, .name = 0x6e756d626572 }; /* "number" */
}

/* ---- using ---- */

/* One class alone has the probability 1 whatever the text: its logit is what such a model says. */
static qkv_tensor *class_scores(const qkv_model *m, qkv_tensor *hidden, const qkv__sources *x, const void *data)
{
    (void)data;
    qkv_tensor *logits = qkv__ngrams_add(qkv_model_transformer(m), class_logits(m, hidden, x), x, NULL);
    if (qkv_model_get_info(m)->problem == QKV_PROBLEM_MULTILABEL) return qkv_sigmoid(logits);
    return qkv_transformer_options(qkv_model_transformer(m))->classes > 1 ? qkv_softmax(logits) : logits;
}

qkv_status qkv_classify(const qkv_model *m, const qkv_texts *texts, const qkv_encoder_opts *opts, qkv_matrix *out)
{
    const qkv_config *o = qkv_transformer_options(qkv_model_transformer(m));
    if (!o || !o->classes || o->classes_of) return qkv__fail(QKV_USAGE, "classify: the model has no classifier");
    return qkv__read_texts(m, texts, opts, class_scores, NULL, o->classes, out);
}
