/* run.c: a training from its first step, or the one it stopped at, to its end. */
#include "run_folder.h"

#include <qkv/unstable/runs.h>

#include "trainer.h"

#include "../base/clock.h"
#include "../base/file.h"
#include "../base/memory.h"
#include "../base/options.h"
#include "../base/result.h"
#include "../base/size.h"
#include "../dist/dist.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct run {
    const qkv_train_opts *o; /* whose trainer is not NULL */
    qkv_model *model;
    const qkv_dataset *pairs;
    qkv_trainer *trainer;
    const char *checkpoint; /* its path, on all ranks; NULL: none is written */
    int log;                /* -1: none */
    qkv_train_state at;
    int64_t epoch_steps, last_step, valid_every, first_step;
    double began, paused;   /* seconds; those that validation took */
    int64_t tokens;         /* of this run */
    qkv__loss_so_far *loss; /* since the last line of the log; the trainer's */
    double logged_seconds;  /* of the runs before this one */
    int64_t saved_step;     /* of the checkpoint; -1: none */
    int64_t measured_step;  /* of the last validation */
    qkv_train_score best;   /* of this run */
    int64_t best_step; /* of the model in the folder, where the last validation, which is not counted, found it; 0: counted */
    bool has_best, ends, is_cancelled; /* is_cancelled: on the first rank that ends */
    qkv_end end;                       /* why, where it ends */
} run;

static double larger(double a, double b) { return a > b ? a : b; }

/* ---- telling ---- */

/* By the limit that is nearest: of all steps, those before a resume too; or of the minutes of this run. */
static double share_done(const run *r, double elapsed)
{
    double steps = r->last_step ? (double)r->at.step / (double)r->last_step : 0;
    double minutes = r->o->minutes > 0 ? elapsed / (60 * r->o->minutes) : 0;
    return steps > 1 || minutes > 1 ? 1 : larger(steps, minutes);
}

/* At the speed of this run, validations included. */
static double seconds_left(const run *r, double elapsed)
{
    int64_t steps = r->at.step - r->first_step;
    double by_steps = r->last_step && steps > 0 ? elapsed / (double)steps * (double)(r->last_step - r->at.step) : -1;
    double by_minutes = r->o->minutes > 0 ? larger(60 * r->o->minutes - elapsed, 0) : -1;
    return by_steps < 0 || (by_minutes >= 0 && by_minutes < by_steps) ? by_minutes : by_steps;
}

static qkv_train_event event_of(const run *r, qkv_event_kind kind)
{
    double elapsed = r->began > 0 ? qkv__seconds() - r->began : 0;
    return (qkv_train_event){ .kind = kind,
                              .end = r->end,
                              .state = &r->at,
                              .epoch_steps = r->epoch_steps,
                              .last_step = r->last_step,
                              .first_step = r->first_step,
                              .tokens = r->tokens,
                              .mean_loss = r->loss->sum / larger((double)r->loss->tokens, 1),
                              .seconds = elapsed,
                              .busy_seconds = elapsed - r->paused,
                              .done = share_done(r, elapsed),
                              .seconds_left = seconds_left(r, elapsed),
                              .score = r->has_best ? &r->best : NULL };
}

static void tell(const run *r, const qkv_train_event *e)
{
    if (r->o->on_event) r->o->on_event(r->o->data, e);
}

static qkv_status report(run *r, qkv_event_kind kind)
{
    qkv_train_event e = event_of(r, kind);
    int64_t every = r->o->log_every ? r->o->log_every : 100;
    tell(r, &e);
    if ((r->at.step % every && kind == QKV_EVENT_STEP) || !r->loss->tokens) return QKV_OK;
    *r->loss = (qkv__loss_so_far){ 0 };
    return qkv__run_log(r->o, r->log,
                        "{\"step\": %lld, \"epoch\": %lld, \"loss\": %.6f, \"lr\": %.6e, \"norm\": %.6f, "
                        "\"tokens_per_second\": %.0f, \"seconds\": %.3f}\n",
                        (long long)r->at.step, (long long)r->at.epoch + 1, e.mean_loss, r->at.lr, r->at.grad_norm,
                        (double)r->tokens / larger(e.busy_seconds, 1e-9), r->logged_seconds + e.seconds);
}

