/* test_job.c: a training from files: its options, what rules choose, what --minutes plans, what is said of the text. */
#include <qkv/qkv.h>
#include <qkv/unstable/runs.h>
#include "report/results.h"
#include "recipe/job.h"

#include "../src/train/plan.h"
#include "nn/params.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "folder.h"
#include "model/model.h"

enum { LINES = 600 };

/* Pairs that are all different, and labelled texts: class a, b or c. */
static int make_texts(void **state)
{
    if (make_folder(state)) return -1;
    FILE *pairs = fopen(in_folder("pairs.tsv"), "w"), *labels = fopen(in_folder("labels.tsv"), "w");
    FILE *some = fopen(in_folder("some.tsv"), "w"), *valid = fopen(in_folder("valid.tsv"), "w");
    if (!pairs || !labels || !some || !valid) return -1;
    for (int i = 0; i < LINES; i++) {
        fprintf(pairs, "w%d x%d y%d\tx%d w%d y%d\n", i % 7, i % 11, i, i % 11, i % 7, i);
        fprintf(labels, "%c\tw%d x%d y%d\n", 'a' + i % 3, i % 7, i % 11, i);
        if (i < 40) fprintf(valid, "v%d\tv%d\n", i, i);
        if (i < 3) fprintf(valid, "w%d x%d y%d\tx%d w%d y%d\n", i % 7, i % 11, i, i % 11, i % 7, i);
        if (i < 20) fprintf(some, "%c\tv%d\n", 'a' + i % 2, i);
    }
    return fclose(pairs) | fclose(labels) | fclose(some) | fclose(valid);
}

/* What a training told, and when it is to stop. */
typedef struct witness {
    char notes[2048];
    int64_t stop_at, step;
    int64_t epoch_steps, last_step, samples;
    qkv_training *training; /* whose summary is kept; NULL: none is */
    qkv_buffer summary;
} witness;

static void note(void *data, const char *text)
{
    witness *w = data;
    size_t length = strlen(w->notes);
    snprintf(w->notes + length, sizeof w->notes - length, "%s\n", text);
}

static void look_on(void *data, const qkv_train_event *e)
{
    witness *w = data;
    w->step = e->state->step;
    if (e->kind == QKV_EVENT_BEGIN) w->epoch_steps = e->epoch_steps, w->last_step = e->last_step;
    if (e->kind == QKV_EVENT_BEGIN && w->training)
        assert_int_equal(qkv_training_summary(w->training, e->epoch_steps, e->last_step, &w->summary), QKV_OK);
}

static const char *stop_there(void *data)
{
    const witness *w = data;
    return w->stop_at && w->step >= w->stop_at ? "enough" : NULL;
}

static void take_samples(void *data, int64_t n, const char *const *sources, const char *const *references,
                         const char *const *translations)
{
    witness *w = data;
    w->samples += n;
    for (int64_t i = 0; i < n; i++) assert_true(*sources[i] && *references[i] && translations[i]);
}

/* A small training; more options in pairs, NULL after the last. */
static qkv_training *small_training(const char *job, const char *train, const char *out, ...)
{
    static const char *const size[] = { "layers", "1",   "dim",    "16",  "heads",      "2",   "inner", "16",
                                        "vocab",  "300", "tokens", "bpe", "max-tokens", "128", NULL };
    qkv_training *t = qkv_training_new(job);
    va_list more;
    const char *name;
    assert_non_null(t);
    for (int i = 0; size[i]; i += 2) assert_int_equal(qkv_training_set(t, size[i], size[i + 1]), QKV_OK);
    assert_int_equal(qkv_training_set(t, "train", in_folder(train)), QKV_OK);
    assert_int_equal(qkv_training_set(t, "out", in_folder(out)), QKV_OK);
    va_start(more, out);
    while ((name = va_arg(more, const char *))) assert_int_equal(qkv_training_set(t, name, va_arg(more, const char *)), QKV_OK);
    va_end(more);
    return t;
}

static qkv_status run(qkv_training *t, witness *w, qkv_training_end *end)
{
    const qkv_training_watch watch = {
        .note = note, .each = look_on, .stop = stop_there, .sample = take_samples, .n_samples = 2, .data = w
    };
    return qkv_training_run(t, &watch, end);
}

static char *contents(const char *name, const char *file, size_t *n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", name, file);
    FILE *f = fopen(in_folder(path), "rb");
    assert_non_null(f);
    char *bytes = calloc(1, 1 << 20);
    *n = fread(bytes, 1, (1 << 20) - 1, f);
    fclose(f);
    return bytes;
}

static void assert_same_file(const char *a, const char *b, const char *file)
{
    size_t n, m;
    char *x = contents(a, file, &n), *y = contents(b, file, &m);
    assert_true(n > 0 && n == m && !memcmp(x, y, n));
    free(x);
    free(y);
}

static void assert_has(const char *text, const char *piece)
{
    if (!strstr(text, piece)) fail_msg("\"%s\" is not in \"%s\"", piece, text);
}

/* ---- options ---- */

static void options_are_set_by_name(void **state)
{
    (void)state;
    qkv_training *t = qkv_training_new("translate");
    assert_null(qkv_training_new("fly"));
    assert_int_equal(qkv_error_status(), QKV_USAGE);
    assert_int_equal(qkv_training_set(t, "dropout", "0.25"), QKV_OK);
    assert_string_equal(qkv_training_get(t, "dropout"), "0.25");
    assert_int_equal(qkv_training_set(t, "positions", "rotary"), QKV_OK);
    assert_string_equal(qkv_training_get(t, "positions"), "rotary");
    assert_string_equal(qkv_training_get(t, "pre-norm"), "");
    assert_int_equal(qkv_training_set(t, "pre-norm", "yes"), QKV_OK);
    assert_string_equal(qkv_training_get(t, "pre-norm"), "yes");
    assert_null(qkv_training_get(t, "context")); /* another job's */
    assert_null(qkv_training_chosen(t, 0));
    assert_null(qkv_training_text_of(t));
    assert_null(qkv_training_model(t));
    qkv_training_free(t);
    qkv_training_free(NULL);
}

