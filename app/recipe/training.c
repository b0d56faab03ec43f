/* training.c: a training from files: options in, the text read, what is not set chosen, and the run. */
#include "job.h"

#include <qkv/unstable/runs.h>
#include "share_text.h"
#include "training.h"

#include "../../src/base/clock.h"
#include "../../src/base/file.h"
#include "../../src/base/memory.h"
#include "../../src/base/options.h"
#include "../../src/base/size.h"
#include "../../src/dist/dist.h"
#include "../../src/base/buffer.h"
#include "../../src/data/pairs.h"
#include "../../src/train/plan.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the object ---- */

static const qkv__job *const jobs[] = { &qkv__translate_job, &qkv__classify_job, &qkv__generate_job, &qkv__mask_job };

qkv_training *qkv_training_new(const char *job)
{
    for (size_t i = 0; job && i < sizeof jobs / sizeof *jobs; i++) {
        if (strcmp(jobs[i]->name, job)) continue;
        qkv_training *t = qkv__alloc_zero(sizeof *t);
        if (!t) return NULL;
        t->job = jobs[i];
        qkv__options_new(&t->o, jobs[i]->bit);
        return t;
    }
    qkv__fail(QKV_USAGE, "training: there is no job \"%.100s\": expected translate, classify, generate or mask",
              job ? job : "");
    return NULL;
}

static void forget_text(qkv_training *t)
{
    for (int64_t i = 0; i < t->lines.n; i++) qkv__release_text(t->lines.sources[i]), qkv__release_text(t->lines.references[i]);
    qkv__release(t->lines.sources, t->lines.sources_bytes);
    qkv__release(t->lines.references, t->lines.references_bytes);
    t->lines = (qkv__valid_lines){ 0 };
    qkv_model_free(t->model);
    qkv_dataset_free(t->pairs);
    qkv_dataset_free(t->valid);
    t->model = NULL;
    t->pairs = t->valid = NULL;
    qkv__label_set_free(&t->labels);
    qkv__hashes_free(&t->hashes);
    qkv__hashes_free(&t->valid_hashes);
    t->has_text = t->has_loss = false;
}

void qkv_training_free(qkv_training *t)
{
    if (!t) return;
    forget_text(t);
    qkv__release(t->weights, t->weights_bytes);
    qkv__release(t->valid_counts, t->valid_counts_bytes);
    qkv__release(t->has, t->has_bytes);
    qkv__options_free(&t->o);
    qkv_buffer_free(&t->sentence);
    qkv_buffer_free(&t->told);
    qkv__release(t, sizeof *t);
}

/* ---- options ---- */

qkv_status qkv_training_set(qkv_training *t, const char *name, const char *value)
{
    if (!t || !name || !value) return qkv__fail(QKV_USAGE, "training: a training, a name and a value are needed");
    qkv_status status = qkv__options_set(&t->o, name, value, QKV__SET);
    if (!status || t->failed) return status;
    t->failed = status;
    if (qkv__buffer_put(&t->sentence, qkv_error(), strlen(qkv_error()))) t->failed = QKV_MEMORY;
    return t->failed;
}

const char *qkv_training_get(qkv_training *t, const char *name)
{
    qkv__option i = t && name ? qkv__options_find(&t->o, name) : QKV__SET_OPTIONS;
    if (i == QKV__SET_OPTIONS) return qkv__fail(QKV_USAGE, "training: there is no such option"), NULL;
    if (t->o.origin[i] == QKV__NOT_SET && !t->has_text) return "";
    return qkv__options_text(&t->o, i, &t->told) ? NULL : t->told.data;
}

const char *qkv_training_chosen(const qkv_training *t, int n)
{
    for (int i = 0; t && n >= 0 && i < QKV__SET_OPTIONS; i++)
        if (t->o.origin[i] == QKV__CHOSEN && !n--) return qkv__options_name((qkv__option)i);
    return NULL;
}

