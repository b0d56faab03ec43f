/* job_documents.c: training a language model, or an encoder by masked words: plain text in. */
#include "job.h"
#include "share_text.h"
#include "training.h"

#include "../../src/base/status.h"
#include "../../src/model/model_info.h"
#include "../../src/data/pairs.h"

#include <math.h>
#include <stdio.h>

static bool masks(const qkv_training *t) { return t->job->bit == QKV__MASK; }

/* ---- options ---- */

static qkv_status check_documents(const qkv_training *t)
{
    double rate = (double)t->o.v.rate;
    if (!QKV__IS_SET(&t->o, rate) || (rate > 0 && rate < 1)) return QKV_OK;
    return qkv__fail(QKV_USAGE, "--rate: %g is not between 0 and 1", rate);
}

static void set_paper_documents(qkv_training *t)
{
    qkv__training_values *v = &t->o.v;
    v->schedule = 3; /* cosine */
    v->lr = 1e-3f;
    if (!v->steps && !v->epochs && !(v->minutes > 0)) v->epochs = 10;
    v->max_tokens = 4096;
    v->pre_norm = true;
    v->patience = 5;
    v->context = 256;
    v->rate = 0.15f;
    if (!masks(t)) v->positions = QKV_POSITION_ROPE;
}

/* ---- reading ---- */

typedef struct document_reading {
    qkv_training *t;
    qkv_dataset *pairs;
    int64_t max_length;
} document_reading;

/* All files; *read tells of all of them. */
static qkv_status read_documents(qkv_training *t, const qkv__paths *f, qkv_document_kind kind, qkv_document_each each,
                                 void *data, bool quiet, qkv_read_stats *read)
{
    return qkv__documents_read((const char *const *)f->at, f->n, kind, t->o.v.strict, each, data,
                               quiet ? (qkv__notes){ 0 } : qkv__training_notes(t), read);
}

static qkv_status survey_line(void *data, qkv_str text)
{
    qkv__survey *s = data;
    s->texts++;
    qkv__survey_text(s, text.data, text.length);
    return QKV_OK;
}

static qkv_status survey_documents(qkv_training *t, qkv__survey *s)
{
    qkv_read_stats read = { 0 };
    qkv_status status = read_documents(t, &t->o.v.train_documents, QKV_DOCUMENT_LINES, survey_line, s, true, &read);
    s->blank = read.empty;
    return status;
}

static qkv_status add_document_to_words(void *words, qkv_str text) { return qkv_word_counts_add(words, text); }

static qkv_status add_document_words(qkv_training *t, qkv_word_counts *sources, qkv_word_counts *targets)
{
    (void)targets;
    qkv_read_stats read = { 0 };
    return read_documents(t, &t->o.v.train_documents, (qkv_document_kind)t->o.v.documents, add_document_to_words, sources, true,
                          &read);
}

static qkv_status add_document(void *data, qkv_str text)
{
    document_reading *r = data;
    const qkv_training *t = r->t;
    return qkv_dataset_add(r->pairs, t->model,
                           &QKV_OPTS(qkv_example, .kind = masks(t) ? QKV_EXAMPLE_TEXT : QKV_EXAMPLE_DOCUMENT, .text = text,
                                     .max_length = masks(t) ? r->max_length : t->o.v.context));
}

static qkv_status set_loss(qkv_training *t)
{
    const qkv__training_values *v = &t->o.v;
    t->loss = masks(t) ? qkv_loss_masked_lm(t->model, &QKV_OPTS(qkv_masked_lm_opts, .rate = v->rate))
                       : qkv_loss_language_model();
    t->has_loss = true;
    int64_t readable = qkv__readable_length(t->model, v->context);
    if (masks(t) && t->special.mask < 0) return qkv__fail(QKV_UNSUPPORTED, "the tokenizer has no token " QKV_SPECIAL_MASK);
    bool is_short = !masks(t) && readable < v->context;
    if (is_short && !QKV__IS_GIVEN(&t->o, context)) qkv__choose(t, "context", "%lld", (long long)readable);
    else if (is_short)
        return qkv__fail(QKV_USAGE, "--context %d is more than the %lld positions of the model (--longest)", v->context,
                         (long long)readable);
    return QKV_OK;
}

/* Reads files into pairs. */
static qkv_status read_files(qkv_training *t, const qkv__paths *f, qkv_dataset *to, qkv_read_stats *read)
{
    document_reading r = { .t = t, .pairs = to };
    r.max_length = qkv__readable_length(t->model, t->o.v.max_length + 1) - 1; /* the end is not counted */
    return read_documents(t, f, (qkv_document_kind)t->o.v.documents, add_document, &r, false, read);
}