/* ---- saving ---- */

/* Those that the schedule is made for; 0: any. */
static int64_t planned_steps(const qkv_train_opts *o) { return o->trainer->schedule ? o->trainer->schedule->steps : 0; }

static qkv_status record(const run *r)
{
    static const char *const texts[] = { "all steps are made",   "all epochs are made", "the time is over",
                                         "no better validation", "cancelled",           "another rank was to end" };
    qkv__best_so_far best = *qkv__trainer_best_so_far(r->trainer);
    if (r->best_step) best.best = r->best.score, best.best_step = r->best_step;
    return qkv__run_record(r->o,
                           &(qkv__run_state){ .model = r->model,
                                              .pairs = qkv_dataset_size(r->pairs),
                                              .step = r->at.step,
                                              .epochs_begun = (int64_t)r->at.epoch + 1,
                                              .planned = planned_steps(r->o),
                                              .best = &best,
                                              .reason = r->ends ? (r->o->end_texts ? r->o->end_texts : texts)[r->end] : NULL });
}

static qkv_status save_checkpoint(run *r)
{
    bool has_part = r->o->folder || (r->checkpoint && qkv__trainer_is_sharded(r->trainer));
    if (!has_part || r->saved_step == r->at.step) return QKV_OK;
    qkv_status status = qkv_trainer_save(r->trainer, r->checkpoint);
    if (status) return status;
    r->saved_step = r->at.step;
    qkv_train_event e = event_of(r, QKV_EVENT_CHECKPOINT);
    tell(r, &e);
    return QKV_OK;
}

static qkv_status save_model_to(const run *r, const char *folder)
{
    return r->o->save ? r->o->save(r->o->data, r->model, folder) : qkv_model_save(r->model, folder, NULL);
}

static qkv_status save_model(const run *r) { return r->o->folder ? save_model_to(r, r->o->folder) : QKV_OK; }

static qkv_status keep_model(const run *r)
{
    char name[32];
    int64_t kept;
    if (!r->o->keep || !r->o->folder) return QKV_OK;
    snprintf(name, sizeof name, "step-%lld", (long long)r->at.step);
    qkv_status status = save_model_to(r, qkv__run_file(r->o, name).text);
    if (!status && !__builtin_mul_overflow(r->o->keep, r->valid_every, &kept)) qkv__run_forget(r->o, r->at.step - kept);
    return status;
}

/* ---- validation ---- */

static bool is_better(const qkv_train_score *a, const qkv__best_so_far *than)
{
    return !than->best_step || a->score > than->best || (a->score == than->best && a->loss < than->best_loss);
}

static void count_validation(qkv__best_so_far *so_far, const qkv_train_score *score, int64_t step, bool best)
{
    so_far->missed = best ? 0 : so_far->missed + 1;
    if (best) so_far->best = score->score, so_far->best_loss = score->loss, so_far->best_step = step;
}

static qkv_status tell_score(run *r, const qkv_train_score *score, bool best)
{
    qkv_train_event e = event_of(r, QKV_EVENT_VALIDATION);
    e.score = score;
    e.is_best = best;
    tell(r, &e);
    return qkv__run_log(r->o, r->log, "{\"step\": %lld%s%s, \"best\": %s}\n", (long long)r->at.step, *score->json ? ", " : "",
                        score->json, best ? "true" : "false");
}

/* A model that is the best so far becomes the folder's before the checkpoint that knows of it is written: whenever a run ends,
 * going on from its last checkpoint gives the same files. */