const qkv_training_text *qkv_training_text_of(const qkv_training *t) { return t && t->has_text ? &t->text : NULL; }

const qkv_model *qkv_training_model(const qkv_training *t) { return t ? t->model : NULL; }

/* ---- telling ---- */

qkv__notes qkv__training_notes(const qkv_training *t) { return (qkv__notes){ t->watch.note, t->watch.data }; }

void qkv__training_note(const qkv_training *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    qkv__tell_with(qkv__training_notes(t), format, args);
    va_end(args);
}

/* ---- what is not set ---- */

void qkv__choose(qkv_training *t, const char *name, const char *format, ...)
{
    char value[64];
    va_list args;
    va_start(args, format);
    vsnprintf(value, sizeof value, format, args);
    va_end(args);
    if (!t->failed) t->failed = qkv__options_set(&t->o, name, value, QKV__CHOSEN);
}

/* What holds for every job, and was so before there were rules. */
static void set_common(qkv__training_values *v)
{
    v->vocabulary = 8000;
    v->preset = 1; /* small */
    v->max_positions = 512;
    v->clip = 1;
    v->update_freq = 1;
    v->max_length = 256;
    v->seed = 1;
    v->save_every = 500;
    v->log_every = 100;
}

/* The defaults stand in for whatever the caller did not set. */
static void set_defaults(qkv_training *t)
{
    qkv_training plain = { .job = t->job, .o.job = t->o.job };
    plain.o.v.steps = t->o.v.steps;
    plain.o.v.epochs = t->o.v.epochs;
    plain.o.v.minutes = t->o.v.minutes;
    set_common(&plain.o.v);
    t->job->set_paper(&plain);
    qkv__options_fill(&t->o, &plain.o.v);
}

/* The same for any number of ranks up to 8, so that it does not decide about the bits. */
static void choose_micro_batches(qkv_training *t)
{
    int parts = 8;
    while (parts < qkv_dist_size()) parts *= 2;
    if (qkv_dist_get_info()->hosts && !t->o.v.resume) qkv__choose(t, "micro-batches", "%d", parts);
}

/* Rank 0 reads it for all. */
static qkv_status survey_for_all(qkv_training *t, qkv__survey *s)
{
    if (qkv_dist_size() == 1) return t->job->survey(t, s);
    qkv_status status = qkv__share_status(qkv_dist_rank() ? QKV_OK : t->job->survey(t, s));
    if (!status) status = qkv__dist_copy(s, sizeof *s);
    if (!status) status = qkv__dist_copy(&t->numbers, sizeof t->numbers);
    return status ? status : qkv__share_labels(&t->labels);
}

static qkv_status choose_options(qkv_training *t)
{
    qkv__survey s = { 0 };
    bool needs = t->job->bit == QKV__CLASSIFY || !(t->o.v.paper || t->o.v.resume);
    qkv_status status = needs ? survey_for_all(t, &s) : QKV_OK;
    if (status || t->o.v.resume) return status;
    if (!t->o.v.paper) t->job->choose(t, &s);
    qkv__choose_like(t); /* over what the rules chose */
    status = t->failed;
    t->failed = QKV_OK;
    return status;
}

/* ---- the folder ---- */

static qkv_status check_folder(qkv_training *t)
{
    qkv__settings settings = { 0 };
    qkv_train_opts o = { .folder = t->o.v.out, .resume = t->o.v.resume };
    qkv_status status = t->o.v.resume ? qkv__training_find_files(t) : QKV_OK;
    if (!status) status = qkv__settings_of(t, &settings);
    o.settings = settings.all;
    o.n_settings = settings.n;
    if (!status) status = qkv_train_check(&o);
    qkv__settings_free(&settings);
    if (status || t->o.v.resume) return status;
    t->made_folder = !mkdir(t->o.v.out, 0777);
    if (!t->made_folder && errno != EEXIST)
        return qkv__fail(QKV_IO, "%s: cannot make the folder: %s", t->o.v.out, strerror(errno));
    return QKV_OK;
}

