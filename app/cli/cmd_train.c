/* cmd_train.c: qkv train: files in, a model out. The training is the library's (qkv/job.h); here its options are read, its
 * progress is drawn, and Ctrl-C is an end and not a loss. */
#include "../recipe/job.h"
#include "../draw/view.h"
#include "options.h"
#include "ranks.h"
#include "../term/progress.h"
#include "training_cost.h"
#include "transformer_names.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- options ---- */

/* What was typed, by member; the library reads the values. */
static struct {
#define TYPED_FLAG bool
#define TYPED_COUNT const char *
#define TYPED_INT const char *
#define TYPED_WHOLE const char *
#define TYPED_NUMBER const char *
#define TYPED_WORD const char *
#define TYPED_TEXT const char *
#define TYPED_OUTPUT const char *
#define TYPED_FILES value_list
#define TYPED_INPUT value_list
#define QKV_TRAINING_OPTION(member, kind, ...) TYPED_##kind member;
#include "../recipe/training.def"
#define QKV_TRAIN_OPTION(member, kind, ...) TYPED_##kind member;
#include <qkv/transformer.def>
    int64_t samples;
    bool quiet;
} typed;

#define TRAINING_ROW(member, kind, name_, value_, group_, help_, is_rare_, names_) \
    { .name = name_,                                                               \
      .group = group_##_GROUP,                                                     \
      .value = value_,                                                             \
      .help = help_,                                                               \
      .is_rare = is_rare_,                                                         \
      .names = names_,                                                             \
      GOES_TO_##kind(member) },
#define NO_ROW(...)
#define GOES_TO_FLAG(member) .flag = &typed.member, .can_be_off = true
#define GOES_TO_COUNT(member) .text = &typed.member
#define GOES_TO_INT GOES_TO_COUNT
#define GOES_TO_WHOLE GOES_TO_COUNT
#define GOES_TO_NUMBER GOES_TO_COUNT
#define GOES_TO_WORD GOES_TO_COUNT
#define GOES_TO_TEXT GOES_TO_COUNT
#define GOES_TO_OUTPUT(member) .text = &typed.member, .letter = 'o', .required = true, .optional_with = &typed.dry_run
#define GOES_TO_FILES(member) .list = &typed.member
#define GOES_TO_INPUT(member) .list = &typed.member, .required = true, .optional_with = &typed.resume
#define ROW_OF_EVERY TRAINING_ROW
#define QUIET_OPTION                                                                                       \
    {                                                                                                      \
        "quiet", .is_rare = true, .group = SAVING_GROUP, .help = "print errors only", .flag = &typed.quiet \
    }

static const option translate_options[] = {
#define ROW_OF_TRANSLATE TRAINING_ROW
#define ROW_OF_CLASSIFY NO_ROW
#define ROW_OF_GENERATE NO_ROW
#define ROW_OF_MASK NO_ROW
#define ROW_OF_DOCUMENTS NO_ROW
#include "training_rows.h"
    { "samples", .is_rare = true, .group = STOPPING_GROUP, .value = "N",
      .help = "show translations of N validation lines, at most 16 (default: 3 on a terminal, else 0)",
      .whole = &typed.samples },
    QUIET_OPTION,
    { 0 },
};

static const option classify_options[] = {
#define ROW_OF_TRANSLATE NO_ROW
#define ROW_OF_CLASSIFY TRAINING_ROW
#define ROW_OF_GENERATE NO_ROW
#define ROW_OF_MASK NO_ROW
#define ROW_OF_DOCUMENTS NO_ROW
#include "training_rows.h"
    QUIET_OPTION,
    { 0 },
};

static const option generate_options[] = {
#define ROW_OF_TRANSLATE NO_ROW
#define ROW_OF_CLASSIFY NO_ROW
#define ROW_OF_GENERATE TRAINING_ROW
#define ROW_OF_MASK NO_ROW
#define ROW_OF_DOCUMENTS TRAINING_ROW
#include "training_rows.h"
    QUIET_OPTION,
    { 0 },
};

static const option mask_options[] = {
#define ROW_OF_TRANSLATE NO_ROW
#define ROW_OF_CLASSIFY NO_ROW
#define ROW_OF_GENERATE NO_ROW
#define ROW_OF_MASK TRAINING_ROW
#define ROW_OF_DOCUMENTS TRAINING_ROW
#include "training_rows.h"
    QUIET_OPTION,
    { 0 },
};

static bool is_ours(const option *o) { return o->flag == &typed.quiet || o->whole == &typed.samples; }

/* Hands on what was typed. */
static qkv_status set_option(qkv_training *t, const option *o)
{
    if (is_ours(o) || !was_given(o->name)) return QKV_OK;
    if (o->flag) return qkv_training_set(t, o->name, *o->flag ? "yes" : "");
    if (o->text) return qkv_training_set(t, o->name, *o->text);
    qkv_status status = QKV_OK;
    for (int i = 0; i < o->list->n && !status; i++) status = qkv_training_set(t, o->name, o->list->at[i]);
    return status;
}

/* ---- "qkv train --resume --out DIR" ---- */

/* The value of --out among arguments; NULL: none. */
static const char *find_out(char **arguments)
{
    for (char **a = arguments; *a; a++) {
        if (!strcmp(*a, "--out") || !strcmp(*a, "--output") || !strcmp(*a, "-o")) return a[1];
        if (!strncmp(*a, "--out=", 6)) return *a + 6;
    }
    return NULL;
}

const char *find_resumed_job(char **arguments)
{
    static const char *const jobs[] = { "translate", "classify", "generate", "mask" };
    char member[64];
    qkv_buffer record = { 0 };
    const char *folder = find_out(arguments), *job = NULL;
    bool resumes = false;
    for (char **a = arguments; *a; a++) resumes = resumes || !strcmp(*a, "--resume");
    if (!folder || !resumes) return NULL;
    qkv_status status = qkv_trainings_text(&folder, 1, 1, &record);
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs && !job; i++) {
        snprintf(member, sizeof member, "\"job\": \"train %s\"", jobs[i]);
        if (status || strstr(record.data, member)) job = jobs[i]; /* the training says what is wrong with the folder */
    }
    qkv_buffer_free(&record);
    return job;
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

/* ---- what the training tells ---- */

enum { COST_UPDATES = 5 };

typedef struct watching {
    qkv_training *training;
    progress progress;
    FILE *to;          /* where plan and cost go */
    double began;      /* all of it, reading included */
    double cost_began; /* busy seconds and tokens when the updates that are measured began */
    int64_t cost_tokens, updates;
} watching;

static void print_plan(const watching *w, const qkv_train_event *e)
{
    qkv_buffer text = { 0 };
    if (!qkv_training_summary(w->training, e->epoch_steps, e->last_step, &text)) fputs(text.data, w->to);
    qkv_buffer_free(&text);
}

/* Tells what an update costs once some were made; the first one also finds its memory, and does not count. */
static void measure_cost(watching *w, const qkv_train_event *e)
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
                                        .unit = qkv_training_text_of(w->training)->unit });
}

