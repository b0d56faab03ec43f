/* training.c: a training as the command runs it: its options written down, its progress told, Ctrl-C an end and not a loss. */
#include "training.h"

#include "labelled.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the options, written down ---- */

/* Options that may change from one run of a training to the next. */
static bool may_change(const char *name)
{
    static const char *const names[] = { "patience", "epochs", "steps",   "minutes",   "save-every", "keep",
                                         "out",      "resume", "dry-run", "log-every", "quiet",      NULL };
    for (int i = 0; names[i]; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

/* Whose contents count, not their names: the checkpoint knows the text and the weights it was started with. */
static bool is_path(const char *name)
{
    return !strcmp(name, "train") || !strcmp(name, "valid") || !strcmp(name, "tokenizer") || !strcmp(name, "from");
}

static void free_settings(qkv_run_opts *o)
{
    for (int64_t i = 0; i < o->n_settings; i++) free((void *)(uintptr_t)o->settings[i].value);
    free((void *)(uintptr_t)o->settings);
}

static qkv_status take_settings(const command *c, qkv_run_opts *o)
{
    char text[4096];
    int64_t n = 0;
    for (const option *at = c->options; at->name; at++) n++;
    qkv_run_setting *all = calloc((size_t)n + 1, sizeof *all);
    o->settings = all;
    for (const option *at = c->options; all && at->name; at++) {
        if (may_change(at->name)) continue;
        option_text(at, text, sizeof text);
        char *value = strdup(text);
        if (!value) return fail(QKV_MEMORY, "out of memory");
        all[o->n_settings++] = (qkv_run_setting){ at->name, value, !was_given(at->name), is_path(at->name) };
    }
    return all ? QKV_OK : fail(QKV_MEMORY, "out of memory");
}

/* ---- the folder ---- */

static bool folder_is_new; /* this run made it */

qkv_status check_training_folder(const command *c)
{
    if (training.dry_run) return QKV_OK;
    qkv_run_opts o = { .folder = training.out, .resume = training.resume };
    qkv_status status = take_settings(c, &o);
    if (!status && qkv_run_check(&o)) status = library_failed();
    free_settings(&o);
    if (status || training.resume) return status;
    folder_is_new = !mkdir(training.out, 0777);
    if (!folder_is_new && errno != EEXIST) return fail(QKV_IO, "%s: cannot make the folder: %s", training.out, strerror(errno));
    return QKV_OK;
}

qkv_status leave_training_folder(qkv_status status)
{
    if (status && folder_is_new) rmdir(training.out); /* fails, as it should, where anything was written */
    return status;
}

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t caught;

static void catch_signal(int number) { caught = number; }

/* Once: a second Ctrl-C ends the program at once. */
static void catch_signals(void)
{
    struct sigaction action = { .sa_handler = catch_signal, .sa_flags = (int)SA_RESETHAND };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- what the run tells ---- */

enum { COST_UPDATES = 5 };

typedef struct watching {
    training_job *job;
    progress progress;
    FILE *to;          /* where plan and cost go */
    double cost_began; /* busy seconds and tokens when the updates that are measured began */
    int64_t cost_tokens, updates;
    bool is_told; /* an error, by a validation */
} watching;

/* Tells what an update costs once some were made; the first one also finds its memory, and does not count. */
static void measure_cost(watching *w, const qkv_run_event *e)
{
    int64_t updates = w->updates - 1;
    if (updates == 0) w->cost_began = e->busy_seconds, w->cost_tokens = e->tokens;
    if (updates != COST_UPDATES) return;
    double seconds = e->busy_seconds - w->cost_began;
    wipe_progress(&w->progress);
    print_cost(w->to, &(training_cost){ .updates = updates,
                                        .tokens = e->tokens - w->cost_tokens,
                                        .seconds = seconds > 1e-9 ? seconds : 1e-9,
                                        .updates_left = e->last_step ? e->last_step - e->first_step : 0,
                                        .unit = w->job->unit });
}

static void draw_step(watching *w, const qkv_run_event *e)
{
    double busy = e->busy_seconds > 1e-9 ? e->busy_seconds : 1e-9;
    show_progress(&w->progress, &(progress_state){ .step = e->at.step,
                                                   .steps = e->last_step,
                                                   .epoch = (int64_t)e->at.epoch + 1,
                                                   .epochs = training.epochs,
                                                   .loss = e->loss,
                                                   .lr = e->at.lr,
                                                   .tokens_per_second = (double)e->tokens / busy,
                                                   .unit = w->job->unit ? w->job->unit : "tokens",
                                                   .done = e->done,
                                                   .seconds_left = e->seconds_left,
                                                   .is_last = e->kind == QKV_RUN_EVENT_LAST_STEP });
}

static void tell_end(watching *w, const qkv_run_event *e)
{
    say_line(&w->progress, "stopped after step %lld, %.1f minutes: %s", (long long)e->at.step, e->seconds / 60, e->reason);
    if (e->score) say_line(&w->progress, "best: %s", e->score->words);
    if (caught) say_line(&w->progress, "to go on: the same command with --resume");
    say_line(&w->progress, "the model is in %s", training.out);
}

static void watch(void *data, const qkv_run_event *e)
{
    watching *w = data;
    switch (e->kind) {
    case QKV_RUN_EVENT_BEGIN:
        if (!training.quiet || training.dry_run) print_plan(w->to, w->job, e->epoch_steps, e->last_step);
        break;
    case QKV_RUN_EVENT_RESUME: say_line(&w->progress, "going on after step %lld", (long long)e->at.step); break;
    case QKV_RUN_EVENT_STEP:
        w->updates++;
        if (!training.quiet || training.dry_run) measure_cost(w, e);
        if (!training.dry_run) draw_step(w, e);
        break;
    case QKV_RUN_EVENT_LAST_STEP:
        if (!training.dry_run) draw_step(w, e);
        break;
    case QKV_RUN_EVENT_VALIDATION:
        say_line(&w->progress, "step %lld: %s%s", (long long)e->at.step, e->score->words,
                 e->is_best ? ", the best so far" : "");
        break;
    case QKV_RUN_EVENT_END:
        if (!training.dry_run) tell_end(w, e);
        break;
    }
}

static const char *why_stop(void *data)
{
    const watching *w = data;
    if (training.dry_run) return w->updates > COST_UPDATES ? "--dry-run" : NULL;
    return !caught ? NULL : caught == SIGINT ? "Ctrl-C" : "a signal";
}

static qkv_status validate_job(void *data, const qkv_model *m, qkv_run_score *out)
{
    watching *w = data;
    (void)m; /* it is the job's */
    qkv_status status = w->job->validate(w->job, out);
    w->is_told = status != QKV_OK;
    return status;
}

/* ---- the run ---- */

/* What the summary tells, as JSON. NULL: reported. */
static char *describe_data(const training_job *j)
{
    const label_set *labels = j->read.labels;
    json_t *all = json_object(), *counts = labels ? json_object() : NULL;
    for (int i = 0; counts && i < labels->n; i++)
        json_object_set_new(counts, labels->names[i], json_integer((json_int_t)labels->counts[i]));
    json_object_set_new(all, "left_out",
                        json_pack("{s:I, s:I}", "empty", (json_int_t)j->read.empty, "too_long", (json_int_t)j->read.too_long));
    if (counts) json_object_set_new(all, "classes", counts);
    json_object_set_new(all, "vocabulary", json_integer(qkv_tokenizer_size(qkv_model_source_tokenizer(j->model))));
    json_object_set_new(all, "parameters", json_integer((json_int_t)qkv_params_count(qkv_model_params(j->model))));
    char *text = json_dumps(all, 0);
    json_decref(all);
    if (!text) fail(QKV_MEMORY, "out of memory");
    return text;
}

/* What the options of a run point at. */
typedef struct learning {
    qkv_trainer_opts trainer;
    qkv_optimizer_opts optimizer;
    qkv_batch_opts batches;
} learning;

/* Its limits, and how it learns: a schedule may have to know where it ends. */
static qkv_status plan_run(const training_job *j, learning *how, qkv_run_opts *o)
{
    int64_t epoch_steps, last_step;
    how->optimizer = training_optimizer();
    how->batches = (qkv_batch_opts){ .max_tokens = training.max_tokens,
                                     .start = j->start,
                                     .end = j->end,
                                     .pad = j->pad,
                                     .bare = j->bare,
                                     .bare_source = j->bare_source };
    if (!training.steps && !training.epochs && !(training.minutes > 0)) training.epochs = 30;
    o->steps = training.steps;
    o->epochs = training.epochs;
    o->minutes = training.minutes > 0 ? (double)training.minutes : 0;
    o->trainer = &how->trainer;
    how->trainer = (qkv_trainer_opts){ .batches = &how->batches, .update_freq = training.update_freq };
    if (qkv_run_steps(j->pairs, o, &epoch_steps, &last_step)) return library_failed();
    qkv_status status = training_opts(qkv_transformer_options(qkv_model_transformer(j->model))->dim, last_step, &how->trainer);
    how->trainer.optimizer = &how->optimizer;
    how->trainer.batches = &how->batches;
    how->trainer.objective = j->objective;
    return status;
}

static void tell_failure(const watching *w, const qkv_run_result *end)
{
    if (!w->is_told) library_failed();
    if (end->saved_step >= 0)
        fprintf(stderr, "qkv: the checkpoint of step %lld in %s is whole: go on from it with --resume\n",
                (long long)end->saved_step, training.out);
}

qkv_status run_training(training_job *j)
{
    watching w = { .job = j,
                   .progress = start_progress(training.quiet, training.log_every),
                   .to = training.dry_run ? stdout : stderr };
    qkv_run_result end;
    learning how;
    qkv_run_opts o = { .folder = training.dry_run ? NULL : training.out,
                       .resume = training.resume && !training.dry_run,
                       .job = j->c->name,
                       .patience = training.patience,
                       .valid_every = training.valid_every,
                       .save_every = training.save_every,
                       .keep = training.keep,
                       .log_every = training.log_every,
                       .validate = j->validate && !training.dry_run ? validate_job : NULL,
                       .each = watch,
                       .stop = why_stop,
                       .data = &w };
    char *about = describe_data(j);
    o.about = about;
    qkv_status status = about ? plan_run(j, &how, &o) : QKV_MEMORY;
    if (!status) status = take_settings(j->c, &o);
    if (!status) {
        if (!training.dry_run) catch_signals();
        if ((status = qkv_run(j->model, j->pairs, &o, &end))) tell_failure(&w, &end);
        else if (caught) common.signal = caught;
    }
    free_settings(&o);
    free(about);
    return status;
}