/* The first error is the one that is told, however many calls follow. */
static void the_first_wrong_option_is_told(void **state)
{
    (void)state;
    static const char *const wrong[][2] = { { "steps", "many" },     { "dim", "0" },    { "lr", "nan" },
                                            { "schedule", "steep" }, { "out", "" },     { "pre-norm", "no" },
                                            { "colour", "red" },     { "context", "3" } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        qkv_training *t = qkv_training_new("translate");
        assert_int_equal(qkv_training_set(t, wrong[i][0], wrong[i][1]), QKV_USAGE);
        assert_int_equal(qkv_training_set(t, "steps", "5"), QKV_OK);
        assert_int_equal(qkv_training_set(t, "warmup", "?"), QKV_USAGE);
        assert_int_equal(qkv_training_run(t, NULL, NULL), QKV_USAGE);
        assert_has(qkv_error(), wrong[i][0]);
        qkv_training_free(t);
    }
    qkv_training *t = qkv_training_new("mask");
    assert_int_equal(qkv_training_run(t, NULL, NULL), QKV_USAGE);
    assert_has(qkv_error(), "\"train\"");
    qkv_training_free(t);
}

/* ---- what is chosen ---- */

static void what_is_not_set_is_chosen(void **state)
{
    (void)state;
    witness w = { 0 };
    bool has_dropout = false;
    qkv_training *t = small_training("translate", "pairs.tsv", "chosen", "steps", "4", "dropout", "0.11", NULL);
    assert_int_equal(run(t, &w, NULL), QKV_OK);
    assert_non_null(qkv_training_chosen(t, 0));
    const char *name;
    for (int i = 0; (name = qkv_training_chosen(t, i)); i++) has_dropout = has_dropout || !strcmp(name, "dropout");
    assert_false(has_dropout);
    assert_string_equal(qkv_training_get(t, "dropout"), "0.11");
    assert_string_equal(qkv_training_get(t, "pre-norm"), "yes");
    assert_string_equal(qkv_training_get(t, "schedule"), "linear");
    assert_true(w.samples > 0);
    qkv_training_free(t);
    /* A rate belongs to its schedule: with one that was set it is not chosen. */
    t = small_training("translate", "pairs.tsv", "constant", "steps", "2", "schedule", "paper", NULL);
    assert_int_equal(run(t, &w, NULL), QKV_OK);
    for (int i = 0; (name = qkv_training_chosen(t, i)); i++) assert_string_not_equal(name, "lr");
    qkv_training_free(t);
}

static void the_summary_tells_of_all_of_it(void **state)
{
    (void)state;
    char row[128];
    qkv_training *t = small_training("classify", "labels.tsv", "summary", "steps", "2", NULL);
    witness w = { .training = t };
    assert_int_equal(qkv_training_summary(t, 1, 1, &w.summary), QKV_USAGE); /* nothing was read yet */
    assert_int_equal(run(t, &w, NULL), QKV_OK);
    const qkv_training_text *x = qkv_training_text_of(t);
    snprintf(row, sizeof row,
             "texts       %lld of %lld\nvalidation  %lld held back\nclasses     3: a (%lld), b (%lld), c (%lld)\nvocabulary  ",
             (long long)x->texts, (long long)(x->texts + x->valid), (long long)x->valid, (long long)x->label_counts[0],
             (long long)x->label_counts[1], (long long)x->label_counts[2]);
    assert_memory_equal(w.summary.data, row, strlen(row));
    snprintf(row, sizeof row, "\nparameters  %lld\nchosen      --",
             (long long)qkv_model_get_info(qkv_training_model(t))->parameters);
    assert_has(w.summary.data, row);
    for (int i = 0; qkv_training_chosen(t, i); i++) {
        snprintf(row, sizeof row, "--%s", qkv_training_chosen(t, i));
        assert_has(w.summary.data, row);
    }
    snprintf(row, sizeof row, "\nupdates     2, %lld an epoch: ", (long long)w.epoch_steps);
    assert_has(w.summary.data, row);
    for (const char *line = w.summary.data; *line; line += strcspn(line, "\n") + 1) assert_true(strcspn(line, "\n") <= 80);
    qkv_buffer_free(&w.summary);
    qkv_training_free(t);
}

static void the_papers_settings_choose_nothing(void **state)
{
    (void)state;
    witness w = { 0 };
    qkv_training *t = small_training("translate", "pairs.tsv", "paper", "steps", "2", "paper", "yes", NULL);
    assert_int_equal(run(t, &w, NULL), QKV_OK);
    assert_null(qkv_training_chosen(t, 0));
    assert_string_equal(qkv_training_get(t, "pre-norm"), "");
    assert_string_equal(qkv_training_get(t, "schedule"), "paper");
    qkv_training_free(t);
}

/* ---- minutes ---- */

static void a_plan_changes_no_weight(void **state)
{
    (void)state;
    const qkv_config small = { .vocab_size = 12, .encoder_layers = 1, .decoder_layers = 1, .dim = 16, .heads = 2, .d_ff = 32 };
    qkv_model *m = qkv_model_new(&small, 3);
    qkv_dataset *p = qkv_dataset_new();
    const int32_t ids[] = { 3, 4, 5, 6 };
    for (int i = 0; i < 30; i++) assert_int_equal(qkv_dataset_add_ids(p, ids, 4, ids, 4), QKV_OK);
    size_t bytes = sizeof(float) * (size_t)qkv__params_block(qkv_model_params(m));
    float *before = malloc(bytes);
    memcpy(before, qkv__params_data(qkv_model_params(m)), bytes);
    qkv_train_opts o = { .minutes = 0.005, .trainer = &(qkv_trainer_opts){ .clip_norm = 1 } };
    qkv_run_plan short_one, long_one;
    assert_int_equal(qkv_train_plan(m, p, &o, 0, &short_one), QKV_OK);
    assert_memory_equal(before, qkv__params_data(qkv_model_params(m)), bytes);
    o.minutes = 50;
    assert_int_equal(qkv_train_plan(m, p, &o, 0, &long_one), QKV_OK);
    assert_true(short_one.steps >= 1 && long_one.steps > 50 * short_one.steps);
    assert_true(long_one.step_seconds > 0 && long_one.epoch_steps == short_one.epoch_steps);
    assert_int_equal(qkv_train_plan(m, p, &o, 1e9, &long_one), QKV_OK); /* all of it is reserved */
    assert_int_equal(long_one.steps, 1);
    o.minutes = 0;
    assert_int_equal(qkv_train_plan(m, p, &o, 0, &long_one), QKV_USAGE);
    free(before);
    qkv_dataset_free(p);
    qkv_model_free(m);
}