static void draw_step(watching *w, const qkv_train_event *e)
{
    const char *unit = qkv_training_text_of(w->training)->unit;
    double busy = e->busy_seconds > 1e-9 ? e->busy_seconds : 1e-9;
    show_progress(&w->progress,
                  &(progress_state){ .step = e->state->step,
                                     .steps = e->last_step,
                                     .epoch = (int64_t)e->state->epoch + 1,
                                     .epochs = e->last_step ? (e->last_step + e->epoch_steps - 1) / e->epoch_steps : 0,
                                     .loss = e->mean_loss,
                                     .lr = e->state->lr,
                                     .tokens_per_second = (double)e->tokens / busy,
                                     .unit = strcmp(unit, "texts") ? N_("tokens") : unit,
                                     .best = e->score ? e->score->summary : NULL,
                                     .done = e->done,
                                     .seconds_left = e->seconds_left,
                                     .is_last = e->kind == QKV_EVENT_LAST_STEP });
}

static void tell_end(watching *w, const qkv_train_event *e)
{
    char time[32];
    format_duration(time, seconds_now() - w->began);
    say_line(&w->progress, "stopped after %lld updates and %s: %s", (long long)e->state->step, time,
             _(qkv_training_reason(w->training, e->end)));
    if (e->score) say_line(&w->progress, "best: %s", e->score->summary);
}