static qkv_status validate_model(run *r, bool counts)
{
    double before = qkv__seconds();
    qkv_train_score score = { 0 };
    qkv__best_so_far *so_far = qkv__trainer_best_so_far(r->trainer);
    qkv_status status = r->o->validate ? r->o->validate(r->o->data, r->model, &score) : QKV_OK;
    /* Nothing would ever be better than it. */
    if (!status && (isnan(score.score) || isnan(score.loss)))
        status = qkv__fail(QKV_NUMERIC, "training: the loss of step %lld is not finite: try a lower learning rate",
                           (long long)r->at.step);
    if (status) return status;
    bool best = !r->o->validate || is_better(&score, so_far);
    if (best) status = save_model(r);
    if (status) return status;
    r->measured_step = r->at.step;
    if (counts) count_validation(so_far, &score, r->at.step, best);
    if (best && r->o->validate) r->best = score, r->has_best = true, r->best_step = counts ? 0 : r->at.step;
    if (r->o->validate) status = tell_score(r, &score, best);
    if (!status && counts) status = keep_model(r);
    r->paused += qkv__seconds() - before;
    return status;
}

/* ---- the loop ---- */

static bool ends(const run *r, qkv_end *why)
{
    const qkv_train_opts *o = r->o;
    bool is_last = r->last_step && r->at.step >= r->last_step;
    if (o->hooks && o->hooks->cancel && o->hooks->cancel(o->hooks->data)) *why = QKV_END_CANCELLED;
    else if (is_last) *why = o->steps && r->last_step == o->steps ? QKV_END_STEPS : QKV_END_EPOCHS;
    else if (o->minutes > 0 && qkv__seconds() - r->began >= 60 * o->minutes) *why = QKV_END_TIME;
    else if (o->patience && o->validate && qkv__trainer_best_so_far(r->trainer)->missed >= o->patience) *why = QKV_END_PATIENCE;
    else return false;
    return true;
}

typedef struct vote {
    bool ends;
    qkv_end why;
} vote;

/* Ranks end together, as the first one that is to end does: each has its own clock and its own signals. */
static qkv_status agree_on_end(run *r)
{
    r->ends = ends(r, &r->end);
    r->is_cancelled = r->ends && r->end == QKV_END_CANCELLED;
    int ranks = qkv_dist_size();
    if (ranks == 1) return QKV_OK;
    const vote own = { r->ends, r->end };
    vote *all = qkv__alloc(sizeof own * (size_t)ranks);
    qkv_status status = all ? qkv__dist_share(&own, sizeof own, all) : QKV_MEMORY;
    int first = 0;
    while (!status && first < ranks && !all[first].ends) first++;
    if (!status && first < ranks) {
        if (!r->ends) r->end = QKV_END_RANK;
        r->ends = true;
        r->is_cancelled = all[first].why == QKV_END_CANCELLED;
    }
    qkv__release(all, sizeof own * (size_t)ranks);
    return status;
}

static qkv_status rewind_log(run *r, bool has_report)
{
    double seconds = 0;
    bool has_validation = r->first_step % r->valid_every == 0;
    if (r->log < 0) return QKV_OK;
    qkv_status status = qkv__run_log_rewind(r->o, r->log, r->first_step, has_report, has_validation, &seconds);
    r->logged_seconds = larger(r->logged_seconds, seconds);
    return status;
}

static qkv_status step(run *r)
{
    qkv_status status = qkv__trainer_step_ahead(r->trainer, &r->at);
    /* The report of a stop between two lines counts until the training goes on. */
    if (!status && r->at.step == r->first_step + 1) status = rewind_log(r, !r->loss->tokens);
    if (status) return status;
    r->tokens += r->at.tokens;
    r->loss->sum += r->at.loss * (double)r->at.tokens;
    r->loss->tokens += r->at.tokens;
    status = report(r, QKV_EVENT_STEP);
    bool measures = r->at.step % r->valid_every == 0;
    bool saves = measures || (r->o->save_every && r->at.step % r->o->save_every == 0);
    if (!status && saves) status = qkv__trainer_settle(r->trainer);
    if (!status && measures) status = validate_model(r, true);
    if (!status && saves) status = save_checkpoint(r);
    return status;
}