/* What disturbs the machine for half of the time does not count; what stays does. */
static void a_short_load_changes_no_plan(void **state)
{
    (void)state;
    double calm[40], busy[40], loaded[40];
    for (int i = 0; i < 40; i++) {
        calm[i] = 0.1 + 0.001 * (i % 5);
        busy[i] = (i < 20 ? 10 : 1) * calm[i];
        loaded[i] = 2 * calm[i];
    }
    double each = qkv__steady_seconds(calm, 40);
    assert_true(fabs(each - 0.102) < 1e-6);
    assert_true(fabs(qkv__steady_seconds(busy, 40) - each) < 1e-6);
    assert_true(fabs(qkv__steady_seconds(loaded, 40) - 2 * each) < 1e-6);
    assert_true(fabs(qkv__steady_seconds(calm, 3) - 0.101) < 1e-6);
    assert_true(qkv__steady_seconds(calm, 0) == 0);
}

/* Three minutes on a busy machine: an update of 0.85 s, a validation of 18 s. */
static void updates_have_most_of_the_time(void **state)
{
    (void)state;
    static const double validations[] = { 0.01, 0.1, 1, 4, 10 };
    const double all = 180, left = all * (QKV__PLANNED_SHARE - QKV__TRIAL_SHARE), most = all * QKV__MEASURED_SHARE;
    for (int i = 0; i < 5; i++) {
        qkv__plan p = qkv__plan_steps(left, most, 0.85, validations[i], 9, 0);
        assert_true((double)p.steps * 0.85 > 0.85 * all);
        assert_true((double)p.steps * 0.85 + (double)p.validations * validations[i] <= left);
        assert_true(p.validations >= 1 && p.validations <= 20);
    }
    assert_int_equal(qkv__plan_steps(left, most, 0.85, 0.1, 9, 0).validations, 20);
    assert_int_equal(qkv__plan_steps(left, most, 0.85, 4, 9, 0).validations, 2);
    qkv__plan p = qkv__plan_steps(left, most, 0.85, 18, 9, 0); /* more than measuring may take: once, at the end */
    assert_true(p.validations == 1 && (double)p.steps * 0.85 > 0.8 * all);
    p = qkv__plan_steps(left, most, 0.85, 18, 9, 8); /* as often as it was asked for */
    assert_true(p.steps < 60 && p.validations == p.steps / 8);
}

static void validations_are_few_or_many(void **state)
{
    (void)state;
    assert_int_equal(qkv__validations(1000, 100), 10);
    assert_int_equal(qkv__validations(1000, 5000), 5);
    assert_int_equal(qkv__validations(1000, 1), 20);
}

/* What --minutes planned is a number of steps: typed, it gives the same bytes; stopped anywhere, the same. */
static void minutes_plan_steps(void **state)
{
    (void)state;
    witness w = { 0 };
    qkv_training_end end;
    char steps[32], every[32], fit[32];
    qkv_training *t = small_training("translate", "pairs.tsv", "timed", "minutes", "0.03", NULL);
    assert_int_equal(run(t, &w, &end), QKV_OK);
    assert_string_equal(end.reason, "all steps planned for --minutes are done");
    assert_int_equal(end.step, w.last_step);
    snprintf(steps, sizeof steps, "%lld", (long long)end.step);
    snprintf(every, sizeof every, "%s", qkv_training_get(t, "valid-every"));
    snprintf(fit, sizeof fit, "%s", qkv_training_get(t, "fit"));
    qkv_training_free(t);
    assert_has(w.notes, "--minutes 0.03: planned as --steps ");

    t = small_training("translate", "pairs.tsv", "counted", "steps", steps, "valid-every", every, "fit", fit, NULL);
    assert_int_equal(run(t, &w, &end), QKV_OK);
    qkv_training_free(t);
    assert_same_file("timed", "counted", "model.safetensors");
    assert_same_file("timed", "counted", "checkpoint.safetensors");
}

static void a_plan_of_less_than_an_epoch_is_told(void **state)
{
    (void)state;
    witness w = { 0 };
    qkv_training_end end;
    qkv_training *t = small_training("translate", "pairs.tsv", "short", "minutes", "0.0001", "max-tokens", "32", NULL);
    assert_int_equal(run(t, &w, &end), QKV_OK);
    qkv_training_free(t);
    assert_has(w.notes, "--minutes 0.0001: the plan ends before one pass over the text: give more minutes for a useful model");
}

