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
const char *const norm_names[] = { "layer", "rms", NULL };
const char *const activation_names[] = { "relu", "gelu", "gelu-tanh", "silu", "silu-gated", NULL };
const char *const position_names[] = { "sinusoid", "sinusoid-halves", "learned", "rotary", "none", NULL };
const char *const optimizer_names[] = { "adam", "adamw", "sgd", "adagrad", "rmsprop", NULL };
const char *const schedule_names[] = { "paper", "constant", "linear", "cosine", NULL };

static void set_size(int64_t *to, int given)
{
    if (given) *to = given;
}

static void set_rate(float *to, const char *name, float given)
{
    if (was_given(name)) *to = given;
}

qkv_status training_model(int64_t vocabulary, int64_t target_vocabulary, qkv_transformer_opts *out)
{
    static const qkv_activation activations[] = { QKV_ACTIVATION_RELU, QKV_ACTIVATION_GELU, QKV_ACTIVATION_GELU_TANH,
                                                  QKV_ACTIVATION_SILU, QKV_ACTIVATION_SILU_GATED };
    static const qkv_position_kind positions[] = { QKV_POSITION_SINUSOID, QKV_POSITION_SINUSOID_HALVES, QKV_POSITION_LEARNED,
                                                   QKV_POSITION_ROTARY, QKV_POSITION_NONE };
    if (qkv_transformer_preset(preset_names[training.preset], vocabulary, out)) return library_failed();
    out->target_vocabulary = target_vocabulary;
    if (training.layers) out->encoder_layers = out->decoder_layers = training.layers;
    if (training.encoder_layers) out->encoder_layers = training.encoder_layers;
    if (training.decoder_layers) out->decoder_layers = training.decoder_layers;
    set_size(&out->dim, training.dim);
    set_size(&out->heads, training.heads);
    set_size(&out->kv_heads, training.kv_heads);
    set_size(&out->d_ff, training.d_ff);
    out->pre_norm = training.pre_norm;
    out->norm = training.norm ? QKV_NORM_RMS : QKV_NORM_LAYER;
    out->activation = activations[training.activation];
    out->positions = positions[training.positions];
    if (out->positions == QKV_POSITION_LEARNED) out->max_positions = training.max_positions;
    out->no_bias = training.no_bias;
    out->untied = training.untied;
    training_dropouts(out);
    return QKV_OK;
}

void training_dropouts(qkv_transformer_opts *out)
{
    set_rate(&out->dropout, "dropout", training.dropout);
    set_rate(&out->attention_dropout, "attention-dropout", training.attention_dropout);
    set_rate(&out->ffn_dropout, "inner-dropout", training.ffn_dropout);
}

/* A library's option of 0 means its default; a true 0 is a negative number there. */
static float true_zero(float given) { return given == 0 ? -1 : given; }

static qkv_optimizer_opts optimizer_opts(void)
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
    *out = (qkv_trainer_opts){ .optimizer = optimizer_opts(),
                               .batches = { .max_tokens = training.max_tokens },
                               .update_freq = training.update_freq,
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
