/* training.c: a training in its folder. DIR holds the best model so far, ready to use, and beside it
 *   checkpoint.safetensors   all that going on needs; written whole or not at all
 *   training.json            with which options it was started, and how it went
 *   log.jsonl                a line for each report and each validation */
#include "results.h"
#include "training.h"

#include "labelled.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the folder: is it ours to write? ---- */

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

static json_t *record_options(const command *c)
{
    char text[4096];
    json_t *all = json_object();
    for (const option *o = c->options; o->name; o++) {
        if (may_change(o->name)) continue;
        option_text(o, text, sizeof text);
        json_object_set_new(all, o->name, json_string(text));
    }
    return all;
}

static bool is_there(const char *name) { return !access(training_file(name).text, F_OK); }

static qkv_status check_options(const command *c)
{
    char differences[1024] = "";
    json_error_t error;
    json_t *record = json_load_file(training_file("training.json").text, 0, &error);
    json_t *then = json_object_get(record, "options"), *now = record_options(c), *value;
    const char *name;
    size_t used = 0;
    if (!then) {
        json_decref(record);
        json_decref(now);
        return fail(QKV_FORMAT, "%s/training.json: it does not tell the options of a training", training.out);
    }
    json_object_foreach (now, name, value) {
        const char *was = json_string_value(json_object_get(then, name)), *is = json_string_value(value);
        bool is_newer = !was && !was_given(name); /* than the training is */
        if (!was) was = "";
        if (!strcmp(was, is) || is_newer || is_path(name) || used >= sizeof differences) continue;
        used += (size_t)snprintf(differences + used, sizeof differences - used, "%s--%s was \"%s\" and is \"%s\"",
                                 used ? "; " : "", name, was, is);
    }
    json_decref(record);
    json_decref(now);
    return used ? fail(QKV_USAGE, "cannot resume %s with other options: %s", training.out, differences) : QKV_OK;
}

static bool folder_is_new; /* this run made it */