static void a_plan_is_kept_over_a_stop(void **state)
{
    (void)state;
    for (int64_t at = 1; at < 5; at += 3) {
        witness first = { .stop_at = at }, second = { 0 }, whole = { 0 };
        qkv_training_end end;
        char cut[32], all[32], steps[32], every[32], fit[32];
        snprintf(cut, sizeof cut, "cut%lld", (long long)at);
        snprintf(all, sizeof all, "all%lld", (long long)at);
        qkv_training *t = small_training("translate", "pairs.tsv", cut, "minutes", "0.03", NULL);
        assert_int_equal(run(t, &first, &end), QKV_OK);
        assert_string_equal(end.reason, "enough");
        qkv_training_free(t);
        /* Whether it is given again or not: the plan is made once. */
        t = small_training("translate", "pairs.tsv", cut, "resume", "yes", at > 1 ? "minutes" : NULL, "9", NULL);
        assert_int_equal(run(t, &second, &end), QKV_OK);
        assert_int_equal(second.last_step, first.last_step);
        assert_int_equal(end.step, first.last_step);
        snprintf(every, sizeof every, "%s", qkv_training_get(t, "valid-every"));
        snprintf(fit, sizeof fit, "%s", qkv_training_get(t, "fit"));
        qkv_training_free(t);
        snprintf(steps, sizeof steps, "%lld", (long long)end.step);
        t = small_training("translate", "pairs.tsv", all, "steps", steps, "valid-every", every, "fit", fit, NULL);
        assert_int_equal(run(t, &whole, &end), QKV_OK);
        qkv_training_free(t);
        assert_same_file(cut, all, "model.safetensors");
        assert_same_file(cut, all, "checkpoint.safetensors");
    }
}

static const char *stop_at_once(void *data) { return data ? "at once" : NULL; }

static bool exists(const char *name)
{
    FILE *f = fopen(in_folder(name), "rb");
    if (f) fclose(f);
    return f != NULL;
}

/* Half a measurement would be a plan of billions of steps, and written down. */
static void a_stop_while_it_plans_leaves_nothing(void **state)
{
    (void)state;
    qkv_training_end end;
    const qkv_training_watch watch = { .stop = stop_at_once, .data = &end };
    qkv_training *t = small_training("mask", "pairs.tsv", "unplanned", "minutes", "5", NULL);
    assert_int_equal(qkv_training_run(t, &watch, &end), QKV_OK);
    assert_string_equal(end.reason, "at once");
    assert_int_equal(end.saved_step, -1);
    assert_false(exists("unplanned"));
    qkv_training_free(t);
}

/* A training that was begun without a plan, such as one of before there were any, is given more minutes by the clock. */
static void only_a_beginning_is_planned(void **state)
{
    (void)state;
    witness w = { 0 };
    qkv_training_end end;
    qkv_training *t = small_training("mask", "pairs.tsv", "clock", "paper", "yes", "schedule", "constant", "steps", "3", NULL);
    assert_int_equal(run(t, &w, NULL), QKV_OK);
    qkv_training_free(t);
    t = small_training("mask", "pairs.tsv", "clock", "paper", "yes", "schedule", "constant", "minutes", "0.001", "resume",
                       "yes", NULL);
    assert_int_equal(run(t, &w, &end), QKV_OK);
    assert_string_equal(end.reason, "--minutes reached");
    assert_true(end.step > 3 && !w.last_step);
    qkv_training_free(t);
}

/* Of a text as long as the training's, each validation takes as long as many updates. */
static void a_plan_knows_how_often_is_measured(void **state)
{
    (void)state;
    int64_t steps[2];
    for (int i = 0; i < 2; i++) {
        witness w = { .stop_at = 1 };
        qkv_training *t = small_training("mask", "pairs.tsv", i ? "often" : "seldom", "minutes", "0.5", "dry-run", "yes",
                                         "valid", in_folder("pairs.tsv"), i ? "valid-every" : NULL, "1", NULL);
        assert_int_equal(run(t, &w, NULL), QKV_OK);
        steps[i] = w.last_step;
        qkv_training_free(t);
    }
    assert_true(steps[1] > 0 && 2 * steps[1] < steps[0]);
}

/* ---- warnings ---- */

static void what_was_not_learned_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *job, *train, *piece; /* NULL: no warning */
        const char *lr, *steps;
    } cases[] = {
        { "translate", "pairs.tsv", "almost nothing: validation loss ", "1e-9", "2" },
        { "translate", "pairs.tsv", "almost nothing: BLEU ", "0.01", "60" },
        { "translate", "pairs.tsv", NULL, "0.01", "400" },
        { "mask", "pairs.tsv", "almost nothing: validation loss ", "1e-9", "2" },
        { "classify", "labels.tsv", "almost nothing: its accuracy is ", "1e-9", "2" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        witness w = { 0 };
        char out[32];
        snprintf(out, sizeof out, "chance%zu", i);
        qkv_training *t = small_training(cases[i].job, cases[i].train, out, "steps", cases[i].steps, "lr", cases[i].lr,
                                         "schedule", "constant",
                                         i < 3    ? "fit"
                                         : i == 4 ? "ngrams"
                                                  : NULL,
                                         i < 3 ? "nothing" : "0", NULL);
        assert_int_equal(run(t, &w, NULL), QKV_OK);
        if (cases[i].piece) assert_has(w.notes, cases[i].piece), assert_has(w.notes, "give more --minutes or --epochs");
        else assert_null(strstr(w.notes, "almost nothing"));
        qkv_training_free(t);
    }
}

/* ---- going on ---- */

/* Writes the record of a training with one piece of it replaced by another. */
static void change_record(const char *name, const char *piece, const char *by)
{
    size_t n;
    char path[128], *text = contents(name, "training.json", &n), *at = strstr(text, piece);
    assert_non_null(at);
    snprintf(path, sizeof path, "%s/training.json", name);
    FILE *f = fopen(in_folder(path), "wb");
    assert_non_null(f);
    fprintf(f, "%.*s%s%s", (int)(at - text), text, by, at + strlen(piece));
    assert_int_equal(fclose(f), 0);
    free(text);
}

static void resume_refused(const char *out, qkv_status wanted, const char *piece)
{
    witness w = { 0 };
    qkv_training *t = small_training("translate", "pairs.tsv", out, "steps", "4", "resume", "yes", NULL);
    assert_int_equal(run(t, &w, NULL), wanted);
    assert_has(qkv_error(), piece);
    qkv_training_free(t);
}