/* ---- the text ---- */

/* Rank 0 counts for all: labelled texts as they were read, others as ids. */
static qkv_status count_repeats(qkv_training *t)
{
    int64_t counts[2] = { 0 }; /* repeated, in both */
    qkv_status status = QKV_OK;
    if (t->job->bit == QKV__CLASSIFY) qkv__hashes_count(&t->hashes, &t->valid_hashes, &counts[0], &counts[1]);
    else if (!qkv_dist_rank()) status = qkv__dataset_repeats(t->pairs, t->valid, &counts[0], &counts[1]);
    qkv__hashes_free(&t->hashes);
    qkv__hashes_free(&t->valid_hashes);
    status = qkv__share_status(status);
    if (!status) status = qkv__dist_copy(counts, sizeof counts);
    if (t->job->bit == QKV__CLASSIFY || t->job->bit == QKV__TRANSLATE) t->text.repeated = counts[0];
    t->text.overlap = counts[1];
    return status;
}

static qkv_status check_overlap(qkv_training *t)
{
    int64_t n = qkv_dataset_size(t->valid);
    qkv_status status = count_repeats(t);
    if (qkv_dist_rank()) return status;
    if (!status && t->text.overlap && t->o.v.valid.n)
        qkv__training_note(t, "%s: %lld of %lld %s are in the training text too: what is measured on them says less",
                           t->o.v.valid.at[0], (long long)t->text.overlap, (long long)n,
                           qkv__translated(t->job->bit == QKV__GENERATE ? "windows" : t->job->noun));
    return status;
}

static qkv_status none_held(const qkv_training *t, int64_t texts)
{
    return qkv__fail(QKV_USAGE, "--split %g: of %lld %s it holds none back: give a larger share", (double)t->o.v.split,
                     (long long)texts, t->job->bit == QKV__GENERATE ? "windows" : t->job->noun);
}

int64_t qkv__held_every(const qkv_training *t)
{
    double split = (double)t->o.v.split;
    return split > 0 ? (int64_t)fmin(round(1 / split), (double)(INT64_C(1) << 53)) : 0;
}

static qkv_status read_training_text(qkv_training *t)
{
    t->pairs = qkv_dataset_new();
    t->valid = qkv_dataset_new();
    if (!t->pairs || !t->valid) return qkv_error_status();
    qkv_status status = qkv_model_special_tokens(t->model, &t->special);
    if (status) return status;
    t->batches = (qkv_batch_opts){ .max_tokens = t->o.v.max_tokens,
                                   .start = t->special.start,
                                   .end = t->special.end,
                                   .pad = t->special.pad,
                                   .source_has_end = t->special.source_end < 0 };
    t->valid_batches = t->batches;
    t->text = (qkv_training_text){ .noun = t->job->noun, .unit = t->job->unit ? t->job->unit : QKV__N("target tokens") };
    if ((status = t->job->read(t))) return status;
    int64_t pairs = qkv_dataset_size(t->pairs), valid = qkv_dataset_size(t->valid);
    if (t->o.v.split > 0 && !valid) return none_held(t, pairs);
    if (t->text.parts) t->text.n_parts = pairs;
    else t->text.texts = pairs;
    if (!t->text.valid) t->text.valid = valid;
    t->text.labels = (const char *const *)t->labels.names;
    t->text.label_counts = t->labels.counts;
    t->text.n_labels = t->labels.n;
    t->has_text = true;
    if (t->has_too_few)
        qkv__training_note(
            t, "%lld %s are too few to hold some back: nothing is measured, and the last model is kept (--valid, --split)",
            (long long)t->text.texts, qkv__translated(t->text.noun));
    return check_overlap(t);
}

/* ---- the run ---- */

