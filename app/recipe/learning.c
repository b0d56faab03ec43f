/* learning.c: what the options of a training mean for its optimizer and its schedule. */
#include "job.h"
#include "training.h"

#include "../../src/base/status.h"

#include <qkv/unstable/dist.h>

/* A library's option of 0 means its default; a true 0 is a negative number there. */
static float true_zero(float given) { return given == 0 ? -1 : given; }

qkv_optimizer_opts qkv__training_optimizer(const qkv_training *t)
{
    static const qkv_optimizer_rule rules[] = { QKV_OPTIMIZER_ADAM, QKV_OPTIMIZER_ADAMW, QKV_OPTIMIZER_SGD,
                                                QKV_OPTIMIZER_ADAGRAD, QKV_OPTIMIZER_RMSPROP };
    const qkv__training_values *v = &t->o.v;
    qkv_optimizer_opts o = { .rule = rules[v->optimizer], .nesterov = v->nesterov };
    if (o.rule == QKV_OPTIMIZER_ADAM || o.rule == QKV_OPTIMIZER_ADAMW)
        o.beta2 = 0.98f, o.eps = 1e-9f; /* section 5.3 of the paper */
    if (QKV__IS_SET(&t->o, momentum)) o.momentum = v->momentum;
    if (QKV__IS_SET(&t->o, beta1)) o.beta1 = true_zero(v->beta1);
    if (QKV__IS_SET(&t->o, beta2)) o.beta2 = true_zero(v->beta2);
    if (QKV__IS_SET(&t->o, alpha)) o.alpha = true_zero(v->alpha);
    if (QKV__IS_SET(&t->o, eps)) o.eps = true_zero(v->eps);
    if (QKV__IS_SET(&t->o, weight_decay)) o.weight_decay = true_zero(v->weight_decay);
    return o;
}

static const qkv_schedule_kind schedule_kinds[] = { QKV_SCHEDULE_INVERSE_SQRT, QKV_SCHEDULE_CONSTANT, QKV_SCHEDULE_LINEAR,
                                                    QKV_SCHEDULE_COSINE };

static double full_rate(const qkv_training *t)
{
    static const double rates[] = { 0.001, 0.001, 0.01, 0.01, 0.01 }; /* by optimizer */
    if (QKV__IS_SET(&t->o, lr)) return (double)t->o.v.lr;
    return schedule_kinds[t->o.v.schedule] == QKV_SCHEDULE_INVERSE_SQRT ? 1 : rates[t->o.v.optimizer];
}

/* The paper's 4000; a tenth of a training that knows its end. */
static int64_t warmup_steps(const qkv_training *t, qkv_schedule_kind kind, int64_t total_steps)
{
    if (t->o.v.warmup) return t->o.v.warmup;
    return kind == QKV_SCHEDULE_INVERSE_SQRT ? 4000 : kind == QKV_SCHEDULE_CONSTANT ? 0 : total_steps / 10;
}

bool qkv__schedule_has_end(const qkv_training *t)
{
    qkv_schedule_kind kind = schedule_kinds[t->o.v.schedule];
    return kind == QKV_SCHEDULE_LINEAR || kind == QKV_SCHEDULE_COSINE;
}

static qkv_status end_schedule(const qkv_training *t, int64_t total_steps, qkv_schedule *s)
{
    if (!total_steps)
        return qkv__fail(QKV_USAGE, "--schedule %s must know where it ends: give --steps or --epochs",
                         qkv__options_word(QKV__SET_schedule, t->o.v.schedule));
    s->steps = total_steps;
    s->final_lr = (double)t->o.v.last_lr;
    if (s->warmup < s->steps) return QKV_OK;
    return qkv__fail(QKV_USAGE, "--warmup: %lld steps, but the training has only %lld", (long long)s->warmup,
                     (long long)s->steps);
}

qkv_status qkv__training_how(const qkv_training *t, int64_t total_steps, qkv_trainer_opts *out, qkv_schedule *s)
{
    const qkv__training_values *v = &t->o.v;
    qkv_config o = { .size = sizeof o };
    qkv_model_config(t->model, &o);
    int64_t dim = o.dim;
    *out = (qkv_trainer_opts){ .size = sizeof *out,
                               .accumulate = v->update_freq,
                               .label_smoothing = v->smoothing,
                               .clip_norm = v->clip,
                               .seed = (uint64_t)v->seed,
                               .micro_batches = v->micro_batches,
                               .schedule = s };
    *s = (qkv_schedule){ .kind = schedule_kinds[v->schedule], .lr = full_rate(t), .dim = dim };
    s->warmup = warmup_steps(t, s->kind, total_steps);
    if (!(s->lr > 0)) return qkv__fail(QKV_USAGE, "--lr: %g is not above 0", s->lr);
    if (!(v->smoothing >= 0 && v->smoothing < 1))
        return qkv__fail(QKV_USAGE, "--label-smoothing: %g is not at least 0 and below 1", (double)v->smoothing);
    return qkv__schedule_has_end(t) ? end_schedule(t, total_steps, s) : QKV_OK;
}