/* The folder alone is enough to go on: what was set, files among it, and what was chosen is in its record. */
static void resume_needs_the_folder_alone(void **state)
{
    (void)state;
    witness whole = { 0 }, first = { .stop_at = 3 }, second = { 0 };
    static const char *const more[] = { "beta2", "0.9", "no-source-eos", "yes", "pre-norm", "", "epochs", "1" };
    qkv_training_end end;
    for (int i = 0; i < 2; i++) {
        qkv_training *t = small_training("translate", "pairs.tsv", i ? "alone" : "together", NULL);
        qkv_training_set(t, "valid", in_folder("valid.tsv"));
        for (size_t k = 0; k < sizeof more / sizeof *more; k += 2) qkv_training_set(t, more[k], more[k + 1]);
        assert_int_equal(run(t, i ? &first : &whole, &end), QKV_OK);
        qkv_training_free(t);
    }
    assert_string_equal(end.reason, "enough");
    qkv_training *t = qkv_training_new("translate");
    qkv_training_set(t, "out", in_folder("alone"));
    qkv_training_set(t, "resume", "yes");
    assert_int_equal(run(t, &second, &end), QKV_OK);
    qkv_training_free(t);
    assert_same_file("together", "alone", "model.safetensors");
    assert_same_file("together", "alone", "checkpoint.safetensors");
    assert_same_file("together", "alone", "training.json");
}

static void a_damaged_record_is_told(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        { "\"chosen\": {", "\"chosen\": {\"colour\": \"red\", " },
        { "\"chosen\": {", "\"chosen\": {\"vocab\": 300, " },
        { "{\n    \"pre-norm\": \"yes\"", "{\n    \"pre-norm\": \"x\"" },
        { "\"chosen\": {", "\"chosen\": {\"dry-run\": \"yes\", " },
        { "\"chosen\": {", "\"chosen\": {\"valid\": \"/none\", " },
        { "\"chosen\": {", "\"chosen\": [], \"was\": {" },
        { "\"chosen\": {", "\"was\": {" },
        { "\"chosen\": {", "\"planned_steps\": -5, \"chosen\": {" },
        { "\"chosen\": {", "\"planned_steps\": \"7\", \"chosen\": {" },
        { "\"given\": {", "\"given\": {\"colour\": \"red\", " },
        { "\"given\": {", "\"given\": {\"out\": \"else\", " },
        { "\"given\": {", "\"given\": {\"warmup\": \"x\", " },
        { "\"given\": {", "\"given\": {\"valid\": [], " },
        { "\"given\": {", "\"given\": {\"valid\": [1], " },
    };
    witness w = { 0 };
    qkv_training *t = small_training("translate", "pairs.tsv", "damaged", "steps", "4", NULL);
    assert_int_equal(run(t, &w, NULL), QKV_OK);
    qkv_training_free(t);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        change_record("damaged", wrong[i][0], wrong[i][1]);
        resume_refused("damaged", QKV_FORMAT, "training.json: ");
        change_record("damaged", wrong[i][1], wrong[i][0]);
    }
}

/* It is not the number of steps that is wrong then. */
static void another_job_or_text_is_told(void **state)
{
    (void)state;
    witness w = { 0 };
    qkv_training *t = small_training("mask", "pairs.tsv", "masked", "epochs", "1", NULL);
    assert_int_equal(run(t, &w, NULL), QKV_OK);
    qkv_training_free(t);
    resume_refused("masked", QKV_USAGE, "it is a training of \"train mask\"");
    t = small_training("mask", "valid.tsv", "masked", "epochs", "1", "resume", "yes", NULL);
    assert_int_equal(run(t, &w, NULL), QKV_USAGE);
    assert_has(qkv_error(), "there were 570 pairs, and now there are 41");
    qkv_training_free(t);
}

/* Whoever resumes a training that is done gets the model that it had. */
static void a_fit_comes_out_again(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        witness w = { 0 };
        const char *out = i ? "fitted" : "wanted";
        if (i == 2) {
            qkv_model *m = qkv_model_load(in_folder(out), NULL);
            assert_int_equal(qkv_model_set_length_penalty(m, 2.5f), QKV_OK);
            assert_int_equal(qkv_model_save(m, in_folder(out), NULL), QKV_OK);
            qkv_model_free(m);
        }
        qkv_training *t = small_training("translate", "pairs.tsv", out, "steps", "4", i == 2 ? "resume" : NULL, "yes", NULL);
        assert_int_equal(run(t, &w, NULL), QKV_OK);
        assert_has(w.notes, "length penalty");
        qkv_training_free(t);
    }
    assert_same_file("wanted", "fitted", "config.json");
}

/* What a rule chose is no limit that was given: more steps may follow. */
static void steps_replace_chosen_epochs(void **state)
{
    (void)state;
    witness w = { .stop_at = 2 };
    qkv_training_end end;
    qkv_training *t = small_training("mask", "valid.tsv", "longer", "schedule", "constant", NULL);
    assert_int_equal(run(t, &w, NULL), QKV_OK);
    char steps[32];
    snprintf(steps, sizeof steps, "%lld", (long long)w.last_step + 3);
    qkv_training_free(t);
    t = small_training("mask", "valid.tsv", "longer", "schedule", "constant", "resume", "yes", "steps", steps, NULL);
    w.stop_at = 0;
    assert_int_equal(run(t, &w, &end), QKV_OK);
    assert_string_equal(end.reason, "--steps reached");
    qkv_training_free(t);
}

/* The second run of a training knows nothing of the first but what was set. */
static void a_training_may_run_twice(void **state)
{
    (void)state;
    witness w = { 0 };
    qkv_training *twice = small_training("mask", "valid.tsv", "first", "log-every", "5", NULL);
    assert_int_equal(run(twice, &w, NULL), QKV_OK);
    qkv_training *once = small_training("mask", "valid.tsv", "once", "log-every", "5", "paper", "yes", NULL);
    assert_int_equal(run(once, &w, NULL), QKV_OK);
    assert_int_equal(qkv_training_set(twice, "paper", "yes"), QKV_OK);
    assert_int_equal(qkv_training_set(twice, "out", in_folder("second")), QKV_OK);
    w.notes[0] = '\0';
    assert_int_equal(run(twice, &w, NULL), QKV_OK);
    assert_null(strstr(w.notes, "too few"));
    assert_string_equal(qkv_training_get(twice, "epochs"), qkv_training_get(once, "epochs"));
    assert_same_file("once", "second", "checkpoint.safetensors");
    qkv_training_free(once);
    qkv_training_free(twice);
}