/* A document may be the whole of a file: what is held back of it are windows. */
static qkv_status read_and_split(qkv_training *t, qkv_read_stats *read)
{
    qkv_dataset *all = qkv_dataset_new();
    qkv_status status = all ? read_files(t, &t->o.v.train_documents, all, read) : qkv_error_status();
    if (!status) status = qkv__dataset_split(all, qkv__held_every(t), t->pairs, t->valid);
    qkv_dataset_free(all);
    return status;
}

typedef struct documents_read {
    qkv_read_stats train, valid;
} documents_read;

static qkv_status read_both(qkv_training *t, void *told)
{
    const qkv__training_values *v = &t->o.v;
    documents_read *read = told;
    bool splits = !v->valid.n && v->split > 0;
    qkv_status status = splits ? read_and_split(t, &read->train) : read_files(t, &v->train_documents, t->pairs, &read->train);
    return !status && v->valid.n ? read_files(t, &v->valid, t->valid, &read->valid) : status;
}

static qkv_status read_text(qkv_training *t)
{
    documents_read read = { 0 };
    qkv_status status = set_loss(t);
    t->batches.target_has_both = t->valid_batches.target_has_both = !masks(t);
    if (!status) status = qkv__read_for_all(t, read_both, &read, sizeof read);
    t->text.parts = masks(t) ? NULL : QKV__N("windows");
    t->text.texts = read.train.pairs;
    t->text.empty = read.train.empty;
    t->text.valid = t->o.v.valid.n ? read.valid.pairs : qkv_dataset_size(t->valid);
    return status;
}

/* ---- the models ---- */

static qkv_status without_encoder(qkv_training *t, const qkv_model *from, qkv_config *o)
{
    if (qkv__info_is_published(qkv__model_get_info(from)) && !(qkv_model_get_info(from)->can & QKV_CAN_GENERATE))
        return qkv__fail(QKV_USAGE, "%s is a %s, which has no decoder alone to generate with", t->o.v.from,
                         qkv_model_get_info(from)->family);
    o->encoder_layers = 0;
    o->target_vocab_size = 0;
    return QKV_OK;
}

static qkv_status without_decoder(qkv_training *t, const qkv_model *from, qkv_config *o)
{
    o->decoder_layers = 0;
    o->target_vocab_size = 0;
    o->classes = 0;
    o->ngrams = 0;
    o->classes_of = QKV_CLASSES_OF_TEXTS;
    if (!qkv__info_is_published(qkv__model_get_info(from))) return QKV_OK;
    if (!(qkv_model_get_info(from)->can & QKV_CAN_EMBED))
        return qkv__fail(QKV_USAGE, "%s is a %s, which has no encoder alone to fill in words with", t->o.v.from,
                         qkv_model_get_info(from)->family);
    o->head = o->output_bias = 1;
    o->pooler = QKV_POOLER_NONE; /* it is the classifier's */
    return QKV_OK;
}

/* ---- validation ---- */

static qkv_status validate_documents(qkv_training *t, const qkv_model *m, qkv_train_score *out)
{
    double loss;
    qkv_status status = qkv_evaluate(m, t->valid, &(qkv_evaluate_opts){ .loss = &t->loss, .batches = &t->valid_batches },
                                     &loss);
    if (status) return status;
    qkv__training_measured(t, loss, -1);
    out->score = -loss;
    snprintf(out->summary, sizeof out->summary, "valid loss %.4f, perplexity %.2f", loss, exp(loss));
    snprintf(out->json, sizeof out->json, "\"valid_loss\": %.6f", loss);
    return QKV_OK;
}

#define DOCUMENT_JOB                                                                                                     \
    .noun = QKV__N("documents"), .set_paper = set_paper_documents, .check = check_documents, .survey = survey_documents, \
    .add_words = add_document_words, .read = read_text, .validate = validate_documents

const qkv__job qkv__generate_job = { .name = "generate",
                                     .command = "train generate",
                                     .bit = QKV__GENERATE,
                                     DOCUMENT_JOB,
                                     .choose = qkv__choose_generation,
                                     .adjust = without_encoder };

const qkv__job qkv__mask_job = { .name = "mask",
                                 .command = "train mask",
                                 .bit = QKV__MASK,
                                 DOCUMENT_JOB,
                                 .choose = qkv__choose_masking,
                                 .adjust = without_decoder,
                                 .extra_special = QKV_SPECIAL_MASK };