static qkv_status end_run(run *r)
{
    qkv_status status = qkv__trainer_settle(r->trainer);
    if (!status) status = save_checkpoint(r);
    if (!status && r->at.step > r->first_step) status = report(r, QKV_EVENT_LAST_STEP);
    /* Not counted: a longer run would not have measured here. */
    if (!status && !r->is_cancelled && r->measured_step != r->at.step) status = validate_model(r, false);
    if (!status) status = record(r);
    if (status) return status;
    qkv_train_event e = event_of(r, QKV_EVENT_END);
    tell(r, &e);
    return QKV_OK;
}

/* Rank 0 reads, and the others have it from there: the folder need not be theirs. */
static qkv_status resume_run(run *r)
{
    bool goes_on = r->o->folder && r->o->resume && qkv__run_has(r->o, "checkpoint.safetensors");
    qkv_status status = qkv_dist_size() > 1 ? qkv__dist_copy(&goes_on, sizeof goes_on) : QKV_OK;
    if (status || !goes_on) return status;
    if ((status = qkv__trainer_resume_all(r->trainer, r->checkpoint))) return status;
    r->at = qkv__trainer_at(r->trainer);
    r->saved_step = r->first_step = r->at.step;
    r->measured_step = r->at.step % r->valid_every ? -1 : r->at.step;
    qkv_train_event e = event_of(r, QKV_EVENT_RESUME);
    tell(r, &e);
    return QKV_OK;
}

static qkv_status begin_run(run *r)
{
    qkv_status status = r->o->folder ? qkv__folder_make(r->o->folder) : QKV_OK;
    if (!status && r->o->folder) status = qkv__run_log_open(r->o, &r->log);
    if (status) return status;
    if (r->o->folder) qkv__run_sweep(r->o);
    qkv_train_event e = event_of(r, QKV_EVENT_BEGIN);
    tell(r, &e);
    status = resume_run(r);
    if (!status) status = rewind_log(r, true);
    /* Before the model's files: a folder that holds a model without a record is not ours to write again. */
    if (!status) status = record(r);
    return !status && r->saved_step < 0 ? save_model(r) : status; /* the folder is a model's from the start */
}

/* ---- limits ---- */

static qkv_status read_run_options(const qkv_train_opts *from, qkv_train_opts *o, qkv_trainer_opts *trainer)
{
    qkv_status status = QKV__READ_OPTIONS(o, end_texts, from, "training");
    if (!status) status = QKV__READ_OPTIONS(trainer, micro_batches, o->trainer, "training");
    o->trainer = trainer;
    return status;
}

static qkv_status count_steps(const qkv_dataset *pairs, const qkv_train_opts *o, int64_t *epoch_steps, int64_t *last_step)
{
    int64_t frequency = o->trainer->accumulate ? o->trainer->accumulate : 1;
    if (o->steps < 0 || o->epochs < 0 || !(o->minutes >= 0) || (!o->steps && !o->epochs && !(o->minutes > 0)) || frequency < 1)
        return qkv__fail(QKV_USAGE, "training: it needs a limit: steps, epochs or minutes");
    qkv_loader *e = qkv_loader_new(pairs, o->trainer->batches ? o->trainer->batches : &(qkv_batch_opts){ 0 }, 0);
    if (!e) return qkv_error_status();
    *epoch_steps = qkv__ceil_div(qkv_loader_size(e), frequency);
    qkv_loader_free(e);
    *last_step = 0;
    if (o->epochs && __builtin_mul_overflow(o->epochs, *epoch_steps, last_step)) *last_step = INT64_MAX;
    if (o->steps && (!*last_step || o->steps < *last_step)) *last_step = o->steps;
    return QKV_OK;
}

qkv_status qkv_train_steps(const qkv_dataset *pairs, const qkv_train_opts *opts, int64_t *epoch_steps, int64_t *last_step)
{
    qkv_train_opts o;
    qkv_trainer_opts trainer;
    if (!pairs || !opts || !epoch_steps || !last_step)
        return qkv__fail(QKV_USAGE, "training: pairs, options and places for the results are needed");
    qkv_status status = read_run_options(opts, &o, &trainer);
    return status ? status : count_steps(pairs, &o, epoch_steps, last_step);
}