/* ---- the text ---- */

/* 2 lines in 100 have three sentences, one in 600 has nine: the 99th percentile is three, and the folder says so. */
static void sentences_of_a_line_are_recorded(void **state)
{
    (void)state;
    FILE *f = fopen(in_folder("sentences.tsv"), "w");
    assert_non_null(f);
    for (int i = 0; i < LINES; i++) {
        for (int s = 0; s < (i == 7 ? 9 : i % 50 ? 1 : 3); s++) fprintf(f, "%sW%d x%d y%d.", s ? " " : "", s, i % 11, i);
        fprintf(f, "\tx%d. W%d. Y%d\n", i % 11, i % 7, i); /* targets do not count */
    }
    fclose(f);
    static const char *const texts[] = { "sentences.tsv", "pairs.tsv" };
    for (int i = 0; i < 2; i++) {
        witness w = { 0 };
        const char *out = i ? "one_sentence" : "three_sentences";
        qkv_training *t = small_training("translate", texts[i], out, "steps", "1", NULL);
        assert_int_equal(run(t, &w, NULL), QKV_OK);
        assert_int_equal(qkv_model_get_info(qkv_training_model(t))->sentences, i ? 1 : 3);
        qkv_training_free(t);
        qkv_model *m = qkv_model_load(in_folder(out), NULL);
        assert_non_null(m);
        assert_int_equal(qkv_model_get_info(m)->sentences, i ? 0 : 3); /* one is not written */
        qkv_model_free(m);
    }
}

/* Two files that differ in a last suffix which is a code: it is kept with the model. */
static void languages_are_recorded(void **state)
{
    (void)state;
    static const struct {
        const char *source, *target, *codes[2];
    } rows[] = { { "text.en", "text.pt-BR", { "en", "pt-BR" } }, { "text.zho_Hans.txt", "text.de.txt", { "zho_Hans", "de" } },
                 { "text.src", "text.tgt", { "", "" } },         { "text.en", "other.de", { "", "" } },
                 { "text.en", "text.en", { "", "" } },           { "text.a", "text.b", { "", "" } } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char source[256], target[256], out[16];
        snprintf(out, sizeof out, "coded%zu", i);
        snprintf(source, sizeof source, "%s", in_folder(rows[i].source));
        snprintf(target, sizeof target, "%s", in_folder(rows[i].target));
        for (int side = 0; side < 2; side++) {
            FILE *f = fopen(side ? target : source, "w");
            assert_non_null(f);
            for (int n = 0; n < LINES; n++) fprintf(f, "w%d x%d y%d\n", n % 7, n % 11, n);
            fclose(f);
        }
        witness w = { 0 };
        qkv_training *t = small_training("translate", rows[i].source, out, "train", target, "steps", "1", NULL);
        if (run(t, &w, NULL)) fail_msg("%s", qkv_error());
        qkv_training_free(t);
        qkv_model *m = qkv_model_load(in_folder(out), NULL);
        if (!m) fail_msg("%s", qkv_error());
        assert_string_equal(qkv_model_get_info(m)->source_language, rows[i].codes[0]);
        assert_string_equal(qkv_model_get_info(m)->target_language, rows[i].codes[1]);
        size_t length;
        char *config = contents(out, "config.json", &length);
        assert_int_equal(strstr(config, "_language\"") != NULL, *rows[i].codes[0] != 0);
        free(config);
        qkv_buffer told = { 0 };
        assert_int_equal(qkv_model_describe(m, NULL, 0, &told), QKV_OK);
        assert_int_equal(strstr(told.data, "languages") != NULL, *rows[i].codes[0] != 0);
        qkv_buffer_free(&told);
        qkv_model_free(m);
    }
}

static void texts_are_held_back(void **state)
{
    (void)state;
    static const char *const jobs[] = { "translate", "classify", "mask", "generate" };
    static const char *const files[] = { "pairs.tsv", "labels.tsv", "pairs.tsv", "pairs.tsv" };
    for (int i = 0; i < 4; i++) {
        witness w = { 0 };
        qkv_training *t = small_training(jobs[i], files[i], jobs[i], "steps", "2", i < 3 ? NULL : "split", "0.05", NULL);
        assert_int_equal(run(t, &w, NULL), QKV_OK);
        assert_string_equal(qkv_training_get(t, "split"), "0.05");
        const qkv_training_text *x = qkv_training_text_of(t);
        if (i < 3) assert_int_equal(x->valid, LINES / 20);
        if (i < 2) assert_int_equal(x->texts, LINES - LINES / 20);
        assert_true(x->valid > 0 && !x->overlap);
        qkv_training_free(t);
    }
    witness w = { 0 };
    qkv_training *t = small_training("translate", "valid.tsv", "few", "steps", "1", NULL);
    assert_int_equal(run(t, &w, NULL), QKV_OK);
    assert_string_equal(qkv_training_get(t, "split"), "0");
    assert_has(w.notes, "43 pairs are too few to hold some back");
    qkv_training_free(t);
    t = small_training("translate", "pairs.tsv", "half", "steps", "1", "split", "0.7", NULL);
    assert_int_equal(run(t, &w, NULL), QKV_USAGE);
    qkv_training_free(t);
}