/* What the options of a run point at. */
typedef struct learning {
    qkv_trainer_opts trainer;
    qkv_schedule schedule;
    qkv_optimizer_opts optimizer;
} learning;

static qkv_status validate_job(void *data, const qkv_model *m, qkv_train_score *out)
{
    qkv_training *t = data;
    return t->job->validate(t, m, out);
}

static void tell_event(void *data, const qkv_train_event *e)
{
    qkv_training *t = data;
    t->step = e->state->step;
    if (e->kind == QKV_EVENT_CHECKPOINT || e->kind == QKV_EVENT_RESUME) t->saved_step = t->step;
    if (t->watch.each) t->watch.each(t->watch.data, e);
    if (e->kind == QKV_EVENT_VALIDATION && e->is_best && t->watch.sample && t->job->sample) t->job->sample(t);
}

static int ask_to_stop(void *data)
{
    qkv_training *t = data;
    t->stopped = t->end_texts[QKV_END_CANCELLED] = t->watch.stop ? t->watch.stop(t->watch.data) : NULL;
    return t->stopped != NULL;
}

bool qkv__training_stops(qkv_training *t) { return ask_to_stop(t); }

const char *qkv_training_reason(const qkv_training *t, qkv_end end) { return t ? t->end_texts[end] : NULL; }

/* What every trainer of this training has, whatever its schedule. */
static void set_trainer(qkv_training *t, learning *how, qkv_train_opts *o)
{
    how->optimizer = qkv__training_optimizer(t);
    how->trainer.optimizer = &how->optimizer;
    how->trainer.batches = &t->batches;
    how->trainer.loss = t->has_loss ? &t->loss : NULL;
    o->trainer = &how->trainer;
}

/* Where the schedule has no end, a training may be given more steps later, and is measured once an epoch in any case. */
static bool is_measured_by_rule(const qkv_training *t)
{
    return !QKV__IS_SET(&t->o, valid_every) && !t->o.v.paper && qkv__schedule_has_end(t);
}

/* As planned, with --minutes; a rule for what has no end is once an epoch, or less often where that takes too long. */
static void choose_valid_every(qkv_training *t, int64_t epoch_steps, int64_t last_step)
{
    bool is_by_rule = is_measured_by_rule(t);
    int64_t times = t->planned_validations ? t->planned_validations : qkv__validations(last_step, epoch_steps);
    if (!last_step || !(is_by_rule || t->planned_validations)) return;
    int64_t every = qkv__ceil_div(last_step, times);
    if (is_by_rule || every > epoch_steps) qkv__choose(t, "valid-every", "%lld", (long long)every);
}

/* Seconds after the last step. Fitting is left out where it alone would take more than measuring may. */
static double plan_ending(qkv_training *t, double search_seconds)
{
    double all = 60 * (double)t->o.v.minutes, fitting = 0;
    for (int i = 0; i < 2; i++) { /* again without */
        fitting = t->job->lines_searched ? search_seconds * (double)t->job->lines_searched(t, 0) : 0;
        if (fitting > all * QKV__MEASURED_SHARE && !QKV__IS_GIVEN(&t->o, fit)) qkv__choose(t, "fit", "nothing");
    }
    return fitting;
}