qkv_status check_training_folder(const command *c)
{
    if (strlen(training.out) > 3900) return fail(QKV_USAGE, "--out: the path is too long");
    if (training.dry_run) return QKV_OK;
    if (!training.resume && is_there("checkpoint.safetensors"))
        return fail(QKV_USAGE, "%s holds a training already: go on with --resume, or give another folder", training.out);
    if (!training.resume && !is_there("training.json") && is_there("config.json"))
        return fail(QKV_USAGE, "%s holds a model already: give another folder (--from %s starts with its weights)",
                    training.out, training.out);
    if (training.resume && !is_there("training.json"))
        return fail(QKV_USAGE, "there is no training in %s to resume", training.out);
    if (training.resume) return check_options(c);
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

/* ---- the run ---- */

typedef struct run {
    training_job *job;
    qkv_trainer *trainer;
    progress progress;
    FILE *log;
    qkv_progress at;
    int64_t epoch_steps; /* updates in an epoch */
    int64_t valid_every; /* steps */
    int64_t last_step;   /* 0: no limit */
    int64_t planned;     /* steps that the schedule is made for; 0: any */
    int64_t first_step;  /* where this run began */
    double began;        /* seconds */
    double paused;       /* seconds that validation took, which are not the speed's */
    int64_t tokens;      /* of this run */
    double loss_sum;     /* since the last report */
    int64_t loss_tokens;
    int64_t saved_step;    /* of the checkpoint; -1: none */
    int64_t measured_step; /* of the last validation */
    char best_words[128];
    const char *reason; /* to stop; NULL: go on */
    double cost_began;  /* when the updates that are measured began, without the pauses before */
    int64_t cost_tokens;
} run;

/* What the summary tells. */
static void record_data(json_t *record, const training_job *j)
{
    const label_set *labels = j->read.labels;
    json_t *counts = labels ? json_object() : NULL;
    for (int i = 0; counts && i < labels->n; i++)
        json_object_set_new(counts, labels->names[i], json_integer((json_int_t)labels->counts[i]));
    json_object_set_new(record, "left_out",
                        json_pack("{s:I, s:I}", "empty", (json_int_t)j->read.empty, "too_long", (json_int_t)j->read.too_long));
    if (counts) json_object_set_new(record, "classes", counts);
    json_object_set_new(record, "vocabulary", json_integer(qkv_tokenizer_size(qkv_model_source_tokenizer(j->model))));
    json_object_set_new(record, "parameters", json_integer((json_int_t)qkv_params_count(qkv_model_params(j->model))));
}

static qkv_status write_record(const run *r)
{
    const training_path path = training_file("training.json");
    const qkv_best_so_far *marks = qkv_trainer_best_so_far(r->trainer);
    text_file file;
    json_t *record = json_pack("{s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:s}", "qkv", qkv_version(), "job", r->job->c->name,
                               "options", record_options(r->job->c), "pairs", (json_int_t)qkv_pairs_count(r->job->pairs),
                               "steps", (json_int_t)r->at.step, "epochs_begun", (json_int_t)r->at.epoch + 1, "best_step",
                               (json_int_t)marks->best_step, "stopped", r->reason ? r->reason : "");
    if (record && r->planned) json_object_set_new(record, "schedule_steps", json_integer(r->planned));
    if (record && marks->best_step) json_object_set_new(record, "best_score", json_real(marks->best));
    if (record) record_data(record, r->job);
    qkv_status status = record ? QKV_OK : fail(QKV_MEMORY, "%s: out of memory", path.text);
    if (!status && !begin_text(&file)) status = QKV_MEMORY;
    if (!status) {
        json_dumpf(record, file.to, JSON_INDENT(2));
        status = end_text(&file, path.text);
    }
    json_decref(record);
    return status;
}

static qkv_status save_checkpoint(run *r)
{
    if (r->saved_step == r->at.step) return QKV_OK;
    if (qkv_trainer_save(r->trainer, training_file("checkpoint.safetensors").text)) {
        library_failed();
        if (r->saved_step >= 0)
            fprintf(stderr, "qkv: the checkpoint of step %lld is whole: go on from it with --resume\n",
                    (long long)r->saved_step);
        return qkv_error_status();
    }
    r->saved_step = r->at.step;
    return QKV_OK;
}

/* ---- validation ---- */

static bool is_of_model(const char *name)
{
    static const char *const endings[] = { ".json", ".safetensors", ".spm", ".model", NULL };
    const char *dot = strrchr(name, '.');
    for (int i = 0; dot && endings[i]; i++)
        if (!strcmp(dot, endings[i])) return true;
    return false;
}

static void forget_files(const char *path)
{
    DIR *folder = opendir(path);
    for (const struct dirent *e; folder && (e = readdir(folder));) {
        char file[4096 + sizeof e->d_name];
        if (!is_of_model(e->d_name)) continue;
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        unlink(file);
    }
    if (folder) closedir(folder);
    rmdir(path);
}

/* Files that someone else put there stay, and the folder with them. */
static void forget_model(int64_t step)
{
    char name[64];
    if (step <= 0) return;
    snprintf(name, sizeof name, "step-%lld/1_Pooling", (long long)step);
    forget_files(training_file(name).text);
    *strrchr(name, '/') = '\0';
    forget_files(training_file(name).text);
}

static qkv_status keep_model(run *r)
{
    char name[32];
    if (!training.keep) return QKV_OK;
    snprintf(name, sizeof name, "step-%lld", (long long)r->at.step);
    if (qkv_model_save(r->job->model, training_file(name).text)) return library_failed();
    forget_model(r->at.step - training.keep * r->valid_every);
    return QKV_OK;
}

static bool is_better(training_score a, const qkv_best_so_far *than)
{
    return !than->best_step || a.score > than->best || (a.score == than->best && a.loss < than->best_loss);
}

static void mark(qkv_best_so_far *marks, training_score score, int64_t step, bool best)
{
    marks->missed = best ? 0 : marks->missed + 1;
    if (best) marks->best = score.score, marks->best_loss = score.loss, marks->best_step = step;
}

/* A model that is the best so far becomes the folder's before the checkpoint that knows of it is written: whenever a run ends,
 * going on from its last checkpoint gives the same files. */
static qkv_status validate(run *r, bool counts)
{
    double began = seconds_now();
    training_score score = { 0 };
    char words[128] = "", json[128] = "";
    qkv_best_so_far *marks = qkv_trainer_best_so_far(r->trainer);
    qkv_status status = r->job->validate ? r->job->validate(r->job, &score, words, json) : QKV_OK;
    if (status) return status;
    bool best = !r->job->validate || is_better(score, marks);
    if (best && qkv_model_save(r->job->model, training.out)) return library_failed();
    r->measured_step = r->at.step;
    if (counts) mark(marks, score, r->at.step, best);
    if (best) snprintf(r->best_words, sizeof r->best_words, "%s", words);
    if (r->job->validate) {
        say_line(&r->progress, "step %lld: %s%s", (long long)r->at.step, words, best ? ", the best so far" : "");
        fprintf(r->log, "{\"step\": %lld, %s, \"best\": %s}\n", (long long)r->at.step, json, best ? "true" : "false");
    }
    status = counts ? keep_model(r) : QKV_OK;
    r->paused += seconds_now() - began;
    return status;
}

/* ---- reports ---- */

static double larger(double a, double b) { return a > b ? a : b; }

static double speed(const run *r) { return (double)r->tokens / larger(seconds_now() - r->began - r->paused, 1e-9); }

/* Share of the way, by the limit that is nearest: of all steps, those before a resume too; or of the minutes of this run. */
static double share_done(const run *r, double elapsed)
{
    double steps = r->last_step ? (double)r->at.step / (double)r->last_step : 0;
    double minutes = training.minutes > 0 ? elapsed / (60 * (double)training.minutes) : 0;
    return steps > 1 || minutes > 1 ? 1 : larger(steps, minutes);
}

/* At the speed of this run, validations included. Negative: not known yet. */
static double seconds_left(const run *r, double elapsed)
{
    int64_t steps = r->at.step - r->first_step;
    double by_steps = r->last_step && steps > 0 ? elapsed / (double)steps * (double)(r->last_step - r->at.step) : -1;
    double by_minutes = training.minutes > 0 ? larger(60 * (double)training.minutes - elapsed, 0) : -1;
    return by_steps < 0 || (by_minutes >= 0 && by_minutes < by_steps) ? by_minutes : by_steps;
}

static void report(run *r, bool is_last)
{
    double elapsed = seconds_now() - r->began;
    double loss = r->loss_sum / larger((double)r->loss_tokens, 1);
    bool is_logged = r->at.step % training.log_every == 0 || is_last;
    show_progress(&r->progress, &(progress_state){ .step = r->at.step,
                                                   .steps = r->last_step,
                                                   .epoch = (int64_t)r->at.epoch + 1,
                                                   .epochs = training.epochs,
                                                   .loss = loss,
                                                   .lr = r->at.lr,
                                                   .tokens_per_second = speed(r),
                                                   .unit = r->job->unit ? r->job->unit : "tokens",
                                                   .done = share_done(r, elapsed),
                                                   .seconds_left = seconds_left(r, elapsed),
                                                   .is_last = is_last });
    if (!is_logged || !r->loss_tokens) return;
    fprintf(r->log,
            "{\"step\": %lld, \"epoch\": %lld, \"loss\": %.6f, \"lr\": %.6e, \"norm\": %.6f, \"tokens_per_second\": %.0f, "
            "\"seconds\": %.1f}\n",
            (long long)r->at.step, (long long)r->at.epoch + 1, loss, r->at.lr, r->at.norm, speed(r), elapsed);
    fflush(r->log);
    r->loss_sum = 0;
    r->loss_tokens = 0;
}

/* ---- the loop ---- */

static const char *why_stop(const run *r)
{
    const qkv_best_so_far *marks = qkv_trainer_best_so_far(r->trainer);
    if (caught) return caught == SIGINT ? "Ctrl-C" : "a signal";
    if (r->last_step && r->at.step >= r->last_step) return training.steps ? "--steps reached" : "--epochs reached";
    if (training.minutes > 0 && seconds_now() - r->began >= 60 * (double)training.minutes) return "--minutes reached";
    if (training.patience && r->job->validate && marks->missed >= training.patience)
        return "--patience: validation stopped improving";
    return NULL;
}

enum { COST_UPDATES = 5 };

/* Tells what an update costs once some were made; the first one also finds its memory, and does not count. */
static void measure_cost(run *r, FILE *to)
{
    int64_t updates = r->at.step - r->first_step - 1;
    double now = seconds_now() - r->paused;
    if (updates == 0) r->cost_began = now, r->cost_tokens = r->tokens;
    if (updates != COST_UPDATES) return;
    wipe_progress(&r->progress);
    print_cost(to, &(training_cost){ .updates = updates,
                                     .tokens = r->tokens - r->cost_tokens,
                                     .seconds = larger(now - r->cost_began, 1e-9),
                                     .updates_left = r->last_step ? r->last_step - r->first_step : 0,
                                     .unit = r->job->unit });
}

static qkv_status step(run *r)
{
    if (qkv_trainer_step(r->trainer, &r->at)) {
        qkv_status status = library_failed();
        if (r->saved_step >= 0)
            fprintf(stderr, "qkv: the checkpoint of step %lld in %s is as it was\n", (long long)r->saved_step, training.out);
        return status;
    }
    r->tokens += r->at.tokens;
    r->loss_sum += r->at.loss * (double)r->at.tokens;
    r->loss_tokens += r->at.tokens;
    if (!training.quiet) measure_cost(r, stderr);
    report(r, false);
    bool measures = r->at.step % r->valid_every == 0;
    qkv_status status = measures ? validate(r, true) : QKV_OK;
    if (!status && (measures || (training.save_every && r->at.step % training.save_every == 0))) status = save_checkpoint(r);
    return status;
}

static qkv_status finish(run *r)
{
    qkv_status status = save_checkpoint(r);
    if (r->at.step > r->first_step) report(r, true);
    if (caught) common.signal = caught;
    /* Not in the marks: a longer run would not have measured here. */
    if (!status && !caught && r->measured_step != r->at.step) status = validate(r, false);
    if (!status) status = write_record(r);
    if (status) return status;
    double minutes = (seconds_now() - r->began) / 60;
    say_line(&r->progress, "stopped after step %lld, %.1f minutes: %s", (long long)r->at.step, minutes, r->reason);
    if (*r->best_words) say_line(&r->progress, "best: %s", r->best_words);
    if (caught) say_line(&r->progress, "to go on: the same command with --resume");
    say_line(&r->progress, "the model is in %s", training.out);
    return QKV_OK;
}

static qkv_status loop(run *r)
{
    qkv_status status = QKV_OK;
    r->began = seconds_now();
    while (!status && !(r->reason = why_stop(r))) status = step(r);
    return status ? status : finish(r);
}

/* Opens the log, and holds it: one training a folder. */
static qkv_status open_log(run *r)
{
    if (!(r->log = fopen(training_file("log.jsonl").text, "ae")))
        return fail(QKV_IO, "%s/log.jsonl: cannot write: %s", training.out, strerror(errno));
    if (flock(fileno(r->log), LOCK_EX | LOCK_NB)) return fail(QKV_USAGE, "another training is running in %s", training.out);
    return QKV_OK;
}

/* "NAME.123.tmp" */
static bool is_temporary(const char *name)
{
    size_t length = strlen(name), digits = 0;
    if (length < 6 || strcmp(name + length - 4, ".tmp")) return false;
    for (length -= 4; digits < length && isdigit((unsigned char)name[length - 1 - digits]);) digits++;
    return digits && digits + 1 < length && name[length - 1 - digits] == '.';
}

/* Removes what a killed run was writing, also in the folders of the models that are kept: step-N, step-N/1_Pooling. */
static void sweep_folder(const char *path, int depth)
{
    DIR *folder = opendir(path);
    for (const struct dirent *e; folder && (e = readdir(folder));) {
        char entry[4096 + sizeof e->d_name];
        snprintf(entry, sizeof entry, "%.4095s/%s", path, e->d_name);
        if (is_temporary(e->d_name)) unlink(entry);
        else if (depth && (!strncmp(e->d_name, "step-", 5) || !strcmp(e->d_name, "1_Pooling"))) sweep_folder(entry, depth - 1);
    }
    if (folder) closedir(folder);
}

static qkv_status begin(run *r)
{
    const training_path checkpoint = training_file("checkpoint.safetensors");
    r->progress = start_progress(training.quiet, training.log_every);
    r->saved_step = -1;
    qkv_status status = open_log(r);
    if (status) return status;
    sweep_folder(training.out, 2);
    if (!training.quiet) print_plan(stderr, r->job, r->epoch_steps, r->last_step);
    if (training.resume && is_there("checkpoint.safetensors")) {
        if (qkv_trainer_resume(r->trainer, checkpoint.text)) return library_failed();
        r->at = qkv_trainer_at(r->trainer);
        r->saved_step = r->first_step = r->at.step;
        r->measured_step = r->at.step % r->valid_every ? -1 : r->at.step;
        say_line(&r->progress, "going on after step %lld", (long long)r->at.step);
    }
    /* Before the model's files: a folder that holds a model without a record is not ours to write again. */
    status = write_record(r);
    bool is_first = r->saved_step < 0; /* the folder is a model's from the start */
    return !status && is_first && qkv_model_save(r->job->model, training.out) ? library_failed() : status;
}

/* ---- dry run ---- */

static qkv_status dry_run(run *r)
{
    print_plan(stdout, r->job, r->epoch_steps, r->last_step);
    for (int i = 0; i <= COST_UPDATES; i++) {
        if (qkv_trainer_step(r->trainer, &r->at)) return library_failed();
        r->tokens += r->at.tokens;
        measure_cost(r, stdout);
    }
    return QKV_OK;
}

/* ---- limits ---- */

static qkv_status count_steps(run *r, const qkv_batch_opts *batches)
{
    qkv_epoch *e = qkv_epoch_new(r->job->pairs, batches, 0);
    if (!e) return library_failed();
    r->epoch_steps = (qkv_epoch_batches(e) + training.update_freq - 1) / training.update_freq;
    qkv_epoch_free(e);
    if (!training.steps && !training.epochs && !(training.minutes > 0)) training.epochs = 30;
    if (training.epochs) r->last_step = training.epochs * r->epoch_steps;
    if (training.steps && (!r->last_step || training.steps < r->last_step)) r->last_step = training.steps;
    r->valid_every = training.valid_every ? training.valid_every : r->epoch_steps;
    return QKV_OK;
}

/* A schedule that knows its end cannot be given another one halfway. */
static qkv_status check_end(const run *r)
{
    json_error_t error;
    json_t *record = training.resume ? json_load_file(training_file("training.json").text, 0, &error) : NULL;
    json_int_t planned = json_integer_value(json_object_get(record, "schedule_steps"));
    json_decref(record);
    if (!planned || planned == r->planned) return QKV_OK;
    return fail(QKV_USAGE, "cannot resume %s: its schedule was made for %lld steps, and --steps or --epochs now say %lld",
                training.out, (long long)planned, (long long)r->planned);
}

qkv_status run_training(training_job *j)
{
    run r = { .job = j };
    qkv_trainer_opts opts;
    const qkv_batch_opts batches = { .max_tokens = training.max_tokens,
                                     .start = j->start,
                                     .end = j->end,
                                     .pad = j->pad,
                                     .bare = j->bare,
                                     .bare_source = j->bare_source };
    qkv_status status = count_steps(&r, &batches);
    if (!status) status = training_opts(qkv_transformer_options(qkv_model_transformer(j->model))->dim, r.last_step, &opts);
    if (!status) r.planned = opts.schedule.steps;
    if (!status) status = check_end(&r);
    if (status) return status;
    opts.batches = batches;
    opts.objective = j->objective;
    if (!(r.trainer = qkv_trainer_new(j->model, j->pairs, &opts))) return library_failed();
    if (training.dry_run) status = dry_run(&r);
    else {
        catch_signals();
        status = begin(&r);
        if (!status) status = loop(&r);
        if (r.log) fclose(r.log);
    }
    qkv_trainer_free(r.trainer);
    return status;
}