static void watch_event(void *data, const qkv_train_event *e)
{
    watching *w = data;
    bool tells_costs = !typed.quiet || typed.dry_run;
    switch (e->kind) {
    case QKV_EVENT_BEGIN:
        if (tells_costs) print_plan(w, e);
        break;
    case QKV_EVENT_RESUME:
        say_line(&w->progress, "resuming after step %lld", (long long)e->state->step);
        if (e->last_step && e->state->step >= e->last_step)
            say_line(&w->progress,
                     "no steps are left: --steps and --epochs train longer, and so does another training with --from");
        break;
    case QKV_EVENT_STEP:
        w->updates++;
        if (tells_costs) measure_cost(w, e);
        if (!typed.dry_run) draw_step(w, e);
        break;
    case QKV_EVENT_LAST_STEP:
        if (!typed.dry_run) draw_step(w, e);
        break;
    case QKV_EVENT_VALIDATION:
        say_line(&w->progress, "step %lld: %s%s", (long long)e->state->step, e->score->summary,
                 e->is_best ? _(", the best so far") : "");
        break;
    case QKV_EVENT_CHECKPOINT: break;
    case QKV_EVENT_END:
        if (!typed.dry_run) tell_end(w, e);
        break;
    }
}

static const char *why_stop(void *data)
{
    const watching *w = data;
    if (typed.dry_run) return w->updates > COST_UPDATES ? "--dry-run" : NULL;
    return !caught ? NULL : caught == SIGINT ? "Ctrl-C" : N_("a signal");
}

static void tell_note(void *data, const char *text)
{
    watching *w = data;
    say_line(&w->progress, "qkv: %s", text);
}

static void show_samples(void *data, int64_t n, const char *const *sources, const char *const *references,
                         const char *const *translations)
{
    watching *w = data;
    for (int64_t i = 0; i < n; i++) {
        say_text(&w->progress, "    ", sources[i]);
        say_text(&w->progress, "  = ", references[i]);
        say_text(&w->progress, "  > ", translations[i]);
    }
}

/* ---- the commands ---- */

static qkv_status tell_failure(const qkv_training_end *end)
{
    qkv_status status = library_failed();
    if (end->saved_step >= 0 && speaks_for_ranks())
        fprintf(stderr, _("qkv: the checkpoint of step %lld is complete; to continue: qkv train --resume --out %s\n"),
                (long long)end->saved_step, typed.out);
    return status;
}

static qkv_status run_training(const char *job, const option *options)
{
    qkv_training *t = qkv_training_new(job);
    watching w = { .training = t, .to = typed.dry_run ? stdout : stderr, .began = seconds_now() };
    qkv_training_end end = { .saved_step = -1 };
    qkv_status status = t ? QKV_OK : qkv_error_status();
    const char *every = typed.log_every ? typed.log_every : "100";
    for (const option *o = options; o->name && !status; o++) status = set_option(t, o);
    typed.quiet = typed.quiet || !speaks_for_ranks();
    w.progress = start_progress(typed.quiet, strtol(every, NULL, 10));
    if (!was_given("samples") && w.progress.bar) typed.samples = 3;
    const qkv_training_watch watch = { .note = tell_note,
                                       .each = watch_event,
                                       .stop = why_stop,
                                       .sample = show_samples,
                                       .n_samples = typed.quiet ? 0 : typed.samples,
                                       .data = &w };
    if (!status && !typed.dry_run) catch_signals();
    if (!status) status = qkv_training_run(t, &watch, &end);
    if (status) status = tell_failure(&end);
    else if (caught) common.signal = caught;
    if (!status && caught && end.saved_step >= 0) say_line(&w.progress, "to continue: qkv train --resume --out %s", typed.out);
    if (!status && !typed.dry_run && end.saved_step >= 0) say_line(&w.progress, "the model is in %s", typed.out);
    qkv_training_free(t);
    return status;
}

static qkv_status run_train_translate(void) { return run_training("translate", translate_options); }
static qkv_status run_train_classify(void) { return run_training("classify", classify_options); }
static qkv_status run_train_generate(void) { return run_training("generate", generate_options); }
static qkv_status run_train_mask(void) { return run_training("mask", mask_options); }

