/* training_options.c: what the options of a training mean. */
#include "training.h"

#include <stdio.h>

training_values training = { .vocabulary = 8000,
                             .preset = 1,
                             .max_positions = 512,
                             .smoothing = 0.1f,
                             .clip = 1,
                             .max_tokens = 2048,
                             .update_freq = 1,
                             .max_length = 256,
                             .seed = 1,
                             .patience = 5,
                             .save_every = 500,
                             .log_every = 100 };

const char *const token_names[] = { "bpe", "words", "characters", NULL }; /* in the order of qkv_token_kind */
const char *const preset_names[] = { "tiny", "small", "base", "big", NULL };
const char *const optimizer_names[] = { "adam", "adamw", "sgd", "adagrad", "rmsprop", NULL };
const char *const schedule_names[] = { "paper", "constant", "linear", "cosine", NULL };

/* ---- the model ---- */

/* 0: not given; numbers may be 0. Jobs have defaults of their own for flags and words. */
#define SET_COUNT(member) \
    if (training.member) out->member = training.member;
#define SET_INT SET_COUNT
#define SET_FLAG(member) out->member = training.member;
#define SET_NUMBER(member) \
    if (was_given(transformer_option_names[TRANSFORMER_##member])) out->member = training.member;
#define SET_WORD(member) out->member = (__typeof__(out->member))training.member;

qkv_status training_model(int64_t vocabulary, int64_t target_vocabulary, qkv_transformer_opts *out)
{
    if (qkv_transformer_preset(preset_names[training.preset], vocabulary, out)) return library_failed();
    out->target_vocabulary = target_vocabulary;
    if (training.layers) out->encoder_layers = out->decoder_layers = training.layers;
#define QKV_TRAIN_OPTION(member, kind, ...) SET_##kind(member)
#include <qkv/transformer.def>
    out->max_positions = qkv_transformer_max_positions(out); /* 0 where they are not learned */
    return QKV_OK;
}

enum { IS_FIXED, IS_FREE };

static qkv_status refuse_given(const char *name)
{
    return was_given(name) ? fail(QKV_USAGE, "--%s cannot be changed: --from %s decides it", name, training.from) : QKV_OK;
}

qkv_status check_fixed_options(void)
{
    static const char *const besides[] = { "preset", "layers", "vocab", "tokenizer", "separate", "tokens", NULL };
    qkv_status status = QKV_OK;
    for (int i = 0; besides[i] && !status; i++) status = refuse_given(besides[i]);
#define QKV_TRAIN_OPTION(member, kind, name, value, job, from, ...) \
    if (!status && IS_##from == IS_FIXED) status = refuse_given(name);
#include <qkv/transformer.def>
    return status;
}

void set_free_options(qkv_transformer_opts *out)
{
#define QKV_TRAIN_OPTION(member, kind, name, value, job, from, ...) \
    if (IS_##from == IS_FREE && was_given(name)) out->member = (__typeof__(out->member))training.member;
#include <qkv/transformer.def>
}

/* ---- the optimizer ---- */

/* A library's option of 0 means its default; a true 0 is a negative number there. */
static float true_zero(float given) { return given == 0 ? -1 : given; }

qkv_optimizer_opts training_optimizer(void)
{
    static const qkv_optimizer_rule rules[] = { QKV_OPTIMIZER_ADAM, QKV_OPTIMIZER_ADAMW, QKV_OPTIMIZER_SGD,
                                                QKV_OPTIMIZER_ADAGRAD, QKV_OPTIMIZER_RMSPROP };
    qkv_optimizer_opts o = { .rule = rules[training.optimizer], .nesterov = training.nesterov };
    if (o.rule == QKV_OPTIMIZER_ADAM || o.rule == QKV_OPTIMIZER_ADAMW)
        o.beta2 = 0.98f, o.eps = 1e-9f; /* section 5.3 of the paper */
    if (was_given("momentum")) o.momentum = training.momentum;
    if (was_given("beta1")) o.beta1 = true_zero(training.beta1);
    if (was_given("beta2")) o.beta2 = true_zero(training.beta2);
    if (was_given("alpha")) o.alpha = true_zero(training.alpha);
    if (was_given("eps")) o.eps = true_zero(training.eps);
    if (was_given("weight-decay")) o.weight_decay = true_zero(training.weight_decay);
    return o;
}

static double full_rate(void)
{
    static const double rates[] = { 0.001, 0.001, 0.01, 0.01, 0.01 };
    return was_given("lr") ? (double)training.lr : training.schedule == 0 ? 1 : rates[training.optimizer];
}

/* The paper's 4000; a tenth of a training that knows its end. */
static int64_t warmup_steps(qkv_schedule_kind kind, int64_t total_steps)
{
    if (training.warmup) return training.warmup;
    return kind == QKV_SCHEDULE_PAPER ? 4000 : kind == QKV_SCHEDULE_CONSTANT ? 0 : total_steps / 10;
}

qkv_status training_opts(int64_t dim, int64_t total_steps, qkv_trainer_opts *out)
{
    static const qkv_schedule_kind kinds[] = { QKV_SCHEDULE_PAPER, QKV_SCHEDULE_CONSTANT, QKV_SCHEDULE_LINEAR,
                                               QKV_SCHEDULE_COSINE };
    qkv_schedule *s = &out->schedule;
    *out = (qkv_trainer_opts){ .update_freq = training.update_freq,
                               .smoothing = training.smoothing,
                               .clip = training.clip,
                               .seed = (uint64_t)training.seed };
    *s = (qkv_schedule){ .kind = kinds[training.schedule], .lr = full_rate(), .dim = dim };
    s->warmup = warmup_steps(s->kind, total_steps);
    if (!(s->lr > 0)) return fail(QKV_USAGE, "--lr: %g is not above 0", s->lr);
    if (!(training.smoothing >= 0 && training.smoothing < 1))
        return fail(QKV_USAGE, "--label-smoothing: %g is not at least 0 and below 1", (double)training.smoothing);
    if (s->kind != QKV_SCHEDULE_LINEAR && s->kind != QKV_SCHEDULE_COSINE) return QKV_OK;
    if (!total_steps)
        return fail(QKV_USAGE, "--schedule %s must know where it ends: give --steps or --epochs",
                    schedule_names[training.schedule]);
    s->steps = total_steps;
    s->last = (double)training.last_lr;
    if (s->warmup >= s->steps)
        return fail(QKV_USAGE, "--warmup: %lld steps, but the training has only %lld", (long long)s->warmup,
                    (long long)s->steps);
    return QKV_OK;
}

training_path training_file(const char *name)
{
    training_path p;
    snprintf(p.text, sizeof p.text, "%s/%s", training.out, name);
    return p;
}
