/* plan.c: how many steps of a training fit into some minutes: a few are made, timed and undone. docs/decisions.md has the rule. */
#include "plan.h"

#include <qkv/unstable/runs.h>

#include "trainer.h"

#include "../base/clock.h"
#include "../base/memory.h"
#include "../base/options.h"
#include "../base/size.h"
#include "../dist/dist.h"
#include "../nn/params.h"
#include "../model/model.h"

#include <stdbool.h>
#include <string.h>

enum { FEWEST_UPDATES = 8, MOST_UPDATES = 200, FEWEST_VALIDATIONS = 5, MOST_VALIDATIONS = 20 };
static const double trial_seconds = 20; /* at most */

double qkv__steady_seconds(const double *seconds, int64_t n)
{
    enum { PARTS = 4 };
    double part[PARTS], all = 0;
    for (int64_t i = 0; i < n; i++) all += seconds[i];
    if (n < PARTS) return n ? all / (double)n : 0;
    for (int k = 0; k < PARTS; k++) {
        int64_t from = k * n / PARTS, to = (k + 1) * n / PARTS;
        double sum = 0, mean;
        for (int64_t i = from; i < to; i++) sum += seconds[i];
        mean = sum / (double)(to - from);
        int at = k;
        for (; at && part[at - 1] > mean; at--) part[at] = part[at - 1];
        part[at] = mean;
    }
    return (part[0] + part[1]) / 2;
}

/* Updates until their time is known well enough; the first one also finds its memory, and does not count. */
static qkv_status time_updates(const qkv_train_opts *o, qkv_trainer *t, qkv_run_plan *out, bool *is_stopped)
{
    qkv_train_state at;
    double each[MOST_UPDATES], enough = 60 * o->minutes * QKV__TRIAL_SHARE;
    if (enough > trial_seconds) enough = trial_seconds;
    qkv_status status = qkv__trainer_step_ahead(t, &at);
    double began = qkv__seconds(), passed = 0;
    for (int n = 0; !status && n < MOST_UPDATES && (n < FEWEST_UPDATES || passed < enough); n++) {
        *is_stopped = o->hooks && o->hooks->cancel && o->hooks->cancel(o->hooks->data);
        status = qkv__dist_copy(is_stopped, sizeof *is_stopped);
        if (status || *is_stopped) return status;
        each[n] = -passed;
        status = qkv__trainer_step_ahead(t, &at);
        passed = qkv__seconds() - began;
        if (!status) status = qkv__dist_copy(&passed, sizeof passed); /* all ranks go by the clock of the first */
        each[n] += passed;
        out->step_seconds = qkv__steady_seconds(each, n + 1);
    }
    return status ? status : qkv__trainer_settle(t);
}

/* The faster of two where one is short. */
static qkv_status time_validation(const qkv_train_opts *o, const qkv_model *m, qkv_run_plan *out)
{
    qkv_status status = QKV_OK;
    for (int i = 0; o->validate && i < 2 && !status; i++) {
        qkv_train_score score = { 0 };
        double began = qkv__seconds(), passed;
        status = o->validate(o->data, m, &score);
        passed = qkv__seconds() - began;
        if (!status) status = qkv__dist_copy(&passed, sizeof passed);
        if (!i || passed < out->validation_seconds) out->validation_seconds = passed;
        if (passed > 60 * o->minutes * QKV__TRIAL_SHARE / 4) break;
    }
    return status;
}

/* A rate that changes nothing much: what counts is the time. */
static qkv_trainer *make_trial(qkv_model *m, const qkv_dataset *pairs, const qkv_train_opts *o)
{
    qkv_trainer_opts how;
    if (QKV__READ_OPTIONS(&how, micro_batches, o->trainer, "training")) return NULL;
    how.schedule = &(qkv_schedule){ .kind = QKV_SCHEDULE_CONSTANT, .lr = 1e-6 };
    return qkv_trainer_new(m, pairs, &how);
}

/* The weights are the same afterwards. */
static qkv_status try_updates(qkv_model *m, const qkv_dataset *pairs, const qkv_train_opts *o, qkv_run_plan *out,
                              bool *is_stopped)
{
    qkv_params *p = qkv__model_params(m);
    qkv_trainer *t = make_trial(m, pairs, o);
    if (!t) return qkv_error_status();
    size_t bytes = sizeof(float) * (size_t)qkv__params_block(p);
    float *kept = qkv__alloc(bytes);
    qkv_status status = kept ? QKV_OK : QKV_MEMORY;
    if (kept) memcpy(kept, qkv__params_data(p), bytes);
    if (!status) status = time_updates(o, t, out, is_stopped);
    if (!status && !*is_stopped) status = time_validation(o, m, out);
    qkv_trainer_free(t); /* before: weights may still be on their way */
    if (kept) memcpy(qkv__params_data(p), kept, bytes);
    qkv_params_zero_grad(p);
    qkv__release(kept, bytes);
    return status;
}

int64_t qkv__validations(int64_t steps, int64_t epoch_steps)
{
    int64_t epochs = steps / epoch_steps;
    return qkv__min(qkv__max(epochs, FEWEST_VALIDATIONS), MOST_VALIDATIONS);
}

static int64_t whole_steps(double steps) { return steps >= 1 ? steps < 1e15 ? (int64_t)steps : (int64_t)1e15 : 1; }

qkv__plan qkv__plan_steps(double seconds, double measuring, double update, double validation, int64_t epoch_steps,
                          int64_t valid_every)
{
    qkv__plan p;
    if (update < 1e-9) update = 1e-9;
    if (valid_every) {
        p.steps = whole_steps(seconds / (update + validation / (double)valid_every));
        p.validations = qkv__max(1, p.steps / valid_every);
        return p;
    }
    p.validations = qkv__validations(whole_steps(seconds / update), epoch_steps);
    if (measuring < validation * (double)p.validations)
        p.validations = measuring > validation ? (int64_t)(measuring / validation) : 1;
    p.steps = whole_steps((seconds - (double)p.validations * validation) / update);
    return p;
}

qkv_status qkv_train_plan(qkv_model *m, const qkv_dataset *pairs, const qkv_train_opts *opts, double reserve, qkv_run_plan *out)
{
    qkv_train_opts o;
    qkv_run_plan plan = { 0 };
    int64_t none;
    bool is_stopped = false;
    if (!m || !pairs || !opts || !out) return qkv__fail(QKV_USAGE, "training: a model, pairs, options and a place are needed");
    qkv_status status = QKV__READ_OPTIONS(&o, end_texts, opts, "training");
    if (status) return status;
    if (!(o.minutes > 0) || !(reserve >= 0)) return qkv__fail(QKV_USAGE, "training: a plan needs minutes above 0");
    double began = qkv__seconds();
    if (!(status = qkv_train_steps(pairs, opts, &plan.epoch_steps, &none)))
        status = try_updates(m, pairs, &o, &plan, &is_stopped);
    if (status) return status;
    double all = 60 * o.minutes, left = all * QKV__PLANNED_SHARE - reserve - (qkv__seconds() - began);
    if (!is_stopped)
        plan.steps = qkv__plan_steps(left, all * QKV__MEASURED_SHARE, plan.step_seconds, plan.validation_seconds,
                                     plan.epoch_steps, o.validate_every)
                         .steps;
    *out = plan;
    return qkv__dist_copy(out, sizeof *out);
}