/* A schedule that knows its end cannot be given another one halfway. */
static qkv_status check_schedule(const qkv_train_opts *o, int64_t pairs)
{
    int64_t planned = qkv__run_recorded(o, "schedule_steps"), now = planned_steps(o);
    int64_t before = qkv__run_recorded(o, "pairs");
    if (!planned || planned == now) return QKV_OK;
    if (before && before != pairs)
        return qkv__fail(QKV_USAGE, "cannot resume %s: the text is another: there were %lld pairs, and now there are %lld",
                         o->folder, (long long)before, (long long)pairs);
    return qkv__fail(QKV_USAGE,
                     "cannot resume %s: its schedule was made for %lld steps, and this one is for %lld: to train longer, start "
                     "another training from its model",
                     o->folder, (long long)planned, (long long)now);
}

/* Ranks validate and save together. */
static qkv_status agree_on_intervals(const run *r)
{
    const int64_t every[] = { r->valid_every, r->o->save_every };
    return qkv_dist_size() > 1 ? qkv__dist_agree(every, sizeof every, "the options") : QKV_OK;
}

static qkv_status run_training(run *r)
{
    qkv_status status = qkv_train_check(r->o);
    if (!status) status = count_steps(r->pairs, r->o, &r->epoch_steps, &r->last_step);
    if (!status) status = check_schedule(r->o, qkv_dataset_size(r->pairs));
    if (status) return status;
    r->valid_every = r->o->validate_every ? r->o->validate_every : r->epoch_steps;
    if (!(r->trainer = qkv_trainer_new(r->model, r->pairs, r->o->trainer))) return qkv_error_status();
    r->loss = qkv__trainer_loss_so_far(r->trainer);
    if (!(status = agree_on_intervals(r))) status = begin_run(r);
    r->began = qkv__seconds();
    while (!status && !(status = agree_on_end(r)) && !r->ends) status = step(r);
    return status ? status : end_run(r);
}

static qkv_status check_run(const qkv_model *m, const qkv_dataset *pairs, const qkv_train_opts *o)
{
    if (!m || !pairs || !o) return qkv__fail(QKV_USAGE, "training: a model, pairs and options are needed");
    if (o->validate_every < 0 || o->save_every < 0 || o->keep < 0 || o->log_every < 0 || o->patience < 0)
        return qkv__fail(QKV_USAGE, "training: a number of steps or validations is negative");
    return QKV_OK;
}

static const qkv__result_kind train_result_kind = { sizeof(qkv_train_result), NULL };

static qkv_status set_result(const run *r, qkv_train_result *out)
{
    const qkv__best_so_far *best = qkv__trainer_best_so_far(r->trainer);
    qkv_train_state *state = qkv__result_alloc(out, sizeof *state);
    if (!state) return QKV_MEMORY;
    *state = r->at;
    out->state = state;
    out->end = r->end;
    out->saved_step = r->saved_step;
    out->best = best->best, out->best_loss = best->best_loss, out->best_step = best->best_step, out->missed = best->missed;
    return QKV_OK;
}

qkv_status qkv_train(qkv_model *m, const qkv_dataset *d, const qkv_train_opts *opts, qkv_train_result **out)
{
    qkv_train_opts o;
    qkv_trainer_opts trainer;
    run r = { .o = &o, .model = m, .pairs = d, .log = -1, .saved_step = -1 };
    qkv_train_result *result = out ? qkv__result_begin(*out, &train_result_kind) : NULL;
    if (out && !result) return qkv_error_status();
    if (out) *out = result;
    qkv_status status = read_run_options(opts, &o, &trainer);
    if (!status) status = check_run(m, d, opts ? &o : NULL);
    const qkv__run_path checkpoint = qkv__run_file(&o, "checkpoint.safetensors");
    if (o.folder) r.checkpoint = checkpoint.text;
    if (qkv_dist_rank()) o.folder = NULL, o.resume = 0; /* rank 0 writes, and reads what goes on */
    if (!status) status = run_training(&r);
    if (!status && result) status = set_result(&r, result);
    if (r.log >= 0) close(r.log);
    qkv_trainer_free(r.trainer);
    return status;
}