/* Once the costs are known: by rank 0's clock. */
static qkv_status fix_plan(qkv_training *t, const qkv_run_plan *costs, double search_seconds)
{
    double all = 60 * (double)t->o.v.minutes, ending = plan_ending(t, search_seconds);
    double seconds = all * QKV__PLANNED_SHARE - (qkv__seconds() - t->began) - ending;
    double most = all * QKV__MEASURED_SHARE, measuring = fmax(most - ending, most / 4), validation = costs->validation_seconds;
    qkv_status status = qkv__dist_copy(&seconds, sizeof seconds);
    if (t->job->lines_searched)
        validation += search_seconds * (double)(t->job->lines_searched(t, 1) - t->job->lines_searched(t, 0));
    qkv__plan p = qkv__plan_steps(seconds, measuring, costs->step_seconds, validation, costs->epoch_steps, t->o.v.valid_every);
    t->planned_steps = p.steps;
    t->planned_validations = t->o.v.valid_every || !(validation > 0) ? 0 : p.validations;
    qkv__training_note(t, "--minutes %g: planned as --steps %lld: %.3f s an update, %.2f s a validation",
                       (double)t->o.v.minutes, (long long)p.steps, costs->step_seconds, validation);
    static const int64_t few = 1000; /* more teach something, also where the text is long */
    if (p.steps < costs->epoch_steps && p.steps < few)
        qkv__training_note(t, "--minutes %g: the plan ends before one pass over the text: give more minutes for a useful model",
                           (double)t->o.v.minutes);
    return status;
}

static qkv_status plan_minutes(qkv_training *t, learning *how, const qkv_train_opts *o)
{
    qkv_run_plan plan;
    qkv_train_opts trial = *o;
    trial.minutes = (double)t->o.v.minutes;
    trial.validate = qkv_dataset_size(t->valid) ? validate_job : NULL; /* with --dry-run too: the plan is the same */
    how->trainer = (qkv_trainer_opts){ .size = sizeof how->trainer,
                                       .accumulate = t->o.v.update_freq,
                                       .clip_norm = t->o.v.clip,
                                       .label_smoothing = t->o.v.smoothing,
                                       .micro_batches = t->o.v.micro_batches };
    set_trainer(t, how, &trial);
    double each = 0; /* line that is searched */
    qkv_status status = QKV_OK;
    if (t->job->time_search) status = t->job->time_search(t, 60 * trial.minutes * QKV__TRIAL_SHARE / 3, &each);
    if (!status) status = qkv__dist_copy(&each, sizeof each);
    t->is_trial = true;
    if (!status) status = qkv_train_plan(t->model, t->pairs, &trial, 0, &plan);
    t->is_trial = false;
    if (!status && qkv_dist_size() > 1) t->stopped = plan.steps ? NULL : QKV__N("another rank was to end"); /* rank 0 decides */
    return status || t->stopped ? status : fix_plan(t, &plan, each);
}

/* The steps count, not the clock; but on a machine that became slower half as much time again is the end. */
static double overtime(const qkv_training *t) { return (double)t->o.v.minutes * 1.5 + 0.5 - (qkv__seconds() - t->began) / 60; }

/* Its limits, and how it learns: a schedule may have to know where it ends. */
static qkv_status plan_run(qkv_training *t, learning *how, qkv_train_opts *o)
{
    int64_t epoch_steps, last_step;
    const qkv__training_values *v = &t->o.v;
    qkv_status status = QKV_OK;
    /* One that goes on has its plan. */
    bool is_timed = v->minutes > 0 || (t->planned_steps && !QKV__IS_SET(&t->o, steps) && !QKV__IS_SET(&t->o, epochs));
    if (is_timed && !t->planned_steps && !v->resume) status = plan_minutes(t, how, o);
    if (status || t->stopped) return status;
    o->steps = v->steps;
    o->epochs = is_timed && !QKV__IS_SET(&t->o, epochs) ? 0 : v->epochs;
    if (is_timed && t->planned_steps && (!o->steps || t->planned_steps < o->steps)) {
        o->steps = t->planned_steps;
        t->end_texts[QKV_END_STEPS] = QKV__N("all steps planned for --minutes are done");
        o->minutes = v->minutes > 0 ? fmax(overtime(t), 0.01) : 0;
    }
    if (is_timed && !t->planned_steps) o->minutes = (double)v->minutes; /* it was begun without a plan: more by the clock */
    how->trainer = (qkv_trainer_opts){ .accumulate = v->update_freq };
    set_trainer(t, how, o);
    if ((status = qkv_train_steps(t->pairs, o, &epoch_steps, &last_step))) return status;
    choose_valid_every(t, epoch_steps, last_step);
    o->validate_every = v->valid_every;
    status = qkv__training_how(t, last_step, &how->trainer, &how->schedule);
    set_trainer(t, how, o);
    return status;
}

