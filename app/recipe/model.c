/* model.c: the model that a training starts with, and its tokenizers. */
#include "job.h"
#include "share_text.h"
#include "training.h"

#include "../../src/base/file.h"
#include "../../src/base/status.h"

#include <qkv/unstable/dist.h>
#include <qkv/unstable/util.h>

#include <stdio.h>

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

static qkv_tokenizer *learn_tokenizer(const qkv_training *t, const qkv_word_counts *w, const char *of)
{
    const char *specials[] = { QKV_SPECIALS, t->job->extra_special };
    const qkv_tokenizer_opts opts = { .vocab_size = t->o.v.vocabulary,
                                      .specials = specials,
                                      .n_specials = t->job->extra_special ? 5 : 4,
                                      .min_count = t->o.v.ngrams ? 1 : 0 }; /* a word that occurs once says something too */
    qkv_tokenizer *made = qkv_tokenizer_train(w, &opts);
    if (made && qkv_tokenizer_vocab_size(made) < t->o.v.vocabulary && QKV__IS_GIVEN(&t->o, vocabulary))
        qkv__training_note(t, "the %s gives %d tokens, not %d", qkv__translated(of), qkv_tokenizer_vocab_size(made),
                           t->o.v.vocabulary);
    return made;
}

static qkv_status learn_tokenizers(qkv_training *t, tokenizers *out)
{
    bool separate = t->o.v.separate;
    qkv_token_kind kind = (qkv_token_kind)t->o.v.tokens;
    qkv_word_counts *sources = qkv_word_counts_new(kind), *targets = separate ? qkv_word_counts_new(kind) : sources;
    qkv_status status = sources && targets ? t->job->add_words(t, sources, targets) : qkv_error_status();
    if (!status && !(out->source = learn_tokenizer(t, sources, separate ? QKV__N("source text") : QKV__N("text"))))
        status = qkv_error_status();
    if (!status && separate && !(out->target = learn_tokenizer(t, targets, QKV__N("target text")))) status = qkv_error_status();
    if (targets != sources) qkv_word_counts_free(targets);
    qkv_word_counts_free(sources);
    return status;
}

static qkv_status load_tokenizers(const char *source, const char *target, tokenizers *out)
{
    if (!(out->source = qkv_tokenizer_load(source))) return qkv_error_status();
    return !target || (out->target = qkv_tokenizer_load(target)) ? QKV_OK : qkv_error_status();
}

/* A resumed training has its tokenizers already; one that was killed before it wrote them learns the same again. */
static qkv_status find_tokenizers(qkv_training *t, tokenizers *out)
{
    char source[4096], target[4096];
    const qkv__training_values *v = &t->o.v;
    snprintf(source, sizeof source, "%s/tokenizer.json", v->out ? v->out : "");
    snprintf(target, sizeof target, "%s/target_tokenizer.json", v->out ? v->out : "");
    bool is_kept = v->resume && qkv__file_exists(source) && (!v->separate || qkv__file_exists(target));
    if (is_kept) return load_tokenizers(source, v->separate ? target : NULL, out);
    return v->tokenizer ? load_tokenizers(v->tokenizer, NULL, out) : learn_tokenizers(t, out);
}

/* Rank 0 learns it for all, who need not read the text for that; a file that is given each of them reads. */
static qkv_status find_for_all(qkv_training *t, tokenizers *out)
{
    if (qkv_dist_size() == 1 || t->o.v.tokenizer) return find_tokenizers(t, out);
    qkv_status status = qkv__share_status(qkv_dist_rank() ? QKV_OK : find_tokenizers(t, out));
    if (!status) status = qkv__share_tokenizer(&out->source);
    return status ? status : qkv__share_tokenizer(&out->target);
}

/* ---- the options of the model ---- */

/* 0: not set; numbers may be 0. Jobs have defaults of their own for flags and words. */
#define SET_COUNT(member) \
    if (v->member) out->member = v->member;
#define SET_INT SET_COUNT
#define SET_WHOLE SET_COUNT
#define SET_FLAG(member) out->member = v->member;
#define SET_NUMBER(member) \
    if (QKV__IS_SET(&t->o, member)) out->member = v->member;
#define SET_WORD(member) out->member = (__typeof__(out->member))v->member;

static qkv_status describe_model(const qkv_training *t, const tokenizers *k, qkv_config *out)
{
    const qkv__training_values *v = &t->o.v;
    qkv_status status = qkv_config_preset(qkv__options_word(QKV__SET_preset, v->preset), qkv_tokenizer_vocab_size(k->source),
                                          out);
    if (status) return status;
    out->target_vocab_size = qkv_tokenizer_vocab_size(k->target);
    if (v->layers) out->encoder_layers = out->decoder_layers = v->layers;
#define QKV_TRAIN_OPTION(member, kind, ...) SET_##kind(member)
#include <qkv/transformer.def>
    if (out->positions != QKV_POSITION_LEARNED) out->max_positions = 0;
    if (out->heads > 0 && !out->d_k && out->dim % out->heads)
        return qkv__fail(QKV_USAGE, "--dim %lld is not divisible by --heads %lld: each head has the same width",
                         (long long)out->dim, (long long)out->heads);
    if (out->kv_heads > 0 && out->heads % out->kv_heads)
        return qkv__fail(QKV_USAGE,
                         "--heads %lld is not divisible by --kv-heads %lld: each of these serves the same number of heads",
                         (long long)out->heads, (long long)out->kv_heads);
    return QKV_OK;
}