const command train_translate_command = {
    .name = "train translate",
    .summary = "train a translator on sentence pairs",
    .about = "Trains on two aligned text files, plain or gzip, and writes the best model by\n"
             "--valid, or by --split, to a folder for \"qkv translate -m DIR\". Options that are\n"
             "not given are chosen from the text and printed; passing them explicitly gives the\n"
             "same result. --paper uses the paper's settings: post-norm, Adam, 4000 warm-up\n"
             "steps, dropout and label smoothing 0.1.\n"
             "\n"
             "--minutes times some updates, undoes them, and fixes the number of steps so that\n"
             "the rate has come down when the time is up, validation and fitting included; from\n"
             "there on the steps count, not the clock. After the last step the length penalty\n"
             "of the search is fitted on the validation text and kept with the model (--fit).\n"
             "\n"
             "Beside the model, DIR holds checkpoint.safetensors, training.json (the options and\n"
             "the result) and log.jsonl (a line for each report and validation). Ctrl-C saves a\n"
             "checkpoint and ends with status 130. \"qkv train --resume --out DIR\" continues, with\n"
             "the options of the start, bit for bit as if it had not stopped. The result depends on the options and the\n"
             "text alone, not on threads; --minutes makes it depend on the machine's speed.\n"
             "\n"
             "--metric bleu translates the --valid lines as \"qkv translate\" does without options,\n"
             "beam search included, and scores them as \"qkv score --metric bleu\" does: the\n"
             "same number. Of equal BLEU, to two digits, the lower loss is better.\n"
             "\n"
             "--keep N keeps the models of the last N validations for \"qkv average\". A flag that\n"
             "a rule chose is turned off with --no- before its name: --no-pre-norm.",
    .example = "  qkv train translate --train train.en train.de.gz \\\n"
               "    --valid val.en val.de --minutes 30 --out en-de\n"
               "  qkv train translate --train pairs.tsv --preset tiny --epochs 10 --out toy",
    .options = translate_options,
    .run = run_train_translate,
    .is_shared = true,
};

const command train_classify_command = {
    .name = "train classify",
    .summary = "train a text classifier",
    .about = "Trains on labelled texts and writes the best model by --valid, or by --split, to a\n"
             "folder for \"qkv classify -m DIR\". Data is TSV (label TAB text), CSV with a header,\n"
             "JSON lines, or a folder of LABEL/*.txt, plain or gzip. Options that are not given\n"
             "are chosen from the text and printed.\n"
             "\n"
             "TSV has a third column for pairs of texts; other columns are chosen by name or\n"
             "number. Likely headers and labels that hardly occur twice are rejected before\n"
             "training. The separator of tables is detected (comma, semicolon, tab or bar), but a\n"
             "TSV with a TAB in its first line is never split at anything else.\n"
             "\n"
             "White space around a label is ignored. Texts without a label, and validation texts\n"
             "with a label that no training text has, are counted and left out; --strict rejects\n"
             "them.\n"
             "\n"
             "An encoder reads " QKV_SPECIAL_START " text " QKV_SPECIAL_END
             ", cut after --max-length tokens; its hidden states\n"
             "are pooled and classified. --from DIR starts with the encoder of another model,\n"
             "such as one of \"qkv train mask\".",
    .example = "  qkv train classify --train train.tsv --valid valid.tsv --out reviews",
    .options = classify_options,
    .run = run_train_classify,
    .is_shared = true,
};

const command train_generate_command = {
    .name = "train generate",
    .summary = "train a language model",
    .about = "Trains a model to predict the next token and writes a folder for \"qkv generate -m\n"
             "DIR\". A document is a line, a paragraph (up to an empty line) or a file. It is cut\n"
             "into windows of --context tokens; no window spans two documents. Options that are\n"
             "not given are chosen from the text and printed.",
    .example = "  qkv train generate --train play.txt --tokens characters --out play",
    .options = generate_options,
    .run = run_train_generate,
    .is_shared = true,
};

const command train_mask_command = {
    .name = "train mask",
    .summary = "pretrain an encoder by masked words",
    .about = "Pretrains an encoder on plain text without labels, as BERT does: it predicts hidden\n"
             "tokens. The model is a start for \"qkv train classify --from DIR\", and embeds texts.\n"
             "Options that are not given are chosen from the text and printed.\n"
             "\n"
             "Of the chosen tokens 8 of 10 become " QKV_SPECIAL_MASK ", 1 another token, and 1 is kept.\n"
             "Each epoch chooses new tokens.",
    .example = "  qkv train mask --train reviews.txt --out encoder",
    .options = mask_options,
    .run = run_train_mask,
    .is_shared = true,
};