/* Half a plan is none: nothing is begun. */
static qkv_status tell_no_plan(const qkv_training *t, qkv_training_end *out)
{
    qkv__training_note(t, "stopped before the first step, while the speed was measured: nothing is written");
    out->reason = t->stopped;
    return QKV_OK;
}

static qkv_status run_training(qkv_training *t, qkv_training_end *out)
{
    const qkv__training_values *v = &t->o.v;
    learning how;
    qkv__settings settings = { 0 };
    qkv_train_result *result = NULL;
    const qkv_hooks hooks = { .size = sizeof hooks, .data = t, .cancel = ask_to_stop };
    qkv_train_opts o = { .size = sizeof o,
                         .folder = v->dry_run ? NULL : v->out,
                         .resume = v->resume && !v->dry_run,
                         .job = t->job->command,
                         .patience = v->patience,
                         .save_every = v->save_every,
                         .keep = v->keep,
                         .log_every = v->log_every,
                         .validate = qkv_dataset_size(t->valid) && !v->dry_run ? validate_job : NULL,
                         .on_event = tell_event,
                         .hooks = &hooks,
                         .end_texts = t->end_texts,
                         .save = t->job->save,
                         .data = t };
    qkv_status status = plan_run(t, &how, &o);
    if (!status && t->stopped) return tell_no_plan(t, out);
    const bool is_planned = t->planned_steps && o.steps == t->planned_steps;
    if (!status) status = qkv__settings_of(t, &settings);
    o.settings = settings.all;
    o.n_settings = settings.n;
    qkv__json_writer about = { 0 };
    if (!status) status = qkv__training_about(t, &about);
    o.about = about.text;
    if (!status) status = qkv_train(t->model, t->pairs, &o, &result);
    if (!status) out->step = result->state->step, out->reason = t->end_texts[result->end];
    if (!status && is_planned && o.minutes > 0 && result->end == QKV_END_TIME)
        qkv__training_note(
            t,
            "the machine became slower than --minutes measured: %lld of %lld planned steps are made; --resume makes the others",
            (long long)out->step, (long long)t->planned_steps);
    qkv_free(result);
    qkv__json_writer_free(&about);
    qkv__settings_free(&settings);
    return status;
}

static const qkv__paths *train_files(const qkv_training *t)
{
    const qkv__training_values *v = &t->o.v;
    return t->job->bit == QKV__TRANSLATE  ? &v->train_pairs
           : t->job->bit == QKV__CLASSIFY ? &v->train_labelled
                                          : &v->train_documents;
}

static qkv_status check_needed(const qkv_training *t)
{
    const qkv__training_values *v = &t->o.v;
    if (!train_files(t)->n && v->resume && v->out)
        return qkv__fail(QKV_USAGE, "cannot resume %s: its training.json does not hold the options: give all of them again",
                         v->out);
    if (!train_files(t)->n) return qkv__fail(QKV_USAGE, "training: there is no text: set \"train\"");
    if (!v->out && (!v->dry_run || v->resume))
        return qkv__fail(QKV_USAGE, "training: there is no folder to write: set \"out\"");
    if (!(v->split >= 0 && v->split <= 0.5f)) return qkv__fail(QKV_USAGE, "--split: %g is not from 0 to 0.5", (double)v->split);
    if (v->split > 0 && v->valid.n)
        return qkv__fail(QKV_USAGE, "--split: nothing is held back where --valid gives what is measured on");
    if (qkv__check_like(t)) return QKV_USAGE;
    if (QKV__IS_GIVEN(&t->o, minutes) && !(v->minutes > 0))
        return qkv__fail(QKV_USAGE, "--minutes: %g is not above 0", (double)v->minutes);
    const char *none = QKV__IS_GIVEN(&t->o, steps) && !v->steps     ? "steps"
                       : QKV__IS_GIVEN(&t->o, epochs) && !v->epochs ? "epochs"
                                                                    : NULL;
    if (none) return qkv__fail(QKV_USAGE, "--%s 0 trains nothing: give a number from 1, or leave it out", none);
    return t->job->check(t);
}