/* ---- models ---- */

/* The tokenizers are the model's from here on. */
static qkv_status give_tokenizers(qkv_training *t, qkv_model *m, tokenizers *k)
{
    if (m && !qkv_model_set_tokenizers(m, k->source, k->target)) return t->model = m, QKV_OK;
    qkv_status status = qkv_error_status();
    qkv_model_free(m);
    free_tokenizers(k);
    return status;
}

static qkv_status make_model(qkv_training *t)
{
    tokenizers k = { 0 };
    qkv_config opts = QKV_OPTS(qkv_config);
    qkv_status status = find_for_all(t, &k);
    if (!status) status = describe_model(t, &k, &opts);
    if (!status) status = t->job->adjust(t, NULL, &opts);
    if (!status) status = qkv__shape_like(t, &opts);
    if (status) return free_tokenizers(&k), status;
    return give_tokenizers(t, qkv_model_new(&opts, (uint64_t)t->o.v.seed), &k);
}

/* ---- from another model ---- */

enum { IS_FIXED, IS_FREE };

static qkv_status refuse_given(const qkv_training *t, qkv__option i)
{
    if (t->o.origin[i] != QKV__SET) return QKV_OK;
    return qkv__fail(QKV_USAGE, "--%s cannot be changed: --from %s decides it", qkv__options_name(i), t->o.v.from);
}

static qkv_status check_fixed_options(const qkv_training *t)
{
    static const qkv__option besides[] = { QKV__SET_preset,   QKV__SET_layers, QKV__SET_vocabulary, QKV__SET_tokenizer,
                                           QKV__SET_separate, QKV__SET_tokens, QKV__SET_like };
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < sizeof besides / sizeof *besides && !status; i++) status = refuse_given(t, besides[i]);
#define QKV_TRAIN_OPTION(member, kind, name, value, job, from, ...) \
    if (!status && IS_##from == IS_FIXED) status = refuse_given(t, QKV__SET_##member);
#include <qkv/transformer.def>
    return status;
}

/* What the model leaves to the options, such as dropout. */
static void set_free_options(const qkv_training *t, qkv_config *out)
{
#define QKV_TRAIN_OPTION(member, kind, name, value, job, from, ...) \
    if (IS_##from == IS_FREE && QKV__IS_SET(&t->o, member)) out->member = (__typeof__(out->member))t->o.v.member;
#include <qkv/transformer.def>
}

static qkv_status load_folder(const char *folder, bool separate, tokenizers *out)
{
    qkv_status status = qkv_tokenizers_load(folder, &out->source, &out->target);
    if (status) return status;
    if (!out->source) return qkv__fail(QKV_IO, "%s holds no tokenizer", folder);
    if (separate || !out->target) return QKV_OK;
    qkv_tokenizer_free(out->target); /* what is left of another model */
    out->target = NULL;
    return QKV_OK;
}

/* A model of its family, with every weight that it has too; the others are new. */
static qkv_status start_from(qkv_training *t, const qkv_model *from)
{
    tokenizers k = { 0 };
    qkv_config opts = { .size = sizeof opts };
    qkv_model_config(from, &opts);
    bool has_two = qkv_model_tokenizer(from, QKV_SIDE_TARGET) != qkv_model_tokenizer(from, QKV_SIDE_SOURCE);
    set_free_options(t, &opts);
    qkv_status status = t->job->adjust(t, from, &opts);
    if (!status) status = load_folder(t->o.v.from, has_two && opts.encoder_layers && opts.decoder_layers, &k);
    if (status) return free_tokenizers(&k), status;
    return give_tokenizers(t, qkv_model_adapt(from, &opts, (uint64_t)t->o.v.seed), &k);
}

static qkv_status go_on_from_model(qkv_training *t)
{
    qkv_status status = check_fixed_options(t);
    if (status) return status;
    qkv_model *from = qkv_model_load(t->o.v.from, NULL);
    if (!from) return qkv_error_status();
    status = start_from(t, from);
    qkv_model_free(from);
    return status;
}

qkv_status qkv__training_start(qkv_training *t) { return t->o.v.from ? go_on_from_model(t) : make_model(t); }

int64_t qkv__readable_length(const qkv_model *m, int64_t wanted)
{
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    return o.positions == QKV_POSITION_LEARNED && o.max_positions < wanted ? o.max_positions : wanted;
}
