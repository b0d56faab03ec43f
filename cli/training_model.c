/* training_model.c: the model that a training starts with. */
#include "training.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- tokenizers ---- */

typedef struct tokenizers {
    qkv_tokenizer *source, *target; /* target: NULL for one vocabulary */
} tokenizers;

static void free_tokenizers(tokenizers *t)
{
    qkv_tokenizer_free(t->source);
    qkv_tokenizer_free(t->target);
    *t = (tokenizers){ 0 };
}

static qkv_tokenizer *learn_tokenizer(const training_plan *p, const qkv_word_counts *w, const char *of)
{
    const char *specials[] = { QKV_SPECIALS, p->extra_special };
    const qkv_bpe_opts opts = { .vocabulary = training.vocabulary,
                                .specials = specials,
                                .n_specials = p->extra_special ? 5 : 4 };
    qkv_tokenizer *t = qkv_tokenizer_train(w, &opts);
    if (!t) library_failed();
    else if (qkv_tokenizer_size(t) < training.vocabulary && was_given("vocab") && !training.quiet)
        fprintf(stderr, "qkv: the %s gives %d tokens, not %d\n", of, qkv_tokenizer_size(t), training.vocabulary);
    return t;
}

static qkv_status learn(const training_plan *p, tokenizers *out)
{
    qkv_token_kind kind = (qkv_token_kind)training.tokens;
    qkv_word_counts *sources = qkv_word_counts_new_of(kind), *targets = p->separate ? qkv_word_counts_new_of(kind) : sources;
    qkv_status status = sources && targets ? p->add_words(p->data, sources, targets) : library_failed();
    if (!status && !(out->source = learn_tokenizer(p, sources, p->separate ? "source text" : "text")))
        status = qkv_error_status();
    if (!status && p->separate && !(out->target = learn_tokenizer(p, targets, "target text"))) status = qkv_error_status();
    if (targets != sources) qkv_word_counts_free(targets);
    qkv_word_counts_free(sources);
    return status;
}

static qkv_status load(const char *source, const char *target, tokenizers *out)
{
    if (!(out->source = qkv_tokenizer_load(source))) return library_failed();
    return !target || (out->target = qkv_tokenizer_load(target)) ? QKV_OK : library_failed();
}

/* A resumed training has its tokenizers already; one that was killed before it wrote them learns the same again. */
static qkv_status find_tokenizers(const training_plan *p, tokenizers *out)
{
    const training_path source = training_file("tokenizer.json"), target = training_file("target_tokenizer.json");
    bool is_kept = training.resume && !access(source.text, F_OK) && (!p->separate || !access(target.text, F_OK));
    if (is_kept) return load(source.text, p->separate ? target.text : NULL, out);
    return training.tokenizer ? load(training.tokenizer, NULL, out) : learn(p, out);
}

/* ---- models ---- */

/* The tokenizers are the model's from here on. */
static qkv_model *give_tokenizers(qkv_model *m, tokenizers *t, qkv_status *status)
{
    if (m && !qkv_model_set_tokenizers(m, t->source, t->target)) return m;
    *status = library_failed();
    qkv_model_free(m);
    free_tokenizers(t);
    return NULL;
}

static qkv_model *new_model(const training_plan *p, qkv_status *status)
{
    tokenizers t = { 0 };
    qkv_transformer_opts opts = QKV_OPTS(qkv_transformer_opts);
    *status = find_tokenizers(p, &t);
    if (!*status) *status = training_model(qkv_tokenizer_size(t.source), qkv_tokenizer_size(t.target), &opts);
    if (!*status && p->adjust) *status = p->adjust(p->data, NULL, &opts);
    if (*status) return free_tokenizers(&t), NULL;
    return give_tokenizers(qkv_model_new(&opts, (uint64_t)training.seed), &t, status);
}

/* ---- from another model ---- */

static qkv_status load_folder(const char *folder, bool separate, tokenizers *out)
{
    if (qkv_tokenizers_load(folder, &out->source, &out->target)) return library_failed();
    if (!out->source) return fail(QKV_IO, "%s holds no tokenizer", folder);
    if (separate || !out->target) return QKV_OK;
    qkv_tokenizer_free(out->target); /* what is left of another model */
    out->target = NULL;
    return QKV_OK;
}

/* A model of its family, with every weight that it has too; the others are new. */
static qkv_model *start_from(const training_plan *p, const qkv_model *from, qkv_status *status)
{
    tokenizers t = { 0 };
    qkv_transformer_opts opts = *qkv_transformer_options(qkv_model_transformer(from));
    opts.size = sizeof opts;
    bool has_two = qkv_model_target_tokenizer(from) != qkv_model_source_tokenizer(from);
    set_free_options(&opts);
    if (p->adjust) *status = p->adjust(p->data, from, &opts);
    if (!*status) *status = load_folder(training.from, has_two && opts.encoder_layers && opts.decoder_layers, &t);
    if (*status) return free_tokenizers(&t), NULL;
    return give_tokenizers(qkv_model_like(from, &opts, (uint64_t)training.seed), &t, status);
}

static qkv_model *model_from(const training_plan *p, qkv_status *status)
{
    if ((*status = check_fixed_options())) return NULL;
    qkv_model *from = qkv_model_load(training.from);
    if (!from) return *status = library_failed(), NULL;
    qkv_model *m = start_from(p, from, status);
    qkv_model_free(from);
    return m;
}

bool is_published(const qkv_model *m) { return m && strcmp(qkv_model_info_of(m)->family, "qkv"); }

qkv_model *training_start(const training_plan *p, qkv_status *status)
{
    *status = QKV_OK;
    return training.from ? model_from(p, status) : new_model(p, status);
}

int64_t readable_length(const qkv_model *m, int64_t wanted)
{
    int64_t most = qkv_transformer_max_positions(qkv_transformer_options(qkv_model_transformer(m)));
    return most && most < wanted ? most : wanted;
}

/* ---- special tokens ---- */

qkv_status find_specials(training_job *j, qkv_special_tokens *frame)
{
    *frame = (qkv_special_tokens){ 0 };
    if (qkv_model_special_tokens(j->model, frame)) return library_failed();
    j->start = frame->start;
    j->end = frame->end;
    j->pad = frame->pad;
    j->bare_source = frame->source_end < 0;
    return QKV_OK;
}