/* What decides on what the ranks say to each other while they read the text: the other options are compared after it. */
static qkv_status agree_on_course(const qkv_training *t)
{
    const qkv__training_values *v = &t->o.v;
    const double course[] = { v->paper,
                              v->resume,
                              v->dry_run,
                              !v->out,
                              !v->from,
                              !v->tokenizer,
                              v->metric,
                              v->fit,
                              v->valid.n > 0,
                              (double)v->split,
                              QKV__IS_SET(&t->o, split) };
    return qkv_dist_size() == 1 ? QKV_OK : qkv__dist_agree(course, sizeof course, "the options");
}

static qkv_status run_from_files(qkv_training *t, qkv_training_end *out)
{
    bool goes_on = t->o.v.resume && t->o.v.out;
    qkv_status status = goes_on ? qkv_train_check(&(qkv_train_opts){ .folder = t->o.v.out, .resume = 1 }) : QKV_OK;
    if (!status && goes_on) status = qkv__training_recall(t);
    if (!status) status = check_needed(t);
    if (status) return status;
    set_defaults(t);
    choose_micro_batches(t);
    status = agree_on_course(t);
    if (!status && !t->o.v.dry_run) status = qkv__share_status(qkv_dist_rank() ? QKV_OK : check_folder(t)); /* rank 0 writes */
    if (!status) status = choose_options(t);
    if (!status) status = qkv__training_start(t);
    if (!status) status = read_training_text(t);
    if (!status) status = run_training(t, out);
    if (!status && !t->o.v.dry_run && !qkv_dist_rank() && t->saved_step >= 0) status = qkv__write_examples(t);
    if (!status && t->job->finish && !t->stopped && !t->o.v.dry_run && !qkv_dist_rank()) status = t->job->finish(t);
    if (!status && !t->stopped && !t->o.v.dry_run) status = qkv__training_warn_of_chance(t);
    /* A folder that this run made and left empty would look like a broken model. */
    if ((status || t->stopped) && t->made_folder) rmdir(t->o.v.out);
    return status;
}

qkv_status qkv_training_run(qkv_training *t, const qkv_training_watch *watch, qkv_training_end *out)
{
    qkv_training_end own;
    if (!t) return qkv__fail(QKV_USAGE, "training: there is none to run");
    if (!out) out = &own;
    *out = (qkv_training_end){ .saved_step = -1 };
    if (t->failed) return qkv__fail_again(t->failed, t->sentence.data ? t->sentence.data : "");
    qkv_status status = QKV__READ_OPTIONS(&t->watch, data, watch, "training");
    if (status) return status;
    forget_text(t);
    qkv__options_forget_choices(&t->o);
    t->planned_steps = t->planned_validations = 0;
    t->n_measured = 0;
    t->best_accuracy = t->best_bleu = -1;
    t->has_too_few = false;
    t->began = qkv__seconds();
    t->made_folder = false;
    t->stopped = NULL;
    t->saved_step = -1;
    static const char *const texts[] = { QKV__N("--steps reached"),
                                         QKV__N("--epochs reached"),
                                         QKV__N("--minutes reached"),
                                         QKV__N("--patience: validation stopped improving"),
                                         NULL,
                                         QKV__N("another rank was to end") };
    memcpy(t->end_texts, texts, sizeof texts);
    status = run_from_files(t, out);
    out->saved_step = t->saved_step;
    return status;
}