/* Each in one sentence, and no folder is left. */
static void validation_text_must_be_there(void **state)
{
    (void)state;
    static const struct {
        const char *job, *train, *name, *value, *name2, *value2, *told;
    } wrong[] = {
        { "translate", "pairs.tsv", "split", "0.0001", "seed", "1", "--split 0.0001: of 600 pairs it holds none back" },
        { "classify", "labels.tsv", "split", "0.0001", "seed", "1", "--split 0.0001: of 600 texts it holds none back" },
        { "mask", "pairs.tsv", "split", "1e-44", "seed", "1", "of 600 documents it holds none back" },
        { "generate", "pairs.tsv", "split", "1e-44", "seed", "1", "windows it holds none back" },
        { "translate", "pairs.tsv", "split", "1e-44", "seed", "1", "of 600 pairs it holds none back" },
        { "translate", "pairs.tsv", "split", "0", "fit", "length", "--fit length needs --valid, or --split" },
        { "translate", "valid.tsv", "seed", "1", "fit", "length", "--fit length needs --valid, or --split" },
        { "translate", "pairs.tsv", "paper", "yes", "metric", "bleu", "--metric bleu needs --valid, or --split" },
        { "translate", "valid.tsv", "seed", "1", "metric", "bleu", "--metric bleu needs --valid, or --split" },
        { "translate", "pairs.tsv", "split", "0.1", "valid", "valid.tsv", "--split: nothing is held back where --valid" },
        { "translate", "pairs.tsv", "split", "-0.1", "seed", "1", "--split: -0.1 is not from 0 to 0.5" },
        { "translate", "pairs.tsv", "minutes", "-1", "seed", "1", "--minutes: -1 is not above 0" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        witness w = { 0 };
        qkv_training *t = small_training(wrong[i].job, wrong[i].train, "nothing", "steps", "1", wrong[i].name, wrong[i].value,
                                         wrong[i].name2, wrong[i].value2, NULL);
        assert_int_equal(run(t, &w, NULL), QKV_USAGE);
        assert_has(qkv_error(), wrong[i].told);
        assert_false(exists("nothing"));
        qkv_training_free(t);
    }
    witness w = { 0 };
    qkv_training *t = small_training("translate", "pairs.tsv", "by-bleu", "steps", "1", "metric", "bleu", NULL);
    assert_int_equal(run(t, &w, NULL), QKV_OK); /* a rule holds text back */
    qkv_training_free(t);
}

/* Texts of the classes are those that are trained on. */
static void classes_are_counted_without_what_is_held_back(void **state)
{
    (void)state;
    witness w = { 0 };
    qkv_training *t = small_training("classify", "labels.tsv", "thirds", "steps", "1", "split", "0.333333", "balance", "yes",
                                     NULL);
    assert_int_equal(run(t, &w, NULL), QKV_OK); /* every third text: all of class c */
    const qkv_training_text *x = qkv_training_text_of(t);
    assert_int_equal(x->label_counts[0] + x->label_counts[1] + x->label_counts[2], x->texts);
    assert_int_equal(x->label_counts[2], 0);
    assert_has(w.notes, "no training text has the label \"c\"");
    assert_has(w.notes, "no validation text has the label \"a\", nor 1 other");
    qkv_training_free(t);
}

/* A limit of 0 is none. */
static void no_steps_are_refused(void **state)
{
    (void)state;
    witness w = { .stop_at = 1 };
    qkv_training *t = small_training("translate", "pairs.tsv", "steps0", "steps", "0", NULL);
    assert_int_equal(run(t, &w, NULL), QKV_USAGE);
    assert_has(qkv_error(), "--steps 0 trains nothing");
    assert_false(exists("steps0"));
    qkv_training_free(t);
}

static void what_is_odd_about_the_text_is_told(void **state)
{
    (void)state;
    witness w = { 0 };
    qkv_training *t = small_training("translate", "pairs.tsv", "twice", "steps", "1", "valid", in_folder("valid.tsv"), NULL);
    assert_int_equal(run(t, &w, NULL), QKV_OK);
    assert_int_equal(qkv_training_text_of(t)->overlap, 3);
    assert_has(w.notes, "3 of 43 pairs are in the training text too");
    qkv_training_free(t);
    w.notes[0] = '\0';
    t = small_training("classify", "labels.tsv", "missing", "steps", "1", "valid", in_folder("some.tsv"), NULL);
    assert_int_equal(run(t, &w, NULL), QKV_OK);
    assert_has(w.notes, "no validation text has the label \"c\"");
    qkv_training_free(t);
}

static void write_text(const char *name, const char *text)
{
    FILE *f = fopen(in_folder(name), "w");
    assert_true(f && fputs(text, f) >= 0 && !fclose(f));
}

/* Semicolons, labels in several spellings, texts without a label, and some that come twice, of which one is in the validation text. */
static void labelled_text_as_people_have_it(void **state)
{
    (void)state;
    static const char spellings[] =
        "3 labels differ only in case or white space: \"BILLING\" (1), \"Billing\" (1), \"billing\" (2): "
        "--merge-labels merges them";
    write_text("messy.csv", "Art;Text\nbilling;a, b\nbilling ;\"c; d\"\nBILLING;e\n;f\nshipping;g\n\nBilling;h\nshipping;g\n"
                            "new  line;i\nShipping Co;g\n;\n");
    write_text("messy.valid.csv", "Art,Text\nBiLLing,\"a, b\"\nshipping,k\nmeh,l\n");
    for (int merges = 0; merges < 2; merges++) {
        witness w = { 0 };
        qkv_training *t = small_training("classify", "messy.csv", merges ? "messy1" : "messy0", "steps", "1", "label-column",
                                         "Art", "text-column", "Text", "valid", in_folder("messy.valid.csv"), "merge-labels",
                                         merges ? "yes" : "", NULL);
        w.training = t;
        assert_int_equal(run(t, &w, NULL), QKV_OK);
        const qkv_training_text *x = qkv_training_text_of(t);
        assert_true(x->texts == 8 && x->unlabelled == 1 && x->empty == 2 && x->repeated == 2);
        assert_true(x->valid == 1 + merges && x->overlap == merges && x->n_labels == 6 - 2 * merges);
        assert_string_equal(x->labels[merges ? 1 : 3], "billing");
        assert_has(w.notes, "texts without a label: 1, the first is line 5: left out");
        if (!merges) assert_has(w.notes, spellings);
        else assert_has(w.notes, "3 labels that differ only in case or white space are merged: \"BILLING\" (1), ");
        assert_has(w.notes, merges ? "texts with an unknown label: 1, the first is line 4, \"meh\": left out"
                                   : "texts with an unknown label: 2, the first is line 2, \"BiLLing\": left out");
        assert_has(w.summary.data, "texts       8 of 11; left out: 2 empty, 1 without a label\n");
        assert_has(w.summary.data, "columns     separated by \";\"\nduplicates  2 of the training texts\n");
        assert_has(w.summary.data, merges ? "validation  2; 1 of them occur in the training text too\n" : "validation  1\n");
        qkv_training_free(t);
        qkv_buffer_free(&w.summary);
    }
    static const char *const strict[][2] = { { "messy.csv", "messy.csv: line 5: the label is empty" },
                                             { "clean.csv", "messy.valid.csv: line 2: the label \"BiLLing\" is not in " } };
    write_text("clean.csv", "Art;Text\nbilling;a\nshipping;b\n");
    for (int i = 0; i < 2; i++) {
        witness w = { 0 };
        qkv_training *t = small_training("classify", strict[i][0], "messy2", "steps", "1", "label-column", "Art", "text-column",
                                         "Text", "valid", in_folder("messy.valid.csv"), "strict", "yes", NULL);
        assert_int_equal(run(t, &w, NULL), QKV_FORMAT);
        assert_has(qkv_error(), strict[i][1]);
        qkv_training_free(t);
    }
}

/* Pairs that come twice are counted too. */
static void pairs_that_come_twice(void **state)
{
    (void)state;
    witness w = { 0 };
    write_text("twice.tsv", "a b\tc d\na b\tc d\na b\tc e\nf\tg\na b\tc d\n");
    qkv_training *t = small_training("translate", "twice.tsv", "twice.model", "steps", "1", "split", "0", "max-tokens", "16",
                                     NULL);
    w.training = t;
    assert_int_equal(run(t, &w, NULL), QKV_OK);
    assert_int_equal(qkv_training_text_of(t)->repeated, 2);
    assert_has(w.summary.data, "duplicates  2 of the training pairs\n");
    qkv_training_free(t);
    qkv_buffer_free(&w.summary);
}

/* Half of the rows occur twice, and one word tells the class. */
static void counts_are_fitted_to_the_texts(void **state)
{
    (void)state;
    enum { ROWS = 160 };
    FILE *f = fopen(in_folder("counted.tsv"), "wb");
    for (int i = 0; f && i < ROWS; i++) {
        int text = i < ROWS / 2 ? i / 2 : i;
        fprintf(f, "%s\tw%d %s x%d y%d z%d\n", text % 2 ? "good" : "bad", text, text % 2 ? "fine" : "poor", text, text, text);
    }
    assert_int_equal(f ? fclose(f) : 1, 0);
    witness w = { 0 };
    qkv_training *t = small_training("classify", "counted.tsv", "log-counts", "steps", "1", "tokens", "wordpunct", "vocab",
                                     "2000", "lr", "1e-9", "schedule", "constant", NULL);
    assert_int_equal(run(t, &w, NULL), QKV_OK);
    qkv_training_free(t);
    qkv_model *m = qkv_model_load(in_folder("log-counts"), NULL);
    assert_non_null(m);
    const qkv_tensor *totals = qkv_params_find(qkv_model_params(m), "ngrams.totals");
    const qkv_tensor *weights = qkv_params_find(qkv_model_params(m), "ngrams.weight");
    assert_true(totals && weights && qkv_tensor_count(totals) == 7);
    assert_true(qkv_tensor_data(totals)[6] == 0.5f);
    assert_true(qkv_tensor_data(weights)[0] > 1.02f);
    qkv_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labelled_text_as_people_have_it),
        cmocka_unit_test(pairs_that_come_twice),
        cmocka_unit_test(options_are_set_by_name),
        cmocka_unit_test(the_first_wrong_option_is_told),
        cmocka_unit_test(what_is_not_set_is_chosen),
        cmocka_unit_test(the_summary_tells_of_all_of_it),
        cmocka_unit_test(the_papers_settings_choose_nothing),
        cmocka_unit_test(a_plan_changes_no_weight),
        cmocka_unit_test(a_short_load_changes_no_plan),
        cmocka_unit_test(updates_have_most_of_the_time),
        cmocka_unit_test(validations_are_few_or_many),
        cmocka_unit_test(minutes_plan_steps),
        cmocka_unit_test(a_plan_of_less_than_an_epoch_is_told),
        cmocka_unit_test(a_plan_is_kept_over_a_stop),
        cmocka_unit_test(a_stop_while_it_plans_leaves_nothing),
        cmocka_unit_test(only_a_beginning_is_planned),
        cmocka_unit_test(a_plan_knows_how_often_is_measured),
        cmocka_unit_test(what_was_not_learned_is_told),
        cmocka_unit_test(resume_needs_the_folder_alone),
        cmocka_unit_test(a_damaged_record_is_told),
        cmocka_unit_test(another_job_or_text_is_told),
        cmocka_unit_test(a_fit_comes_out_again),
        cmocka_unit_test(steps_replace_chosen_epochs),
        cmocka_unit_test(a_training_may_run_twice),
        cmocka_unit_test(sentences_of_a_line_are_recorded),
        cmocka_unit_test(languages_are_recorded),
        cmocka_unit_test(texts_are_held_back),
        cmocka_unit_test(what_is_odd_about_the_text_is_told),
        cmocka_unit_test(validation_text_must_be_there),
        cmocka_unit_test(classes_are_counted_without_what_is_held_back),
        cmocka_unit_test(counts_are_fitted_to_the_texts),
        cmocka_unit_test(no_steps_are_refused),
    };
    return cmocka_run_group_tests(tests, make_texts, remove_folder);
}
